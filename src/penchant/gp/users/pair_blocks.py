"""Users in stacks among their comparisons.

Where these close no circle they are fewer than the items, and each is a point of its own, whose
utility is a difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from penchant.gp.users.blocks import SMALLEST_VARIANCE, Block, check_width
from penchant.numerics.batched import (
    StackPlaces,
    collect_cells,
    collect_items,
    collect_rows,
    meet_items,
    multiply_stack,
    pick_cells,
    pick_items,
    put_edges,
    row_products_stack,
)
from penchant.numerics.types import FloatArray, IntArray


class PairEnds(StackPlaces):
    """Of comparisons: a row of `items` has their winners, then their losers."""

    repeats = True


@dataclass(frozen=True, eq=False)
class PairBlock:
    """k users, or parts of users, who made p comparisons each: these are its points.

    The same methods as a `Block`, on the host alone. users: as there; ends: the comparisons, user
    by user, and their items.
    """

    users: IntArray
    ends: PairEnds

    @classmethod
    def of(
        cls, users: IntArray, edges: IntArray, winner: IntArray, loser: IntArray, n_items: int
    ) -> "PairBlock":
        """edges: (k, p); winner, loser: (m,) items, over all comparisons."""
        items, nothing = np.hstack([winner[edges], loser[edges]]), np.zeros(0, dtype=np.intp)
        return cls(users, PairEnds(items, edges.ravel(), nothing, nothing, nothing, n_items))

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
        check_width(0.5 * largest)
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
