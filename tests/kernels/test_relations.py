"""Relations: graphs of every make, Laplacians, roles of directed graphs, cliques."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from penchant.errors import DataError, DataWarning
from penchant.kernels import (
    CommonCause,
    Inputs,
    Relation,
    as_relations,
    bipartite,
    directed,
    maximal_cliques,
    undirected,
)


@pytest.fixture
def arrows(rng):
    """A directed graph with an item that links nowhere and one without any link."""
    A = (rng.random((9, 9)) < 0.3) * rng.uniform(0.5, 2.0, (9, 9))
    np.fill_diagonal(A, 0.0)
    A[7:] = A[:, 8:] = 0.0
    return A


PAIR = [[0.0, 2.0], [2.0, 0.0]]


@pytest.mark.parametrize(
    "graph",
    [
        PAIR,
        np.array(PAIR, dtype=int),
        np.array(PAIR, dtype=np.float32),
        sparse.csr_matrix(PAIR),
        sparse.coo_array(PAIR),
        sparse.coo_array(([1.0, 1.0, 2.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2)),
    ],
)
def test_graphs_of_every_make(graph):
    relation = undirected(graph)
    assert isinstance(relation.weights, sparse.csr_array)
    assert relation.weights.dtype == np.float64
    np.testing.assert_array_equal(relation.weights.toarray(), PAIR)
    assert (relation.n_items, relation.n_edges, relation.kind) == (2, 1, "undirected")


def test_the_graph_given_is_left_as_it_was():
    graph = sparse.csr_array(([1.0, 0.0, 1.0], ([0, 0, 1], [1, 2, 0])), shape=(3, 3))
    undirected(graph).weights.data[:] = 5.0
    np.testing.assert_array_equal(graph.data, [1.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (np.zeros((2, 3)), r"square \(n, n\); .* kernels.bipartite"),
        ([[0, 1], [0, 0]], r"not symmetric .* kernels.directed"),
        ([[0, -1], [-1, 0]], "negative weights"),
        ([[0, np.nan], [np.nan, 0]], "NaN or infinite"),
        ([[0, np.inf], [np.inf, 0]], "NaN or infinite"),
        ([["a", "b"], ["b", "a"]], "matrix of numbers"),
        (np.zeros((2, 2), dtype=complex), "matrix of numbers"),
        (np.zeros(4), "matrix of numbers"),
        ("graph", "matrix of numbers"),
    ],
)
def test_bad_graphs(graph, message):
    with pytest.raises(DataError, match=message):
        undirected(graph)
    with pytest.raises(DataError, match="relation 'cites'"):
        as_relations({"cites": graph}, n_items=2)


def test_rounding_is_not_asymmetry():
    relation = undirected([[0, 0.3 + 1e-16], [0.1 + 0.2, 0]])
    assert abs(relation.weights - relation.weights.T).max() == 0.0


def test_self_loops_are_left_out_with_a_warning():
    looped = [[1.0, 1.0], [1.0, 1.0]]
    for make in (undirected, lambda g: directed(g, "symmetric")):
        with pytest.warns(DataWarning, match="2 self-loops") as caught:
            relation = make(looped)
        assert caught[0].filename == __file__
        assert relation.weights.nnz == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        undirected(PAIR)


def test_laplacians(rng):
    W = np.triu(rng.random((6, 6)), k=1)
    W[:, 5] = 0.0
    relation = undirected(W + W.T)
    degree = (W + W.T).sum(axis=1)
    np.testing.assert_allclose(relation.laplacian.toarray(), np.diag(degree) - W - W.T)
    inner = relation.normalised_laplacian.toarray()[:5, :5]
    expected = np.eye(5) - (W + W.T)[:5, :5] / np.sqrt(np.outer(degree[:5], degree[:5]))
    np.testing.assert_allclose(inner, expected)
    np.testing.assert_array_equal(relation.normalised_laplacian.toarray()[5], 0.0)
    assert np.linalg.eigvalsh(inner)[-1] <= 2.0
    values, vectors = relation.spectrum
    assert relation.spectrum is relation.spectrum  # computed once
    np.testing.assert_allclose((vectors * values) @ vectors.T, relation.laplacian.toarray())


def test_treatments_of_a_directed_graph(arrows):
    relation = directed(arrows, "symmetric")
    np.testing.assert_allclose(relation.weights.toarray(), arrows + arrows.T)
    with pytest.raises(DataError, match='"roles", "chung" or "symmetric"'):
        directed(arrows, "undirected")
    roles = directed(arrows)
    for role, expected in (("linking", arrows @ arrows.T), ("linked", arrows.T @ arrows)):
        np.fill_diagonal(expected, 0.0)
        np.testing.assert_allclose(roles[role].weights.toarray(), expected)
        assert roles[role].kind == role


def test_chung_laplacian(arrows):
    relation = directed(arrows, "chung")
    L = relation.laplacian.toarray()
    np.testing.assert_allclose(L, L.T)
    eigenvalues, vectors = np.linalg.eigh(L)
    assert eigenvalues[0] == pytest.approx(0.0, abs=1e-14)
    assert eigenvalues[1] > 0.0
    assert eigenvalues[-1] <= 2.0
    # The stationary distribution of the walk, by brute force, is the square of the null vector.
    out = arrows.sum(axis=1, keepdims=True)
    follow = np.where(out > 0, arrows / np.where(out > 0, out, 1.0), 1.0 / 9.0)
    walk = 0.85 * follow + 0.15 / 9.0  # it teleports with probability 0.15
    stationary = np.linalg.matrix_power(walk, 500)[0]
    np.testing.assert_allclose(vectors[:, 0] ** 2, stationary, rtol=1e-10)
    root = np.sqrt(stationary)
    S = root[:, None] * walk / root
    np.testing.assert_allclose(L, np.eye(9) - (S + S.T) / 2, atol=1e-12)
    assert relation.normalised_laplacian is relation.laplacian


def test_bipartite_joins_items_that_share_a_neighbour():
    incidence = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1]])
    relation = bipartite(incidence)
    expected = np.zeros((4, 4))
    expected[[0, 1, 1, 2], [1, 0, 2, 1]] = 1.0
    np.testing.assert_array_equal(relation.weights.toarray(), expected)
    with pytest.raises(DataError, match="incidence matrix has negative"):
        bipartite(-incidence)


def test_as_relations(arrows):
    made = undirected(arrows + arrows.T)
    named = as_relations(
        {"near": arrows + arrows.T, "made": made, "cites": directed(arrows)}, n_items=9
    )
    assert list(named) == ["near", "made", "cites:linking", "cites:linked"]
    assert all(isinstance(r, Relation) for r in named.values())
    assert named["made"] is made
    assert as_relations(None, n_items=9) == {}


def test_as_relations_checks_size_and_shape(arrows):
    with pytest.raises(DataError, match="over 9 items, the data over 10"):
        as_relations({"cites": directed(arrows, "chung")}, n_items=10)
    with pytest.raises(DataError, match="'cites:linking' is over 9 items"):
        as_relations({"cites": directed(arrows)}, n_items=10)
    with pytest.raises(DataError, match="must map names to graphs"):
        as_relations(arrows, n_items=9)


def test_cora_citations(data_folder):
    with np.load(data_folder / "cora" / "cora.npz", allow_pickle=False) as file:
        parts = (file["adj_data"], file["adj_indices"], file["adj_indptr"])
        citations = sparse.csr_array(parts, shape=tuple(file["adj_shape"]))
    named = as_relations({"cites": directed(citations)}, n_items=2708)
    items = Inputs(relations=named, index=np.arange(2708))
    for name in named:
        K = CommonCause(name)(items.take(np.arange(200)))
        np.testing.assert_allclose(np.diagonal(K), 1.0)
        assert np.linalg.eigvalsh(K)[0] > -1e-10


@given(st.sets(st.sampled_from(list(combinations(range(7), 2)))))
def test_every_maximal_clique_once(edges):
    A = np.zeros((7, 7))
    for i, j in edges:
        A[i, j] = A[j, i] = 1.0
    found = [frozenset(clique.tolist()) for clique in maximal_cliques(sparse.csr_array(A))]
    cliques = [
        set(some)
        for size in range(2, 8)
        for some in combinations(range(7), size)
        if set(combinations(some, 2)) <= edges
    ]
    maximal = [frozenset(c) for c in cliques if not any(c < other for other in cliques)]
    assert sorted(map(sorted, found)) == sorted(map(sorted, maximal))


def test_a_clique_deeper_than_the_recursion_limit():
    (clique,) = maximal_cliques(sparse.csr_array(np.ones((1100, 1100)) - np.eye(1100)))
    assert len(clique) == 1100
