"""What may be asked: each restriction by itself."""

import numpy as np
import pytest

from penchant.ask import Pool, Rules, all_pairs
from penchant.ask.choose import exposures
from penchant.data import Comparisons
from penchant.errors import DataError

DATA = Comparisons.from_pairs(["a", "a", "b"], ["b", "c", "a"], items=list("abcde"))


def test_every_pair_is_there_once():
    pairs = all_pairs(7)
    assert pairs.shape == (21, 2)
    assert len({tuple(pair) for pair in pairs.tolist()}) == 21
    assert (pairs[:, 0] < pairs[:, 1]).all()


def test_candidates_are_all_items_or_those_named(rng):
    assert Rules().candidates(DATA, rng).tolist() == [0, 1, 2, 3, 4]
    assert Rules(items=["d", 0, "d"]).candidates(DATA, rng).tolist() == [0, 3]
    with pytest.raises(DataError, match="a question needs two"):
        Rules(items=["a"]).candidates(DATA, rng)
    with pytest.raises(DataError, match="zebra"):
        Rules(items=["a", "zebra"]).candidates(DATA, rng)


def test_of_very_many_items_some_are_drawn(rng):
    many = Comparisons.from_pairs([0], [1], items=range(6_000))
    assert len(np.unique(Rules().candidates(many, rng))) == 5_000


def test_exposures_count_both_sides_and_repeats():
    data = Comparisons.from_pairs([0, 2], [1, 0], count=[3, 2], items=range(4))
    assert exposures(data).tolist() == [5.0, 3.0, 2.0, 0.0]


def test_avoided_pairs_are_closed_in_either_orientation():
    pool = Pool(all_pairs(3), np.zeros(3))
    pool.avoid(np.array([[2, 0]]))
    assert pool.pairs[pool.open].tolist() == [[0, 1], [1, 2]]
    oriented = Pool(np.array([[2, 0], [1, 2]]), np.zeros(3))
    oriented.avoid(np.array([[0, 2]]))
    assert oriented.pairs[oriented.open].tolist() == [[1, 2]]


def test_what_is_avoided_comes_back_when_nothing_else_is_left():
    pool = Pool(all_pairs(2), np.zeros(2))
    pool.avoid(np.array([[0, 1]]))
    assert pool.open.all()


def test_the_floor_asks_for_items_below_it_until_there_are_none():
    pool = Pool(all_pairs(4), np.array([2.0, 2.0, 0.0, 1.0]), floor=2)
    for _ in range(6):
        eligible = pool.pairs[pool.eligible()]
        short = pool.exposed < 2
        if not short.any():
            assert pool.eligible().sum() == pool.open.sum()
            return
        assert short[eligible].any(axis=1).all()
        pool.take(int(np.flatnonzero(pool.eligible())[0]))
    pytest.fail("the floor was never reached")


def test_taking_a_pair_closes_it_and_counts_it():
    pool = Pool(all_pairs(3), np.zeros(3))
    assert pool.take(1).tolist() == [0, 2]
    assert pool.open.tolist() == [True, False, True]
    assert pool.exposed.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"exposure": -1}, "whole number"),
        ({"exposure": 1.5}, "whole number"),
        ({"random_share": 1.2}, "between 0 and 1"),
        ({"random_share": -0.1}, "between 0 and 1"),
    ],
)
def test_rules_that_make_no_sense(wrong, message):
    with pytest.raises(DataError, match=message):
        Rules(**wrong)
