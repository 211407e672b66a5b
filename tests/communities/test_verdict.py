"""Whether communities are real: evidence, halves of the votes, simulated crowds."""

from functools import cache

import numpy as np
import pytest

from penchant.communities import (
    draw_answers,
    find_communities,
    halve_items,
    halve_votes,
    judge,
    single_population,
)
from penchant.data import Comparisons
from penchant.likelihoods import Gaussian, Ties
from penchant.models import CommunityGP
from tests.communities.simulation import (
    choices_as_pairs,
    mixture_of,
    people,
    tastes,
    votes,
    with_outcomes,
)

N_ITEMS = 10


def crowd(k, spread, n_users=300):
    return people(tastes(k, N_ITEMS, 1.0), n_users, spread, seed=1)


@cache
def searched(k, spread):
    return find_communities(mixture_of(votes(crowd(k, spread), 25, seed=1)))


@pytest.mark.parametrize(
    ("k", "spread", "expected"), [(3, 0.2, "supported"), (1, 1.0, "personal"), (1, 0.0, "personal")]
)
def test_verdicts(k, spread, expected):
    support = judge(searched(k, spread))
    assert support.verdict == expected
    assert support == judge(searched(k, spread))  # the same seed, the same verdict
    if expected == "supported":
        assert support.n_communities == 3
        assert support.agreement > support.by_chance
        assert "well supported" in support.sentence
    else:
        assert "communities, well" not in support.sentence


def test_personal_evidence_grows_with_personal_taste():
    none, much = (single_population(searched(1, spread)).personal for spread in (0.0, 1.0))
    assert none < 10.0 < much


def test_very_many_people_are_judged_by_some(monkeypatch):
    """Also where they answered by choices, whose pairs are judged."""
    monkeypatch.setattr("penchant.communities.mixture.JUDGING_USERS", 150)
    utilities = crowd(2, 0.0)
    noise = np.random.default_rng(1).gumbel(size=utilities.shape)
    order = np.argsort(-3.0 * utilities - noise, axis=1)
    rankings = Comparisons.from_rankings(order.tolist(), users=range(300))
    for data in (votes(utilities, 20), rankings):
        support = CommunityGP(personal=False).fit(None, data).support_
        assert support.verdict == "supported"
        assert support.n_communities == 2
        assert support.sentence.endswith("(by 150 of 300 people)")


OPPOSED = np.outer([1.0, -1.0], tastes(1, N_ITEMS)[0])


@pytest.mark.parametrize(
    ("utilities", "n_votes", "noise", "sentence"),
    [
        (crowd(2, 0.5, n_users=30), 2, 1.0, "too few votes"),
        (people(OPPOSED, 40), 20, 1.0, "2 communities, well supported"),
        # ratings: a user's opinion of an item is in all of their pairs with it, without any noise
        (people(tastes(1, 30, 1.0), 150, 1.0), 30, 0.0, "tastes differ from person to person"),
    ],
)
def test_small_or_noiseless_crowds(utilities, n_votes, noise, sentence):
    data = votes(utilities, n_votes, noise=noise)
    assert judge(find_communities(mixture_of(data))).sentence.startswith(sentence)


@pytest.mark.parametrize(
    ("n_items", "n_choices", "spread", "seed"),
    [(10, 1, 0.5, 2), (3, 6, 1.5, 0)],
    ids=["one choice", "of three"],
)
def test_pairs_of_one_choice_are_not_mistaken_for_agreement(n_items, n_choices, spread, seed):
    """People without groups: what they chose is in several pairs, and in both halves of those."""
    alike = people(tastes(1, n_items, 1.0), 250, spread)
    result = find_communities(mixture_of(choices_as_pairs(alike, n_choices, n_items, seed)))
    assert result.n_communities > 3
    assert judge(result).verdict == "personal"


def test_true_communities_show_in_pairs_of_choices():
    two = people(tastes(2, N_ITEMS), 200)
    result = find_communities(mixture_of(choices_as_pairs(two, 12, 3)))
    assert judge(result).verdict == "supported"


def test_halves_by_choice_share_no_winner():
    answers = mixture_of(choices_as_pairs(crowd(1, 1.0, n_users=20), 6, 4)).answers
    first, second = halve_votes(answers, np.random.default_rng(0), by_choice=True)
    assert (first + second != answers.counts).nnz == 0
    assert min(first.sum(), second.sum()) > 0.3 * answers.counts.sum()
    for user in range(20):
        won = [sorted(answers.winner[half[[user]].indices].tolist()) for half in (first, second)]
        repeated = answers.counts[[user]]
        often = set(answers.winner[repeated.indices[repeated.data > 1]].tolist())
        assert not (set(won[0]) & set(won[1])) - often


def test_halves_share_out_every_vote():
    answers = mixture_of(votes(crowd(2, 0.2, n_users=20), 9)).answers
    first, second = halve_votes(answers, np.random.default_rng(0))
    assert (first + second != answers.counts).nnz == 0
    per_user = np.asarray(first.sum(axis=1)).ravel()
    np.testing.assert_array_equal(per_user, np.full(20, 5.0))


def test_halves_by_items_share_none():
    answers = mixture_of(votes(crowd(2, 0.2, n_users=20), 30)).answers
    seen = []
    for counts in halve_items(answers, np.random.default_rng(0)):
        assert (counts > answers.counts).nnz == 0
        user, answer = counts.nonzero()
        ends = np.append(answers.winner[answer], answers.loser[answer])
        seen.append({*zip(np.tile(user, 2), ends, strict=True)})
    assert min(map(len, seen)) > 20
    assert not seen[0] & seen[1]


@pytest.mark.parametrize("likelihood", [Ties(0.5), Gaussian(0.5)], ids=repr)
def test_new_answers_are_drawn_to_the_same_questions(likelihood):
    changed = with_outcomes(mixture_of(votes(crowd(1, 0.5, n_users=30), 10)), likelihood)
    counts = changed.answers.counts
    drawn = draw_answers(changed, np.zeros(counts.nnz), np.random.default_rng(0)).counts
    np.testing.assert_array_equal(drawn.sum(axis=1), counts.sum(axis=1))
    assert judge(find_communities(changed)).verdict in ("supported", "personal", "too few")
