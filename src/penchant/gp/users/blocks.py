"""Users in stacks: everybody who compared equally many items is worked on at once.

A user's comparisons touch only p of the n items, and all that inference does to one user happens
on those p. Users with the same p form blocks, so that NumPy's stacked routines replace a loop.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from penchant.errors import NumericalError
from penchant.numerics.linalg import multiply
from penchant.numerics.types import FloatArray, IntArray

BLOCK_SIZE = 2**22
"""Most numbers in one array of users × items²: bounds memory whatever the number of users."""
SMALLEST_VARIANCE = 1e-12
"""Of a difference, relative to the largest variance or to the noise of an answer, whichever is
less: below it two items are the same."""
WIDEST_PRIOR = 1e6
"""Largest variance of a utility: beyond it rounding costs a probability more than 1e-4."""


@dataclass(frozen=True)
class Block:
    """k users who compared p items each.

    users: (k,) positions among all users; items: (k, p) what each compared, ascending.
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

    @cached_property
    def same_items(self) -> bool:
        """Whether all these users compared the same items, so that one factor serves them all."""
        return bool((self.items == self.items[0]).all())

    @cached_property
    def cells(self) -> IntArray:
        """(k, p²) where each user's p × p matrix lies in a flattened n × n one."""
        pairs = self.items[:, :, None] * self.n_items + self.items[:, None, :]
        return pairs.reshape(len(self.items), -1)

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

    def spread(self, x: FloatArray) -> FloatArray:
        """(k, n) vectors over all items from (k, p) over each user's own; zero elsewhere."""
        wide = np.zeros((len(x), self.n_items))
        np.put_along_axis(wide, self.items, x, axis=1)
        return wide

    def weighted_sum(self, weights: FloatArray, stack: FloatArray) -> FloatArray:
        """(q, n, n): Σ_u weights[u] · stack[u], with (k, q) weights and (k, p, p) matrices."""
        k, n = len(stack), self.n_items
        flat = stack.reshape(k, -1)
        if self.same_items:
            total = np.zeros((weights.shape[1], n * n))
            total[:, self.cells[0]] = multiply(weights.T, flat)
        elif weights.shape[1] == 1 or 4 * flat.shape[1] < n * n:
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
            picked = multiply(weights, flat[:, self.cells[0]])
        elif len(flat) == 1:
            picked = weights * flat[0][self.cells]
        else:
            picked = np.take_along_axis(multiply(weights, flat), self.cells, axis=1)
        return picked.reshape(k, p, p)


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
    groups = _groups(sizes, longest=max(1, BLOCK_SIZE // n_items**2))
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


def _groups(sizes: IntArray, longest: int) -> list[IntArray]:
    """Positions of equal size together, in groups of at most `longest`."""
    groups = []
    for size in np.unique(sizes):
        alike = np.flatnonzero(sizes == size)
        groups += [alike[start : start + longest] for start in range(0, len(alike), longest)]
    return groups
