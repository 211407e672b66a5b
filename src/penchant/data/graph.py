"""The comparison graph: items are its nodes, comparisons its edges.

The difference operator A, with rows e_winner − e_loser, and its weighted Laplacian
L = Aᵀ diag(w) A live here and nowhere else; `numerics.batched` has their stacked form.
"""

from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from penchant.numerics.linalg import (
    Ends,
    difference_variances,
    edge_variances,
    multiply_laplacian,
)
from penchant.numerics.types import FloatArray, IntArray

DENSE_SHARE = 10
"""Form L when n² ≤ this × m: a number of a sparse product costs as much as ten of a dense one."""


class Differences:
    """A with rows e_winner − e_loser over `n_points` nodes.

    >>> D = Differences(np.array([0, 1]), np.array([1, 2]), 3)
    >>> D.forward(np.array([3.0, 2.0, 0.0])).tolist(), D.adjoint(np.ones(2)).tolist()
    ([1.0, 2.0], [1.0, 0.0, -1.0])
    """

    def __init__(self, winner: IntArray, loser: IntArray, n_points: int) -> None:
        self.winner, self.loser, self.n_points = winner, loser, n_points
        self.ends = Ends(winner, loser)

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

    def matrix(self, weight: FloatArray | None = None) -> sparse.csr_array:
        """A itself, (m, n_points), its rows times `weight` (m,) where that is given."""
        m = len(self.winner)
        ones = np.ones(m) if weight is None else weight
        columns = np.stack([self.winner, self.loser], axis=1).ravel()
        values = np.stack([ones, -ones], axis=1).ravel()
        ends = np.arange(0, 2 * m + 1, 2)
        return sparse.csr_array((values, columns, ends), shape=(m, self.n_points))

    def laplacian(self, weight: FloatArray) -> sparse.csr_array | FloatArray:
        """L = Aᵀ diag(weight) A; dense if the graph is."""
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

    def laplacian_times(self, weight: FloatArray, rows: FloatArray) -> FloatArray:
        """L rows, for rows (n_points, r)."""
        return multiply_laplacian(rows, self.ends, weight, self.laplacian)

    def variances(self, half: FloatArray) -> FloatArray:
        """diag(A Σ Aᵀ) for Σ = half.T @ half, half of shape (r, n_points)."""
        return edge_variances(half, self.ends)

    def variances_under(self, covariance: FloatArray) -> FloatArray:
        """diag(A Σ Aᵀ) from the lower triangle of Σ."""
        return difference_variances(covariance, self.winner, self.loser)


def laplacian(winner: IntArray, loser: IntArray, count: IntArray, n: int) -> sparse.csr_matrix:
    """Return the (n, n) Laplacian whose edges weigh as much as they were compared."""
    D, weight = Differences(winner, loser, n), count.astype(np.float64)
    return sparse.csr_matrix(D.matrix().T @ D.matrix(weight))


def components(winner: IntArray, loser: IntArray, n: int) -> tuple[int, IntArray]:
    """Return the number of connected groups and the group of each of the n items."""
    if n * n < len(winner):  # then some pairs occur many times, and once is enough
        met = np.zeros(n * n, dtype=bool)
        met[winner * n + loser] = True
        winner, loser = np.divmod(np.flatnonzero(met), n)
    edges = sparse.coo_matrix((np.ones(len(winner)), (winner, loser)), shape=(n, n))
    n_groups, labels = csgraph.connected_components(edges, directed=False)
    return int(n_groups), labels.astype(np.intp)
