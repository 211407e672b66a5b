"""One user's taste: alone, and beside what everybody shares."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from penchant.numerics.types import FloatArray
from penchant.plots.style import BLUE, GREY, axes, name_points, name_ticks, tidy


def plot_user(model: Any, user: Any, ax: Any | None = None, level: float = 0.95) -> Any:
    """One user's utilities with intervals, best on top, told from the average item.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"], user=["ann", "bob"])
    >>> ax = plot_user(pc.MultiUserGP(optimize=None).fit(None, data), "ann")
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['tea', 'water', 'milk']
    """
    mean, reach = _above_average(model, user, level)
    order = np.argsort(-mean, kind="stable")
    ax = axes(ax, height=0.8 + 0.17 * len(mean))
    places = np.arange(len(mean))
    ax.axvline(0.0, color=GREY, linewidth=0.5, linestyle=":")
    ax.hlines(places, (mean - reach)[order], (mean + reach)[order], color=GREY, linewidth=1)
    ax.scatter(mean[order], places, color=BLUE, s=14, zorder=3)
    items = model.comparisons_.items
    name_ticks(ax.yaxis, [items[i] for i in order])
    ax.invert_yaxis()
    ax.set_xlabel(f"utility above the average item, {100 * level:.3g} % interval")
    return tidy(ax)


def plot_user_against_population(
    model: Any, user: Any, ax: Any | None = None, level: float = 0.95
) -> Any:
    """Each item where everybody puts it (across) and where this user does (up), with intervals.

    Above the diagonal the user likes an item better than people do.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "milk"], ["milk", "tea"], user=["ann", "bob"])
    >>> ax = plot_user_against_population(pc.MultiUserGP(optimize=None).fit(None, data), "ann")
    >>> [text.get_text() for text in ax.texts]
    ['milk', 'tea']
    """
    own, own_reach = _above_average(model, user, level)
    shared, shared_reach = _above_average(model, None, level)
    ax = axes(ax, height=3.2)
    ax.axline((0.0, 0.0), slope=1.0, color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    ax.errorbar(
        shared,
        own,
        xerr=shared_reach,
        yerr=own_reach,
        fmt="o",
        color=BLUE,
        ecolor=GREY,
        elinewidth=0.6,
        markersize=3,
    )
    name_points(ax, np.column_stack([shared, own]), model.comparisons_.items)
    ax.set(xlabel="utility to the population", ylabel="utility to the user")
    return tidy(ax)


def _above_average(model: Any, user: Any, level: float) -> tuple[FloatArray, FloatArray]:
    """Utilities told from the average item, the only zero that comparisons know, and how far
    their intervals reach."""
    belief = model.belief(user)
    mean: FloatArray = belief.mean - belief.mean.mean()
    reach: FloatArray = ndtri(0.5 + 0.5 * level) * np.sqrt(belief.contrast_var)
    return mean, reach
