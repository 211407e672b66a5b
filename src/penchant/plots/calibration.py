"""Stated against observed frequencies."""

from typing import Any

import numpy as np

from penchant.metrics import Calibration
from penchant.plots.style import BLUE, GREY, axes, tidy


def plot_calibration(calibration: Calibration, ax: Any | None = None) -> Any:
    """Observed share against predicted probability, bin by bin, with two standard errors.

    On the diagonal, what is given 70 % happens 7 times in 10; above it the model was too timid
    about what it favoured, below it too bold. The area of a point is the number of predictions.

    >>> from penchant.metrics import calibration
    >>> ax = plot_calibration(calibration([0.7, 0.7, 0.7, 0.3], n_bins=5))
    >>> ax.get_xlabel()
    'predicted probability'
    """
    full = calibration.count > 0
    x, y = calibration.predicted[full], calibration.observed[full]
    count = calibration.count[full]
    # Wilson's centre keeps the error of a bin that came out all one way above zero
    centre = (y * count + 2.0) / (count + 4.0)
    reach = 2.0 * np.sqrt(centre * (1.0 - centre) / (count + 4.0))
    ax = axes(ax, height=3.2)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    ax.vlines(x, np.maximum(centre - reach, 0), np.minimum(centre + reach, 1), color=BLUE)
    ax.scatter(x, y, s=12 + 60 * count / count.max(), color=BLUE, alpha=0.8, zorder=3)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability", ylabel="observed share")
    ax.set_aspect("equal")
    return tidy(ax)
