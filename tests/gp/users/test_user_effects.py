"""Effects beside many users: dense algebra and finite differences."""

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.gp import Rows, Settings, UserHyper, UserProblem, solve
from penchant.kernels import RBF, Constant, Independent, Inputs, Linear
from penchant.likelihoods import Probit

N, U = 4, 3
ITEMS = Inputs(np.random.default_rng(0).standard_normal((N, 2)), index=np.arange(N))
USERS = Inputs(np.random.default_rng(1).standard_normal((U, 1)), index=np.arange(U))
KERNEL = RBF(1.0, 1.2) + Independent(0.3)


def problem_of(rule, m=30):
    rng = np.random.default_rng(2)
    a = rng.integers(N, size=m)
    b = (a + 1 + rng.integers(N - 1, size=m)) % N
    data = Comparisons.from_pairs(
        a,
        b,
        user=rng.integers(U, size=m),
        first=rng.integers(-1, 2, size=m),
        covariates={"x": rng.standard_normal(m)},
        items=range(N),
        users=range(U),
    )
    return UserProblem.of(ITEMS, USERS, Rows.by_user(data), Settings(rule, 1e-11))


@pytest.mark.parametrize("rule", ["ep", "laplace"])
@pytest.mark.parametrize("kernel", [KERNEL, Linear(0.7)], ids=["full", "few ranks"])
def test_gradient_is_that_of_finite_differences(check_gradient, rule, kernel):
    check_gradient(problem_of(rule), UserHyper(kernel, RBF(1.3), 0.4, Probit()))


@pytest.mark.parametrize("by_comparisons", [False, True])
def test_equals_dense_algebra(monkeypatch, by_comparisons):
    """Differences, effects and what users share, by inverting everything."""
    if by_comparisons:  # with few answers some users' close no circle
        monkeypatch.setattr("penchant.gp.users.blocks.MANY", 1)
    problem, rho = problem_of("ep", 6 if by_comparisons else 30), 0.4
    solution = solve(problem, UserHyper(KERNEL, Constant(1.0), rho, Probit()))
    votes, sites = problem.edges, solution.inference.sites
    m = len(votes)
    K = np.kron(rho * np.ones((U, U)) + (1.0 - rho) * np.eye(U), KERNEL(ITEMS))
    A = np.zeros((m, U * N))
    A[np.arange(m), votes.user * N + votes.winner] += 1.0
    A[np.arange(m), votes.user * N + votes.loser] -= 1.0
    shared = np.kron(np.ones((U, 1)), np.eye(N))  # what users share: f_u = s + own deviation
    prior = np.block(
        [
            [np.diag(votes.shown.sd**2), np.zeros((2, N + U * N))],
            [np.zeros((N, 2)), rho * KERNEL(ITEMS), np.zeros((N, U * N))],
            [np.zeros((U * N, 2 + N)), np.kron((1.0 - rho) * np.eye(U), KERNEL(ITEMS))],
        ]
    )
    design = np.hstack([votes.shown.z.T, A @ shared, A])
    D = np.diag(votes.count * sites.tau)
    cov = np.linalg.inv(np.linalg.inv(prior) + design.T @ D @ design)
    mean = cov @ design.T @ (votes.count * sites.nu)
    assert np.allclose(K, shared @ (rho * KERNEL(ITEMS)) @ shared.T + prior[2 + N :, 2 + N :])
    state = solution.inference.state
    np.testing.assert_allclose(state.mean, design @ mean, atol=1e-9)
    np.testing.assert_allclose(state.var, np.diag(design @ cov @ design.T), atol=1e-9)
    posterior = problem.posterior(solution)
    np.testing.assert_allclose(posterior.effects.mean, mean[:2], atol=1e-9)
    between = posterior.effects.covariance(posterior.shared_lower)
    np.testing.assert_allclose(between, cov[:2, :2], atol=1e-9)
    population = posterior.population()
    np.testing.assert_allclose(population.mean, mean[2 : 2 + N], atol=1e-8)
    np.testing.assert_allclose(population.covariance(), cov[2 : 2 + N, 2 : 2 + N], atol=1e-8)
    own = mean[2 + N :].reshape(U, N) + mean[2 : 2 + N]
    np.testing.assert_allclose(posterior.utilities(np.arange(U)).mean, own, atol=1e-8)
