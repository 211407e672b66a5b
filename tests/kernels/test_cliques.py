"""Maximal cliques against every subset of a small graph."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from penchant.kernels.relations import maximal_cliques


def _graph(n, edges):
    A = np.zeros((n, n))
    for i, j in edges:
        A[i, j] = A[j, i] = 1.0
    return sparse.csr_array(A)


def _brute_force(A):
    n = A.shape[0]
    cliques = [
        set(some)
        for size in range(2, n + 1)
        for some in combinations(range(n), size)
        if all(A[i, j] for i, j in combinations(some, 2))
    ]
    return {frozenset(c) for c in cliques if not any(c < other for other in cliques)}


@given(st.sets(st.sampled_from(list(combinations(range(7), 2)))))
def test_every_maximal_clique_once(edges):
    graph = _graph(7, edges)
    found = [frozenset(clique.tolist()) for clique in maximal_cliques(graph)]
    assert len(set(found)) == len(found)
    assert set(found) == _brute_force(graph.toarray())


def test_limit():
    star = _graph(5, [(0, i) for i in range(1, 5)])
    assert len(maximal_cliques(star, limit=4)) == 4
    assert maximal_cliques(star, limit=3) is None
    assert maximal_cliques(_graph(3, []), limit=0) == []


def test_a_clique_deeper_than_the_recursion_limit():
    n = 1100
    (clique,) = maximal_cliques(sparse.csr_array(np.ones((n, n)) - np.eye(n)))
    np.testing.assert_array_equal(clique, np.arange(n))
