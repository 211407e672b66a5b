import numpy as np
import pytest
from scipy import sparse

from penchant.data import Comparisons
from penchant.gp import Differences, ItemHyper, ItemProblem, Rows, Settings, solve
from penchant.kernels import RBF, Inputs
from penchant.likelihoods import Gaussian, Outcomes, Probit
from penchant.numerics import linalg
from tests.gp.problems import assert_posterior, dense_rows
from tests.simulation import duels


@pytest.fixture
def operator(rng):
    """Makes A of twenty random pairs of so many points, and the same as a dense matrix."""

    def make(n_points):
        ends = duels(rng, np.zeros(n_points), 20)
        return Differences(*ends, n_points), dense_rows(*ends, n_points)

    return make


def test_item_operator_equals_its_dense_matrix(operator, rng):
    design, A = operator(6)
    x, y = rng.standard_normal(6), rng.standard_normal(20)
    np.testing.assert_allclose(design.forward(x), A @ x)
    np.testing.assert_array_equal(design.matrix().toarray(), A)
    np.testing.assert_allclose(design.adjoint(y), A.T @ y, atol=1e-14)


@pytest.mark.parametrize(("n_points", "is_dense"), [(6, True), (30, False)])
def test_the_laplacian_is_dense_where_the_graph_is(operator, rng, n_points, is_dense):
    (design, A), w = operator(n_points), rng.random(20)
    L = design.laplacian(w)
    assert isinstance(L, np.ndarray) == is_dense
    rows = rng.standard_normal((n_points, 3))
    np.testing.assert_allclose(
        linalg.multiply_symmetric(L, rows), A.T @ np.diag(w) @ A @ rows, atol=1e-13
    )
    assert linalg.multiply_symmetric(L, rows).flags.c_contiguous


@pytest.mark.parametrize("n_points", [6, 600])  # few points: one dense product; many: gathers
def test_edge_variances_by_both_routes(operator, rng, n_points):
    (design, A), half = operator(n_points), rng.standard_normal((4, n_points))
    np.testing.assert_allclose(design.variances(half), np.diag(A @ half.T @ half @ A.T))


def test_edges_pool_users_and_keep_only_compared_items():
    data = Comparisons.from_pairs([1, 1, 3], [3, 3, 1], user=["ann", "bob", "ann"], items=range(5))
    edges = Rows.pooled(data)
    assert edges.items.tolist() == [1, 3]
    assert sorted(zip(edges.winner, edges.loser, edges.count, strict=True)) == [
        (0, 1, 2.0),
        (1, 0, 1.0),
    ]


def test_taking_some_edges_keeps_their_items_and_outcomes():
    data = Comparisons.from_pairs([4, 1, 3], [1, 2, 0], tie=[False, True, False], items=range(5))
    edges = Rows.pooled(data)
    some = edges.take(np.array([2, 0]))
    for part, row in enumerate((2, 0)):
        assert some.items[some.winner[part]] == edges.items[edges.winner[row]]
        assert some.items[some.loser[part]] == edges.items[edges.loser[row]]
        assert some.outcomes.tie[part] == edges.outcomes.tie[row]


@pytest.mark.parametrize("m", [4, 30])  # fewer and more rows than points
def test_rows_of_weighted_sums_have_the_posterior_of_the_dense_formula(rng, m):
    """Teams: Σ = K − K Aᵀ (A K Aᵀ + σ² I)⁻¹ A K under a Gaussian likelihood on margins."""
    n = 7
    A = np.where(rng.random((m, n)) < 0.5, rng.standard_normal((m, n)), 0.0)
    A[:, 0], A[:, 1] = 1.0, -1.0
    margin, universe = rng.standard_normal(m), Inputs(rng.standard_normal((n, 2)))
    rows = Rows.between_sides(sparse.csr_array(A), np.ones(m), Outcomes(margin=margin))
    kernel, noise = RBF(1.0, 2.0), 0.5
    problem = ItemProblem(universe, rows, Settings())
    posterior = problem.posterior(solve(problem, ItemHyper(kernel, Gaussian(noise))))
    K = kernel(universe)
    gain = K @ A.T @ np.linalg.inv(A @ K @ A.T + noise * np.eye(m))
    assert_posterior(posterior, gain @ margin, K - gain @ A @ K, 1e-7)
    _, known = problem.predict(posterior, np.arange(m))
    np.testing.assert_allclose(known.mean, A @ posterior.mean, atol=1e-9)
    np.testing.assert_allclose(known.var, np.diag(A @ posterior.covariance() @ A.T), atol=1e-9)


def test_pairs_written_as_general_rows_give_the_same_fit(rng, make_comparisons):
    edges, universe = Rows.pooled(make_comparisons(8, 40)), Inputs(rng.standard_normal((8, 2)))
    A = edges.operator(np.arange(len(edges.items))).matrix()
    over_all = sparse.csr_array(
        (np.asarray(A.data), edges.items[A.indices], A.indptr), (len(edges), 8)
    )
    rows = Rows.between_sides(over_all, edges.count, edges.outcomes)
    hyper = ItemHyper(RBF(1.0, 2.0), Probit())
    pairs, general = (solve(ItemProblem(universe, e, Settings()), hyper) for e in (edges, rows))
    assert general.log_evidence == pytest.approx(pairs.log_evidence, abs=1e-8)
    np.testing.assert_allclose(general.inference.state.mean, pairs.inference.state.mean, atol=1e-7)
