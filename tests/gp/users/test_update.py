"""More answers by many users: settling equals a refit, absorbing is the exact rank-one step."""

from dataclasses import replace

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.gp import (
    RULES,
    FitState,
    Rows,
    Settings,
    Sites,
    UserHyper,
    UserProblem,
    rank_one_update_users,
    solve,
    with_newcomers,
)
from penchant.kernels import RBF, Constant, Independent, Inputs
from penchant.likelihoods import Lapse, Probit, Ties

N_USERS, N_ITEMS = 7, 6
X = np.random.default_rng(5).standard_normal((N_ITEMS, 2))
FEATURES = np.random.default_rng(6).standard_normal((N_USERS + 2, 2))


def answers(n, seed, n_users=N_USERS, first_user=0, ties=False):
    rng = np.random.default_rng(seed)
    a = rng.integers(N_ITEMS, size=n)
    b = (a + 1 + rng.integers(N_ITEMS - 1, size=n)) % N_ITEMS
    return Comparisons.from_pairs(
        a,
        b,
        user=first_user + rng.integers(n_users, size=n),
        tie=rng.random(n) < 0.3 if ties else None,
        items=range(N_ITEMS),
        users=range(first_user, first_user + n_users),
    )


def users(n, with_features):
    return Inputs(FEATURES[:n] if with_features else None, index=np.arange(n))


def problem_of(data, with_features=True, rule="ep"):
    items = Inputs(X, index=np.arange(N_ITEMS))
    return UserProblem.of(
        items, users(data.n_users, with_features), Rows.by_user(data), Settings(rule)
    )


def fit(data, likelihood=None, with_features=True, rule="ep"):
    user_kernel = Constant(0.5) + RBF(1.0) if with_features else Constant(1.0)
    hyper = UserHyper(RBF(1.0, 2.0) + Independent(0.2), user_kernel, 0.6, likelihood or Probit())
    problem = problem_of(data, with_features, rule)
    return FitState.of(data, problem, solve(problem, hyper))


def absorb(learned, data, with_features=True):
    return rank_one_update_users(learned, data, problem_of(data, with_features))


def assert_same(one, other, atol=1e-6):
    one, other = one.posterior, other.posterior
    everybody = np.arange(len(other))
    for ours, theirs in zip(one.utilities(everybody), other.utilities(everybody), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=atol)
    for user in range(len(other)):
        np.testing.assert_allclose(
            one.for_user(user).covariance(), other.for_user(user).covariance(), atol=atol
        )
    np.testing.assert_allclose(one.population().mean, other.population().mean, atol=atol)


@pytest.mark.parametrize("with_features", [True, False])
@pytest.mark.parametrize(
    ("likelihood", "rule"),
    [
        (Probit(), "ep"),
        (Ties(0.4), "ep"),
        (Lapse(Probit(), rate=0.05), "ep"),
        (Probit(), "laplace"),
    ],
    ids=str,
)
def test_settling_equals_a_refit(likelihood, rule, with_features):
    ties = isinstance(likelihood, Ties)
    before, told = answers(60, 1, ties=ties), answers(8, 2, ties=ties)
    extended = before.extend(told)
    learned = fit(before, likelihood, with_features, rule)
    settled = learned.reconverge(extended, problem_of(extended, with_features, rule))
    assert_same(settled, fit(extended, likelihood, with_features, rule))
    back = settled.reconverge(before, problem_of(before, with_features, rule))
    assert_same(back, learned)


def test_settling_takes_newcomers_in_and_those_who_were_folded_in():
    before, newcomer = answers(60, 1), answers(6, 2, n_users=1, first_user=N_USERS)
    extended = before.extend(newcomer)
    everybody = users(N_USERS + 1, True)
    assert_same(fit(before).reconverge(extended, problem_of(extended)), fit(extended))
    folded = with_newcomers(fit(before), extended, everybody.take(np.array([N_USERS])))
    again = extended.extend(newcomer)
    assert_same(folded.reconverge(again, problem_of(again)), fit(again))


@pytest.mark.parametrize("with_features", [True, False])
def test_absorbing_is_the_exact_update_of_everybody_by_one_more_site(with_features, dense):
    before, told = answers(60, 1), answers(5, 2)
    learned = fit(before, with_features=with_features)
    absorbed = absorb(learned, before.extend(told), with_features).posterior
    K_user = absorbed.sharing * absorbed.user_kernel(absorbed.users)
    K_user += (1.0 - absorbed.sharing) * np.eye(N_USERS)
    K, sites = np.kron(K_user, absorbed.kernel(absorbed.items)), absorbed.sites
    A = dense.design(Rows.by_user(before.extend(told)), N_ITEMS, N_USERS)
    mean, cov, _ = dense.condition(K, A, sites.weight, sites.shift)
    np.testing.assert_allclose(absorbed.utilities(np.arange(N_USERS)).mean.ravel(), mean, atol=1e-8)
    for user in range(N_USERS):
        part = slice(user * N_ITEMS, (user + 1) * N_ITEMS)
        np.testing.assert_allclose(absorbed.for_user(user).covariance(), cov[part, part], atol=1e-7)


def test_the_site_of_one_answer_is_what_its_marginal_suggests():
    before = answers(60, 1)
    told = Comparisons.from_pairs([0], [1], user=[3], items=range(N_ITEMS), users=range(N_USERS))
    learned = fit(before)
    posteriors, absorbed = learned.posterior, absorb(learned, before.extend(told)).posterior
    marginal = posteriors.differences(np.array([3]), np.array([0]), np.array([1]))
    proposal = RULES["ep"].propose(*marginal, Sites.zeros(1), Probit(), Rows.by_user(told).outcomes)
    extra = absorbed.sites.weight.sum() - posteriors.sites.weight.sum()
    assert extra == pytest.approx(proposal.tau[0], rel=1e-7)


def test_an_answer_teaches_about_others_too_but_not_one_by_somebody_folded_in():
    before = answers(60, 1)
    newcomer = answers(6, 2, n_users=1, first_user=N_USERS)
    extended = before.extend(newcomer)
    learned = absorb(fit(before), extended)
    folded, known = learned.posterior, np.arange(N_USERS)
    np.testing.assert_allclose(
        folded.utilities(known).mean, fit(before).posterior.utilities(known).mean
    )
    by_old = extended.extend(answers(1, 3, n_users=1))
    by_new = extended.extend(answers(1, 3, n_users=1, first_user=N_USERS))
    after_old = absorb(learned, by_old).posterior
    after_new = absorb(learned, by_new).posterior
    others = np.arange(1, N_USERS)
    assert np.abs(after_old.utilities(others).mean - folded.utilities(others).mean).max() > 1e-4
    np.testing.assert_allclose(after_new.utilities(known).mean, folded.utilities(known).mean)
    assert not np.allclose(
        after_new.utilities(np.array([N_USERS])).mean, folded.utilities(np.array([N_USERS])).mean
    )


def test_sites_that_were_dropped_are_settled_anew():
    before, extended = answers(60, 1), answers(60, 1).extend(answers(2, 2))
    dropped = replace(fit(before), sites=None)
    assert not dropped.takes_rank_one_updates(2, reconverge=False)
    assert_same(dropped.reconverge(extended, problem_of(extended)), fit(extended))


def test_when_to_settle():
    learned = fit(answers(60, 1))
    assert not learned.takes_rank_one_updates(1, None)  # it is quick
    assert learned.takes_rank_one_updates(1, reconverge=False)
    assert not learned.takes_rank_one_updates(1, reconverge=True)
    assert not learned.takes_rank_one_updates(1_000, reconverge=False)
