"""Utilities over time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.plots.style import COLOURS, GREY, axes, name_lines, short, tidy


def plot_paths(
    times: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    names: Sequence[object],
    ax: Any | None = None,
    last: Any = None,
) -> Any:
    """A line for every item's utility over time, with a band of two standard deviations.

    times : (k,) dates or days; mean, std : (k, n) what `model.paths(times)` gives, or some of its
    columns; names : (n,) of the items; last : a time beyond which everything is a forecast.

    >>> ax = plot_paths([0, 7], [[0.0, 1.0], [0.5, 0.5]], [[0.1, 0.1], [0.2, 0.2]], ["tea", "milk"])
    >>> len(ax.lines), len(ax.collections)
    (2, 2)
    """
    when = np.asarray(times)
    mean, std = (np.asarray(table, dtype=np.float64) for table in (mean, std))
    ax = axes(ax)
    for k, name in enumerate(names):
        colour, style = COLOURS[k % len(COLOURS)], ("-", "--", ":")[k // len(COLOURS) % 3]
        low, high = mean[:, k] - 2.0 * std[:, k], mean[:, k] + 2.0 * std[:, k]
        ax.fill_between(when, low, high, color=colour, alpha=0.12, linewidth=0)
        (line,) = ax.plot(when, mean[:, k], style, color=colour, linewidth=1.2)
        line.set_label(short(name))
    if last is not None:
        ax.axvline(last, color=GREY, linewidth=0.8, linestyle=":")
    ax.set(xlabel="time", ylabel="utility")
    if len(names) > 1:
        name_lines(ax)
    return tidy(ax)
