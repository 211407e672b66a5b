"""Keys for shuffles that names, order and merged rows do not change."""

import numpy as np
import pytest

from penchant.numerics import random


@pytest.fixture
def rows(rng):
    winner = rng.integers(6, size=40)
    loser = (winner + 1 + rng.integers(5, size=40)) % 6
    return winner, loser, rng.integers(8, size=40), rng.random(40) < 0.2


def test_names_and_order_of_rows_do_not_matter(rows, rng):
    winner, loser, user, tie = rows
    known = random.pair_keys(winner, loser, user, tie=tie)
    item, person, order = rng.permutation(6), rng.permutation(8), rng.permutation(40)
    other = random.pair_keys(
        item[winner][order], item[loser][order], person[user][order], tie=tie[order]
    )
    np.testing.assert_array_equal(other.item[item], known.item)
    np.testing.assert_array_equal(other.user[person], known.user)
    np.testing.assert_array_equal(other.answer, known.answer[order])


def test_a_count_is_as_many_rows_and_a_tie_has_no_winner(rows):
    winner, loser, user, tie = rows
    twice = random.pair_keys(*(np.repeat(column, 2) for column in rows[:3]), tie=np.repeat(tie, 2))
    counted = random.pair_keys(winner, loser, user, np.full(40, 2), tie)
    np.testing.assert_array_equal(counted.user, twice.user)
    turned = random.pair_keys(
        np.where(tie, loser, winner), np.where(tie, winner, loser), user, np.full(40, 2), tie
    )
    np.testing.assert_array_equal(counted.item, turned.item)


def test_whatever_differs_has_another_key(rows):
    winner, loser, user, tie = rows
    known = random.pair_keys(winner, loser, user, tie=tie)
    assert len(np.unique(known.user)) == 8
    assert len(np.unique(known.item)) == 6
    at = int(np.flatnonzero(~tie)[0])
    changed = winner.copy(), loser.copy()
    changed[0][at], changed[1][at] = loser[at], winner[at]
    assert (random.pair_keys(*changed, user, tie=tie).user != known.user).any()


def test_exchanged_winners_and_losers_have_the_same_keys(rows):
    winner, loser, user, tie = rows
    known, mirrored = (
        random.pair_keys(winner, loser, user, tie=tie),
        random.pair_keys(loser, winner, user, tie=tie),
    )
    for a, b in zip(known, mirrored, strict=True):
        np.testing.assert_array_equal(a, b)
