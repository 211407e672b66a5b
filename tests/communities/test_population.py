"""Personal deviations inside communities: whether people vary, and what is left of communities."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from penchant import communities
from penchant.gp import Normal, Rows, Settings, Sites, UserHyper, UserProblem, solve
from penchant.kernels import Constant, Independent, Inputs
from penchant.likelihoods import Outcomes, Probit
from penchant.metrics import adjusted_rand
from tests.communities.simulation import choices_as_pairs, mixture_of, people, tastes, votes


@pytest.mark.parametrize("s", communities.COMMUNAL_SHARES)
def test_the_prior_over_users_is_the_one_that_is_written(rng, s):
    M = rng.dirichlet(np.ones(3), size=6)
    start = UserHyper(Independent(), Constant(1.0), 0.3, Probit())
    hyper = communities.with_communal_share(start, s)
    users = Inputs(M, index=np.arange(6))
    found = hyper.sharing * hyper.user_kernel(users) + (1.0 - hyper.sharing) * np.eye(6)
    expected = 0.3 + 0.7 * (s * M @ M.T + (1.0 - s) * np.eye(6))
    np.testing.assert_allclose(found, expected, atol=1e-12)


class Known:
    """Utilities that are known for sure."""

    def __init__(self, mean):
        self.mean, self.var = mean, np.zeros_like(mean)

    def covariance(self):
        return np.zeros((len(self.mean), len(self.mean)))

    def relative_to(self, others):
        return Normal(self.mean - others.mean.mean(), self.var)


def test_shares_are_as_uncertain_as_a_sample_of_people():
    one, other = np.array([[1.5, 0.5, 0.0, -0.5, -1.5], [0.5, -1.5, 0.0, 1.5, -0.5]])
    known, sizes = (Known(one), Known(other)), np.array([30.0, 10.0])
    found = communities.Population.of_communities(known, sizes)
    shares = np.random.default_rng(0).beta(30.0, 10.0, (200_000, 1))
    draws = shares * one + (1.0 - shares) * other
    mean, var = found.relative_to(found)
    less = draws - draws.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(mean, less.mean(axis=0), atol=5e-3)
    np.testing.assert_allclose(var, less.var(axis=0), rtol=0.02, atol=1e-12)
    np.testing.assert_allclose(found.covariance, np.cov(draws.T), rtol=0.02, atol=1e-9)
    expected = np.sqrt(3.0 / 16.0) * np.abs(one - other)
    np.testing.assert_allclose(found.spread, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("deviation", "n_users", "low", "high"), [(0.0, 40, 0.6, 1.0), (3.0, 200, 0.0, 0.4)]
)
def test_communities_explain_what_is_communal_and_not_what_is_personal(
    deviation, n_users, low, high
):
    """Users of two opposite tastes who deviate from theirs by so much."""
    two = np.outer([1.0, -1.0], [2.0, 1.0, 0.0, -1.0, -2.0])
    data = votes(people(two, n_users, deviation, seed=2), 14, seed=2)
    sizes, both = np.full(2, n_users // 2), np.ones(2, dtype=bool)
    draw = communities.Draw(sizes, two, np.zeros((2, 0)), both, chain=0, labels=np.arange(2))
    draws = communities.Draws((draw,), Probit(), 2)
    start = UserHyper(Independent(), Constant(1.0), 0.5, Probit())
    members = draws.membership(communities.Answers.of(data))
    given = members, draws.membership, Inputs(index=np.arange(5))
    assert low <= communities.fit_personal(data, *given, start)[1] <= high


@pytest.mark.parametrize(("length", "expected"), [(1.0, 4.0), (0.5, 2.0), (2.0, 16.0)])
def test_a_step_of_the_spread_is_taken_on_the_logarithmic_scale(length, expected):
    moved = communities.extrapolate(np.diag([1.0, 2.0]), np.diag([4.0, 2.0]), length)
    np.testing.assert_allclose(moved, np.diag([expected, 2.0]), atol=1e-9)


def test_the_nearest_two_are_joined_by_their_sizes():
    """Near in units of the spread: the wide direction counts for little."""
    membership = np.array([[1.0, 0.0, 0.0]] * 3 + [[0.0, 1.0, 0.0]] + [[0.0, 0.0, 1.0]] * 4)
    means = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, -2.0]])
    spread = np.diag([100.0, 0.01])
    modes = communities.Modes(membership, means, np.zeros((3, 2, 2)), spread, Sites.zeros(1))
    fewer = communities.join_nearest(modes)
    np.testing.assert_allclose(fewer.means, [[1.0, 0.0], [0.0, -2.0]])
    np.testing.assert_array_equal(fewer.membership.sum(axis=0), [4.0, 4.0])


def test_one_community_with_personal_variation_is_the_multi_user_model(monkeypatch):
    monkeypatch.setattr("penchant.communities.population.FIT_TOLERANCE", 1e-10)
    n_items, shared, variance, n_users = 10, 0.4, 2.0, 12
    data = votes(people(tastes(1, n_items, 1.0), n_users, 1.0), 7)
    items, users = (Inputs(index=np.arange(n)) for n in (n_items, n_users))
    problem = UserProblem.of(items, users, Rows.by_user(data), Settings(tolerance=1e-10))
    hyper = UserHyper(Independent(variance), Constant(1.0), shared, Probit())
    expected = solve(problem, hyper).inference.log_evidence
    answers = communities.Answers.of(data)
    loading = answers.differences(n_items).matrix().toarray()
    given = answers, np.zeros(answers.n_answers), loading, Probit()
    personal = communities.PersonalVotes.of(*given)
    K = variance * np.eye(n_items)
    effects = communities.UserEffectMixture(personal, K, shared * K, learn_spread=False)
    spread = (1.0 - shared) * K
    one = effects.fit(effects.start(np.ones((n_users, 1)), spread))
    # less the prior of S, and of everybody being together
    evidence = one.objective - effects.log_prior(spread) + np.log(n_users)
    assert evidence == pytest.approx(expected, abs=1e-6)


def draw_votes(rng, own, n_votes):
    """Votes of users with effects `own` (U, 2), by random loadings."""
    loading = rng.standard_normal((len(own) * n_votes, 2))
    g = np.einsum("vq,vq->v", loading, np.repeat(own, n_votes, axis=0))
    sign = np.where(g + rng.standard_normal(len(g)) > 0, 1.0, -1.0)
    starts, rows = np.arange(0, len(g) + 1, n_votes), sign[:, None] * loading
    counts = np.ones(len(g))
    return communities.PersonalVotes(starts, counts, 0.0 * counts, rows, Outcomes(), Probit())


def test_the_spread_is_learned():
    rng = np.random.default_rng(0)
    spread = np.diag([1.0, 0.1])
    own = rng.multivariate_normal([0.5, 0.0], spread, 400)
    _, one = communities.fit_single_mode(draw_votes(rng, own, 40), 1.0)
    np.testing.assert_allclose(one.spread, spread, atol=0.2)
    np.testing.assert_allclose(one.means[0], [0.5, 0.0], atol=0.15)


def test_modes_beat_one_only_where_there_are_modes():
    rng = np.random.default_rng(0)
    side, gains = np.arange(300) % 2, []
    for centres, width in (([[1.5, 0.0], [-1.5, 0.0]], 0.3), (np.zeros((2, 2)), 1.5)):
        own = np.array(centres)[side] + [width, 0.3] * rng.standard_normal((300, 2))
        personal = draw_votes(rng, own, 30)
        effects, one = communities.fit_single_mode(personal, 1.0)
        cut = own[:, 0] > 0
        modes = communities.fit_modes(effects, one, np.column_stack([cut, ~cut]).astype(float))
        gains.append(modes.objective - one.objective)
        # the same people, as strangers to whom the modes are known already
        np.testing.assert_allclose(modes.predict_membership(personal), modes.membership, atol=0.02)
    assert gains[0] > 50.0
    assert gains[1] < 0.0


def test_a_fit_to_votes_nearly_free_of_noise_stays_finite():
    """The likeliest spread has no bound, and the fit of modes met a singular one."""
    two = people(tastes(2, 5, seed=3), 200, 0.2, seed=3)
    data = choices_as_pairs(two, 8, 5, seed=3)
    result = communities.find_communities(mixture_of(data))
    single = communities.single_population(result)
    assert np.isfinite(single.modes_of(result)[1])


@cache
def searched(k, spread, n_users=240, n_votes=25, n_items=8, prior=None):
    """The result of a plain search among users of k tastes."""
    data = votes(people(tastes(k, n_items), n_users, spread), n_votes, seed=k)
    return communities.find_communities(mixture_of(data, concentration_prior=prior))


def variation(result, required=False, fixed=False):
    return communities.find_variation(result, required=required, fixed=fixed)


def test_communities_of_people_alike_need_no_personal_taste():
    assert searched(3, 0.0).n_communities == 3
    assert variation(searched(3, 0.0)) is None


def test_directions_of_many_items_are_paid_for():
    """They were learned from the same votes: for nothing, they would outdo the communities."""
    result = searched(4, 0.2, n_users=400, n_votes=14, n_items=40)
    assert result.n_communities == 4
    assert adjusted_rand(np.arange(400) % 4, result.labels) > 0.8
    single = communities.single_population(result)
    _, gain = single.modes_of(result)
    assert single.evidence + gain > result.objective + 50.0
    assert single.evidence + gain - single.cost < result.objective
    assert variation(result) is None


def test_personal_taste_is_not_mistaken_for_communities():
    result = searched(1, 1.0)
    assert result.n_communities > 1
    varied = variation(result)
    assert varied.membership.shape == (240, 1)
    assert varied.evidence > result.objective + 10.0
    # a spread along all directions costs nothing: none was chosen among others
    single = communities.single_population(result)
    assert single.loading.shape[1] == 7
    assert single.cost == pytest.approx(0.0, abs=1.0)
    # a given number of communities stays
    assert variation(result, True, True).membership is result.allocation.responsibilities


@pytest.mark.parametrize("limit", [10_000, 5_000])
def test_communities_of_people_who_vary_are_kept(limit, monkeypatch):
    """Also where only some users are looked at, and the others are placed."""
    monkeypatch.setattr("penchant.communities.population.CHOICE_ANSWERS", limit)
    result = searched(2, 0.6, n_users=300, n_votes=30)
    assert result.n_communities > 2
    varied = variation(result)
    assert varied.membership.shape == (300, 2)
    np.testing.assert_allclose(varied.membership.sum(axis=1), 1.0)
    assert adjusted_rand(np.arange(300) % 2, varied.membership.argmax(axis=1)) > 0.8


def test_what_would_cost_too_much_is_not_considered(monkeypatch):
    monkeypatch.setattr("penchant.communities.population.MAX_COST", 10.0)
    assert variation(searched(1, 1.0)) is None


def test_the_concentration_is_learned_where_it_is_likeliest():
    vague, firm = (searched(3, 0.0, prior=p).allocation for p in [(1.0, 1.0), (400.0, 100.0)])
    assert vague.n_communities == firm.n_communities == 3
    assert 0.1 < vague.mixture.concentration < 1.0  # three communities among 240 users
    assert firm.mixture.concentration == pytest.approx(4.0, rel=0.1)
    for factor in (0.9, 1.1):
        other = replace(vague.mixture, concentration=factor * vague.mixture.concentration)
        changed = replace(vague, model=replace(vague.model, mixture=other))
        assert vague.objective > changed.objective


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_item_random_effects_are_measured_and_drawn(share):
    rng, n_items = np.random.default_rng(1), 40
    own = np.sqrt(share) * rng.standard_normal((200, n_items))
    data = votes(tastes(1, n_items, 1.0) + own, 40, noise=np.sqrt(1.0 - 2.0 * share))
    single = communities.single_population(
        communities.find_communities(mixture_of(data), n_communities=1)
    )
    # what the widest directions take of it is no longer the items'
    measured = communities.item_effect_share(single)
    assert 0.3 * share <= measured < share + 0.03
    moved = communities.with_item_effects(single, np.zeros(len(single.effects.votes.count)), rng)
    assert moved.var() == pytest.approx(2.0 * measured / (1.0 - 2.0 * measured), rel=0.1)
