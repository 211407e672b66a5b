"""Items: the ranking, one user's utilities, win probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from penchant.numerics.types import FloatArray
from penchant.plots import style


def plot_ranking(ranking: Sequence[Any] | Any, ax: Any | None = None, top: int = 30) -> Any:
    """Utilities with intervals, best on top, and beside each its chance of being best.

    ranking : a model, or what `model.rank()` returns. top : how many rows to draw.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea", "milk"], ["milk", "water", "water"])
    >>> ax = plot_ranking(pc.PreferenceGP(optimize=None).fit(None, data))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['tea', 'milk', 'water']
    """
    rows = list((ranking.rank() if hasattr(ranking, "rank") else ranking)[:top])
    ax = style.axes(ax, height=0.8 + 0.17 * len(rows))
    style.draw_intervals(ax, rows)
    for place, row in enumerate(rows):
        if row.prob_best >= 0.005:
            chance = f"{100 * row.prob_best:.0f} %"
            style.write(ax, chance, (row.high, place), (3, 0), va="center", color=style.GREY)
    ax.margins(x=0.12)
    return style.tidy(ax, xlabel="utility, with interval; chance of being best beside it")


def plot_user(model: Any, user: Any, ax: Any | None = None, level: float = 0.95) -> Any:
    """One user's utilities with intervals, best on top, relative to the average item.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"], user=["ann", "bob"])
    >>> ax = plot_user(pc.MultiUserGP(optimize=None).fit(None, data), "ann")
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['tea', 'water', 'milk']
    """
    rows = model.rank(user, level=level)
    ax = style.axes(ax, height=0.8 + 0.17 * len(rows))
    style.draw_intervals(ax, rows, zero=True)
    return style.tidy(ax, xlabel=f"utility above the average item, {100 * level:.3g} % interval")


def plot_user_against_population(
    model: Any, user: Any, ax: Any | None = None, level: float = 0.95
) -> Any:
    """Each item's utility to the population (across) and to the user (up), with intervals.

    Above the diagonal the user likes an item better than people at large do.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "milk"], ["milk", "tea"], user=["ann", "bob"])
    >>> ax = plot_user_against_population(pc.MultiUserGP(optimize=None).fit(None, data), "ann")
    >>> [text.get_text() for text in ax.texts]
    ['milk', 'tea']
    """
    own, own_reach = _above_average(model, user, level)
    shared, shared_reach = _above_average(model, None, level)
    ax = style.axes(ax, height=3.2)
    ax.axline((0.0, 0.0), slope=1.0, color=style.GREY, linewidth=0.8, linestyle="--", zorder=1)
    look = {"fmt": "o", "color": style.BLUE, "ecolor": style.GREY, "elinewidth": 0.6}
    ax.errorbar(shared, own, xerr=shared_reach, yerr=own_reach, markersize=3, **look)
    style.name_points(ax, np.column_stack([shared, own]), model.comparisons_.items)
    return style.tidy(ax, xlabel="utility to the population", ylabel="utility to the user")


def _above_average(model: Any, user: Any, level: float) -> tuple[FloatArray, FloatArray]:
    """Utilities relative to the average item, and half the width of their intervals."""
    belief = model.belief(user)
    reach = ndtri(0.5 + 0.5 * level) * np.sqrt(belief.contrast_var)
    return belief.mean - belief.mean.mean(), reach


NUMBERED = 12
"""Up to this many items each cell holds its number."""
SHOWN = 20
"""Items that a model's matrix shows, the best first, where no items are given."""


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

    probabilities : (n, n), with any diagonal; or a model.
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
    ax = style.axes(ax, width=max(3.5, size), height=max(2.8, size - 0.3))
    image = ax.imshow(shown, cmap="PuOr", vmin=0.0, vmax=1.0)
    if n <= NUMBERED:
        for row, column in np.argwhere(np.isfinite(shown)):
            p = shown[row, column]
            how = {"color": "white" if abs(p - 0.5) > 0.35 else "black", "gid": style.ON_COLOUR}
            ax.text(column, row, f"{100 * p:.0f}", ha="center", va="center", fontsize=7, **how)
    style.name_ticks(ax.xaxis, items, rotation=90)
    style.name_ticks(ax.yaxis, items)
    bar = ax.figure.colorbar(image, ax=ax, shrink=0.8)
    bar.set_label("P(row preferred to column)", size=style.NORMAL)
    bar.ax.tick_params(labelsize=style.SMALL)
    return style.tidy(ax)
