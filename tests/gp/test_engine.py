"""The loop against slow, independent references."""

from dataclasses import replace

import choix
import numpy as np
import pytest
from scipy.special import log_ndtr

from penchant.data import Comparisons
from penchant.errors import NumericalError
from penchant.gp import ItemHyper, Rows, Settings, factor_prior, gradient, infer, solve
from penchant.kernels import RBF, Independent, Inputs, Linear
from penchant.likelihoods import Gaussian, Lapse, Logit, Probit, Ties
from penchant.numerics import threads
from tests.gp.problems import assert_posterior, dense_rows, item_problem, solved


def grid_posterior(K, log_likelihood, n=401, reach=7.0):
    """Moments and evidence of a two-item model by brute force over whitened coordinates."""
    lower = np.linalg.cholesky(K)
    t = np.linspace(-reach, reach, n)
    white = np.stack(np.meshgrid(t, t, indexing="ij"), -1).reshape(-1, 2)
    f = white @ lower.T
    log_weight = -0.5 * (white**2).sum(1) + log_likelihood(f)
    top = log_weight.max()
    weight = np.exp(log_weight - top)
    log_z = np.log(weight.sum()) + top + 2 * np.log(t[1] - t[0]) - np.log(2 * np.pi)
    mean = weight @ f / weight.sum()
    second = (f.T * weight) @ f / weight.sum()
    return mean, second - np.outer(mean, mean), log_z


def test_one_edge_is_exact_for_probit():
    """With a single factor moment matching is the answer, in closed form and on a grid."""
    data = Comparisons.from_pairs(["a"], ["b"])
    K = 2.0 * np.eye(2)
    mean, cov, log_z = grid_posterior(K, lambda f: log_ndtr(f[:, 0] - f[:, 1]))
    _, solution, posterior = solved(data, Independent(2.0))
    assert_posterior(posterior, mean, cov, 1e-6)
    assert solution.log_evidence == pytest.approx(np.log(0.5), abs=1e-9)
    assert log_z == pytest.approx(np.log(0.5), abs=1e-9)


@pytest.mark.parametrize("wins", [(3, 1), (1, 0), (6, 2)])
def test_ep_is_close_to_dense_integration(wins):
    counts = [max(w, 1) for w in wins]
    data = Comparisons.from_pairs(["a", "b"], ["b", "a"], count=counts)

    def log_likelihood(f):
        g = f[:, 0] - f[:, 1]
        return counts[0] * log_ndtr(g) + counts[1] * log_ndtr(-g)

    mean, cov, log_z = grid_posterior(2.0 * np.eye(2), log_likelihood)
    _, solution, posterior = solved(data, Independent(2.0))
    sd = np.sqrt(np.diag(cov))
    assert np.all(np.abs(posterior.mean - mean) < 0.02 * sd)
    np.testing.assert_allclose(posterior.var, np.diag(cov), rtol=0.02)
    assert solution.log_evidence == pytest.approx(log_z, abs=0.02)


def test_probit_ep_equals_choix(rng):
    n, alpha = 7, 0.5
    pairs = [tuple(rng.choice(n, 2, replace=False)) for _ in range(25)]
    # choix's probit has unit noise on the difference and a N(0, 1/alpha) prior
    mean, cov = choix.ep_pairwise(n, pairs, alpha, model="probit", max_iter=1000)
    data = Comparisons.from_pairs(*np.array(pairs).T, items=range(n))
    _, _, posterior = solved(data, Independent(1 / alpha))
    assert_posterior(posterior, mean, cov, 1e-5)


@pytest.mark.parametrize("rule", ["ep", "laplace", "variational"])
def test_a_count_of_two_is_the_row_twice(rule):
    """The same data as counts, or as separate edges that the engine is fed one by one."""
    data = Comparisons.from_pairs([0, 1, 2], [1, 2, 0], count=[2, 1, 3], items=range(3))
    merged, solution, posterior = solved(data, Independent(3.0), rule=rule, tolerance=1e-12)
    edges, rows = merged.edges, np.repeat(np.arange(3), [2, 1, 3])
    apart = Rows(edges.winner[rows], edges.loser[rows], np.ones(6), edges.outcomes, edges.items)
    separate = replace(merged, edges=apart)
    again = solve(separate, solution.hyper)
    assert_posterior(separate.posterior(again), posterior.mean, posterior.covariance(), 1e-9)
    assert again.log_evidence == pytest.approx(solution.log_evidence, abs=1e-9)


def test_item_space_equals_comparison_space(rng):
    """A matching has more items than edges, so the engine works on edges; both must agree."""
    n = 12
    X = rng.standard_normal((n, 2))
    data = Comparisons.from_pairs(range(0, n, 2), range(1, n, 2), items=range(n))
    _, solution, posterior = solved(data, RBF(1.0, 2.0), X=X)
    assert solution.inference.report.space == "comparisons"
    mean, cov, log_z = dense_ep(RBF(1.0, 2.0)(X), data)
    assert_posterior(posterior, mean, cov, 1e-7)
    assert solution.log_evidence == pytest.approx(log_z, abs=1e-7)


