"""The arrowhead against dense algebra on users × items, however users and items are arranged."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant.data import Comparisons
from penchant.errors import NumericalError
from penchant.gp import Rows, Settings, UserHyper, UserProblem, solve, tied_items
from penchant.kernels import RBF, Constant, Independent, Inputs, Linear
from penchant.likelihoods import Logit, Probit

SHARING = 0.4
SMOOTH, FEW_RANKS = RBF((0.8, 1.4), 2.0) + Independent(0.3), Linear(0.7)
ALIKE, BY_FEATURES = Constant(1.0), 1.0 + RBF((1.0, 2.0), 0.7)


def problem_of(user, winner, loser, n_users, n_items, rule="ep"):
    rng = np.random.default_rng(7)
    ids = {"items": range(n_items), "users": range(n_users)}
    data = Comparisons.from_pairs(winner, loser, user=user, **ids)
    items = Inputs(rng.standard_normal((n_items, 2)), index=np.arange(n_items))
    users = Inputs(rng.standard_normal((n_users, 2)), index=np.arange(n_users))
    return UserProblem.of(items, users, Rows.by_user(data), Settings(rule, 1e-11, 1000))


def random_votes(rng, n_users, n_items, m):
    winner = rng.integers(n_items, size=m)
    loser = (winner + 1 + rng.integers(n_items - 1, size=m)) % n_items
    return rng.integers(n_users, size=m), winner, loser


def arranged(kind):
    """Users who compared the same items, few of many or most items; topics that nothing ties
    together; and forests, circles and repeated pairs, of users with one to six comparisons."""
    rng = np.random.default_rng(3)
    if kind == "same items":
        return problem_of(np.repeat(np.arange(4), 2), [0, 2] * 4, [2, 5] * 4, 5, 6)
    if kind == "topics":
        user = rng.integers(6, size=60)
        topic = 3 * np.where(user == 0, rng.integers(3, size=60), user % 3)
        a = rng.integers(3, size=60)
        return problem_of(user, topic + a, topic + (a + 1 + rng.integers(2, size=60)) % 3, 6, 9)
    if kind == "forests":
        user = np.repeat(np.arange(9), 1 + np.arange(9) % 6)
        return problem_of(user, *random_votes(rng, 9, 8, len(user))[1:], 9, 8)
    n_users, n_items, m = (5, 14, 12) if kind == "few of many items" else (5, 6, 40)
    return problem_of(*random_votes(rng, n_users, n_items, m), n_users, n_items)


def covariance(problem, hyper, prior=None):
    """K_u ⊗ K_x, with the kernel of users as its factor has it."""
    K_user, K = hyper.user_kernel(problem.users), hyper.kernel(problem.items)
    less = 0.0
    if prior is not None and prior.users.missed is not None:
        rows, first = prior.users.rows, prior.item_factor[:, : prior.depth]
        K_user = rows @ rows.T + np.diag(prior.users.missed)
        # what directions but the first have beyond the first columns is each user's own
        among = rows[:, 1:] @ rows[:, 1:].T
        less = hyper.sharing * np.kron(among - np.diag(np.diag(among)), K - first @ first.T)
    K_user = hyper.sharing * K_user + (1.0 - hyper.sharing) * np.eye(len(K_user))
    return np.kron(K_user, K) - less


def assert_equals_dense(problem, hyper, dense):
    solution, votes = solve(problem, hyper), problem.edges
    K = covariance(problem, hyper, solution.prior)
    expected = dense.infer(K, votes, len(problem.items), hyper.likelihood, problem.settings)
    state, A = solution.inference.state, expected.state.rows
    np.testing.assert_allclose(state.mean, expected.state.mean, atol=1e-8)
    np.testing.assert_allclose(state.var, expected.state.var, atol=1e-8)
    assert solution.log_evidence == pytest.approx(expected.log_evidence, abs=1e-8)
    pull = np.random.default_rng(0).standard_normal(len(votes))
    expected = A @ expected.state.covariance.reshape(K.shape) @ A.T @ pull
    np.testing.assert_allclose(state.covariance_times(pull), expected, atol=1e-8)


@pytest.mark.parametrize("user_kernel", [ALIKE, BY_FEATURES], ids=["alike", "by features"])
@pytest.mark.parametrize(
    ("kind", "kernel", "by_comparisons"),
    [
        ("same items", SMOOTH, False),
        ("few of many items", SMOOTH, True),
        ("few of many items", FEW_RANKS, False),
        ("most items", SMOOTH, False),
        ("most items", FEW_RANKS, False),
        ("topics", Independent(1.3), False),
        ("topics", Independent(1.3), True),
        ("forests", SMOOTH, False),
        ("forests", SMOOTH, True),
        ("forests", FEW_RANKS, True),
    ],
    ids=str,
)
def test_every_arrangement_equals_dense_algebra(
    monkeypatch, dense, check_gradient, kind, kernel, user_kernel, by_comparisons
):
    if by_comparisons:  # users whose comparisons close no circle are worked on among these
        monkeypatch.setattr("penchant.gp.users.blocks.SAVED_FLOPS", -1.0)
        monkeypatch.setattr("penchant.numerics.batched.FEW", 1)
    problem, hyper = arranged(kind), UserHyper(kernel, user_kernel, SHARING, Probit())
    assert_equals_dense(problem, hyper, dense)
    check_gradient(problem, hyper, rtol=1e-7, atol=2e-6)
    kinds = {type(block).__name__ for block in solve(problem, hyper).prior.blocks}
    if kind == "forests":
        assert kinds == ({"Block", "PairBlock"} if by_comparisons else {"Block"})


@pytest.mark.parametrize("by_comparisons", [False, True])
def test_users_through_few_directions(monkeypatch, dense, by_comparisons):
    if by_comparisons:
        monkeypatch.setattr("penchant.gp.users.blocks.SAVED_FLOPS", -1.0)
    problem = replace(arranged("forests"), max_user_rank=3)
    hyper = UserHyper(SMOOTH, BY_FEATURES, SHARING, Probit())
    users = solve(problem, hyper).prior.users
    left = hyper.user_kernel(problem.users) - users.rows @ users.rows.T
    assert users.rows.shape == (9, 3)
    assert users.residual == pytest.approx(np.diagonal(left).max())
    np.testing.assert_allclose(left @ users.rows, 0.0, atol=1e-10)
    assert_equals_dense(problem, hyper, dense)


@pytest.mark.parametrize("by_comparisons", [False, True])
@pytest.mark.parametrize("kind", ["same items", "few of many items", "most items", "forests"])
def test_directions_with_some_columns_of_the_items(
    monkeypatch, dense, check_gradient, kind, by_comparisons
):
    if by_comparisons:
        monkeypatch.setattr("penchant.gp.users.blocks.SAVED_FLOPS", -1.0)
    problem = arranged(kind)
    problem = replace(problem, shared_size=len(problem.items) + 5)
    hyper = UserHyper(SMOOTH, BY_FEATURES, SHARING, Probit())
    prior = solve(problem, hyper).prior
    assert 0 < prior.depth < prior.rank
    assert prior.users.rows.shape[1] > 1
    assert len(prior.shared.mask.nonzero()[0]) <= problem.shared_size
    assert_equals_dense(problem, hyper, dense)
    check_gradient(problem, hyper, rtol=1e-6, atol=5e-6)


@pytest.mark.parametrize("rule", ["ep", "laplace", "variational"])
def test_every_rule(study, dense, rule):
    """Seven users, one silent and one of a single pair; rows have counts."""
    problem = UserProblem.of(study.items, study.users, study.votes, Settings(rule, 1e-11, 1000))
    assert_equals_dense(problem, UserHyper(SMOOTH, BY_FEATURES, SHARING, Probit()), dense)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_one_sweep_of_arbitrary_sites_is_exact(dense, seed, m):
    rng = np.random.default_rng(seed)
    problem = problem_of(*random_votes(rng, 5, 6, m), 5, 6)
    hyper, votes = UserHyper(SMOOTH, BY_FEATURES, SHARING, Probit()), problem.edges
    prior, K = problem.prior(hyper), covariance(problem, hyper)
    weight, shift = rng.random(len(votes)), rng.standard_normal(len(votes))
    state, A = prior.refresh(weight, shift), dense.design(votes, 6, 5)
    mean, cov, log_det = dense.condition(K, A, weight, shift)
    np.testing.assert_allclose(state.mean, A @ mean, atol=1e-8)
    np.testing.assert_allclose(state.var, np.diagonal(A @ cov @ A.T), atol=1e-8)
    assert state.quadratic == pytest.approx(shift @ A @ mean, abs=1e-7)
    assert state.log_det == pytest.approx(log_det, abs=1e-8)


def test_counts_equal_repeated_rows(study):
    hyper, votes = UserHyper(SMOOTH, ALIKE, SHARING, Logit()), study.votes
    again = np.repeat(np.arange(len(votes)), votes.count.astype(int))
    each = replace(votes.part(again), count=np.ones(len(again)))
    once, repeated = (
        solve(UserProblem.of(study.items, study.users, v, Settings("ep", 1e-11, 1000)), hyper)
        for v in (votes, each)
    )
    means = once.inference.state.mean[again], repeated.inference.state.mean
    np.testing.assert_allclose(*means, atol=1e-8)
    assert repeated.log_evidence == pytest.approx(once.log_evidence, abs=1e-8)


def test_what_is_not_kept_is_worked_out_again(monkeypatch):
    problem, hyper = arranged("most items"), UserHyper(SMOOTH, BY_FEATURES, SHARING, Probit())
    kept = solve(problem, hyper).inference.state
    monkeypatch.setattr("penchant.gp.users.arrowhead.ArrowPrior.is_kept", False)
    again = solve(problem, hyper).inference.state
    assert kept.eliminated
    assert not again.eliminated
    np.testing.assert_array_equal(kept.mean, again.mean)
    np.testing.assert_array_equal(kept.var, again.var)


def test_two_items_that_the_prior_holds_equal(study):
    X = study.items.X.copy()
    X[4] = X[0]
    problem = UserProblem.of(replace(study.items, X=X), study.users, study.votes, Settings())
    solution = solve(problem, UserHyper(RBF(1.0, 2.0), ALIKE, SHARING, Probit()))
    ends = np.sort([study.votes.winner, study.votes.loser], axis=0)
    twins = (ends[0] == 0) & (ends[1] == 4)
    assert twins.any()
    assert np.isfinite(solution.log_evidence)
    np.testing.assert_allclose(solution.inference.state.mean[twins], 0.0, atol=1e-6)


def test_a_precision_that_is_not_positive_definite_is_an_error(study):
    problem = UserProblem.of(study.items, study.users, study.votes, Settings())
    prior = problem.prior(UserHyper(SMOOTH, ALIKE, SHARING, Probit()))
    with pytest.raises(NumericalError, match="positive definite"):
        prior.refresh(np.full(len(study.votes), -50.0), np.zeros(len(study.votes)))


def test_items_tied_by_the_prior_however_far_round():
    K = np.eye(4)
    K[0, 2] = K[2, 0] = 0.3
    assert tied_items(K).tolist() == [0, 1, 0, 2]
