"""Users in stacks: everybody who compared equally many items is worked on at once.

A user's comparisons touch only p of the n items, and all that inference does to one user happens
on those p. Users with the same p form blocks, so that NumPy's stacked routines replace a loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penchant.errors import NumericalError
from penchant.numerics.batched import (
    StackPlaces,
    adjoint_stack,
    collect_cells,
    collect_items,
    collect_rows,
    edge_moments,
    forward_stack,
    laplacian_stack,
    meet_items,
    multiply_stack,
    pick_cells,
    pick_items,
    put_edges,
    transpose_stack,
)
from penchant.numerics.types import FloatArray, IntArray

SMALLEST_VARIANCE = 1e-12
"""Of a difference, relative to the largest variance or to the noise of an answer, whichever is
less: below it two items are the same."""
WIDEST_PRIOR = 1e6
"""Largest variance of a utility: beyond it rounding costs a probability more than 1e-4."""


@dataclass(frozen=True, eq=False)
class Block(StackPlaces):
    """k users, or parts of users, who compared p items each: these are its points.

    users: (k,) positions among all users, repeated where a user is in parts. What a method returns
    with an axis of users lives where its argument does; see `numerics.batched`.
    """

    users: IntArray

    @classmethod
    def silent(cls, k: int, n_items: int) -> "Block":
        """k users who compared nothing."""
        nothing = np.zeros(0, dtype=np.intp)
        items = np.zeros((k, 0), dtype=np.intp)
        return cls(items, nothing, nothing, nothing, nothing, n_items, np.arange(k))

    @property
    def shape(self) -> tuple[int, int]:
        """(k, p)."""
        k, p = self.items.shape
        return k, p

    @property
    def columns(self) -> tuple[IntArray, ...]:
        """All that it takes memory for."""
        return self.users, self.items, self.edges, self.row, self.winner, self.loser

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
        check_width(largest)
        return mean, var

    def moments(
        self, utility: FloatArray, C: FloatArray, J: FloatArray, shared: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The same where the points' covariances are J shared Jᵀ + C."""
        through = multiply_stack(multiply_stack(J, shared), transpose_stack(J))
        through += C
        return self.differences(utility, through)

    def within(self, K: FloatArray, some: slice) -> FloatArray:
        """(k, p, p) of a matrix (n, n) what stands between the points of some users."""
        items = self.items[some]
        taken: FloatArray = K[items[:, :, None], items[:, None, :]]
        return taken

    def rows(self, factor: FloatArray, some: slice) -> FloatArray:
        """(k, p, r) of a factor (n, r) what stands at the points of some users."""
        taken: FloatArray = factor[self.items[some]]
        return taken

    def collect_rows(self, stack: FloatArray, weights: FloatArray, some: slice) -> FloatArray:
        """(q, r, n): Σ_u weights[u] · stack[u]ᵀ of some users, (k, q) and (k, p, r)."""
        return collect_rows(stack, weights, self.items[some], self.n_items)

    def put(self, total: FloatArray, values: Sequence[FloatArray]) -> None:
        """Write (e,) values where the comparisons stand in the rows of (c, m)."""
        put_edges(total, values, self)

    def collect(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        """(q, n): Σ_u weights[u] x_uᵀ over all items, with (k, q) weights and (k, p) vectors."""
        return collect_items(x, weights, self)

    def pick(self, weights: FloatArray, vectors: FloatArray) -> FloatArray:
        """(k, p): Σ_q weights[u, q] · vectors[q] at each user's own items, vectors (q, n)."""
        return pick_items(vectors, weights, self)

    def meet(self, x: FloatArray, vectors: FloatArray) -> FloatArray:
        """(k, q): of (k, p) vectors the products with each of (q, n)."""
        return meet_items(x, vectors, self)

    def weighted_sum(self, weights: FloatArray, stack: FloatArray) -> FloatArray:
        """(q, n, n): Σ_u weights[u] · stack[u], with (k, q) weights and (k, p, p) matrices."""
        return collect_cells(stack, weights, self)

    def weighted_pick(self, weights: FloatArray, matrices: FloatArray) -> FloatArray:
        """(k, p, p): Σ_q weights[u, q] · matrices[q], at each user's own items."""
        return pick_cells(matrices, weights, self)


def check_width(largest: float) -> None:
    if largest > WIDEST_PRIOR:
        raise NumericalError(
            f"a utility has a variance of {largest:.1e}, and beyond {WIDEST_PRIOR:.0e} "
            "rounding hides what answers tell: lower the kernel's variance (an answer's noise "
            "has variance 1, so 100 is wide already)"
        )
