"""Stated against observed frequencies."""

from typing import Any

import numpy as np

from penchant.errors import DataError
from penchant.gp import as_shown
from penchant.io import as_comparisons
from penchant.metrics import Calibration
from penchant.metrics import calibration as compared
from penchant.plots.style import BLUE, GREY, axes, tidy


def plot_calibration(
    calibration: Calibration | Any, ax: Any | None = None, *, data: Any = None
) -> Any:
    """Observed share against predicted probability, bin by bin, with two standard errors.

    On the diagonal, what is given 70 % happens 7 times in 10; above it the model was too timid
    about what it favoured, below it too bold. The area of a point is the number of predictions.

    calibration : what `penchant.metrics.calibration` gives, or a model.
    data : beside a model, comparisons that it has not learned from, by people whom it knows.

    >>> from penchant.metrics import calibration
    >>> ax = plot_calibration(calibration([0.7, 0.7, 0.7, 0.3], n_bins=5))
    >>> ax.get_xlabel()
    'predicted probability'
    """
    if not isinstance(calibration, Calibration):
        calibration = _of_model(calibration, data)
    full = calibration.count > 0
    x, y = calibration.predicted[full], calibration.observed[full]
    count = calibration.count[full]
    # Wilson's centre keeps the error of a bin that came out all one way above zero
    centre = (y * count + 2.0) / (count + 4.0)
    reach = 2.0 * np.sqrt(centre * (1.0 - centre) / (count + 4.0))
    ax = axes(ax, height=3.2)
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    ax.vlines(x, np.maximum(centre - reach, 0), np.minimum(centre + reach, 1), color=BLUE)
    ax.scatter(
        x, y, s=12 + 60 * count / count.max(), color=BLUE, alpha=0.8, zorder=3, clip_on=False
    )
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability", ylabel="observed share")
    ax.set_aspect("equal")
    return tidy(ax)


def _of_model(model: Any, data: Any) -> Calibration:
    if data is None:
        raise DataError(
            "plot_calibration was given a model without data: its own comparisons would flatter "
            "it; give comparisons that it has not learned from, as data=…"
        )
    data = as_comparisons(data)
    decided = ~data.tie
    ends = (data.winner[decided].tolist(), data.loser[decided].tolist())
    # names, because a model would take the index 3 for an item that is called 3
    pairs = [(data.items[a], data.items[b]) for a, b in zip(*ends, strict=True)]
    if not pairs:
        raise DataError("there is nothing to compare predictions with: all comparisons are ties")
    who = None if data.user is None else [data.users[u] for u in data.user[decided].tolist()]
    prob = model.predict_proba(pairs, who, **as_shown(model, data, decided))
    return compared(prob, counts=data.count[decided])
