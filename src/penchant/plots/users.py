"""One user's taste: alone, and beside what everybody shares."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri

from penchant.gp import Normal, Posterior
from penchant.numerics.types import FloatArray
from penchant.plots.style import BLUE, GREY, axes, name_ticks, short, tidy


def plot_user(
    user: Posterior, items: Sequence[Any], ax: Any | None = None, level: float = 0.95
) -> Any:
    """One user's utilities with intervals, best on top, told from the average item.

    user : what `model.posterior_for(user)` returns; items : names in index order.

    >>> import penchant as pc
    >>> from penchant.models.multi_user_gp import MultiUserGP
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"], user=["ann", "bob"])
    >>> model = MultiUserGP(optimize=None).fit(None, data)
    >>> ax = plot_user(model.posterior_for("ann"), data.items)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['tea', 'water', 'milk']
    """
    mean, var = centred(user)
    order = np.argsort(-mean, kind="stable")
    reach = _reach(var, level)
    ax = axes(ax, height=0.8 + 0.17 * len(mean))
    places = np.arange(len(mean))
    ax.axvline(0.0, color=GREY, linewidth=0.5, linestyle=":")
    ax.hlines(places, (mean - reach)[order], (mean + reach)[order], color=GREY, linewidth=1)
    ax.scatter(mean[order], places, color=BLUE, s=14, zorder=3)
    name_ticks(ax.yaxis, [items[i] for i in order])
    ax.invert_yaxis()
    ax.set_xlabel(f"utility above the average item, {100 * level:.3g} % interval")
    return tidy(ax)


def plot_user_against_population(
    user: Posterior,
    population: Posterior,
    items: Sequence[Any],
    ax: Any | None = None,
    level: float = 0.95,
) -> Any:
    """Each item where everybody puts it (across) and where this user does (up), with intervals.

    Above the diagonal the user likes an item better than people do. population : what
    `model.posterior_for()` returns without a user; the rest as in `plot_user`.

    >>> import penchant as pc
    >>> from penchant.models.multi_user_gp import MultiUserGP
    >>> data = pc.Comparisons.from_pairs(["tea", "milk"], ["milk", "tea"], user=["ann", "bob"])
    >>> model = MultiUserGP(optimize=None).fit(None, data)
    >>> ax = plot_user_against_population(
    ...     model.posterior_for("ann"), model.posterior_for(), data.items)
    >>> [text.get_text() for text in ax.texts]
    ['milk', 'tea']
    """
    own, shared = centred(user), centred(population)
    ax = axes(ax, height=3.2)
    ax.axline((0.0, 0.0), slope=1.0, color=GREY, linewidth=0.8, linestyle="--", zorder=1)
    ax.errorbar(
        shared.mean,
        own.mean,
        xerr=_reach(shared.var, level),
        yerr=_reach(own.var, level),
        fmt="o",
        color=BLUE,
        ecolor=GREY,
        elinewidth=0.6,
        markersize=3,
    )
    for item, x, y in zip(items, shared.mean, own.mean, strict=True):
        ax.annotate(
            short(item),
            (x, y),
            xytext=(3, 3),
            textcoords="offset points",
            fontsize=6,
            parse_math=False,
        )
    ax.set(xlabel="utility to the population", ylabel="utility to the user")
    return tidy(ax)


def centred(posterior: Posterior) -> Normal:
    """Utilities told from the average item, the only zero that comparisons know."""
    covariance = posterior.covariance()
    covariance -= covariance.mean(axis=0)
    covariance -= covariance.mean(axis=1, keepdims=True)
    mean: FloatArray = posterior.mean - posterior.mean.mean()
    return Normal(mean, np.maximum(np.diagonal(covariance), 0.0))


def _reach(var: FloatArray, level: float) -> FloatArray:
    reach: FloatArray = ndtri(0.5 + 0.5 * level) * np.sqrt(var)
    return reach
