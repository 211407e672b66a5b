"""Choices and rankings as cliques: every choice is a softmax over a set, its pairs are edges.

A ranking consists of choices, each place out of all items that are left. The log likelihood of a
choice depends on the differences between the items of its set alone, so that its sites are those of
the set's pairs: a clique of edges (`likelihoods.choices`).
"""

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np

from penchant.data import ChoiceStages, Rankings
from penchant.errors import DataError
from penchant.likelihoods.choices import ChoiceGroup, Cliques
from penchant.numerics.types import BoolArray, FloatArray, IntArray

MOST_WAYS = 1000
"""Ways of taking t items out of k that are summed over. Beyond it each item taken (or left, if
those are fewer) is a choice of its own against the other side."""
MOST_PAIRS = 50_000_000
"""Pairs in all choices, 55 bytes each: their number grows with the cube of a ranking's length."""
CHOICE_BLOCK = 1 << 20
"""Numbers in the largest temporary array."""


class CliqueEdges(NamedTuple):
    """The distinct pairs of items in all sets, of each user; user is 0 where users are pooled."""

    user: IntArray
    first: IntArray
    second: IntArray
    cliques: Cliques


def clique_edges(rankings: Rankings, n_items: int) -> CliqueEdges:
    """Return the edges of all choices, first < second, sorted, and which ones each choice has."""
    stages = [part for stage in rankings.stages() for part in feasible(stage)]
    return edges_of_stages(stages, n_items)


def edges_of_stages(stages: list[ChoiceStages], n_items: int) -> CliqueEdges:
    """Return the edges of choices; groups stand in the order of the stages and of their rows."""
    pairs = sum(len(stage.item) * comb(stage.item.shape[1], 2) for stage in stages)
    longest = max(stage.item.shape[1] for stage in stages)
    if pairs > MOST_PAIRS:
        raise DataError(
            f"rankings or grades of up to {longest} items hold {pairs:,} pairs within choices, and "
            f"memory is planned for {MOST_PAIRS:,}: break them into pairs with data.as_pairs(), or "
            "read some of the items only (where=)"
        )
    keys = [_keys(stage, n_items) for stage in stages]
    distinct, place = np.unique(np.concatenate([key.ravel() for key in keys]), return_inverse=True)
    ends = np.cumsum([key.size for key in keys])[:-1]
    groups = tuple(
        group
        for stage, key, at in zip(stages, keys, np.split(place.ravel(), ends), strict=True)
        for group in _groups(stage, at.reshape(key.shape))
    )
    who, pair = np.divmod(distinct, n_items * n_items)
    first, second = np.divmod(pair, n_items)
    return CliqueEdges(who, first, second, Cliques(len(distinct), groups))


def _groups(stage: ChoiceStages, edge: IntArray) -> Iterator[ChoiceGroup]:
    """Yield the choices in blocks; edges take four bytes each, since there are many."""
    k, t = stage.item.shape[1], int(stage.chosen[0].sum())
    block = max(1, CHOICE_BLOCK // max(edge.shape[1], comb(k, t), k * k))
    small: IntArray = edge.astype(np.int32) if edge.max(initial=0) < 2**31 else edge
    for start in range(0, len(edge), block):
        rows = slice(start, start + block)
        chosen, count = stage.chosen[rows].astype(float), stage.count[rows].astype(float)
        yield ChoiceGroup(small[rows], chosen, count)


def _keys(stage: ChoiceStages, n_items: int) -> IntArray:
    """Return (G, k(k−1)/2) numbers that identify user and pair of items."""
    i, j = np.triu_indices(stage.item.shape[1], 1)
    pair = stage.item[:, i] * n_items + stage.item[:, j]
    return pair if stage.user is None else stage.user[:, None] * n_items**2 + pair


def feasible(stage: ChoiceStages) -> list[ChoiceStages]:
    """Return the choices themselves, or choices of one item each where there are too many ways."""
    k, t = stage.item.shape[1], int(stage.chosen[0].sum())
    if comb(k, t) <= MOST_WAYS:
        return [stage]
    alone = stage.chosen if 2 * t <= k else ~stage.chosen
    row, column = np.nonzero(alone)
    kept = ~alone[row]
    kept[np.arange(len(row)), column] = True
    size = int(kept[0].sum())
    item = stage.item[row][kept].reshape(-1, size)
    chosen = stage.chosen[row][kept].reshape(-1, size)
    user = None if stage.user is None else stage.user[row]
    return [ChoiceStages(item, chosen, stage.count[row], user)]


def decided_pairs(cliques: Cliques) -> tuple[IntArray, BoolArray, FloatArray]:
    """Return the pairs that choices decide: (k,) edges, whether the edge's first item won, counts.

    An edge that was decided both ways occurs twice. A pair of a choice out of k counts 2/k times,
    see `gp.rows.broken_choice_size`.
    """
    decided = []
    for group in cliques.groups:
        k = group.chosen.shape[1]
        i, j = np.triu_indices(k, 1)
        row, pair = np.nonzero(group.chosen[:, i] != group.chosen[:, j])
        first_won = group.chosen[row, i[pair]] > 0
        decided.append((group.edge[row, pair], first_won, 2.0 / k * group.count[row]))
    edge, first_won, count = (np.concatenate(part) for part in zip(*decided, strict=True))
    answer, same = np.unique(2 * edge.astype(np.intp) + first_won, return_inverse=True)
    total: FloatArray = np.bincount(same, count, len(answer)).astype(np.float64, copy=False)
    return answer // 2, answer % 2 == 1, total
