"""Many users: exact answers, gradients, learning."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import (
    Rows,
    Settings,
    UserHyper,
    UserProblem,
    expectation_maximize,
    gradient,
    maximize_evidence,
    solve,
)
from penchant.kernels import RBF, Constant, FreeCovariance, Independent, Inputs, Linear
from penchant.likelihoods import Lapse, Probit, Ties
from penchant.models import MultiUserGP

N_USERS, N_ITEMS, SHARING = 7, 6, 0.35
FREE = FreeCovariance.of(np.diag(np.arange(1.0, N_ITEMS + 1)) + 0.5)
ITEM_KERNELS = [RBF((0.8, 1.4), 2.0) + Independent(0.3), Linear(0.7), FREE]
USER_KERNELS = [Constant(1.0), 1.0 + RBF((1.0, 2.0), 0.7)]


def problem_of(study, rule="ep", tolerance=1e-11):
    return UserProblem.of(study.items, study.users, study.votes, Settings(rule, tolerance, 1000))


@pytest.mark.parametrize("item_kernel", ITEM_KERNELS, ids=repr)
@pytest.mark.parametrize("user_kernel", USER_KERNELS, ids=repr)
def test_posterior_equals_dense_ep_on_the_kronecker_covariance(
    study, dense, item_kernel, user_kernel
):
    problem = problem_of(study)
    solution = solve(problem, UserHyper(item_kernel, user_kernel, SHARING, Probit()))
    K_user = SHARING * user_kernel(study.users) + (1 - SHARING) * np.eye(N_USERS)
    K = np.kron(K_user, item_kernel(study.items))
    expected = dense.infer(K, study.votes, N_ITEMS, Probit(), problem.settings)
    assert solution.log_evidence == pytest.approx(expected.log_evidence, abs=1e-8)
    posteriors = problem.posterior(solution)
    mean, var = posteriors.utilities(np.arange(N_USERS))
    utilities, covariance = expected.state.utilities, expected.state.covariance
    np.testing.assert_allclose(mean, utilities, atol=1e-8)
    np.testing.assert_allclose(var, np.einsum("uiui->ui", covariance), atol=1e-8)
    for user in (2, 3, 5):  # silent, talkative, of one pair
        one = posteriors.for_user(user)
        np.testing.assert_allclose(one.mean, utilities[user], atol=1e-8)
        np.testing.assert_allclose(one.covariance(), covariance[user, :, user], atol=1e-8)


@pytest.mark.parametrize(
    ("rule", "item_kernel", "user_kernel"),
    [
        *product(["ep", "laplace", "variational"], ITEM_KERNELS[:1], USER_KERNELS),
        ("ep", FREE, USER_KERNELS[1]),
        ("laplace", FREE, USER_KERNELS[0]),
    ],
    ids=repr,
)
def test_gradient_is_the_derivative(study, check_gradient, rule, item_kernel, user_kernel):
    problem = problem_of(study, rule, 1e-9)
    hyper = UserHyper(item_kernel, user_kernel, SHARING, Probit())
    check_gradient(problem, hyper, rtol=1e-7, atol=2e-6)


def test_gradient_through_few_pivot_users(study, check_gradient):
    problem = replace(problem_of(study), max_user_rank=3)
    hyper = UserHyper(Linear(0.7), 1.0 + RBF((1.0, 2.0), 0.7), SHARING, Probit())
    solution = solve(problem, hyper)
    assert solution.prior.users.rows.shape == (N_USERS, 3)
    assert solution.inference.report.residual > 0.0
    check_gradient(problem, hyper, rtol=1e-7, atol=2e-6)


def test_gradient_of_likelihood_parameters(study, rng, check_gradient):
    data = study.data
    tied = Comparisons.from_pairs(
        data.winner,
        data.loser,
        user=data.user,
        tie=rng.random(len(data)) < 0.2,
        items=range(N_ITEMS),
        users=range(N_USERS),
    )
    for likelihood, source in ((Ties(0.4), tied), (Lapse(Probit(), 0.1), data)):
        settings = Settings(tolerance=1e-11, max_sweeps=1000)
        problem = UserProblem.of(study.items, study.users, Rows.by_user(source), settings)
        hyper = UserHyper(Linear(0.7), Constant(1.0), SHARING, likelihood)
        check_gradient(problem, hyper, rtol=1e-7, atol=2e-6)


def test_theta_round_trip():
    hyper = UserHyper(ITEM_KERNELS[0], USER_KERNELS[1], SHARING, Lapse(Probit()))
    assert len(hyper.theta) == len(hyper.bounds) == 4 + 3 + 1 + 1
    moved = hyper.at(hyper.theta + 0.1)
    np.testing.assert_allclose(moved.theta, hyper.theta + 0.1)
    assert 0.0 < moved.sharing < 1.0


def simulate(rng, n_users, n_pairs, covariance, population):
    """Probit answers of users whose utilities are a population's plus correlated deviations."""
    n = len(population)
    f = population + rng.multivariate_normal(np.zeros(n), covariance, size=n_users)
    user = np.repeat(np.arange(n_users), n_pairs)
    a = rng.integers(n, size=len(user))
    b = (a + 1 + rng.integers(n - 1, size=len(user))) % n
    wins = f[user, a] - f[user, b] + rng.standard_normal(len(user)) > 0
    data = Comparisons.from_pairs(
        np.where(wins, a, b), np.where(wins, b, a), user=user, items=range(n), users=range(n_users)
    )
    return data, f