def dense_ep(K, data, n_sweeps=200):
    """Sequential EP on the full covariance, one rank-one update at a time: slow and plain."""
    n = len(K)
    sigma, mu = K.copy(), np.zeros(n)
    A = dense_rows(*(np.repeat(side, data.count) for side in (data.winner, data.loser)), n)
    tau, nu = np.zeros((2, len(A)))
    for _ in range(n_sweeps):
        for s, a in enumerate(A):
            v, m = a @ sigma @ a, a @ mu
            t_cav, n_cav = 1 / v - tau[s], m / v - nu[s]
            m_cav, v_cav = n_cav / t_cav, 1 / t_cav
            z = m_cav / np.sqrt(1 + v_cav)
            h = np.exp(-0.5 * z * z - log_ndtr(z)) / np.sqrt(2 * np.pi)
            d1, d2 = h / np.sqrt(1 + v_cav), h * (z + h) / (1 + v_cav)
            new_tau = d2 / (1 - v_cav * d2)
            new_nu = (d1 + m_cav * d2) / (1 - v_cav * d2)
            dt, dn = new_tau - tau[s], new_nu - nu[s]
            tau[s], nu[s] = new_tau, new_nu
            sa = sigma @ a
            mu = mu + sa * (dn - dt * m) / (1 + dt * v)
            sigma = sigma - np.outer(sa, sa) * dt / (1 + dt * v)
    v, m = np.einsum("ij,jk,ik->i", A, sigma, A), A @ mu
    t_cav, n_cav = 1 / v - tau, m / v - nu
    log_zs = log_ndtr((n_cav / t_cav) / np.sqrt(1 + 1 / t_cav))
    scale = log_zs + 0.5 * np.log(1 + tau / t_cav) - 0.5 * (m**2 / v - n_cav**2 / t_cav)
    b = A.T @ nu
    L = A.T @ np.diag(tau) @ A
    log_z = scale.sum() - 0.5 * np.linalg.slogdet(np.eye(n) + K @ L)[1] + 0.5 * b @ sigma @ b
    return mu, sigma, log_z


def test_parallel_sweeps_reach_the_sequential_fixed_point(make_comparisons, rng):
    data = make_comparisons(6, 30)
    X = rng.standard_normal((6, 2))
    mean, cov, log_z = dense_ep(RBF(1.3, 1.7)(X), data)
    _, solution, posterior = solved(data, RBF(1.3, 1.7), X=X)
    assert_posterior(posterior, mean, cov, 1e-8)
    assert solution.log_evidence == pytest.approx(log_z, abs=1e-8)


@pytest.mark.parametrize("rule", ["exact", "ep"])
def test_gaussian_likelihood_is_exact(rng, rule):
    data, X = Comparisons.from_scores(rng.standard_normal(6)), np.arange(6.0)[:, None]
    noise, K, A = 0.3, RBF(1.0, 2.0)(X), dense_rows(data.winner, data.loser, 6)
    S = A @ K @ A.T + noise * np.eye(len(data))
    gain = K @ A.T @ np.linalg.inv(S)
    log_z = -0.5 * (
        data.margin @ np.linalg.solve(S, data.margin) + np.linalg.slogdet(2 * np.pi * S)[1]
    )
    _, solution, posterior = solved(data, RBF(1.0, 2.0), Gaussian(noise), X, rule=rule)
    assert_posterior(posterior, gain @ data.margin, K - gain @ A @ K, 1e-8)
    assert solution.log_evidence == pytest.approx(log_z, abs=1e-7)


def test_bounded_rank_approaches_the_exact_fit(make_comparisons, rng):
    data = make_comparisons(60, 300)
    X = rng.random((60, 1))
    _, _, exact = solved(data, RBF(0.5, 2.0), X=X)
    _, solution, bounded = solved(data, RBF(0.5, 2.0), X=X, rank=8)
    assert solution.prior.factor.shape == (60, 8)
    np.testing.assert_allclose(bounded.mean, exact.mean, atol=1e-3)


def test_damping_is_reported_and_a_hopeless_problem_says_so():
    """Lapses make sites of negative precision; the engine must end with a word, not a NaN."""
    data = Comparisons.from_pairs([0, 1] * 5, [1, 0] * 5, items=range(2))
    lapse, how = Lapse(Probit(), 0.3), {"tolerance": 1e-8, "max_sweeps": 500}
    _, solution, posterior = solved(data, Independent(400.0), lapse, **how)
    report = solution.inference.report
    assert np.isfinite(posterior.mean).all()
    assert report.converged or report.change > report.tolerance
    np.testing.assert_allclose(posterior.mean, 0.0, atol=1e-5)


