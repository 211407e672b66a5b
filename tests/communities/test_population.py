"""Personal deviations inside communities: whether people vary, and what is left of communities."""

from dataclasses import replace

import numpy as np
import pytest

from penchant.communities import (
    Answers,
    Draw,
    Draws,
    MixtureData,
    find_communities,
    population,
    single_population,
)
from penchant.data import Comparisons
from penchant.gp import ItemHyper, Sites, UserHyper
from penchant.kernels import Constant, Independent, Inputs
from penchant.likelihoods import Probit
from penchant.metrics import adjusted_rand


@pytest.mark.parametrize("s", population.COMMUNAL_SHARES)
def test_the_prior_over_users_is_the_one_that_is_written(rng, s):
    M = rng.dirichlet(np.ones(3), size=6)
    start = UserHyper(Independent(), Constant(1.0), 0.3, Probit())
    hyper = population.with_communal_share(start, s)
    users = Inputs(M, index=np.arange(6))
    found = hyper.sharing * hyper.user_kernel(users) + (1.0 - hyper.sharing) * np.eye(6)
    expected = 0.3 + 0.7 * (s * M @ M.T + (1.0 - s) * np.eye(6))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def communal_share(rng, deviation, n_users=40, n_votes=14):
    """Users of two opposite tastes who deviate from theirs by so much."""
    taste = np.array([2.0, 1.0, 0.0, -1.0, -2.0])
    sign = np.where(np.arange(n_users) % 2 == 0, 1.0, -1.0)
    f = sign[:, None] * taste + deviation * rng.standard_normal((n_users, 5))
    user = np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(5, size=len(user))
    b = (a + rng.integers(1, 5, size=len(user))) % 5
    wins = f[user, a] - f[user, b] + rng.standard_normal(len(user)) > 0
    data = Comparisons.from_pairs(
        np.where(wins, a, b), np.where(wins, b, a), user=user, items=range(5), users=range(n_users)
    )
    draw = Draw(
        sizes=np.array([n_users // 2, n_users // 2]),
        utilities=np.stack([taste, -taste]),
        likelihood_thetas=np.zeros((2, 0)),
        is_supported=np.ones(2, dtype=bool),
        chain=0,
        labels=np.arange(2),
    )
    draws = Draws((draw,), Probit(), 2)
    start = UserHyper(Independent(), Constant(1.0), 0.5, Probit())
    given = draws.membership(Answers.of(data)), draws.membership, Inputs(index=np.arange(5))
    return population.fit_personal(data, *given, start)[1]


def test_communities_explain_what_is_communal(rng):
    assert communal_share(rng, deviation=0.0) >= 0.6


def test_what_is_personal_is_not_put_down_to_communities(rng):
    assert communal_share(rng, deviation=3.0, n_users=200) <= 0.4


def test_a_step_of_the_spread_is_taken_on_the_logarithmic_scale():
    S, wanted = np.diag([1.0, 2.0]), np.diag([4.0, 2.0])
    np.testing.assert_allclose(population.extrapolated(S, wanted, 1.0), wanted, atol=1e-12)
    np.testing.assert_allclose(
        population.extrapolated(S, wanted, 0.5), np.diag([2.0, 2.0]), atol=1e-12
    )
    np.testing.assert_allclose(
        population.extrapolated(S, wanted, 2.0), np.diag([16.0, 2.0]), atol=1e-9
    )


def test_the_nearest_two_are_joined_by_their_sizes():
    """Near in units of the spread: the wide direction counts for little."""
    membership = np.array([[1.0, 0.0, 0.0]] * 3 + [[0.0, 1.0, 0.0]] + [[0.0, 0.0, 1.0]] * 4)
    means = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, -2.0]])
    spread = np.diag([100.0, 0.01])
    modes = population.Modes(membership, means, np.zeros((3, 2, 2)), spread, Sites.zeros(1))
    fewer = population.join_nearest(modes)
    np.testing.assert_allclose(fewer.means, [[1.0, 0.0], [0.0, -2.0]])
    np.testing.assert_array_equal(fewer.membership.sum(axis=0), [4.0, 4.0])


