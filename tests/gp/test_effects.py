"""Order shown and covariates: against dense algebra, finite differences and refits."""

from dataclasses import replace

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.gp import (
    ORDER,
    Covariates,
    FitState,
    ItemHyper,
    ItemProblem,
    Rows,
    Settings,
    rank_one_update,
    solve,
)
from penchant.kernels import RBF, Independent, Inputs
from penchant.likelihoods import Gaussian, Logit, Probit, Ties

N = 7
UNIVERSE = Inputs(np.random.default_rng(0).standard_normal((N, 2)), index=np.arange(N))
KERNEL = RBF(1.0, 1.5) + Independent(0.2)


def comparisons(m=40, seed=0, ties=False, margins=False):
    rng = np.random.default_rng(seed)
    a = rng.integers(N, size=m)
    b = (a + 1 + rng.integers(N - 1, size=m)) % N
    return Comparisons.from_pairs(
        a,
        b,
        tie=rng.random(m) < 0.3 if ties else None,
        margin=rng.exponential(size=m) if margins else None,
        count=rng.integers(1, 3, size=m),
        first=rng.integers(-1, 2, size=m),
        covariates={"length": 30.0 * rng.standard_normal(m), "bold": rng.integers(-1, 2, size=m)},
        items=range(N),
    )


def problem_of(data, rule="ep", rank=None, tolerance=1e-11):
    return ItemProblem(UNIVERSE, Rows.pooled(data), Settings(rule, tolerance), rank)


def dense(problem, solution):
    """Posterior of (f, β) by inverting everything."""
    edges, sites, kernel = problem.edges, solution.inference.sites, solution.hyper.kernel
    winner, loser = edges.ends
    A = np.eye(N)[winner] - np.eye(N)[loser]
    A = np.hstack([A, edges.shown.z.T])
    K = np.zeros((A.shape[1],) * 2)
    K[:N, :N] = kernel(UNIVERSE)
    K[N:, N:] = np.diag(edges.shown.sd**2)
    D, b = np.diag(edges.count * sites.tau), edges.count * sites.nu
    cov = np.linalg.inv(np.linalg.inv(K) + A.T @ D @ A)
    mean = cov @ A.T @ b
    log_det = np.linalg.slogdet(np.eye(len(K)) + K @ A.T @ D @ A)[1]
    return A, mean, cov, log_det, float(b @ A @ mean)


@pytest.mark.parametrize("m", [5, 40], ids=["comparisons", "items"])
@pytest.mark.parametrize("rule", ["ep", "laplace", "variational"])
def test_equals_dense_algebra(m, rule):
    data = comparisons(m)
    problem = problem_of(data, rule)
    solution = solve(problem, ItemHyper(KERNEL, Probit()))
    assert solution.prior.space == ("comparisons" if m == 5 else "items")
    A, mean, cov, log_det, quadratic = dense(problem, solution)
    state = solution.inference.state
    np.testing.assert_allclose(state.mean, A @ mean, atol=1e-9)
    np.testing.assert_allclose(state.var, np.diag(A @ cov @ A.T), atol=1e-9)
    np.testing.assert_allclose([state.log_det, state.quadratic], [log_det, quadratic], atol=1e-8)
    pull = np.arange(len(problem.edges), dtype=float)
    np.testing.assert_allclose(
        state.covariance_times(pull), A @ cov @ A.T @ pull, rtol=1e-8, atol=1e-8
    )

    posterior = problem.posterior(solution)
    np.testing.assert_allclose(posterior.mean, mean[:N], atol=1e-9)
    np.testing.assert_allclose(posterior.covariance(), cov[:N, :N], atol=1e-8)
    np.testing.assert_allclose(posterior.effects.mean, mean[N:], atol=1e-9)
    between = posterior.effects.covariance(posterior.lower)
    np.testing.assert_allclose(between, cov[N:, N:], atol=1e-9)
    shown = posterior.difference(*problem.edges.ends, problem.edges.shown.z)
    np.testing.assert_allclose(shown.mean, A @ mean, atol=1e-9)
    np.testing.assert_allclose(shown.var, np.diag(A @ cov @ A.T), atol=1e-8)


@pytest.mark.parametrize("rule", ["ep", "laplace", "variational"])
@pytest.mark.parametrize(("m", "rank"), [(5, None), (40, None), (40, 4)])
def test_gradient_is_that_of_finite_differences(check_gradient, m, rank, rule):
    problem = problem_of(comparisons(m), rule, rank)
    check_gradient(problem, ItemHyper(KERNEL, Probit()))


@pytest.mark.parametrize(
    ("likelihood", "rule", "more"),
    [(Logit(), "ep", {}), (Ties(0.4), "ep", {"ties": 1}), (Gaussian(0.4), "exact", {"margins": 1})],
    ids=repr,
)
def test_gradient_with_parameters_of_the_likelihood(check_gradient, likelihood, rule, more):
    check_gradient(problem_of(comparisons(**more), rule), ItemHyper(KERNEL, likelihood))


