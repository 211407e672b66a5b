"""The comparison graph: items are its nodes, comparisons its edges."""

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from penchant.numerics.types import IntArray


def laplacian(winner: IntArray, loser: IntArray, count: IntArray, n: int) -> sparse.csr_matrix:
    """Return the (n, n) Laplacian whose edges weigh as much as they were compared."""
    weight = count.astype(np.float64)
    edges = sparse.coo_matrix((weight, (winner, loser)), shape=(n, n))
    degree = np.bincount(winner, weight, n) + np.bincount(loser, weight, n)
    return sparse.csr_matrix(sparse.diags(degree) - edges - edges.T)


def components(winner: IntArray, loser: IntArray, n: int) -> tuple[int, IntArray]:
    """Return the number of connected groups and the group of each of the n items."""
    edges = sparse.coo_matrix((np.ones(len(winner)), (winner, loser)), shape=(n, n))
    n_groups, labels = csgraph.connected_components(edges, directed=False)
    return int(n_groups), labels.astype(np.intp)
