"""What sets communities apart."""

import numpy as np
import pytest

from penchant.communities import (
    attribute_slopes,
    directions,
    distinctiveness,
    feature_contrasts,
    item_agreement,
    value_win_rates,
)


def test_scale_and_level_of_utilities_do_not_matter(rng):
    f, weight = rng.standard_normal((3, 7)), np.full(3, 1 / 3)
    np.testing.assert_allclose(distinctiveness(5.0 * f + 2.0, weight), distinctiveness(f, weight))


def test_indifference_is_not_divided_by_zero():
    liking, _ = item_agreement(np.ones((1, 4)), np.ones(1))
    assert (liking == 0.0).all()


def test_consensus_has_no_spread_and_division_much():
    f = np.array([[4.0, 1.0, -1.0, -4.0], [4.0, -1.0, 1.0, -4.0]])
    liking, spread = item_agreement(f, np.array([0.5, 0.5]))
    np.testing.assert_allclose(spread[[0, 3]], 0.0, atol=1e-12)
    assert spread[1] > 0.1
    assert liking.argmax() == 0


def test_distinctive_items_are_liked_more_than_by_others():
    f = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    apart = distinctiveness(f, np.full(3, 1 / 3))
    np.testing.assert_array_equal(apart.argmax(axis=1), [0, 1, 2])
    np.testing.assert_allclose(np.full(3, 1 / 3) @ apart, 0.0, atol=1e-12)


def test_one_community_is_not_apart_from_itself():
    assert (distinctiveness(np.array([[1.0, 2.0]]), np.ones(1)) == 0.0).all()


def test_slopes_find_the_attribute_that_divides(rng):
    X = rng.standard_normal((200, 3))
    f = np.stack([X[:, 1] + X[:, 0], X[:, 1] - X[:, 0]])
    slopes = attribute_slopes(f, X, np.array([0.5, 0.5]))
    assert np.abs(slopes).argmax(axis=1).tolist() == [0, 0]
    assert slopes[0, 0] > 0 > slopes[1, 0]
    assert np.abs(slopes[:, 1:]).max() < 0.2


def test_repeated_attributes_share_their_slope(rng):
    x = rng.standard_normal((50, 1))
    slopes = attribute_slopes(np.stack([x[:, 0], -x[:, 0]]), np.hstack([x, x]), np.full(2, 0.5))
    assert np.isfinite(slopes).all()
    assert slopes[0, 0] == pytest.approx(slopes[0, 1])


def test_contrasts_of_unrelated_features_are_standard_normal(rng):
    membership = np.eye(2)[rng.integers(2, size=400)]
    contrasts = feature_contrasts(membership, rng.standard_normal((400, 200)))
    assert contrasts.std() == pytest.approx(1.0, abs=0.15)
    np.testing.assert_allclose(contrasts[0], -contrasts[1])


def test_contrasts_find_who_the_members_are(rng):
    number = rng.integers(2, size=300)
    features = np.column_stack([number + 0.5 * rng.standard_normal(300), rng.random(300)])
    contrasts = feature_contrasts(np.eye(2)[number], features)
    assert contrasts[1, 0] > 5
    assert np.abs(contrasts[:, 1]).max() < 4


def test_a_community_of_everybody_has_no_outside():
    contrasts = feature_contrasts(np.ones((5, 1)), np.arange(5.0)[:, None])
    assert np.isfinite(contrasts).all()


def test_win_rates_count_only_answers_that_differ_in_the_attribute():
    winner, loser = np.array([0, 1, 2]), np.array([2, 0, 1])
    values = np.array([1.0, 1.0, 2.0])  # items 0 and 1 alike
    counts = np.array([[3.0, 9.0, 1.0], [0.0, 5.0, 2.0]])
    levels, rates = value_win_rates(counts, winner, loser, values)
    assert levels.tolist() == [1.0, 2.0]
    np.testing.assert_allclose(rates, [[0.75, 0.25], [0.0, 1.0]])


def test_directions_are_those_that_people_differ_along(rng):
    sides = rng.choice([-1.0, 1.0], 50)
    utilities = np.outer(sides, [0.0, 3.0, -3.0, 0.0]) + 0.1 * rng.standard_normal((50, 4)) + 7.0
    share, (first, _) = directions(utilities, 2)
    assert share[0] > 0.98
    assert first.max() == first[np.abs(first).argmax()]
    assert set(np.argsort(np.abs(first))[2:]) == {1, 2}
    assert abs(np.corrcoef(utilities @ first, sides)[0, 1]) > 0.99


def test_people_who_agree_have_no_direction(rng):
    assert len(directions(np.tile(rng.standard_normal(5), (9, 1)), 2)[0]) == 0
