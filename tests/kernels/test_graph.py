"""Graph kernels against dense formulas; sparse and dense paths agree; common causes by hand."""

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import expm, lapack

from penchant.errors import DataError, NumericalError
from penchant.kernels import (
    CommonCause,
    Diffusion,
    Inputs,
    RandomWalk,
    RegularizedLaplacian,
    maximal_cliques,
    undirected,
)

SMOOTHERS = [
    RegularizedLaplacian("r", beta=0.6, iota=2.0),
    Diffusion("r", beta=0.4, variance=1.7),
    RandomWalk("r", steps=3, offset=2.5, variance=1.7),
]
each_graph_kernel = pytest.mark.parametrize(
    "kernel", [*SMOOTHERS, CommonCause("r")], ids=lambda k: type(k).__name__
)


def _random_relation(rng, n, links_each):
    pairs = rng.integers(n, size=(2, n * links_each))
    pairs = pairs[:, pairs[0] != pairs[1]]
    half = sparse.coo_array((rng.uniform(0.2, 2.0, pairs.shape[1]), pairs), shape=(n, n))
    return undirected(half + half.T)


def _items(relation):
    return Inputs(relations={"r": relation}, index=np.arange(relation.n_items))


@pytest.fixture
def relation(rng):
    return _random_relation(rng, 80, 2)


def test_formulas(relation):
    Laplacian, eye = relation.laplacian.toarray(), np.eye(80)
    walk = 2.5 * eye - relation.normalised_laplacian.toarray()
    formulas = [
        np.linalg.inv(0.6 * (Laplacian + eye / 4.0)),
        1.7 * expm(-0.4 * Laplacian),
        1.7 * np.linalg.matrix_power(walk, 3) / 2.5**3,
    ]
    for kernel, expected in zip(SMOOTHERS, formulas, strict=True):
        np.testing.assert_allclose(kernel(_items(relation)), expected, atol=1e-12)


def _force(monkeypatch, path):
    """Take one path whatever the size, and make the other one fail."""

    def forbidden(*_, **__):
        raise RuntimeError("the other path was taken")

    if path == "sparse":
        monkeypatch.setattr("penchant.kernels.graph.DENSE_SHARE", 2.0)
        monkeypatch.setattr("penchant.kernels.graph.SPECTRUM_ITEMS", 0)
        monkeypatch.setattr("penchant.kernels.graph.SOLVE_COST", 0)
        monkeypatch.setattr("scipy.linalg.lapack.dpotrf", forbidden)
    else:
        monkeypatch.setattr("penchant.kernels.graph.DENSE_SHARE", 0.0)
        monkeypatch.setattr("penchant.kernels.graph.splu", forbidden)
        monkeypatch.setattr("penchant.kernels.graph.expm_multiply", forbidden)


@pytest.mark.parametrize("kernel", SMOOTHERS, ids=lambda k: type(k).__name__)
def test_sparse_and_dense_paths_agree(kernel, relation, rng):
    items = _items(relation)
    some = items.take(np.array([7, 61, 30, 2]))
    G = rng.standard_normal((4, 4))
    G += G.T
    answers = []
    for path in ("sparse", "dense"):
        with pytest.MonkeyPatch.context() as monkeypatch:
            _force(monkeypatch, path)
            answers.append(
                (kernel(some), kernel(some, items), kernel.diag(some), kernel.pullback(some, G))
            )
    for from_sparse, from_dense in zip(*answers, strict=True):
        np.testing.assert_allclose(from_sparse, from_dense, rtol=1e-9, atol=1e-9)


def test_a_factor_that_fills_in_gives_way_to_a_dense_one(rng, monkeypatch):
    relation = _random_relation(rng, 300, 4)
    monkeypatch.setattr("penchant.kernels.graph.DENSE_SHARE", 2.0)
    items = _items(relation)
    kernel = RegularizedLaplacian("r")
    calls = []
    potrf = lapack.dpotrf
    monkeypatch.setattr(
        "scipy.linalg.lapack.dpotrf", lambda *a, **k: calls.append(1) or potrf(*a, **k)
    )
    few = kernel(items.take(np.arange(3)))
    assert not calls
    every = kernel(items)
    assert calls
    np.testing.assert_allclose(every[:3, :3], few, atol=1e-12)


