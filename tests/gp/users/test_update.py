"""More answers by many users: settling equals a refit, absorbing is the exact rank-one step."""

from dataclasses import replace

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.gp import RULES, Settings, Sites
from penchant.gp.users.fold_in import fold_in, votes_of_newcomers
from penchant.gp.users.model import Hyperparameters, Problem, posteriors_of, solve
from penchant.gp.users.update import More, absorb, settle
from penchant.gp.users.votes import Votes
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


def fit(data, likelihood=None, with_features=True, rule="ep"):
    user_kernel = Constant(0.5) + RBF(1.0) if with_features else Constant(1.0)
    hyper = Hyperparameters(
        RBF(1.0, 2.0) + Independent(0.2), user_kernel, 0.6, likelihood or Probit()
    )
    items = Inputs(X, index=np.arange(N_ITEMS))
    problem = Problem.of(items, users(data.n_users, with_features), Votes.of(data), Settings(rule))
    return posteriors_of(problem, solve(problem, hyper))


def assert_same(one, other, atol=1e-6):
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
    more = More(before, extended, users(N_USERS, with_features))
    posteriors = fit(before, likelihood, with_features, rule)
    settled = posteriors_of(*settle(posteriors, more, Settings(rule)))
    assert_same(settled, fit(extended, likelihood, with_features, rule))


def test_settling_takes_newcomers_in_and_those_who_were_folded_in():
    before, newcomer = answers(60, 1), answers(6, 2, n_users=1, first_user=N_USERS)
    extended = before.extend(newcomer)
    everybody = users(N_USERS + 1, True)
    refit = fit(extended)
    more = More(before, extended, everybody)
    assert_same(posteriors_of(*settle(fit(before), more, Settings())), refit)
    new = everybody.take(np.array([N_USERS]))
    folded, _ = fold_in(fit(before), new, votes_of_newcomers(before, extended), Settings())
    again = extended.extend(newcomer)
    more = More(extended, again, everybody)
    assert_same(posteriors_of(*settle(folded, more, Settings())), fit(again))


def dense_moments(posteriors, vote_sites):
    """Posterior of all users' utilities by plain matrices, from the sites."""
    K_user = posteriors.sharing * posteriors.user_kernel(posteriors.users)
    K_user += (1.0 - posteriors.sharing) * np.eye(len(posteriors))
    K = np.kron(K_user, posteriors.item_kernel(posteriors.items))
    precision, shift = np.linalg.inv(K), np.zeros(len(K))
    for user, winner, loser, weight, push in zip(
        vote_sites.user,
        vote_sites.winner,
        vote_sites.loser,
        vote_sites.weight,
        vote_sites.shift,
        strict=True,
    ):
        d = np.zeros(len(K))
        d[user * N_ITEMS + winner], d[user * N_ITEMS + loser] = 1.0, -1.0
        precision += weight * np.outer(d, d)
        shift += push * d
    cov = np.linalg.inv(precision)
    return cov @ shift, cov


@pytest.mark.parametrize("with_features", [True, False])
def test_absorbing_is_the_exact_update_of_everybody_by_one_more_site(with_features):
    before, told = answers(60, 1), answers(5, 2)
    posteriors = fit(before, with_features=with_features)
    more = More(before, before.extend(told), users(N_USERS, with_features))
    absorbed = absorb(posteriors, more, Settings())
    mean, cov = dense_moments(absorbed, absorbed.sites)
    np.testing.assert_allclose(absorbed.utilities(np.arange(N_USERS)).mean.ravel(), mean, atol=1e-8)
    for user in range(N_USERS):
        part = slice(user * N_ITEMS, (user + 1) * N_ITEMS)
        np.testing.assert_allclose(absorbed.for_user(user).covariance(), cov[part, part], atol=1e-7)


def test_the_site_of_one_answer_is_what_its_marginal_suggests():
    before = answers(60, 1)
    told = Comparisons.from_pairs([0], [1], user=[3], items=range(N_ITEMS), users=range(N_USERS))
    posteriors = fit(before)
    absorbed = absorb(
        posteriors, More(before, before.extend(told), users(N_USERS, True)), Settings()
    )
    marginal = posteriors.differences(np.array([3]), np.array([0]), np.array([1]))
    proposal = RULES["ep"](*marginal, Sites.zeros(1), Probit(), Votes.of(told).outcomes)
    extra = absorbed.sites.weight.sum() - posteriors.sites.weight.sum()
    assert extra == pytest.approx(proposal.tau[0], rel=1e-7)


def test_an_answer_teaches_about_others_too_but_not_one_by_somebody_folded_in():
    before = answers(60, 1)
    newcomer = answers(6, 2, n_users=1, first_user=N_USERS)
    extended = before.extend(newcomer)
    everybody = users(N_USERS + 1, True)
    folded = absorb(fit(before), More(before, extended, everybody), Settings())
    known = np.arange(N_USERS)
    np.testing.assert_allclose(folded.utilities(known).mean, fit(before).utilities(known).mean)
    by_old = extended.extend(answers(1, 3, n_users=1))
    by_new = extended.extend(answers(1, 3, n_users=1, first_user=N_USERS))
    after_old = absorb(folded, More(extended, by_old, everybody), Settings())
    after_new = absorb(folded, More(extended, by_new, everybody), Settings())
    others = np.arange(1, N_USERS)
    assert np.abs(after_old.utilities(others).mean - folded.utilities(others).mean).max() > 1e-4
    np.testing.assert_allclose(after_new.utilities(known).mean, folded.utilities(known).mean)
    assert not np.allclose(
        after_new.utilities(np.array([N_USERS])).mean, folded.utilities(np.array([N_USERS])).mean
    )


def test_sites_that_were_dropped_cannot_be_absorbed_into():
    before, told = answers(60, 1), answers(2, 2)
    posteriors = fit(before)
    sites = replace(posteriors.sites, **{f: getattr(posteriors.sites, f)[:5] for f in (
        "user", "winner", "loser", "weight", "shift")})  # fmt: skip
    more = More(before, before.extend(told), users(N_USERS, True))
    assert absorb(replace(posteriors, sites=sites), more, Settings()) is None
    settled = posteriors_of(*settle(replace(posteriors, sites=sites), more, Settings()))
    assert_same(settled, fit(before.extend(told)))


def test_when_to_settle():
    before = answers(60, 1)
    more = More(before, before, users(N_USERS, True))
    assert more.is_settled(None, 1)
    assert not more.is_settled(False, 1)
    assert more.is_settled(True, 1)
