"""Users who are worked on at once: among the items that they compared, or among their comparisons.

A user's comparisons touch only p of the n items, and all that inference does to one user happens
on those p. Users with the same p form blocks, so that NumPy's stacked routines replace a loop.

Whose comparisons close no circle is worked on among these instead: they are fewer than the items,
and each is a point of its own, whose utility is a difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from penchant.errors import NumericalError
from penchant.numerics.stacks import (
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
    row_products_stack,
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
    with an axis of users lives where its argument does; see `numerics.stacks`.
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
        _check_width(largest)
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


class _PairEnds(StackPlaces):
    """Of comparisons: a row of `items` has their winners, then their losers."""

    repeats = True


@dataclass(frozen=True, eq=False)
class PairBlock:
    """k users, or parts of users, who made p comparisons each: these are its points.

    The same methods as a `Block`, on the host alone. users: as there; ends: the comparisons, user
    by user, and their items.
    """

    users: IntArray
    ends: _PairEnds

    @classmethod
    def of(
        cls, users: IntArray, edges: IntArray, winner: IntArray, loser: IntArray, n_items: int
    ) -> "PairBlock":
        """edges: (k, p); winner, loser: (m,) items, over all comparisons."""
        items, nothing = np.hstack([winner[edges], loser[edges]]), np.zeros(0, dtype=np.intp)
        return cls(users, _PairEnds(items, edges.ravel(), nothing, nothing, nothing, n_items))

    @property
    def shape(self) -> tuple[int, int]:
        """(k, p)."""
        return len(self.users), self.items.shape[1] // 2

    @property
    def items(self) -> IntArray:
        """(k, 2p) winners, then losers."""
        return self.ends.items

    @property
    def edges(self) -> IntArray:
        """(k·p,) positions among all comparisons."""
        return self.ends.edges

    @property
    def columns(self) -> tuple[IntArray, ...]:
        """All that it takes memory for."""
        return self.users, self.edges, self.items

    def laplacian(self, weight: FloatArray) -> FloatArray:
        """(k, p): of points that are comparisons it is diagonal."""
        return self.adjoint(weight)

    def adjoint(self, y: FloatArray) -> FloatArray:
        """(k, p)."""
        mine: FloatArray = y[self.edges]
        return mine.reshape(self.shape)

    def forward(self, utility: FloatArray) -> FloatArray:
        """(k·p,): differences are what utilities are here."""
        return utility.ravel()

    def moments(
        self, utility: FloatArray, C: FloatArray, J: FloatArray, shared: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(k·p,) means and variances; of the covariances J shared Jᵀ + C the diagonal suffices."""
        var = row_products_stack(multiply_stack(J, shared), J)
        var += np.diagonal(C, axis1=1, axis2=2)
        largest = float(var.max(initial=0.0))
        _check_width(0.5 * largest)
        return utility.ravel(), np.maximum(var.ravel(), SMALLEST_VARIANCE * min(largest, 1.0))

    def within(self, K: FloatArray, some: slice) -> FloatArray:
        """(k, p, p)."""
        flat = K.ravel()
        (_, cells), *others = self._corners(some)
        taken: FloatArray = flat.take(cells)
        for sign, cells in others:
            (np.add if sign > 0 else np.subtract)(taken, flat.take(cells), out=taken)
        return taken

    def _corners(self, some: slice) -> list[tuple[int, IntArray]]:
        """Where (k, p, p) numbers about differences lie in a flattened n × n matrix: four times,
        with the signs of (winner − loser)(winner − loser)ᵀ."""
        n, (winner, loser) = self.ends.n_items, np.split(self.items[some], 2, axis=1)
        ends = ((1, winner), (-1, loser))
        return [
            (one * two, first[:, :, None] * n + second[:, None, :])
            for (one, first), (two, second) in product(ends, repeat=2)
        ]

    def rows(self, factor: FloatArray, some: slice) -> FloatArray:
        """(k, p, r)."""
        return _of_differences(factor[self.items[some]], 1)

    def collect_rows(self, stack: FloatArray, weights: FloatArray, some: slice) -> FloatArray:
        """(q, r, n)."""
        both = np.concatenate([stack, -stack], axis=1)
        return collect_rows(both, weights, self.items[some], self.ends.n_items)

    def put(self, total: FloatArray, values: Sequence[FloatArray]) -> None:
        """Write (k·p,) values where the comparisons stand in the rows of (c, m)."""
        put_edges(total, values, self.ends)

    def collect(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        """(q, n)."""
        return collect_items(np.hstack([x, -x]), weights, self.ends)

    def pick(self, weights: FloatArray, vectors: FloatArray) -> FloatArray:
        """(k, p)."""
        return _of_differences(pick_items(vectors, weights, self.ends), 1)

    def meet(self, x: FloatArray, vectors: FloatArray) -> FloatArray:
        """(k, q)."""
        return meet_items(np.hstack([x, -x]), vectors, self.ends)

    def weighted_sum(self, weights: FloatArray, stack: FloatArray) -> FloatArray:
        """(q, n, n)."""
        n = self.ends.n_items
        if weights.shape[1] == 1:
            total, every = np.zeros(n * n), (weights[:, :, None] * stack).ravel()
            for sign, cells in self._corners(slice(None)):
                total += sign * np.bincount(cells.ravel(), every, n * n)
            return total.reshape(1, n, n)
        wide = np.concatenate([stack, -stack], axis=2)
        return collect_cells(np.concatenate([wide, -wide], axis=1), weights, self.ends)

    def weighted_pick(self, weights: FloatArray, matrices: FloatArray) -> FloatArray:
        """(k, p, p)."""
        if len(matrices) == 1:
            return weights[:, :, None] * self.within(matrices[0], slice(None))
        picked = pick_cells(matrices, weights, self.ends)
        return _of_differences(_of_differences(picked, 1), 2)


def _of_differences(values: FloatArray, axis: int) -> FloatArray:
    """What is about winners less what is about losers, the halves of one axis."""
    winners, losers = np.split(values, 2, axis)
    return winners - losers


Points = Block | PairBlock
"""Users who are worked on at once, among their items or among their comparisons."""


def _check_width(largest: float) -> None:
    if largest > WIDEST_PRIOR:
        raise NumericalError(
            f"a utility has a variance of {largest:.1e}, and beyond {WIDEST_PRIOR:.0e} "
            "rounding hides what answers tell: lower the kernel's variance (an answer's noise "
            "has variance 1, so 100 is wide already)"
        )
