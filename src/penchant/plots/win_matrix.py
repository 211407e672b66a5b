"""Who beats whom, as a matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from penchant.plots.style import axes, name_ticks, tidy

NUMBERED = 12
"""Up to this many items each cell holds its number."""


def plot_win_matrix(probabilities: ArrayLike, items: Sequence[Any], ax: Any | None = None) -> Any:
    """P(row preferred to column): purple where the row wins, orange where the column does.

    probabilities : (n, n), the diagonal is not looked at; items : n names in that order.

    >>> ax = plot_win_matrix([[0.5, 0.8], [0.2, 0.5]], ["tea", "milk"])
    >>> [text.get_text() for text in ax.texts]
    ['80', '20']
    """
    shown = np.array(probabilities, dtype=np.float64)
    np.fill_diagonal(shown, np.nan)
    n = len(shown)
    size = min(7.0, 1.6 + 0.22 * n)
    ax = axes(ax, width=max(3.5, size), height=max(2.8, size - 0.3))
    image = ax.imshow(shown, cmap="PuOr", vmin=0.0, vmax=1.0)
    if n <= NUMBERED:
        for row, column in np.argwhere(np.isfinite(shown)):
            p = shown[row, column]
            ax.text(
                column,
                row,
                f"{100 * p:.0f}",
                ha="center",
                va="center",
                fontsize=6,
                color="white" if abs(p - 0.5) > 0.35 else "black",
            )
    name_ticks(ax.xaxis, items, rotation=90)
    name_ticks(ax.yaxis, items)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    bar.set_label("P(row preferred to column)", size=7)
    bar.ax.tick_params(labelsize=6)
    return tidy(ax)
