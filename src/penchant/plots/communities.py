"""Communities: maps of their members, their number, their utilities."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penchant.numerics.types import FloatArray, IntArray
from penchant.plots import style

MAP_USERS = 5_000
"""Users drawn on a map: more would only cover each other."""


def plot_membership_map(
    utilities: Any, membership: FloatArray | None = None, ax: Any | None = None
) -> Any:
    """Users as points, near each other when they like the same, with a marker for each community.

    utilities : a model of communities; or (n_users, n_items), what `model.predict(users=…)`
    returns. They are drawn along their two widest directions. membership : beside utilities, the
    same users' rows of `model.membership_`; a paler point is a less certain member.

    >>> rng = np.random.default_rng(0)
    >>> ax = plot_membership_map(rng.standard_normal((20, 5)), np.full((20, 2), 0.5))
    >>> len(ax.collections)
    1
    """
    shown, some = _some_people(utilities)
    membership = (utilities.membership_ if membership is None else membership)[some]
    place, _, labels = _main_directions(shown - shown.mean(axis=0))
    ax = style.axes(ax)
    number = membership.argmax(axis=1)
    for c in np.unique(number):
        mine = number == c
        ax.scatter(
            *place[mine].T,
            s=10,
            color=style.COLOURS[c % len(style.COLOURS)],
            alpha=np.clip(membership[mine, c], 0.1, 1.0),
            linewidths=0,
            marker=style.MARKERS[c % len(style.MARKERS)],
            label=f"community {c} ({mine.sum()})",
        )
    style.legend_beside(ax)
    return style.tidy(ax, **labels)


def plot_disagreement(
    utilities: Any, items: Sequence[Any] | None = None, ax: Any | None = None, top: int = 10
) -> Any:
    """People as points and items as arrows, along the two main directions of disagreement.

    utilities : a model that tells users apart; or (n_users, n_items), what `model.predict(users=…)`
    returns, with the names of the items. People in the direction of an arrow like that item more
    than others do. top : how many items to draw, those that divide people most.

    >>> rng = np.random.default_rng(0)
    >>> ax = plot_disagreement(rng.standard_normal((20, 3)), ["tea", "milk", "water"])
    >>> len(ax.texts)
    3
    """
    items = utilities.comparisons_.items if items is None else items
    shown, _ = _some_people(utilities)
    shown = shown - shown.mean(axis=1, keepdims=True)
    place, arrow, labels = _main_directions(shown - shown.mean(axis=0))
    ax = style.axes(ax)
    ax.scatter(*place.T, s=4, color=style.GREY, alpha=0.4, linewidths=0)
    longest = np.argsort(-np.linalg.norm(arrow, axis=1), kind="stable")[:top]
    # arrows as long as people are spread: only their directions and ratios mean anything
    reach = float(np.abs(place).max()) / max(float(np.abs(arrow).max()), np.finfo(float).tiny)
    ends = 0.8 * reach * arrow[longest]
    zero, how = np.zeros(len(ends)), {"color": style.BLUE, "width": 0.005}
    ax.quiver(zero, zero, *ends.T, angles="xy", scale_units="xy", scale=1, **how)
    ax.update_datalim(1.3 * ends)
    style.name_points(ax, 1.06 * ends, [items[i] for i in longest])
    return style.tidy(ax, **labels)


def _some_people(utilities: Any) -> tuple[FloatArray, IntArray]:
    """Utilities of evenly picked users, by a model or out of all; and which users."""
    model = utilities if hasattr(utilities, "predict") else None
    n_users = len(utilities) if model is None else model.comparisons_.n_users
    some = np.unique(np.linspace(0, n_users - 1, MAP_USERS).astype(np.intp))
    if model is None:
        return np.asarray(utilities)[some], some
    return model.predict(users=[model.comparisons_.users[u] for u in some]), some


def _main_directions(centred: FloatArray) -> tuple[FloatArray, FloatArray, dict[str, str]]:
    """Places (n_users, 2) and items (n_items, 2) along the two widest directions, and labels.

    One user or one item has a single direction, or none: the other axis is zero then.
    """
    left, scale, right = np.linalg.svd(centred, full_matrices=False)
    n_axes = min(2, len(scale))
    place, arrow = (np.zeros((n, 2)) for n in centred.shape)
    place[:, :n_axes] = left[:, :n_axes] * scale[:n_axes]
    arrow[:, :n_axes] = right[:n_axes].T
    share = scale**2 / max(float(scale @ scale), np.finfo(float).tiny)
    labels = [f"direction {k + 1} ({share[k]:.0%})" for k in range(n_axes)]
    return place, arrow, dict(zip(("xlabel", "ylabel"), labels, strict=False))


def plot_community_counts(counts: Mapping[int, float] | Any, ax: Any | None = None) -> Any:
    """Posterior over the number of non-empty communities (paper 004, Figure 3).

    counts : a model of communities, or its `community_counts_`; or its `supported_counts_`, whose
    axis then needs another label.

    >>> ax = plot_community_counts({3: 0.2, 4: 0.8})
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.2, 0.8]
    """
    counts = getattr(counts, "community_counts_", counts)
    ax = style.axes(ax)
    ax.bar(list(counts), list(counts.values()), color=style.BLUE)
    ax.set_xticks(list(counts) if len(counts) <= 12 else [min(counts), max(counts)])
    labels = {"xlabel": "number of non-empty communities", "ylabel": "posterior probability"}
    return style.tidy(ax, ylim=(0.0, 1.0), **labels)


def plot_community_utilities(
    communities: Sequence[Any] | Any, axs: Sequence[Any] | None = None, top: int = 30
) -> list[Any]:
    """Each community's utilities with intervals, side by side .

    communities : a model of communities, or its `communities_`. Zero is a community's average
    item: the overall level is not identified. Items stand in the same order in every panel: by
    their average over communities. top : how many of them to draw.

    >>> import penchant as pc
    >>> data = pc.datasets.simulate_study(6, 5, 2, n_answers=10, random_state=0).comparisons
    >>> camps = pc.CommunityGP(n_communities=2, progress=False, random_state=0).fit(None, data)
    >>> len(plot_community_utilities(camps))
    2
    """
    communities = getattr(communities, "communities_", communities)
    tables = [{row.item: row for row in community.ranking} for community in communities]
    share = [community.share for community in communities]
    average = {
        item: sum(w * table[item].utility for w, table in zip(share, tables, strict=True))
        for item in tables[0]
    }
    items = sorted(average, key=lambda item: -average[item])[:top]
    panels = _side_by_side(len(tables), len(items)) if axs is None else list(axs)
    for c, (ax, table) in enumerate(zip(panels, tables, strict=True)):
        colour = style.COLOURS[c % len(style.COLOURS)]
        style.draw_intervals(ax, [table[item] for item in items], colour, zero=True)
        ax.tick_params(labelleft=c == 0)
        title = f"community {c} ({share[c]:.0%})"
        style.tidy(ax, xlabel="utility above average", title=title)
    return panels


def _side_by_side(n_panels: int, n_rows: int) -> list[Any]:
    from matplotlib.figure import Figure

    width = style.COLUMN_WIDTH * (0.4 + 0.5 * n_panels)
    figure = Figure(figsize=(width, 1.0 + 0.17 * n_rows), layout="constrained", dpi=200)
    panels = figure.subplots(1, n_panels, sharex=True, sharey=True, squeeze=False)
    return list(panels[0])
