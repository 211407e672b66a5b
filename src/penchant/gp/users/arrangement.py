"""Who is worked on with whom: all users in blocks, among their items or among their comparisons.

Where the prior ties no two items together, the parts into which a user's own comparisons fall
know nothing of each other but what is shared: each part is then a row of its own, and p³ is that
of the parts. What everybody compared falls into parts in the same way.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from penchant.data import components
from penchant.gp.users.blocks import Block
from penchant.gp.users.pair_blocks import PairBlock, Points
from penchant.numerics.dispatch import HOST, STACK_SIZE, Device
from penchant.numerics.types import BoolArray, FloatArray, IntArray

MANY = 3_000
"""Comparisons from which on blocks of two kinds pay."""
PAIRS_SHARE = 8
"""How many times smaller stacks of comparisons are than those of items: what is read at their
items is four times as large."""


class Arrangement(NamedTuple):
    """Blocks, and the items of each part into which all comparisons and the prior fall."""

    blocks: tuple[Points, ...]
    parts: tuple[IntArray, ...]

    @classmethod
    def of(
        cls,
        user: IntArray,
        winner: IntArray,
        loser: IntArray,
        tied: IntArray,
        device: Device = HOST,
    ) -> "Arrangement":
        """tied: (n,) labels; items of the same label are tied together by the prior."""
        n = len(tied)
        ends = np.concatenate([winner, np.arange(n)]), np.concatenate([loser, n + tied])
        whole = components(*ends, 2 * n)[1][:n]
        order = np.argsort(whole, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(whole[order])) + 1)
        if not tied.any():
            return cls(_arranged(user, winner, loser, n, device), tuple(parts))
        owner, part_of = _user_parts(user, winner, loser, tied)
        blocks = _arranged(part_of, winner, loser, n, device)
        return cls(
            tuple(replace(block, users=owner[block.users]) for block in blocks), tuple(parts)
        )


def _arranged(
    user: IntArray, winner: IntArray, loser: IntArray, n_items: int, device: Device
) -> tuple[Points, ...]:
    """Everybody among their items, or among their comparisons where no one follows from others."""
    size = device.stack_size
    if device is not HOST or len(user) < MANY:
        return arrange(user, winner, loser, n_items, size)
    free = _without_circles(user, winner, loser, n_items)[user]
    items, pairs = np.flatnonzero(~free), np.flatnonzero(free)
    among_items = arrange(user[items], winner[items], loser[items], n_items, size)
    blocks: list[Points] = [replace(block, edges=items[block.edges]) for block in among_items]
    order = pairs[np.argsort(user[pairs], kind="stable")]
    users, first, sizes = np.unique(user[order], return_index=True, return_counts=True)
    for group in _groups(sizes, size // PAIRS_SHARE):
        edges = order[first[group][:, None] + np.arange(sizes[group[0]])]
        blocks.append(PairBlock.of(users[group], edges, winner, loser, n_items))
    return tuple(blocks)


def _without_circles(user: IntArray, winner: IntArray, loser: IntArray, n_items: int) -> BoolArray:
    """Whose comparisons form a forest, so that their differences are independent a priori.

    It has an item more than comparisons in each of its trees.

    >>> ends = np.array([0, 1, 0, 1, 0]), np.array([1, 2, 1, 2, 2])
    >>> _without_circles(np.array([0, 0, 1, 1, 1]), *ends, 3).tolist()
    [True, False]
    """
    m = len(user)
    ends = np.tile(user, 2) * n_items + np.concatenate([winner, loser])
    cells, place = np.unique(ends, return_inverse=True)
    n_trees, tree = components(place[:m], place[m:], len(cells))
    owner = np.empty(n_trees, dtype=np.intp)
    owner[tree] = cells // n_items
    n_users = int(user.max()) + 1
    made, met = np.bincount(user, minlength=n_users), np.bincount(cells // n_items)
    free: BoolArray = made == met - np.bincount(owner, minlength=n_users)
    return free


def tied_items(K: FloatArray) -> IntArray:
    """(n,) labels: items have the same where the prior covariance ties them, however far round.

    >>> tied_items(np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.0], [0.5, 0.0, 1.0]])).tolist()
    [0, 1, 0]
    """
    n = len(K)
    n_filled = np.count_nonzero(K)
    if n_filled == n:
        return np.arange(n)
    if n_filled > n * (n - 1):  # too few holes to fall apart
        return np.zeros(n, dtype=np.intp)
    row, column = np.nonzero(K)
    return components(row, column, n)[1]


def _user_parts(
    user: IntArray, winner: IntArray, loser: IntArray, tied: IntArray
) -> tuple[IntArray, IntArray]:
    """Parts of users whose items hang together: (parts,) owners, and the part of each vote."""
    n, m = len(tied), len(user)
    ends = np.tile(user, 2) * n + np.concatenate([winner, loser])
    cells, place = np.unique(ends, return_inverse=True)
    hubs, hub = np.unique(cells // n * n + tied[cells % n], return_inverse=True)
    nodes = np.arange(len(cells))
    first = np.concatenate([place[:m], nodes])
    second = np.concatenate([place[m:], len(cells) + hub])
    label = components(first, second, len(cells) + len(hubs))[1][: len(cells)]
    # in the order of their users, so that rows stay sorted as users are
    _, label = np.unique(cells // n * (label.max() + 1) + label, return_inverse=True)
    owner = np.empty(label.max() + 1, dtype=np.intp)
    owner[label] = cells // n
    return owner, label[place[:m]]


def arrange(
    user: IntArray,
    winner: IntArray,
    loser: IntArray,
    n_items: int,
    largest: int = STACK_SIZE,
) -> tuple[Block, ...]:
    """Blocks of all users who compared anything; arguments are (m,) over the comparisons.

    largest: most numbers in one array of users × p², which bounds memory.

    >>> blocks = arrange(np.array([0, 0, 1]), np.array([2, 0, 1]), np.array([0, 1, 2]), 3)
    >>> [block.items.tolist() for block in blocks]
    [[[1, 2]], [[0, 1, 2]]]
    """
    m = len(user)
    if m == 0:
        return ()
    ends = np.concatenate([winner, loser])
    pairs, place = np.unique(np.tile(user, 2) * n_items + ends, return_inverse=True)
    users, first, sizes = np.unique(pairs // n_items, return_index=True, return_counts=True)
    who = np.searchsorted(users, user)
    column = place - np.tile(first[who], 2)
    groups = _groups(sizes, largest)
    block_of, row_of = np.empty((2, len(users)), dtype=np.intp)
    for number, group in enumerate(groups):
        block_of[group], row_of[group] = number, np.arange(len(group))
    order = np.argsort(block_of[who], kind="stable")
    cuts = np.searchsorted(block_of[who[order]], np.arange(1, len(groups)))
    return tuple(
        Block(
            items=pairs[first[group][:, None] + np.arange(sizes[group[0]])] % n_items,
            edges=edges,
            row=row_of[who[edges]],
            winner=column[edges],
            loser=column[m + edges],
            n_items=n_items,
            users=users[group],
        )
        for group, edges in zip(groups, np.split(order, cuts), strict=True)
    )


def _groups(sizes: IntArray, largest: int) -> list[IntArray]:
    """Positions of equal size p together, in groups of at most `largest` / p²."""
    order = np.argsort(sizes, kind="stable")
    groups: list[IntArray] = []
    if not len(sizes):
        return groups
    for alike in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
        longest = max(1, largest // int(sizes[alike[0]]) ** 2)
        groups += [alike[start : start + longest] for start in range(0, len(alike), longest)]
    return groups
