"""Parts for testing hold whole answers, each in exactly one of them."""

from functools import reduce
from operator import add

import numpy as np
import pytest

import penchant as pc


def mixed():
    ballots = [["a", "b", "c", "d"], ["b", "d", "a"], ["c", "a"], ["a", ["b", "c"]]] * 6
    users = [f"user {k % 5}" for k in range(len(ballots))]
    choices = pc.Comparisons.from_choices(
        ["a", "d"], [["a", "b", "c"], ["b", "c", "d"]], user=[*"uv"]
    )
    return pc.Comparisons.from_rankings(ballots, users=users) + choices


def parts(data):
    yield from data.folds(3)
    for seed in range(3):
        yield data.split(0.4, random_state=seed)
        yield data.split(0.4, by="user", random_state=seed)


def test_no_ranking_or_choice_is_cut():
    data = mixed()
    whole = {str(order[:2]) for tied in (True, False) for order in data.named_rankings(tied)}
    singles = data.single_pairs()
    for train, test in parts(data):
        assert train + test == data
        for part in (train, test):
            for tied in (True, False):
                assert {str(order[:2]) for order in part.named_rankings(tied)} <= whole
            # every pair is of a ranking that is there whole, or was single before
            assert part.single_pairs().n_comparisons <= singles.n_comparisons


def test_every_answer_is_held_out_once():
    data = mixed()
    tests = [test for _, test in data.folds(4)]
    assert reduce(add, tests) == data
    answers = [test.single_pairs().n_comparisons + test.rankings.count.sum() for test in tests]
    assert max(answers) - min(answers) <= 1


def test_everybody_is_in_every_fold_who_answered_often_enough():
    rng = np.random.default_rng(0)
    winner = rng.integers(5, size=200)
    loser = (winner + 1 + rng.integers(4, size=200)) % 5
    data = pc.Comparisons.from_pairs(winner, loser, user=np.repeat(np.arange(10), 20))
    for _, test in data.folds(5):
        assert np.bincount(test.user, test.count, 10).tolist() == [4] * 10


@pytest.mark.parametrize("n_folds", [2, 5, 7])
def test_counts_are_dealt_out(n_folds):
    data = pc.Comparisons.from_pairs(["a", "b"], ["b", "c"], count=[11, 7])
    sizes = [test.n_comparisons for _, test in data.folds(n_folds)]
    assert sum(sizes) == 18
    assert max(sizes) - min(sizes) <= 1
