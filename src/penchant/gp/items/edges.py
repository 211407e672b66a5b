"""Comparisons as edges between points, and the difference operator A on them.

A *point* is what the prior is factored over. In item space the points are the compared items
and A has rows e_winner − e_loser; in comparison space the points are the differences
themselves and A only renames them. Everything downstream is written once, for a general A.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from penchant.data import Comparisons
from penchant.likelihoods import Outcomes
from penchant.numerics.linalg import lower_gram
from penchant.numerics.types import FloatArray, IntArray

GRAM_SHARE = 100
"""Form Σ when n² ≤ this × m: a gathered product costs 3 ns a number, a syrk 0.01–0.02 ns a flop."""
DENSE_SHARE = 10
"""Form L when n² ≤ this × m: a number of a sparse product costs as much as ten of a dense one."""


@dataclass(frozen=True)
class Edges:
    """The distinct comparisons, restricted to the items that occur in them.

    winner, loser: (m,) positions in `items`; items: (p,) positions in the universe;
    count: (m,) how often each comparison was seen.
    """

    winner: IntArray
    loser: IntArray
    count: FloatArray
    items: IntArray
    outcomes: Outcomes

    @classmethod
    def of(cls, data: Comparisons) -> "Edges":
        """Edges of all users' comparisons taken together."""
        pooled = data.pooled()
        outcomes = Outcomes(pooled.tie if pooled.tie.any() else None, pooled.margin)
        return cls.between(pooled.winner, pooled.loser, pooled.count.astype(float), outcomes)

    @classmethod
    def between(
        cls, winner: IntArray, loser: IntArray, count: FloatArray, outcomes: Outcomes
    ) -> "Edges":
        """Edges given by positions in the universe."""
        n = 1 + max(winner.max(initial=-1), loser.max(initial=-1))
        occurs, position = np.zeros(n, dtype=bool), np.empty(n, dtype=np.intp)
        occurs[winner] = occurs[loser] = True
        items = np.flatnonzero(occurs)
        position[items] = np.arange(len(items))
        return cls(position[winner], position[loser], count, items, outcomes)

    def __len__(self) -> int:
        return len(self.winner)

    def take(self, rows: IntArray) -> "Edges":
        """Some of the comparisons, over the items that occur in them."""
        winner, loser = self.items[self.winner[rows]], self.items[self.loser[rows]]
        return Edges.between(winner, loser, self.count[rows], self.outcomes.part(rows))


class ItemDifferences:
    """A with rows e_winner − e_loser over `n_points` items (item space)."""

    def __init__(self, winner: IntArray, loser: IntArray, n_points: int) -> None:
        self.winner, self.loser, self.n_points = winner, loser, n_points

    @cached_property
    def _pattern(self) -> tuple[sparse.csr_array, IntArray, IntArray]:
        """The Laplacian's sparsity, and where each edge and each diagonal lands in its data."""
        n = self.n_points
        low = np.minimum(self.winner, self.loser)
        high = np.maximum(self.winner, self.loser)
        pairs, slot = np.unique(low * n + high, return_inverse=True)
        i, j = pairs // n, pairs % n
        k = len(pairs)
        diagonal = np.arange(n)
        # data = the position in (pairs, mirrored pairs, diagonal), carried through COO → CSR
        tagged = sparse.coo_array(
            (
                np.arange(1, 2 * k + n + 1),
                (np.concatenate([i, j, diagonal]), np.concatenate([j, i, diagonal])),
            ),
            shape=(n, n),
        ).tocsr()
        return tagged, slot.ravel(), tagged.data - 1

    def forward(self, x: FloatArray) -> FloatArray:
        """A x for x of shape (n_points, …)."""
        difference: FloatArray = x[self.winner] - x[self.loser]
        return difference

    def adjoint(self, y: FloatArray) -> FloatArray:
        """Aᵀ y for y of shape (m,)."""
        n = self.n_points
        won, lost = np.bincount(self.winner, y, n), np.bincount(self.loser, y, n)
        return np.asarray(won - lost, dtype=np.float64)

    def matrix(self) -> sparse.csr_array:
        """A itself, (m, n_points)."""
        m = len(self.winner)
        ones, edge = np.ones(m), np.arange(m)
        return sparse.coo_array(
            (np.concatenate([ones, -ones]), (np.tile(edge, 2), np.append(self.winner, self.loser))),
            shape=(m, self.n_points),
        ).tocsr()

    def laplacian(self, weight: FloatArray) -> sparse.csr_array | FloatArray:
        """L = Aᵀ diag(weight) A, the comparison graph's weighted Laplacian; dense if the graph is.

        >>> ItemDifferences(np.array([0, 0]), np.array([1, 1]), 2).laplacian(np.array([2.0, 3.0]))
        array([[ 5., -5.], [-5.,  5.]])
        """
        n = self.n_points
        diagonal = np.bincount(self.winner, weight, n) + np.bincount(self.loser, weight, n)
        if n * n <= DENSE_SHARE * len(weight):
            won = np.bincount(self.winner * n + self.loser, weight, n * n).reshape(n, n)
            L = np.asarray(-(won + won.T), dtype=np.float64)
            L[np.diag_indices(n)] = diagonal
            return L
        tagged, slot, order = self._pattern
        off = -np.bincount(slot, weight, (len(order) - n) // 2)
        data = np.concatenate([off, off, diagonal])[order]
        return sparse.csr_array((data, tagged.indices, tagged.indptr), shape=(n, n))

    def variances(self, half: FloatArray) -> FloatArray:
        """diag(A Σ Aᵀ) for Σ = half.T @ half, half of shape (r, n_points)."""
        m, n = len(self.winner), self.n_points
        if n * n <= GRAM_SHARE * m:
            cov = lower_gram(half)
            d = np.diagonal(cov)
            high, low = np.maximum(self.winner, self.loser), np.minimum(self.winner, self.loser)
            var: FloatArray = d[high] + d[low] - 2.0 * cov[high, low]
            return var
        rows = np.ascontiguousarray(half.T)
        var = np.empty(m)
        block = max(1, 2**18 // max(rows.shape[1], 1))
        for start in range(0, m, block):
            part = slice(start, start + block)
            difference = rows[self.winner[part]] - rows[self.loser[part]]
            var[part] = np.einsum("ij,ij->i", difference, difference)
        return var


class EdgePoints:
    """A is a permutation: every point is one comparison's difference (comparison space).

    order: (m,) the edge that each point stands for.
    """

    def __init__(self, order: IntArray) -> None:
        self.order = order
        self.position = np.argsort(order)
        self.n_points = len(order)

    def forward(self, x: FloatArray) -> FloatArray:
        """A x."""
        picked: FloatArray = x[self.position]
        return picked

    def adjoint(self, y: FloatArray) -> FloatArray:
        """Aᵀ y."""
        picked: FloatArray = y[self.order]
        return picked

    def laplacian(self, weight: FloatArray) -> sparse.csr_array:
        """L = Aᵀ diag(weight) A, a diagonal."""
        return sparse.diags_array(weight[self.order]).tocsr()

    def variances(self, half: FloatArray) -> FloatArray:
        """diag(A Σ Aᵀ) for Σ = halfᵀ half."""
        return self.forward(np.einsum("ij,ij->j", half, half))


Design = ItemDifferences | EdgePoints