def test_one_pair_is_what_integration_says():
    """One answer, prior of g + zβ normal: its moments are those of a truncated normal."""
    data = Comparisons.from_pairs([0], [1], first=[1], items=range(N))
    problem = ItemProblem(UNIVERSE, Rows.pooled(data), Settings(tolerance=1e-12))
    posterior = problem.posterior(solve(problem, ItemHyper(Independent(0.5), Probit())))
    # β ~ N(0, 1), f_0 − f_1 ~ N(0, 1): the noisy sum has variance 3, and β is a third of it
    expected = np.sqrt(2 / np.pi) * np.sqrt(3.0) / 3.0
    assert posterior.effects.mean[0] == pytest.approx(expected, abs=1e-9)
    assert posterior.mean[0] - posterior.mean[1] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_settling_equals_inference_from_scratch(ties):
    likelihood = Ties(0.5) if ties else Probit()
    known, more = comparisons(30, 1, ties), comparisons(6, 2, ties)
    problem = problem_of(known)
    learned = FitState.of(known, problem, solve(problem, ItemHyper(KERNEL, likelihood)))
    data = known.extend(more)
    edges = Rows.pooled(data, problem.edges.shown)
    np.testing.assert_array_equal(edges.shown.sd, problem.edges.shown.sd)
    settled = learned.reconverge(data, replace(problem, edges=edges)).posterior
    scratch = solve(replace(problem, edges=edges), ItemHyper(KERNEL, likelihood))
    scratch = replace(problem, edges=edges).posterior(scratch)
    np.testing.assert_allclose(settled.mean, scratch.mean, atol=1e-8)
    np.testing.assert_allclose(settled.effects.mean, scratch.effects.mean, atol=1e-9)


def test_absorbing_margins_is_exact():
    """A Gaussian likelihood is its own site: one step at a time is all there is to know."""
    known, more = comparisons(30, 1, margins=True), comparisons(6, 2, margins=True)
    problem, hyper = problem_of(known, "exact"), ItemHyper(KERNEL, Gaussian(0.5))
    learned = FitState.of(known, problem, solve(problem, hyper))
    assert learned.posterior.half is not None  # worked out, and then handed over
    after = rank_one_update(learned, more, known.extend(more))
    whole = replace(problem, edges=Rows.pooled(known.extend(more), problem.edges.shown))
    solution = solve(whole, hyper)
    posterior = whole.posterior(solution)
    np.testing.assert_allclose(after.posterior.mean, posterior.mean, atol=1e-9)
    np.testing.assert_allclose(after.posterior.covariance(), posterior.covariance(), atol=1e-9)
    np.testing.assert_allclose(after.posterior.effects.mean, posterior.effects.mean, atol=1e-9)
    np.testing.assert_allclose(
        after.posterior.effects.covariance(after.posterior.lower),
        posterior.effects.covariance(posterior.lower),
        atol=1e-9,
    )
    assert after.log_evidence == pytest.approx(solution.log_evidence, abs=1e-7)


def test_an_effect_that_is_new_cannot_be_absorbed():
    known = Comparisons.from_pairs([0, 1], [1, 2], items=range(N))
    problem = problem_of(known)
    learned = FitState.of(known, problem, solve(problem, ItemHyper(KERNEL, Probit())))
    more = Comparisons.from_pairs([0], [2], first=[1], items=range(N))
    assert rank_one_update(learned, more, known.extend(more)) is None


def test_an_order_that_nobody_knows_changes_nothing():
    plain = Comparisons.from_pairs([0, 1], [1, 2], items=range(N))
    unknown = Comparisons.from_pairs([0, 1], [1, 2], first=[0, 0], items=range(N))
    assert Rows.pooled(unknown).shown is None
    assert solve(problem_of(unknown), ItemHyper(KERNEL, Probit())).log_evidence == (
        solve(problem_of(plain), ItemHyper(KERNEL, Probit())).log_evidence
    )


def test_scale_of_a_covariate_is_its_own():
    """Lengths in characters or in thousands of them say the same."""
    data = comparisons()
    thousands = replace(data, covariates=data.covariates / [1000.0, 1.0])
    found = []
    for each in (data, thousands):
        problem = problem_of(each)
        solution = solve(problem, ItemHyper(KERNEL, Probit()))
        found.append((solution.log_evidence, problem.posterior(solution).effects.mean))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-9)
    np.testing.assert_allclose(found[0][1] * [1.0, 1000.0, 1.0], found[1][1], rtol=1e-8)


def test_columns_that_are_known_keep_their_place_and_prior():
    like = Covariates((ORDER, "length"), np.zeros((2, 0)), np.array([1.0, 0.5]))
    data = Comparisons.from_pairs(["a"], ["b"], covariates={"length": [8.0]})
    shown = Covariates.of(data, like)
    assert shown.names == (ORDER, "length")
    assert shown.z.tolist() == [[0.0], [8.0]]
    assert shown.sd.tolist() == [1.0, 0.5]


@pytest.mark.parametrize("rule", ["ep", "laplace", "variational"])
def test_blocks_of_edges_are_edges(rule, monkeypatch):
    data = comparisons(100, ties=True)
    hyper = ItemHyper(KERNEL, Ties(0.5))
    whole = solve(problem_of(data, rule), hyper)
    monkeypatch.setattr("penchant.gp.rules.BLOCK", 7)
    parts = solve(problem_of(data, rule), hyper)
    assert parts.log_evidence == pytest.approx(whole.log_evidence, abs=1e-9)