@pytest.fixture(scope="module")
def correlated():
    rng = np.random.default_rng(5)
    factor = np.array([[2.0, 0.0], [1.8, 0.3], [-1.5, 0.5], [0.0, 1.5], [0.2, -1.6]])
    covariance = factor @ factor.T + 0.2 * np.eye(5)
    data, f = simulate(rng, 150, 15, covariance, np.array([1.0, 0.5, 0.0, -0.5, -1.0]))
    problem = UserProblem.of(
        Inputs(index=np.arange(5)), Inputs(index=np.arange(150)), Rows.by_user(data), Settings()
    )
    start = UserHyper(FreeCovariance.of(np.eye(5)), Constant(1.0), 0.5, Probit())
    return problem, start, covariance, f


def test_learning_finds_the_covariance_of_tastes(correlated):
    problem, start, covariance, f = correlated
    evaluations = []
    solution = maximize_evidence(
        problem, start, callback=lambda n, value: evaluations.append(value)
    )
    assert solution.inference.report.n_evaluations == len(evaluations)
    assert (np.diff(evaluations) >= 0).all()
    assert solution.log_evidence > solve(problem, start).inference.log_evidence + 50
    P = np.eye(5) - 0.2
    learned = (1 - solution.hyper.sharing) * solution.hyper.kernel(problem.items)
    truth = P @ covariance @ P
    assert np.linalg.norm(learned - truth) < 0.35 * np.linalg.norm(truth)
    mean = problem.posterior(solution).utilities(np.arange(150)).mean
    centred = f - f.mean(axis=1, keepdims=True)
    assert np.corrcoef(mean.ravel(), centred.ravel())[0, 1] > 0.9


def test_em_climbs_monotonically_to_the_same_place(correlated):
    problem, start, *_ = correlated
    values = []
    em = expectation_maximize(problem, start, lambda n, value: values.append(value))
    assert np.diff(values).min() > -1e-4
    by_gradient = maximize_evidence(problem, start)
    # EM's closed form weighs an inverse-Wishart prior, the climb one on the logarithm
    assert em.inference.log_evidence == pytest.approx(by_gradient.inference.log_evidence, abs=6.0)
    assert em.hyper.sharing == pytest.approx(by_gradient.hyper.sharing, abs=0.25)


def test_em_step_has_the_gradients_direction(correlated):
    """At EM's fixed point the gradient of the penalised evidence is zero: check it shrinks."""
    problem, start, *_ = correlated
    precise = UserProblem.of(problem.items, problem.users, problem.edges, Settings(tolerance=1e-9))

    def slope(hyper):
        g = gradient(precise, solve(precise, hyper))
        penalty = hyper.kernel.wishart_prior()[1]
        g[: len(penalty)] += penalty
        return np.linalg.norm(g)

    assert slope(expectation_maximize(problem, start).hyper) < 0.05 * slope(start)


def test_em_climbs_with_features_of_users(study):
    values = []
    hyper = UserHyper(FREE, USER_KERNELS[1], SHARING, Probit())
    expectation_maximize(problem_of(study), hyper, lambda n, value: values.append(value))
    assert len(values) > 3
    assert np.diff(values).min() > -1e-4
    assert values[-1] > values[0] + 0.1


def test_em_needs_a_free_covariance(study):
    problem = problem_of(study)
    hyper = UserHyper(Linear(), Constant(1.0), SHARING, Probit())
    with pytest.raises(DataError, match="closed form"):
        expectation_maximize(problem, hyper)


def test_a_candidate_that_beats_the_fallback_is_scored_as_it_will_be_learned(monkeypatch):
    """After ten steps one of many parameters may predict better than at the end."""
    rng = np.random.default_rng(1)
    tastes = 3.0 * rng.standard_normal((30, 2)) @ rng.standard_normal((2, 8))
    user = np.repeat(np.arange(30), 20)
    first = rng.integers(8, size=600)
    second = (first + rng.integers(1, 8, size=600)) % 8
    won = tastes[user, first] > tastes[user, second]
    data = Comparisons.from_pairs(
        np.where(won, first, second), np.where(won, second, first), user=user, items=range(8)
    )
    n_steps = {}

    def watched(problem, start, *given, limits=None, **named):
        n_steps[type(start.kernel).__name__] = limits.max_steps
        return maximize_evidence(problem, start, *given, limits=limits, **named)

    monkeypatch.setattr("penchant.gp.learn.maximize_evidence", watched)
    model = MultiUserGP(progress=False).fit(None, data)
    assert "item covariance: free" in model.report_.optimizer
    assert n_steps["FreeCovariance"] > n_steps["Independent"]
