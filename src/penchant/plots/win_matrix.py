"""Who beats whom, as a matrix."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from penchant.numerics.types import FloatArray
from penchant.plots.style import NORMAL, ON_COLOUR, SMALL, axes, name_ticks, tidy

NUMBERED = 12
"""Up to this many items each cell holds its number."""


SHOWN = 20
"""Items that a model's matrix shows, the best first, where nobody says which."""


def win_matrix(model: Any, items: Sequence[Any]) -> FloatArray:
    """(n, n) P(row preferred to column) by a model, ½ on the diagonal.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "milk"])
    >>> model = pc.PreferenceGP(optimize=None).fit(None, data)
    >>> win_matrix(model, ["tea", "milk"]).round(2)
    array([[0.5 , 0.82],
           [0.18, 0.5 ]])
    """
    first, second = np.nonzero(~np.eye(len(items), dtype=bool))
    matrix = np.full((len(items), len(items)), 0.5)
    pairs = [(items[a], items[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    matrix[first, second] = model.predict_proba(pairs)
    return matrix


def plot_win_matrix(
    probabilities: Any, items: Sequence[Any] | None = None, ax: Any | None = None
) -> Any:
    """P(row preferred to column): purple where the row wins, orange where the column does.

    probabilities : (n, n), the diagonal is not looked at; or a model.
    items : n names in that order; of a model, which to show: its best by default.

    >>> ax = plot_win_matrix([[0.5, 0.8], [0.2, 0.5]], ["tea", "milk"])
    >>> [text.get_text() for text in ax.texts]
    ['80', '20']
    """
    if hasattr(probabilities, "predict_proba"):
        model = probabilities
        items = [row.item for row in model.rank()[:SHOWN]] if items is None else items
        probabilities = win_matrix(model, items)
    shown = np.array(probabilities, dtype=np.float64)
    items = range(len(shown)) if items is None else items
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
                fontsize=7,
                color="white" if abs(p - 0.5) > 0.35 else "black",
                gid=ON_COLOUR,
            )
    name_ticks(ax.xaxis, items, rotation=90)
    name_ticks(ax.yaxis, items)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    bar.set_label("P(row preferred to column)", size=NORMAL)
    bar.ax.tick_params(labelsize=SMALL)
    return tidy(ax)