@each_graph_kernel
def test_relabelling_the_items_relabels_the_kernel(kernel, relation, rng):
    order = rng.permutation(relation.n_items)
    shuffled = undirected(relation.weights[order][:, order])
    np.testing.assert_allclose(
        kernel(_items(shuffled)), kernel(_items(relation))[np.ix_(order, order)], atol=1e-12
    )


@each_graph_kernel
def test_items_in_different_parts_are_independent(kernel):
    two_pairs = undirected(np.kron(np.eye(2), [[0.0, 1.0], [1.0, 0.0]]))
    K = kernel(_items(two_pairs))
    np.testing.assert_allclose(K[:2, 2:], 0.0, atol=1e-15)
    assert K[0, 1] > 0.1


@pytest.mark.parametrize(
    ("kernel", "variance"),
    [
        (RegularizedLaplacian("r", beta=0.5, iota=2.0), 8.0),
        (Diffusion("r", variance=3.0), 3.0),
        (RandomWalk("r", variance=3.0), 3.0),
        (CommonCause("r", variance=3.0), 3.0),
    ],
)
def test_an_isolated_item(kernel, variance):
    alone = undirected(np.zeros((3, 3)))
    np.testing.assert_allclose(kernel(_items(alone)), variance * np.eye(3))


@pytest.fixture
def triangle_with_tail():
    """Items 0, 1, 2 in a triangle, 3 hanging on 2, 4 on its own."""
    W = np.zeros((5, 5))
    for i, j in ((0, 1), (0, 2), (1, 2), (2, 3)):
        W[i, j] = W[j, i] = 0.7
    return undirected(W)


@pytest.mark.parametrize(
    ("per", "causes"),
    [
        ("clique", [{0, 1, 2}, {2, 3}, {4}]),
        ("auto", [{0, 1, 2}, {2, 3}, {4}]),
        ("edge", [{0, 1}, {0, 2}, {1, 2}, {2, 3}, {4}]),
    ],
)
def test_common_causes_by_hand(triangle_with_tail, per, causes):
    shared = np.array([[sum({i, j} <= c for c in causes) for j in range(5)] for i in range(5)])
    own = np.diagonal(shared)
    K = CommonCause("r", variance=1.5, per=per)(_items(triangle_with_tail))
    np.testing.assert_allclose(K, 1.5 * shared / np.sqrt(np.outer(own, own)))


def test_auto_takes_edges_where_cliques_outnumber_them():
    # Three nodes in each of five parts, linked to every node of the other parts: 3^5 cliques.
    parts = np.repeat(np.arange(5), 3)
    relation = undirected((parts[:, None] != parts).astype(float))
    assert len(maximal_cliques(relation.weights)) == 3**5
    items = _items(relation)
    np.testing.assert_array_equal(CommonCause("r")(items), CommonCause("r", per="edge")(items))


def test_bind(relation):
    items = Inputs(relations={"other": relation}, index=np.arange(80))
    for kernel in [*SMOOTHERS, CommonCause("r", per="edge")]:
        bound = kernel.bind("other")
        assert bound.relation == "other"
        assert bound.bind("r") == kernel
        np.testing.assert_array_equal(bound(items), kernel(_items(relation)))


def test_new_items_need_relations_that_cover_them(relation):
    kernel = SMOOTHERS[0]
    for outside in (
        Inputs(np.zeros((2, 1)), {"r": relation}),
        Inputs(relations={"r": relation}, index=np.array([79, 80])),
    ):
        with pytest.raises(DataError, match="relations that cover the new items"):
            kernel(outside)


def test_two_relations_of_one_name_do_not_mix(relation, rng):
    wider = _random_relation(rng, 90, 2)
    with pytest.raises(DataError, match="different relations named 'r'"):
        SMOOTHERS[0](_items(relation), _items(wider))


def test_a_level_tied_to_nothing_is_refused(relation):
    with pytest.raises(NumericalError, match="smaller iota"):
        RegularizedLaplacian("r", iota=1e7)(_items(relation))
    loosest = RegularizedLaplacian("r", iota=1e3)
    K = loosest(_items(relation))
    assert np.linalg.eigvalsh(K)[0] > 0.0
    shift = relation.laplacian.toarray() + 1e-6 * np.eye(80)
    np.testing.assert_allclose(K @ shift, np.eye(80), atol=1e-6)
