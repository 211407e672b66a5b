"""Answers as they come in: whose they are, and the way back to before them."""

import numpy as np
import pytest

from penchant.ask import as_answers, rng_for, without_last
from penchant.data import Comparisons
from penchant.errors import DataError

ITEMS = ["tea", "milk", "water"]
POOLED = Comparisons.from_pairs(["tea"], ["milk"], items=ITEMS)
BY_USERS = Comparisons.from_pairs(
    ["tea", "milk"], ["milk", "tea"], user=["ann", "bob"], items=ITEMS
)


def test_pairs_become_comparisons_over_the_same_items():
    answers = as_answers(POOLED, [("water", "tea"), (0, 1), ("water", "tea")])
    assert answers.items == POOLED.items
    assert sorted(zip(answers.winner, answers.loser, answers.count, strict=True)) == [
        (0, 1, 1),
        (2, 0, 2),
    ]


def test_comparisons_keep_ties_margins_and_counts_whatever_the_order_of_their_items():
    more = Comparisons.from_pairs(
        ["water", "milk"], ["tea", "tea"], count=[3, 1], tie=[False, True], items=ITEMS[::-1]
    )
    answers = as_answers(POOLED, more)
    assert answers.items == POOLED.items
    assert answers.n_comparisons == 4
    assert answers.tie.sum() == 1
    scores = Comparisons.from_pairs(["tea"], ["water"], margin=[2.5], items=ITEMS)
    known = Comparisons.from_pairs(["tea"], ["milk"], margin=[1.0], items=ITEMS)
    assert as_answers(known, scores).margin.tolist() == [2.5]


@pytest.mark.parametrize(("user", "name"), [("bob", "bob"), (1, "bob"), ("cem", "cem"), (7, 7)])
def test_answers_get_the_user_by_name_by_index_or_as_somebody_new(user, name):
    answers = as_answers(BY_USERS, [("water", "tea")], user)
    assert answers.users == (name,)


def test_names_in_the_answers_come_first_and_pooled_data_drop_them():
    assert as_answers(BY_USERS, BY_USERS, "cem").users == ("ann", "bob")
    assert as_answers(POOLED, BY_USERS).user is None


@pytest.mark.parametrize(
    ("data", "more", "message"),
    [
        (BY_USERS, [("water", "tea")], "do not say who gave them"),
        (BY_USERS, POOLED, "do not say who gave them"),
        (POOLED, [("coffee", "tea")], "coffee"),
        (POOLED, Comparisons.from_pairs(["coffee"], ["tea"]), "coffee"),
    ],
)
def test_users_who_are_not_told_and_unknown_items_are_an_error(data, more, message):
    with pytest.raises(DataError, match=message):
        as_answers(data, more)


def test_a_seed_gives_other_draws_after_an_answer_and_the_same_before():
    more = POOLED + POOLED
    assert rng_for(3, POOLED).random() == rng_for(3, POOLED).random()
    assert rng_for(3, POOLED).random() != rng_for(3, more).random()
    generator = np.random.default_rng(0)
    assert rng_for(generator, POOLED) is generator


def test_what_was_told_last_is_avoided():
    rules = without_last(None, POOLED, np.array([[2, 0]]))
    assert rules.avoid == (("water", "tea"),)
