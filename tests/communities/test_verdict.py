"""Whether communities are real: personal population, halves, simulated crowds."""

from dataclasses import replace

import numpy as np
import pytest

from penchant.communities import (
    Answers,
    MixtureData,
    find_communities,
    judge,
    mixture,
    population,
    single_population,
    verdict,
)
from penchant.data import Comparisons
from penchant.gp import ItemHyper, Rows, Settings, UserHyper, UserProblem, solve
from penchant.kernels import Constant, Independent, Inputs
from penchant.likelihoods import Gaussian, Outcomes, Probit, Ties
from penchant.models import CommunityGP

N_ITEMS = 10


def votes(utilities, n_votes, seed=0):
    """Random questions to users with these utilities (U, n)."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(len(utilities)), n_votes)
    a = rng.integers(N_ITEMS, size=len(user))
    b = (a + rng.integers(1, N_ITEMS, size=len(user))) % N_ITEMS
    wins = utilities[user, a] - utilities[user, b] + rng.standard_normal(len(user)) > 0
    return Comparisons.from_pairs(
        np.where(wins, a, b),
        np.where(wins, b, a),
        user=user,
        items=range(N_ITEMS),
        users=range(len(utilities)),
    )


def crowd_of(utilities, n_votes, seed=0, likelihood=None):
    hyper = ItemHyper(Independent(), likelihood or Probit())
    answers = Answers.of(votes(utilities, n_votes, seed))
    return MixtureData(answers, Inputs(index=np.arange(N_ITEMS)), hyper)


def people(n_tastes, spread, n_users=300, seed=0):
    rng = np.random.default_rng(seed)
    tastes = rng.standard_normal((n_tastes, N_ITEMS))
    own = spread * rng.standard_normal((n_users, N_ITEMS))
    return tastes[np.arange(n_users) % n_tastes] + own


def personal_votes(answers, loading, likelihood=None):
    counts = answers.counts
    return population.PersonalVotes(
        counts.indptr.astype(np.intp),
        counts.data.astype(np.float64),
        np.zeros(counts.nnz),
        loading[counts.indices],
        answers.outcomes.part(counts.indices),
        likelihood or Probit(),
    )


def test_one_community_with_personal_variation_is_the_multi_user_model(monkeypatch):
    monkeypatch.setattr(population, "FIT_TOLERANCE", 1e-10)
    data = votes(people(1, 1.0, n_users=12), 7)
    shared, variance, n_users = 0.4, 2.0, 12
    problem = UserProblem.of(
        Inputs(index=np.arange(N_ITEMS)),
        Inputs(index=np.arange(n_users)),
        Rows.by_user(data),
        Settings(tolerance=1e-10),
    )
    hyper = UserHyper(Independent(variance), Constant(1.0), shared, Probit())
    expected = solve(problem, hyper).inference.log_evidence
    answers = Answers.of(data)
    D = np.eye(N_ITEMS)[answers.winner] - np.eye(N_ITEMS)[answers.loser]
    K = variance * np.eye(N_ITEMS)
    given = personal_votes(answers, D), K, shared * K
    effects = population.UserEffectMixture(*given, learn_spread=False)
    spread = (1.0 - shared) * K
    one = effects.fit(effects.start(np.ones((n_users, 1)), spread))
    # less the prior of S, and of everybody being together
    evidence = one.objective - effects.log_prior(spread) + np.log(n_users)
    assert evidence == pytest.approx(expected, abs=1e-6)


def draw_ballots(rng, own, loading):
    """As many votes of each user of effects `own` (U, 2), by the loadings (V, 2) of the answers."""
    n_votes = len(loading) // len(own)
    g = np.einsum("vq,vq->v", loading, np.repeat(own, n_votes, axis=0))
    sign = np.where(g + rng.standard_normal(len(g)) > 0, 1.0, -1.0)
    starts, rows = np.arange(0, len(g) + 1, n_votes), sign[:, None] * loading
    counts = np.ones(len(g))
    return population.PersonalVotes(starts, counts, 0.0 * counts, rows, Outcomes(), Probit())


def test_the_spread_is_learned():
    rng = np.random.default_rng(0)
    spread = np.diag([1.0, 0.1])
    own = rng.multivariate_normal([0.5, 0.0], spread, 400)
    loading = rng.standard_normal((2000, 2))[rng.integers(2000, size=400 * 40)]
    _, one = population.fit_single_mode(draw_ballots(rng, own, loading), 0.1, 1.0)
    np.testing.assert_allclose(one.spread, spread, atol=0.2)
    np.testing.assert_allclose(one.means[0], [0.5, 0.0], atol=0.15)


def test_modes_beat_one_cloud_only_where_there_are_modes():
    rng = np.random.default_rng(0)
    side, gains = np.arange(300) % 2, []
    for centres, width in (([[1.5, 0.0], [-1.5, 0.0]], 0.3), (np.zeros((2, 2)), 1.5)):
        own = np.array(centres)[side] + [width, 0.3] * rng.standard_normal((300, 2))
        votes = draw_ballots(rng, own, rng.standard_normal((300 * 30, 2)))
        effects, one = population.fit_single_mode(votes, 0.1, 1.0)
        cut = own[:, 0] > 0
        start = np.column_stack([cut, ~cut]).astype(float)
        modes = population.fit_modes(effects, one, start)
        gains.append(modes.objective - one.objective)
        # the same people, as strangers to whom the modes are known already
        np.testing.assert_allclose(modes.place(votes), modes.membership, atol=0.02)
    assert gains[0] > 50.0
    assert gains[1] < 0.0


@pytest.mark.parametrize(
    ("n_tastes", "spread", "n_votes", "verdict"),
    [(3, 0.2, 25, "supported"), (1, 1.0, 25, "personal"), (1, 0.0, 25, "personal")],
)
def test_verdicts(n_tastes, spread, n_votes, verdict):
    found = find_communities(crowd_of(people(n_tastes, spread), n_votes))
    support = judge(found)
    assert support.verdict == verdict
    assert support == judge(found)  # the same seed, the same verdict
    if verdict == "supported":
        assert support.n_communities == 3
        assert support.agreement > support.by_chance
        assert "well supported" in support.sentence
    else:
        assert "communities, well" not in support.sentence


def test_very_many_people_are_judged_by_some(monkeypatch):
    """Also where they answered by choices, whose pairs are judged."""
    monkeypatch.setattr(mixture, "JUDGING_USERS", 150)
    utilities = people(2, 0.0)
    noise = np.random.default_rng(1).gumbel(size=utilities.shape)
    order = np.argsort(-3.0 * utilities - noise, axis=1)
    rankings = Comparisons.from_rankings(order.tolist(), users=range(300))
    for data in (votes(utilities, 20), rankings):
        support = CommunityGP(personal=False).fit(None, data).support_
        assert support.verdict == "supported"
        assert support.n_communities == 2
        assert support.sentence.endswith("(by 150 of 300 people)")


def test_two_votes_each_are_too_few():
    support = judge(find_communities(crowd_of(people(2, 0.5, n_users=30), 2)))
    assert support.verdict == "too few"
    assert support.sentence.startswith("too few votes")


def test_halves_share_out_every_vote():
    answers = crowd_of(people(2, 0.2, n_users=20), 9).answers
    first, second = verdict.halve_votes(answers, np.random.default_rng(0))
    assert (first + second != answers.counts).nnz == 0
    per_user = np.asarray(first.sum(axis=1)).ravel()
    np.testing.assert_array_equal(per_user, np.full(20, 5.0))


def test_halves_by_items_share_none():
    answers = crowd_of(people(2, 0.2, n_users=20), 30).answers
    seen = []
    for counts in verdict.halve_items(answers, np.random.default_rng(0)):
        assert (counts > answers.counts).nnz == 0
        user, answer = counts.nonzero()
        ends = np.append(answers.winner[answer], answers.loser[answer])
        seen.append({*zip(np.tile(user, 2), ends, strict=True)})
    assert min(map(len, seen)) > 20
    assert not seen[0] & seen[1]


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_own_views_of_items_are_measured_and_drawn(share):
    rng = np.random.default_rng(1)
    n_users, n_votes, n_items = 200, 40, 40
    user = np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(n_items, size=len(user))
    b = (a + rng.integers(1, n_items, size=len(user))) % n_items
    taste, own = rng.standard_normal(n_items), rng.standard_normal((n_users, n_items))
    lead = taste[a] - taste[b] + np.sqrt(share) * (own[user, a] - own[user, b])
    wins = lead + np.sqrt(1.0 - 2.0 * share) * rng.standard_normal(len(user)) > 0
    answers = Answers.of(
        Comparisons.from_pairs(
            np.where(wins, a, b), np.where(wins, b, a), user=user, items=range(n_items)
        )
    )
    hyper = ItemHyper(Independent(), Probit())
    crowd = MixtureData(answers, Inputs(index=np.arange(n_items)), hyper)
    single = single_population(find_communities(crowd, n_communities=1))
    # what the widest directions take of it is no longer the items'
    measured = population.item_effect_share(single)
    assert 0.3 * share <= measured < share + 0.03
    moved = population.with_item_effects(single, np.zeros(len(single.votes.count)), rng)
    assert moved.var() == pytest.approx(2.0 * measured / (1.0 - 2.0 * measured), rel=0.1)


def test_ratings_as_pairs_are_no_communities():
    """Whatever somebody thinks of an item is in all their pairs with it, without any noise."""
    rng = np.random.default_rng(0)
    n_users, n_items = 150, 30
    scores = rng.standard_normal(n_items) + rng.standard_normal((n_users, n_items))
    user = np.repeat(np.arange(n_users), 30)
    a = rng.integers(n_items, size=len(user))
    b = (a + rng.integers(1, n_items, size=len(user))) % n_items
    wins = scores[user, a] > scores[user, b]
    data = Comparisons.from_pairs(
        np.where(wins, a, b), np.where(wins, b, a), user=user, items=range(n_items)
    )
    hyper = ItemHyper(Independent(), Probit())
    found = find_communities(MixtureData(Answers.of(data), Inputs(index=np.arange(n_items)), hyper))
    assert judge(found).verdict != "supported"


def test_forty_people_in_two_opposed_camps():
    taste = 1.5 * np.random.default_rng(2).standard_normal(N_ITEMS)
    side = np.where(np.arange(40) % 2, 1.0, -1.0)
    found = find_communities(crowd_of(side[:, None] * taste, 20))
    support = judge(found)
    assert support.verdict == "supported"
    assert support.n_communities == 2


@pytest.mark.parametrize("likelihood", [Ties(0.5), Gaussian(0.5)], ids=repr)
def test_new_answers_are_drawn_to_the_same_questions(likelihood):
    crowd = crowd_of(people(1, 0.5, n_users=30), 10)
    m = crowd.answers.n_answers
    outcomes = (
        Outcomes(margin=np.ones(m))
        if isinstance(likelihood, Gaussian)
        else Outcomes(np.arange(m) % 5 == 0)
    )
    crowd = replace(
        crowd,
        answers=replace(crowd.answers, outcomes=outcomes),
        hyper=crowd.hyper._replace(likelihood=likelihood),
    )
    g = np.zeros(crowd.answers.counts.nnz)
    drawn = verdict.redrawn(crowd, g, np.random.default_rng(0))
    assert drawn.counts.sum() == crowd.answers.counts.sum()
    np.testing.assert_array_equal(
        np.asarray(drawn.counts.sum(axis=1)), np.asarray(crowd.answers.counts.sum(axis=1))
    )
    found = find_communities(crowd)
    assert judge(found).verdict in ("supported", "personal", "too few")


def test_personal_evidence_grows_with_personal_taste():
    gains = []
    for spread in (0.0, 1.0):
        crowd = crowd_of(people(1, spread), 25)
        gains.append(single_population(find_communities(crowd)).personal)
    assert gains[0] < 10.0 < gains[1]
