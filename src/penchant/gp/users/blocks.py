"""Users in stacks: everybody who compared equally many items is worked on at once.

A user's comparisons touch only p of the n items, and all that inference does to one user happens
on those p. Users with the same p form blocks, so that NumPy's stacked routines replace a loop.

Where the prior ties no two items together, the parts into which a user's own comparisons fall
know nothing of each other but what is shared: each part is then a row of its own, and p³ is that
of the parts. What everybody compared falls into parts in the same way.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from penchant.data.graph import components
from penchant.errors import NumericalError
from penchant.numerics.linalg import multiply
from penchant.numerics.types import FloatArray, IntArray

BLOCK_SIZE = 2**20
"""Most numbers in one array of users × p²: bounds memory whatever the number of users."""
SMALLEST_VARIANCE = 1e-12
"""Of a difference, relative to the largest variance or to the noise of an answer, whichever is
less: below it two items are the same."""
WIDEST_PRIOR = 1e6
"""Largest variance of a utility: beyond it rounding costs a probability more than 1e-4."""


@dataclass(frozen=True)
class Block:
    """k users, or parts of users, who compared p items each.

    users: (k,) positions among all users, repeated where a user is in parts; items: (k, p) what
    each compared, ascending.
    edges: (e,) positions of these users' comparisons among all; row, winner, loser: (e,) the
    user's row and the two columns of `items` that each comparison is about.
    """

    users: IntArray
    items: IntArray
    edges: IntArray
    row: IntArray
    winner: IntArray
    loser: IntArray
    n_items: int

    @classmethod
    def silent(cls, k: int, n_items: int) -> "Block":
        """k users who compared nothing."""
        nothing = np.zeros(0, dtype=np.intp)
        items = np.zeros((k, 0), dtype=np.intp)
        return cls(np.arange(k), items, nothing, nothing, nothing, nothing, n_items)

    def part(self, rows: IntArray) -> "Block":
        """Some of the users."""
        place = np.full(len(self.users), -1)
        place[rows] = np.arange(len(rows))
        mine = np.flatnonzero(place[self.row] >= 0)
        return Block(
            self.users[rows],
            self.items[rows],
            self.edges[mine],
            place[self.row[mine]],
            self.winner[mine],
            self.loser[mine],
            self.n_items,
        )

    @cached_property
    def same_items(self) -> bool:
        """Whether all these users compared the same items, so that one factor serves them all."""
        return bool((self.items == self.items[0]).all())

    @property
    def cells(self) -> IntArray:
        """(k, p²) where each user's p × p matrix lies in a flattened n × n one."""
        return self._cells(self.items)

    def laplacian(self, weight: FloatArray) -> FloatArray:
        """(k, p, p) Laplacian of each user's comparisons, `weight` being (m,) over all."""
        k, p = self.items.shape
        cell = (self.row * p + self.winner) * p + self.loser
        directed = np.bincount(cell, weight[self.edges], k * p * p).reshape(k, p, p)
        L: FloatArray = -directed.astype(np.float64, copy=False)
        L -= directed.transpose(0, 2, 1)
        diagonal = np.arange(p)
        L[:, diagonal, diagonal] = -L.sum(axis=2)
        return L

    def adjoint(self, y: FloatArray) -> FloatArray:
        """(k, p) sums of ±y over each user's comparisons, + for winners; y is (m,) over all."""
        k, p = self.items.shape
        mine, start = y[self.edges], self.row * p
        won = np.bincount(start + self.winner, mine, k * p)
        lost = np.bincount(start + self.loser, mine, k * p)
        total: FloatArray = np.subtract(won, lost, dtype=np.float64)
        return total.reshape(k, p)

    def forward(self, utility: FloatArray) -> FloatArray:
        """(e,) differences of (k, p) utilities, in the order of `edges`."""
        return utility[self.row, self.winner] - utility[self.row, self.loser]

    def differences(
        self, utility: FloatArray, covariance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(e,) means and variances of the block's comparisons, from (k, p) and (k, p, p)."""
        row, winner, loser = self.row, self.winner, self.loser
        own = np.diagonal(covariance, axis1=1, axis2=2)
        var = own[row, winner] + own[row, loser] - 2.0 * covariance[row, winner, loser]
        largest = float(own.max(initial=0.0))
        if largest > WIDEST_PRIOR:
            raise NumericalError(
                f"a utility has a variance of {largest:.1e}, and beyond {WIDEST_PRIOR:.0e} "
                "rounding hides what answers tell: lower the kernel's variance (an answer's noise "
                "has variance 1, so 100 is wide already)"
            )
        # items that the prior holds identical differ by nothing but rounding
        floor = SMALLEST_VARIANCE * min(largest, 1.0)
        return self.forward(utility), np.maximum(var, floor)

    def collect(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        """(q, n): Σ_u weights[u] x_uᵀ over all items, with (k, q) weights and (k, p) vectors."""
        if self.same_items:
            total = np.zeros((weights.shape[1], self.n_items))
            total[:, self.items[0]] = multiply(weights.T, x)
            return total
        k, p = x.shape
        wide = sparse.csr_array((x.ravel(), self.items.ravel(), np.arange(0, k * p + 1, p)))
        wide.resize(k, self.n_items)
        summed: FloatArray = (wide.T @ weights).T
        return summed

    def pick(self, weights: FloatArray, vectors: FloatArray) -> FloatArray:
        """(k, p): Σ_q weights[u, q] · vectors[q] at each user's own items, vectors (q, n)."""
        if self.same_items:
            return multiply(weights, np.ascontiguousarray(vectors[:, self.items[0]]))
        picked: FloatArray = np.einsum("kq,qkp->kp", weights, vectors[:, self.items])
        return picked

    def weighted_sum(self, weights: FloatArray, stack: FloatArray) -> FloatArray:
        """(q, n, n): Σ_u weights[u] · stack[u], with (k, q) weights and (k, p, p) matrices."""
        k, n = len(stack), self.n_items
        flat = stack.reshape(k, -1)
        if self.same_items:
            total = np.zeros((weights.shape[1], n * n))
            total[:, self._first_cells] = multiply(weights.T, flat)
        elif weights.shape[1] == 1:
            every = (weights * flat).ravel()
            total = np.bincount(self.cells.ravel(), every, n * n).astype(np.float64, copy=False)
        elif 4 * flat.shape[1] < n * n:
            ends = np.arange(0, flat.size + 1, flat.shape[1])
            wide = sparse.csr_array((flat.ravel(), self.cells.ravel(), ends), (k, n * n))
            total = (wide.T @ weights).T
        else:
            dense = np.zeros((k, n * n))
            np.put_along_axis(dense, self.cells, flat, axis=1)
            total = multiply(weights.T, dense)
        return total.reshape(-1, n, n)

    def weighted_pick(self, weights: FloatArray, matrices: FloatArray) -> FloatArray:
        """(k, p, p): Σ_q weights[u, q] · matrices[q], at each user's own items."""
        k, p = self.items.shape
        flat = matrices.reshape(len(matrices), -1)
        if self.same_items:
            picked = multiply(weights, flat[:, self._first_cells])
        elif len(flat) == 1:
            picked = weights * flat[0][self.cells]
        elif p * p * 4 < self.n_items**2:
            picked = np.empty((k, p * p))
            step = max(1, BLOCK_SIZE // (p * p * len(flat)))
            for start in range(0, k, step):
                some = slice(start, start + step)
                mine = flat[:, self._cells(self.items[some])]
                picked[some] = np.einsum("kq,qkc->kc", weights[some], mine)
        else:
            picked = np.take_along_axis(multiply(weights, flat), self.cells, axis=1)
        return picked.reshape(k, p, p)

    @property
    def _first_cells(self) -> IntArray:
        first: IntArray = self._cells(self.items[:1])[0]
        return first

    def _cells(self, items: IntArray) -> IntArray:
        pairs: IntArray = items[:, :, None] * self.n_items + items[:, None, :]
        return pairs.reshape(len(items), -1)


class Arrangement(NamedTuple):
    """Blocks, and the items of each part into which all comparisons and the prior fall."""

    blocks: tuple[Block, ...]
    parts: tuple[IntArray, ...]

    @classmethod
    def of(cls, user: IntArray, winner: IntArray, loser: IntArray, tied: IntArray) -> "Arrangement":
        """tied: (n,) labels; items of the same label are tied together by the prior."""
        n = len(tied)
        ends = np.concatenate([winner, np.arange(n)]), np.concatenate([loser, n + tied])
        whole = components(*ends, 2 * n)[1][:n]
        order = np.argsort(whole, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(whole[order])) + 1)
        if not tied.any():
            return cls(arrange(user, winner, loser, n), tuple(parts))
        owner, part_of = _user_parts(user, winner, loser, tied)
        blocks = arrange(part_of, winner, loser, n)
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


def arrange(user: IntArray, winner: IntArray, loser: IntArray, n_items: int) -> tuple[Block, ...]:
    """Blocks of all users who compared anything; arguments are (m,) over the comparisons.

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
    groups = _groups(sizes)
    block_of, row_of = np.empty((2, len(users)), dtype=np.intp)
    for number, group in enumerate(groups):
        block_of[group], row_of[group] = number, np.arange(len(group))
    order = np.argsort(block_of[who], kind="stable")
    cuts = np.searchsorted(block_of[who[order]], np.arange(1, len(groups)))
    return tuple(
        Block(
            users=users[group],
            items=pairs[first[group][:, None] + np.arange(sizes[group[0]])] % n_items,
            edges=edges,
            row=row_of[who[edges]],
            winner=column[edges],
            loser=column[m + edges],
            n_items=n_items,
        )
        for group, edges in zip(groups, np.split(order, cuts), strict=True)
    )


def _groups(sizes: IntArray) -> list[IntArray]:
    """Positions of equal size p together, in groups of at most BLOCK_SIZE / p²."""
    order = np.argsort(sizes, kind="stable")
    groups = []
    for alike in np.split(order, np.flatnonzero(np.diff(sizes[order])) + 1):
        longest = max(1, BLOCK_SIZE // int(sizes[alike[0]]) ** 2)
        groups += [alike[start : start + longest] for start in range(0, len(alike), longest)]
    return groups