def test_a_prior_without_variance_is_an_error():
    data = Comparisons.from_pairs([0], [1], items=range(2))
    universe = Inputs(np.full((2, 1), 1e200), index=np.arange(2))
    with np.errstate(all="ignore"), pytest.raises(NumericalError, match="largest"):
        factor_prior(Linear(), universe, Rows.pooled(data))


# Where inference stops: at the fixed point, to the promised tolerance, in few sweeps

KERNEL = RBF(1.0, 2.0) + Independent(0.1)


@pytest.fixture
def pose(rng, make_comparisons):
    """Problems of a size; only with few comparisons an item do frozen steps pay."""

    def pose(n_items, n_pairs):
        X = rng.standard_normal((n_items, 2))
        return item_problem(make_comparisons(n_items, n_pairs), X, tolerance=1e-7)

    return pose


def inference(problem, likelihood, **settings):
    problem = replace(problem, settings=replace(problem.settings, **settings))
    return solve(problem, ItemHyper(KERNEL, likelihood)).inference


@pytest.mark.parametrize("size", [(12, 40), (80, 150)], ids=["plain", "frozen"])
@pytest.mark.parametrize(
    ("likelihood", "rule"),
    [
        *[(x, rule) for x in (Probit(), Logit()) for rule in ("ep", "laplace", "variational")],
        (Ties(0.4), "ep"),
        (Lapse(Probit(), rate=0.05), "ep"),
    ],
    ids=str,
)
def test_default_settings_stop_within_a_millionth_of_the_fixed_point(likelihood, rule, size, pose):
    """A refit and an update must agree to 1e-6, so neither may stop further than that away."""
    for _ in range(3):
        problem = pose(*size)
        found = inference(problem, likelihood, rule=rule)
        limit = inference(problem, likelihood, rule=rule, tolerance=1e-12, max_sweeps=2_000)
        np.testing.assert_allclose(found.state.mean, limit.state.mean, rtol=0, atol=5e-7)
        assert found.report.converged


def test_frozen_steps_spare_sweeps(pose):
    plain = frozen = 0
    for _ in range(3):
        problem = pose(80, 150)
        solution = solve(problem, ItemHyper(KERNEL, Probit()))
        edges, refresh = problem.edges, solution.prior.refresh
        by_engine = infer(refresh, Probit(), edges.outcomes, edges.count, problem.settings)
        np.testing.assert_allclose(
            by_engine.state.mean, solution.inference.state.mean, rtol=0, atol=1e-6
        )
        plain += by_engine.report.n_sweeps
        frozen += solution.inference.report.n_sweeps
    assert frozen < 0.75 * plain


@pytest.mark.parametrize("most", [1, 4])
def test_a_run_that_is_cut_short_says_so(most, pose):
    report = inference(pose(80, 150), Probit(), max_sweeps=most).report
    assert not report.converged
    assert report.tolerance == Settings().tolerance
    assert report.n_sweeps == most


# Independent items are conditioned without a factor, with the numbers of the general algebra

ALONE, GENERAL = Independent(0.7), 1.0 * Independent(0.7)


@pytest.fixture
def data(make_comparisons):
    return make_comparisons(12, 90)


def test_sites_meet_the_same_gaussian(data, rng):
    items, edges = Inputs(index=np.arange(12)), Rows.pooled(data)
    weight, shift = rng.random(len(edges)), rng.standard_normal(len(edges))
    quick, general = (
        factor_prior(kernel, items, edges).refresh(weight, shift) for kernel in (ALONE, GENERAL)
    )
    assert quick.prior.variance == 0.7
    assert general.prior.variance is None
    for name in ("mean", "var", "log_det", "quadratic"):
        np.testing.assert_allclose(getattr(quick, name), getattr(general, name), rtol=1e-10)
    pull = rng.standard_normal(len(edges))
    np.testing.assert_allclose(
        quick.covariance_times(pull), general.covariance_times(pull), atol=1e-12
    )


@pytest.mark.parametrize("rule", ["ep", "laplace"])
def test_evidence_has_the_same_slope(data, rule):
    (problem, quick, _), (_, general, _) = (solved(data, k, rule=rule) for k in (ALONE, GENERAL))
    assert quick.log_evidence == pytest.approx(general.log_evidence, abs=1e-9)
    slopes = gradient(problem, quick), gradient(problem, general)[-1:]
    np.testing.assert_allclose(*slopes, rtol=1e-7)


def test_blocks_cover_every_row_once_in_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("penchant.numerics.threads.n_cores", lambda: 3)
    seen = np.zeros(1_003, dtype=int)

    def count(rows):
        seen[rows] += 1

    threads.for_row_blocks(count, len(seen), 10)
    assert (seen == 1).all()
