"""Users in stacks: everybody who compared equally many items is worked on at once.

A user's comparisons touch only p of the n items, and all that inference does to one user happens
on those p. Users with the same p form blocks, so that NumPy's stacked routines replace a loop.

Where the prior ties no two items together, the parts into which a user's own comparisons fall
know nothing of each other but what is shared: each part is then a row of its own, and p³ is that
of the parts. What everybody compared falls into parts in the same way.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from penchant.data.graph import components
from penchant.errors import NumericalError
from penchant.numerics.device import STACK_SIZE
from penchant.numerics.stacks import (
    StackPlaces,
    adjoint_stack,
    collect_cells,
    collect_items,
    edge_moments,
    forward_stack,
    laplacian_stack,
    pick_cells,
    pick_items,
)
from penchant.numerics.types import FloatArray, IntArray

SMALLEST_VARIANCE = 1e-12
"""Of a difference, relative to the largest variance or to the noise of an answer, whichever is
less: below it two items are the same."""
WIDEST_PRIOR = 1e6
"""Largest variance of a utility: beyond it rounding costs a probability more than 1e-4."""


@dataclass(frozen=True, eq=False)
class Block(StackPlaces):
    """k users, or parts of users, who compared p items each.

    users: (k,) positions among all users, repeated where a user is in parts. What a method returns
    with an axis of users lives where its argument does; see `numerics.stacks`.
    """

    users: IntArray

    @classmethod
    def silent(cls, k: int, n_items: int) -> "Block":
        """k users who compared nothing."""
        nothing = np.zeros(0, dtype=np.intp)
        items = np.zeros((k, 0), dtype=np.intp)
        return cls(items, nothing, nothing, nothing, nothing, n_items, np.arange(k))

    def part(self, rows: IntArray) -> "Block":
        """Some of the users."""
        place = np.full(len(self.users), -1)
        place[rows] = np.arange(len(rows))
        mine = np.flatnonzero(place[self.row] >= 0)
        return Block(
            self.items[rows],
            self.edges[mine],
            place[self.row[mine]],
            self.winner[mine],
            self.loser[mine],
            self.n_items,
            self.users[rows],
        )

    def laplacian(self, weight: FloatArray) -> FloatArray:
        """(k, p, p) Laplacian of each user's comparisons, `weight` being (m,) over all."""
        return laplacian_stack(weight, self)

    def adjoint(self, y: FloatArray) -> FloatArray:
        """(k, p) sums of ±y over each user's comparisons, + for winners; y is (m,) over all."""
        return adjoint_stack(y, self)

    def forward(self, utility: FloatArray) -> FloatArray:
        """(e,) differences of (k, p) utilities, in the order of `edges`."""
        return forward_stack(utility, self)

    def differences(
        self, utility: FloatArray, covariance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(e,) means and variances of the block's comparisons, from (k, p) and (k, p, p)."""
        # items that the prior holds identical differ by nothing but rounding
        mean, var, largest = edge_moments(covariance, utility, self, SMALLEST_VARIANCE)
        if largest > WIDEST_PRIOR:
            raise NumericalError(
                f"a utility has a variance of {largest:.1e}, and beyond {WIDEST_PRIOR:.0e} "
                "rounding hides what answers tell: lower the kernel's variance (an answer's noise "
                "has variance 1, so 100 is wide already)"
            )
        return mean, var

    def collect(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        """(q, n): Σ_u weights[u] x_uᵀ over all items, with (k, q) weights and (k, p) vectors."""
        return collect_items(x, weights, self)

    def pick(self, weights: FloatArray, vectors: FloatArray) -> FloatArray:
        """(k, p): Σ_q weights[u, q] · vectors[q] at each user's own items, vectors (q, n)."""
        return pick_items(vectors, weights, self)

    def weighted_sum(self, weights: FloatArray, stack: FloatArray) -> FloatArray:
        """(q, n, n): Σ_u weights[u] · stack[u], with (k, q) weights and (k, p, p) matrices."""
        return collect_cells(stack, weights, self)

    def weighted_pick(self, weights: FloatArray, matrices: FloatArray) -> FloatArray:
        """(k, p, p): Σ_q weights[u, q] · matrices[q], at each user's own items."""
        return pick_cells(matrices, weights, self)


class Arrangement(NamedTuple):
    """Blocks, and the items of each part into which all comparisons and the prior fall."""

    blocks: tuple[Block, ...]
    parts: tuple[IntArray, ...]

    @classmethod
    def of(
        cls,
        user: IntArray,
        winner: IntArray,
        loser: IntArray,
        tied: IntArray,
        largest: int = STACK_SIZE,
    ) -> "Arrangement":
        """tied: (n,) labels; items of the same label are tied together by the prior.

        largest: as in `arrange`.
        """
        n = len(tied)
        ends = np.concatenate([winner, np.arange(n)]), np.concatenate([loser, n + tied])
        whole = components(*ends, 2 * n)[1][:n]
        order = np.argsort(whole, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(whole[order])) + 1)
        if not tied.any():
            return cls(arrange(user, winner, loser, n, largest), tuple(parts))
        owner, part_of = _user_parts(user, winner, loser, tied)
        blocks = arrange(part_of, winner, loser, n, largest)
        return cls(
            tuple(replace(block, users=owner[block.users]) for block in blocks), tuple(parts)
        )


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
    groups = []
    for alike in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
        longest = max(1, largest // int(sizes[alike[0]]) ** 2)
        groups += [alike[start : start + longest] for start in range(0, len(alike), longest)]
    return groups
