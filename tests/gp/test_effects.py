"""Order shown and covariates: against dense algebra, finite differences and refits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import block_diag

from penchant.data import Comparisons
from penchant.gp import ORDER, Covariates, FitState, ItemHyper, Rows, rank_one_update, solve
from penchant.kernels import RBF, Independent, Inputs
from penchant.likelihoods import Gaussian, Logit, Probit, Ties
from tests.gp.problems import (
    assert_posterior,
    assert_state,
    dense_posterior,
    dense_rows,
    item_problem,
)
from tests.simulation import duels

N = 7
UNIVERSE = Inputs(np.random.default_rng(0).standard_normal((N, 2)), index=np.arange(N))
KERNEL = RBF(1.0, 1.5) + Independent(0.2)


def comparisons(m=40, seed=0, ties=False, margins=False):
    rng = np.random.default_rng(seed)
    return Comparisons.from_pairs(
        *duels(rng, np.zeros(N), m),
        tie=rng.random(m) < 0.3 if ties else None,
        margin=rng.exponential(size=m) if margins else None,
        count=rng.integers(1, 3, size=m),
        first=rng.integers(-1, 2, size=m),
        covariates={"length": 30.0 * rng.standard_normal(m), "bold": rng.integers(-1, 2, size=m)},
        items=range(N),
    )


def problem_of(data, rule="ep", rank=None):
    return item_problem(data, UNIVERSE, rule, 1e-11, rank)


def learn(data, rule="ep", likelihood=None):
    problem, hyper = problem_of(data, rule), ItemHyper(KERNEL, likelihood or Probit())
    return FitState.of(data, problem, solve(problem, hyper))


def assert_same(one, other, atol=1e-9):
    """Two posteriors of utilities and effects."""
    assert_posterior(one, other.mean, other.covariance(), atol)
    np.testing.assert_allclose(one.effects.mean, other.effects.mean, atol=atol)
    between = (posterior.effects.covariance(posterior.lower) for posterior in (one, other))
    np.testing.assert_allclose(*between, atol=atol)


@pytest.mark.parametrize("m", [5, 40], ids=["comparisons", "items"])
@pytest.mark.parametrize("rule", ["ep", "laplace", "variational"])
def test_equals_dense_algebra(m, rule):
    problem = problem_of(comparisons(m), rule)
    solution, edges = solve(problem, ItemHyper(KERNEL, Probit())), problem.edges
    assert solution.prior.space == ("comparisons" if m == 5 else "items")
    A = np.hstack([dense_rows(*edges.ends, N), edges.shown.z.T])
    K = block_diag(KERNEL(UNIVERSE), np.diag(edges.shown.sd**2))
    assert_state(problem, solution, A, K)
    mean, cov = dense_posterior(problem, solution, A, K)
    posterior = problem.posterior(solution)
    assert_posterior(posterior, mean[:N], cov[:N, :N], 1e-9)
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
    problem = problem_of(Comparisons.from_pairs([0], [1], first=[1], items=range(N)))
    posterior = problem.posterior(solve(problem, ItemHyper(Independent(0.5), Probit())))
    # β ~ N(0, 1), f_0 − f_1 ~ N(0, 1): the noisy sum has variance 3, and β is a third of it
    expected = np.sqrt(2 / np.pi) * np.sqrt(3.0) / 3.0
    assert posterior.effects.mean[0] == pytest.approx(expected, abs=1e-9)
    assert posterior.mean[0] - posterior.mean[1] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("ties", [False, True])
def test_settling_equals_inference_from_scratch(ties):
    known, more = comparisons(30, 1, ties), comparisons(6, 2, ties)
    learned, data = learn(known, likelihood=Ties(0.5) if ties else None), known.extend(more)
    edges = Rows.pooled(data, learned.problem.edges.shown)
    np.testing.assert_array_equal(edges.shown.sd, learned.problem.edges.shown.sd)
    whole = replace(learned.problem, edges=edges)
    settled = learned.reconverge(data, whole).posterior
    assert_same(settled, whole.posterior(solve(whole, learned.hyper)), 1e-9)


def test_absorbing_margins_is_exact():
    """A Gaussian likelihood is its own site: one step at a time is all there is to know."""
    known, more = comparisons(30, 1, margins=True), comparisons(6, 2, margins=True)
    learned, data = learn(known, "exact", Gaussian(0.5)), known.extend(more)
    assert learned.posterior.half is not None  # worked out, and then handed over
    after = rank_one_update(learned, more, data)
    edges = Rows.pooled(data, learned.problem.edges.shown)
    whole = replace(learned.problem, edges=edges)
    solution = solve(whole, learned.hyper)
    assert_same(after.posterior, whole.posterior(solution))
    assert after.log_evidence == pytest.approx(solution.log_evidence, abs=1e-7)


def test_an_effect_that_is_new_cannot_be_absorbed():
    known = Comparisons.from_pairs([0, 1], [1, 2], items=range(N))
    more = Comparisons.from_pairs([0], [2], first=[1], items=range(N))
    assert rank_one_update(learn(known), more, known.extend(more)) is None


def test_an_order_that_nobody_knows_changes_nothing():
    plain = Comparisons.from_pairs([0, 1], [1, 2], items=range(N))
    unknown = Comparisons.from_pairs([0, 1], [1, 2], first=[0, 0], items=range(N))
    assert Rows.pooled(unknown).shown is None
    assert learn(unknown).log_evidence == learn(plain).log_evidence


def test_scale_of_a_covariate_is_its_own():
    """Lengths in characters or in thousands of them say the same."""
    data = comparisons()
    one, other = learn(data), learn(replace(data, covariates=data.covariates / [1000.0, 1.0]))
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-9)
    effects = one.posterior.effects.mean * [1.0, 1000.0, 1.0]
    np.testing.assert_allclose(effects, other.posterior.effects.mean, rtol=1e-8)


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
    whole = learn(data, rule, Ties(0.5))
    monkeypatch.setattr("penchant.gp.rules.BLOCK", 7)
    parts = learn(data, rule, Ties(0.5))
    assert parts.log_evidence == pytest.approx(whole.log_evidence, abs=1e-9)
