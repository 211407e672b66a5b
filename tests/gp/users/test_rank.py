"""User features: equal to a dense computation, and a bounded rank off by no more than is said."""

from types import SimpleNamespace

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.gp import Rows, Settings, UserHyper, UserProblem, rank_error, residual_bound, solve
from penchant.kernels import RBF, Independent, Inputs, Linear
from penchant.likelihoods import Probit

SHARING = 0.6


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


def dense_state(K, votes, n_items, sites):
    rows = np.arange(len(votes))
    A = np.zeros((len(votes), len(K)))
    A[rows, votes.user * n_items + votes.winner] = 1.0
    A[rows, votes.user * n_items + votes.loser] = -1.0
    L, b = A.T @ ((votes.count * sites.tau)[:, None] * A), A.T @ (votes.count * sites.nu)
    covariance = np.linalg.solve(np.eye(len(K)) + K @ L, K)
    return A @ covariance @ b, np.einsum("ij,jk,ik->i", A, covariance, A)


def kronecker(hyper, t):
    K_user = hyper.sharing * hyper.user_kernel(t.users)
    K_user += (1.0 - hyper.sharing) * np.eye(len(t.users))
    return np.kron(K_user, hyper.kernel(t.items))


@pytest.mark.slow
@pytest.mark.parametrize(
    "item_kernel", [RBF(1.5, 2.0) + Independent(0.3), Linear(0.5)], ids=["full", "low"]
)
def test_thirty_users_forty_items_rank_eight(dense_infer, item_kernel):
    t = task(30, 40, 240, 8)
    hyper = UserHyper(item_kernel, Linear(0.3), SHARING, Probit())
    settings = Settings(tolerance=1e-10, max_sweeps=1000)
    problem = UserProblem.of(t.items, t.users, t.votes, settings)
    solution = solve(problem, hyper)
    assert solution.prior.users.rows.shape == (30, 8)
    dense = dense_infer(kronecker(hyper, t), t.votes, 40, Probit(), settings)
    state = solution.inference.state
    np.testing.assert_allclose(state.mean, dense.state.mean, atol=1e-6)
    np.testing.assert_allclose(state.var, dense.state.var, atol=1e-6)
    assert solution.log_evidence == pytest.approx(dense.log_evidence, abs=1e-6)
    mean, var = problem.posterior(solution).utilities(np.arange(30))
    np.testing.assert_allclose(mean, dense.state.utilities, atol=1e-6)
    np.testing.assert_allclose(var, np.einsum("uiui->ui", dense.state.covariance), atol=1e-6)


@pytest.mark.parametrize("rank", [3, 8, 14])
def test_what_is_said_of_a_bounded_rank_holds(rank):
    t = task(20, 8, 160, 2)
    hyper = UserHyper(RBF(1.5, 1.0), RBF(1.2), SHARING, Probit())
    problem = UserProblem.of(t.items, t.users, t.votes, Settings(), max_user_rank=rank)
    solution = solve(problem, hyper)
    largest = residual_bound(hyper.user_kernel, t.users, solution.prior.users)
    error = rank_error(solution.inference.state, largest)
    mean, var = dense_state(kronecker(hyper, t), t.votes, 8, solution.inference.sites)
    state = solution.inference.state
    assert np.abs(mean - state.mean).max() <= error.mean
    assert np.abs(var - state.var).max() <= error.var
    P = [Probit().prob(*moments) for moments in ((mean, var), (state.mean, state.var))]
    assert 0.0 < np.abs(P[0] - P[1]).max() <= error.prob
    whole = solve(UserProblem.of(t.items, t.users, t.votes, Settings()), hyper).inference
    settled = Probit().prob(whole.state.mean, whole.state.var)
    assert np.abs(settled - P[1]).max() <= error.prob  # its own sites included


def test_more_rank_is_less_error():
    t = task(20, 8, 160, 2)
    hyper = UserHyper(RBF(1.5, 1.0), RBF(1.2), SHARING, Probit())
    probs = []
    for rank in (4, 10, 18):
        problem = UserProblem.of(t.items, t.users, t.votes, Settings(), max_user_rank=rank)
        solution = solve(problem, hyper)
        largest = residual_bound(hyper.user_kernel, t.users, solution.prior.users)
        probs.append(rank_error(solution.inference.state, largest).prob)
    assert probs[0] > probs[1] > probs[2]
    assert probs[2] < 0.05
    assert rank_error(solution.inference.state, 1e6).prob == 1.0  # a bound beyond it says nothing
