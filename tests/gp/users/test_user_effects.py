"""Effects beside many users: dense algebra and finite differences."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg import block_diag

from penchant import MultiUserGP, load
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


@pytest.mark.parametrize("rule", ["ep", "laplace"])
def test_directions_with_some_columns_of_the_items(check_gradient, rule):
    problem, hyper = problem_of(rule), UserHyper(KERNEL, 1.0 + RBF(0.5), 0.9, Probit())
    problem = replace(problem, shared_size=N + 2)
    solution, votes = solve(problem, hyper), problem.edges
    assert 0 < solution.prior.depth < solution.prior.rank
    check_gradient(problem, hyper)
    state, posterior = solution.inference.state, problem.posterior(solution)
    found = posterior.differences(votes.user, votes.winner, votes.loser, votes.shown.z)
    np.testing.assert_allclose(found.mean, state.mean, atol=1e-9)
    np.testing.assert_allclose(found.var, state.var, atol=1e-9)


@pytest.mark.parametrize("user_kernel", [Constant(1.0), 1.0 + RBF(1.3)], ids=["alike", "features"])
@pytest.mark.parametrize("kernel", [KERNEL, Linear(0.7)], ids=["full", "few ranks"])
@pytest.mark.parametrize("by_comparisons", [False, True])
def test_equals_dense_algebra(monkeypatch, dense, kernel, user_kernel, by_comparisons):
    """One Gaussian of the effects, every user's utilities and those of people at large."""
    if by_comparisons:  # with few answers some users' close no circle
        monkeypatch.setattr("penchant.gp.users.blocks.SAVED_FLOPS", -1.0)
    problem, rho = problem_of("ep", 6 if by_comparisons else 30), 0.4
    solution = solve(problem, UserHyper(kernel, user_kernel, rho, Probit()))
    votes, sites, q = problem.edges, solution.inference.sites, 2
    K_user = rho * user_kernel(USERS)
    at_large = K_user.mean(axis=0, keepdims=True)  # the last of U + 1: what users share on average
    K_user = np.block(
        [[K_user + (1.0 - rho) * np.eye(U), at_large.T], [at_large, at_large.mean(keepdims=True)]]
    )
    K = block_diag(np.diag(votes.shown.sd**2), np.kron(K_user, kernel(ITEMS)))
    A = np.hstack([votes.shown.z.T, dense.design(votes, N, U + 1)])
    mean, cov, _ = dense.condition(K, A, votes.count * sites.tau, votes.count * sites.nu)
    state, posterior = solution.inference.state, problem.posterior(solution)
    np.testing.assert_allclose(state.mean, A @ mean, atol=1e-9)
    np.testing.assert_allclose(state.var, np.diagonal(A @ cov @ A.T), atol=1e-9)
    np.testing.assert_allclose(posterior.effects.mean, mean[:q], atol=1e-9)
    between = posterior.effects.covariance(posterior.shared_lower)
    np.testing.assert_allclose(between, cov[:q, :q], atol=1e-9)
    population, last = posterior.population(), slice(q + U * N, None)
    np.testing.assert_allclose(population.mean, mean[last], atol=1e-8)
    np.testing.assert_allclose(population.covariance(), cov[last, last], atol=1e-8)
    found = posterior.utilities(np.arange(U))
    np.testing.assert_allclose(found.mean.ravel(), mean[q : q + U * N], atol=1e-8)
    np.testing.assert_allclose(found.var.ravel(), np.diagonal(cov)[q : q + U * N], atol=1e-8)
    users, z = np.array([0, 1, 2, -1, 1]), np.array([[1, -1, 0, 1, 0], [0.5, 2, -1, 0.3, 0]])
    pairs = np.array([[0, 1], [3, 2], [1, 3], [2, 0], [0, 3]])
    asked = SimpleNamespace(user=users % (U + 1), winner=pairs[:, 0], loser=pairs[:, 1])
    rows = np.hstack([z.T, dense.design(asked, N, U + 1)])
    found = posterior.known_differences(users, *pairs.T, z)
    np.testing.assert_allclose(found.mean, rows @ mean, atol=1e-8)
    np.testing.assert_allclose(found.var, np.diagonal(rows @ cov @ rows.T), atol=1e-8)
    for i, user in enumerate(users):
        belief = posterior.belief(None if user < 0 else int(user))
        alone = belief.difference(pairs[[i], 0], pairs[[i], 1], z[:, [i]])
        np.testing.assert_allclose(np.ravel(alone), [found.mean[i], found.var[i]], atol=1e-8)


@pytest.mark.parametrize("kind", ["refreshed", "later users", "sparse"])
def test_a_file_keeps_how_effects_go_with_utilities(tmp_path, kind):
    """Also where the file holds the posterior's sites, which do not say how pairs were shown."""
    rng, more = np.random.default_rng(3), {"items": range(N)}
    a, b = np.tile(np.arange(N), 10), np.tile(np.roll(np.arange(N), 1), 10)
    first = rng.choice([-1, 1], size=len(a))
    data = Comparisons.from_pairs(a, b, user=rng.integers(U, size=len(a)), first=first, **more)
    new = Comparisons.from_pairs([0, 1], [2, 3], user=["eva", "eva"], first=[1, -1], **more)
    how = {"optimize": None, "sparse": (2, 4) if kind == "sparse" else None}
    model = MultiUserGP(Independent(1.0), **how).fit(None, data)
    if kind == "later users":
        model = model.fold_in(new)
    model.save(tmp_path / "m.penchant")
    read = load(tmp_path / "m.penchant")
    for users in (None, *model.comparisons_.users):
        asked = {"users": users, "first": 1}
        found, said = (m.predict_proba([(0, 1), (2, 3)], **asked) for m in (read, model))
        np.testing.assert_allclose(found, said, atol=1e-9)
