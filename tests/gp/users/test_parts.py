"""Parts that nothing ties together are eliminated apart, and give what the whole gives."""

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.gp import Settings, UserHyper, UserProblem, Votes, gradient, solve, tied_items
from penchant.gp.users.arrowhead import ArrowPrior
from penchant.gp.users.blocks import Arrangement, arrange
from penchant.kernels import RBF, Constant, Independent, Inputs
from penchant.likelihoods import Probit

N_ITEMS, N_USERS = 12, 9


@pytest.fixture
def topics(rng):
    """Three topics of four items; users compare within topics only, one of them in all."""
    user = rng.integers(N_USERS, size=90)
    topic = np.where(user == 0, rng.integers(3, size=90), user % 3)
    a = rng.integers(4, size=90)
    b = (a + 1 + rng.integers(3, size=90)) % 4
    data = Comparisons.from_pairs(
        4 * topic + a, 4 * topic + b, user=user, items=range(N_ITEMS), users=range(N_USERS)
    )
    return Votes.of(data)


def test_users_and_items_fall_into_the_topics(topics):
    arranged = Arrangement.of(topics.user, topics.winner, topics.loser, np.arange(N_ITEMS))
    assert sorted(part.tolist() for part in arranged.parts) == np.arange(12).reshape(3, 4).tolist()
    rows = [
        (u, set(items)) for b in arranged.blocks for u, items in zip(b.users, b.items, strict=True)
    ]
    assert all(len({item // 4 for item in items}) == 1 for _, items in rows)
    assert sum(user == 0 for user, _ in rows) >= 3
    every = np.concatenate([block.edges for block in arranged.blocks])
    np.testing.assert_array_equal(np.sort(every), np.arange(len(topics)))


def test_a_prior_that_ties_items_keeps_users_whole(topics):
    tied = np.zeros(N_ITEMS, dtype=np.intp)
    arranged = Arrangement.of(topics.user, topics.winner, topics.loser, tied)
    assert len(arranged.parts) == 1
    users = np.concatenate([block.users for block in arranged.blocks])
    assert len(np.unique(users)) == len(users)


def test_items_tied_across_topics():
    K = np.eye(4)
    K[0, 2] = K[2, 0] = 0.3
    assert tied_items(K).tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize("user_rank", [1, 2])
def test_parts_give_what_the_whole_gives(topics, rng, user_rank):
    arranged = Arrangement.of(topics.user, topics.winner, topics.loser, np.arange(N_ITEMS))
    phi, factor = rng.standard_normal((N_USERS, user_rank)), np.diag(1.0 + rng.random(N_ITEMS))
    blocks = arrange(topics.user, topics.winner, topics.loser, N_ITEMS)
    whole = ArrowPrior(phi, factor, 0.4, blocks)
    apart = ArrowPrior(phi, factor, 0.4, arranged.blocks, None, arranged.parts)
    weight, shift = rng.random(len(topics)), rng.standard_normal(len(topics))
    a, b = (prior.refresh(weight, shift) for prior in (whole, apart))
    np.testing.assert_allclose(a.mean, b.mean, atol=1e-11)
    np.testing.assert_allclose(a.var, b.var, atol=1e-11)
    np.testing.assert_allclose(a.lower, b.lower, atol=1e-11)
    assert a.log_det == pytest.approx(b.log_det, abs=1e-10)
    assert a.quadratic == pytest.approx(b.quadratic, abs=1e-10)
    np.testing.assert_allclose(a.respond(shift), b.respond(shift), atol=1e-11)


@pytest.mark.parametrize("user_kernel", [Constant(1.0), 1.0 + RBF(1.0, 0.5)], ids=repr)
def test_gradient_of_parts_is_the_derivative(topics, rng, user_kernel):
    users = Inputs(rng.standard_normal((N_USERS, 2)), index=np.arange(N_USERS))
    items = Inputs(index=np.arange(N_ITEMS))
    problem = UserProblem.of(items, users, topics, Settings("ep", 1e-11, 1000))
    hyper = UserHyper(Independent(1.3), user_kernel, 0.4, Probit())
    analytic, step = gradient(problem, solve(problem, hyper)), 1e-5
    for k, direction in enumerate(step * np.eye(len(hyper.theta))):
        ahead, behind = (
            solve(problem, hyper.at(hyper.theta + sign * direction)).log_evidence
            for sign in (1, -1)
        )
        assert analytic[k] == pytest.approx((ahead - behind) / (2 * step), abs=2e-6)


def test_what_is_not_kept_is_worked_out_again(topics, rng, monkeypatch):
    blocks = arrange(topics.user, topics.winner, topics.loser, N_ITEMS)
    phi, factor = rng.standard_normal((N_USERS, 2)), rng.standard_normal((N_ITEMS, 5))
    weight, shift = rng.random(len(topics)), rng.standard_normal(len(topics))
    kept = ArrowPrior(phi, factor, 0.4, blocks).refresh(weight, shift)
    monkeypatch.setattr(ArrowPrior, "is_kept", False)
    again = ArrowPrior(phi, factor, 0.4, blocks).refresh(weight, shift)
    assert kept.eliminated
    assert not again.eliminated
    np.testing.assert_array_equal(kept.mean, again.mean)
    np.testing.assert_array_equal(kept.var, again.var)
