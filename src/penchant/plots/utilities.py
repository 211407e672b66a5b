"""Utilities along one feature."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.errors import DataError
from penchant.plots.style import BLUE, axes, tidy


def plot_utilities(
    x: ArrayLike,
    mean: ArrayLike | Any,
    std: ArrayLike | None = None,
    ax: Any | None = None,
    marks: ArrayLike | None = None,
) -> Any:
    """The mean utility as a line, with bands of one and two standard deviations.

    x : (n,) values of the feature, in any order; mean, std : (n,) what
    `model.predict(X, return_std=True)` gives, or in place of both a model that was fitted with
    this one feature; marks : where items were, drawn on the axis.

    >>> ax = plot_utilities([0, 1, 2], mean=[0.0, 1.0, 0.5], std=[0.1, 0.2, 0.4])
    >>> len(ax.lines), len(ax.collections)
    (1, 2)
    """
    if hasattr(mean, "predict"):
        mean, std = mean.predict(np.reshape(x, (-1, 1)), return_std=True)
    elif std is None:
        raise DataError("plot_utilities needs std beside mean; or a model in place of both")
    x, mean, std = (np.asarray(column, dtype=np.float64) for column in (x, mean, std))
    order = np.argsort(x)
    x, mean, std = x[order], mean[order], std[order]
    ax = axes(ax)
    for width, alpha in ((2.0, 0.15), (1.0, 0.25)):
        ax.fill_between(
            x, mean - width * std, mean + width * std, color=BLUE, alpha=alpha, linewidth=0
        )
    ax.plot(x, mean, color=BLUE, linewidth=1.2)
    if marks is not None:
        places = np.asarray(marks, dtype=np.float64)
        ax.plot(
            places,
            np.zeros(places.size),
            "|",
            color="black",
            markersize=5,
            transform=ax.get_xaxis_transform(),
            clip_on=False,
        )
    ax.set(xlabel="feature", ylabel="utility")
    return tidy(ax)
