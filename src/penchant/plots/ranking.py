"""The ranking as a forest plot."""

from collections.abc import Sequence
from typing import Any

from penchant.plots.style import BLUE, GREY, SMALL, axes, name_ticks, tidy


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
    ax = axes(ax, height=0.8 + 0.17 * len(rows))
    places = range(len(rows))
    ax.hlines(places, [r.low for r in rows], [r.high for r in rows], color=GREY, linewidth=1)
    ax.scatter([r.utility for r in rows], places, color=BLUE, s=14, zorder=3)
    for place, row in zip(places, rows, strict=True):
        if row.prob_best >= 0.005:
            ax.annotate(
                f"{100 * row.prob_best:.0f} %",
                (row.high, place),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL,
                color=GREY,
            )
    name_ticks(ax.yaxis, [r.item for r in rows])
    ax.invert_yaxis()
    ax.margins(x=0.12)
    ax.set_xlabel("utility, with interval; chance of being best beside it")
    return tidy(ax)
