"""A bounded rank of the users' kernel: directions, their slopes, and the error that is said."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.gp import (
    Rows,
    Settings,
    SharedSize,
    UserHyper,
    UserProblem,
    factor_users,
    gradient,
    rank_error,
    solve,
)
from penchant.kernels import RBF, Inputs
from penchant.likelihoods import Probit
from penchant.numerics import linalg

SHARING = 0.6
HYPER = UserHyper(RBF(1.5, 1.0), RBF(1.2), SHARING, Probit())


def task(n_users, n_items, n_votes, d_users, seed=0):
    rng = np.random.default_rng(seed)
    items = Inputs(rng.standard_normal((n_items, 3)), index=np.arange(n_items))
    users = Inputs(rng.standard_normal((n_users, d_users)), index=np.arange(n_users))
    user = rng.integers(n_users, size=n_votes)
    a = rng.integers(n_items, size=n_votes)
    b = (a + 1 + rng.integers(n_items - 1, size=n_votes)) % n_items
    gap = items.X[a, 0] - items.X[b, 0] + users.X[user, 0] * (items.X[a, 1] - items.X[b, 1])
    wins = gap + rng.standard_normal(n_votes) > 0
    data = Comparisons.from_pairs(
        np.where(wins, a, b),
        np.where(wins, b, a),
        user=user,
        items=range(n_items),
        users=range(n_users),
    )
    return SimpleNamespace(items=items, users=users, data=data, votes=Rows.by_user(data))


def of_rank(t, rank):
    """A problem in which the users' kernel has so many directions, and its solution."""
    settings = Settings(tolerance=1e-11, max_sweeps=1000)
    problem = UserProblem.of(t.items, t.users, t.votes, settings, max_user_rank=rank)
    return problem, solve(problem, HYPER)


@pytest.mark.parametrize("rank", [3, 8, 14])
def test_what_is_said_of_a_bounded_rank_holds(rank, dense):
    t = task(20, 8, 160, 2)
    problem, solution = of_rank(t, rank)
    error, state = rank_error(problem, solution), solution.inference.state
    K_user = SHARING * HYPER.user_kernel(t.users) + (1.0 - SHARING) * np.eye(20)
    A, sites = dense.design(t.votes, 8, 20), solution.inference.sites
    K, count = np.kron(K_user, HYPER.kernel(t.items)), t.votes.count
    mean, cov, _ = dense.condition(K, A, count * sites.tau, count * sites.nu)
    mean, var = A @ mean, np.diagonal(A @ cov @ A.T)
    P = [Probit().prob(*moments) for moments in ((mean, var), (state.mean, state.var))]
    off = np.abs(P[0] - P[1])
    assert error.n_answers == len(t.votes)
    assert (error.mean, error.largest) == pytest.approx((off.mean(), off.max()), rel=1e-6)
    whole = solve(UserProblem.of(t.items, t.users, t.votes, Settings()), HYPER).inference
    settled = Probit().prob(whole.state.mean, whole.state.var)
    assert np.abs(settled - P[1]).max() <= 1.2 * error.largest + 1e-6  # its own sites included


def test_an_error_is_measured_on_so_many_answers_however_many_one_user_made(monkeypatch):
    monkeypatch.setattr("penchant.gp.users.problem.EXACT_ANSWERS", 20)
    t = task(2, 8, 200, 2)
    assert rank_error(*of_rank(t, 1)).n_answers == 20
    few = task(20, 8, 160, 2)
    assert 10 <= rank_error(*of_rank(few, 3)).n_answers <= 20


def test_more_rank_is_less_error():
    t = task(20, 8, 160, 2)
    errors = [rank_error(*of_rank(t, rank)).largest for rank in (2, 5, 10, 18)]
    assert all(a > b for a, b in pairwise(errors))
    assert errors[-1] < 1e-4


def test_directions_leave_out_less_than_pivots():
    """Eight directions of a kernel that has many more: the least that any eight could leave out."""
    t = task(200, 4, 10, 3)
    K = HYPER.user_kernel(t.users)
    found = factor_users(HYPER.user_kernel, t.users, SharedSize(8), np.ones((1, 1)), 1e-10)
    least = np.linalg.eigvalsh(K)[:-8].sum()
    assert least <= found.missed.sum() <= 1.02 * least
    pivots = linalg.pivoted_cholesky(K, 1e-10).rows[:, :8]
    assert 200 - np.sum(pivots**2) > 1.5 * least


@pytest.mark.parametrize("rank", [2, 3, 6, 11])
def test_the_slope_of_a_bounded_rank_is_that_of_finite_differences(rank):
    t = task(40, 8, 400, 2)
    settings = Settings(tolerance=1e-11, max_sweeps=1000)
    problem = UserProblem.of(t.items, t.users, t.votes, settings, max_user_rank=rank)
    hyper = HYPER._replace(user_kernel=1.0 + RBF((1.2, 0.9), 0.8))

    def value(theta):
        return solve(problem, hyper.at(theta)).log_evidence

    steps = 1e-4 * np.eye(len(hyper.theta))
    ends = [(value(hyper.theta + step) - value(hyper.theta - step)) / 2e-4 for step in steps]
    slope = gradient(problem, solve(problem, hyper))
    np.testing.assert_allclose(slope, ends, rtol=1e-4, atol=1e-4)