def grouping_of(n_tastes, spread, n_users=240, n_votes=25, seed=0, n_items=8, **options):
    """Communities by a plain search, and the true ones."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_users) % n_tastes
    utilities = 1.5 * rng.standard_normal((n_tastes, n_items))[truth]
    utilities += spread * rng.standard_normal((n_users, n_items))
    user = np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(n_items, size=len(user))
    b = (a + rng.integers(1, n_items, size=len(user))) % n_items
    wins = utilities[user, a] - utilities[user, b] + rng.standard_normal(len(user)) > 0
    winner, loser = np.where(wins, a, b), np.where(wins, b, a)
    data = Comparisons.from_pairs(winner, loser, user=user, items=range(n_items))
    items = Inputs(index=np.arange(n_items))
    crowd = MixtureData(Answers.of(data), items, ItemHyper(Independent(), Probit()), **options)
    return find_communities(crowd), truth


def test_communities_of_people_alike_need_no_personal_taste():
    grouping, _ = grouping_of(3, 0.0)
    assert grouping.n_communities == 3
    assert population.find_variation(grouping, required=False, fixed=False) is None


def test_directions_of_many_items_are_paid_for():
    """They were learned from the same votes: for nothing, they would outdo the communities."""
    grouping, truth = grouping_of(4, 0.2, n_users=800, n_votes=10, n_items=60)
    assert grouping.n_communities == 4
    assert adjusted_rand(truth, grouping.labels) > 0.8
    single = single_population(grouping)
    _, gain = single.modes_of(grouping)
    assert single.evidence + gain > grouping.objective + 50.0
    assert single.evidence + gain - single.price < grouping.objective
    assert population.find_variation(grouping, required=False, fixed=False) is None


def test_a_spread_along_all_directions_costs_nothing():
    """None was chosen among others."""
    grouping, _ = grouping_of(1, 1.0)
    single = single_population(grouping)
    assert single.loading.shape[1] == 7
    assert single.price == pytest.approx(0.0, abs=1.0)


def test_personal_taste_is_not_mistaken_for_communities():
    grouping, _ = grouping_of(1, 1.0)
    assert grouping.n_communities > 1
    varied = population.find_variation(grouping, required=False, fixed=False)
    assert varied.membership.shape == (240, 1)
    assert varied.evidence > grouping.objective + 10.0


@pytest.mark.parametrize("limit", [10_000, 5_000])
def test_communities_of_people_who_vary_are_kept(limit, monkeypatch):
    """Also where only some users are looked at, and the others are placed."""
    monkeypatch.setattr(population, "CHOICE_ANSWERS", limit)
    grouping, truth = grouping_of(2, 0.4, n_users=300, n_votes=30, seed=1)
    assert grouping.n_communities > 2
    varied = population.find_variation(grouping, required=False, fixed=False)
    assert varied.membership.shape == (300, 2)
    np.testing.assert_allclose(varied.membership.sum(axis=1), 1.0)
    assert adjusted_rand(truth, varied.membership.argmax(axis=1)) > 0.8


def test_a_given_number_of_communities_stays():
    grouping, _ = grouping_of(1, 1.0)
    varied = population.find_variation(grouping, required=True, fixed=True)
    assert varied.membership is grouping.allocation.responsibilities


def test_what_would_cost_too_much_is_not_considered(monkeypatch):
    monkeypatch.setattr(population, "MAX_COST", 10.0)
    grouping, _ = grouping_of(1, 1.0)
    assert population.find_variation(grouping, required=False, fixed=False) is None


def test_the_concentration_is_learned_where_it_is_likeliest():
    found = [
        grouping_of(3, 0.0, concentration_prior=prior)[0] for prior in [(1.0, 1.0), (400.0, 100.0)]
    ]
    vague, firm = (grouping.allocation for grouping in found)
    assert vague.n_communities == firm.n_communities == 3
    assert 0.1 < vague.mixture.concentration < 1.0  # three communities among 240 users
    assert firm.mixture.concentration == pytest.approx(4.0, rel=0.1)
    best = vague.objective
    for factor in (0.9, 1.1):
        other = replace(vague.mixture, concentration=factor * vague.mixture.concentration)
        assert best > replace(vague, model=replace(vague.model, mixture=other)).objective
