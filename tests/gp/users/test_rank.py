"""A bounded rank of the users' kernel is off by no more than is said."""

from types import SimpleNamespace

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.gp import Rows, Settings, UserHyper, UserProblem, rank_error, residual_bound, solve
from penchant.kernels import RBF, Inputs
from penchant.likelihoods import Probit

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


def bounded(t, rank):
    """A fit through so many pivot users, and the bounds of its errors."""
    problem = UserProblem.of(t.items, t.users, t.votes, Settings(), max_user_rank=rank)
    solution = solve(problem, HYPER)
    largest = residual_bound(HYPER.user_kernel, t.users, solution.prior.users)
    state = solution.inference.state
    return solution, state, rank_error(state, largest)


@pytest.mark.parametrize("rank", [3, 8, 14])
def test_what_is_said_of_a_bounded_rank_holds(rank, dense):
    t = task(20, 8, 160, 2)
    solution, state, error = bounded(t, rank)
    K_user = SHARING * HYPER.user_kernel(t.users) + (1.0 - SHARING) * np.eye(20)
    A, sites = dense.design(t.votes, 8, 20), solution.inference.sites
    K, count = np.kron(K_user, HYPER.kernel(t.items)), t.votes.count
    mean, cov, _ = dense.condition(K, A, count * sites.tau, count * sites.nu)
    mean, var = A @ mean, np.diagonal(A @ cov @ A.T)
    assert np.abs(mean - state.mean).max() <= error.mean
    assert np.abs(var - state.var).max() <= error.var
    P = [Probit().prob(*moments) for moments in ((mean, var), (state.mean, state.var))]
    assert 0.0 < np.abs(P[0] - P[1]).max() <= error.prob
    whole = solve(UserProblem.of(t.items, t.users, t.votes, Settings()), HYPER).inference
    settled = Probit().prob(whole.state.mean, whole.state.var)
    assert np.abs(settled - P[1]).max() <= error.prob  # its own sites included


def test_more_rank_is_less_error():
    t = task(20, 8, 160, 2)
    *_, (_, state, last) = found = [bounded(t, rank) for rank in (4, 10, 18)]
    probs = [error.prob for *_, error in found]
    assert probs[0] > probs[1] > probs[2]
    assert last.prob < 0.05
    assert rank_error(state, 1e6).prob == 1.0  # a bound beyond it says nothing
