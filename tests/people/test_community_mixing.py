"""Split and merge moves."""

from itertools import product

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.inference import Hyperparameters, Settings
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Probit
from penchant.people.assignment import Answers, count_pairs
from penchant.people.community_utility import Mixture
from penchant.people.mixing import Launch, Partition, Target, difference_matrix, split_merge

ORDER = [0, 1, 2, 3]


def make_target(orders):
    data = Comparisons.from_rankings(orders, users=range(len(orders)), items=range(4))
    hyper = Hyperparameters(Independent(4.0), Probit())
    items = Inputs(index=np.arange(4))
    mixture = Mixture(Answers.of(data), items, hyper, Settings(tolerance=1e-4))
    return Target(mixture, hyper.theta, 1.0)


def make_partition(target, labels):
    labels = np.asarray(labels, dtype=np.int32)
    k = labels.max() + 1
    counts = count_pairs(target.mixture.answers.counts, labels, k)
    thetas = np.tile(target.theta, (k, 1))
    return Partition(labels, counts, np.zeros_like(counts), np.zeros_like(counts), thetas)


@pytest.fixture
def two_tastes():
    return make_target([ORDER] * 8 + [ORDER[::-1]] * 8)


@pytest.fixture
def one_taste():
    return make_target([ORDER] * 10)


def consistent(target, partition):
    counts = count_pairs(
        target.mixture.answers.counts, partition.assignment, len(partition.pair_counts)
    )
    np.testing.assert_allclose(partition.pair_counts, counts)
    assert partition.sizes.min() > 0


def test_a_mixed_community_is_split_where_it_should_be(two_tastes, rng):
    move = split_merge(two_tastes, make_partition(two_tastes, [0] * 16), np.array([0, 15]), rng)
    assert move.is_split
    assert move.is_made
    consistent(two_tastes, move.partition)
    assert len(set(move.partition.assignment[:8])) == 1
    assert len(set(move.partition.assignment[8:])) == 1


def test_different_communities_are_not_merged(two_tastes, rng):
    start = make_partition(two_tastes, [0] * 8 + [1] * 8)
    move = split_merge(two_tastes, start, np.array([0, 15]), rng)
    assert not move.is_split
    assert not move.is_made
    assert move.partition is start


def test_a_divided_community_is_merged(one_taste, rng):
    start = make_partition(one_taste, [0, 1] * 5)
    moves = [split_merge(one_taste, start, np.array([0, 1]), rng) for _ in range(20)]
    made = [move for move in moves if move.is_made]
    assert made
    consistent(one_taste, made[0].partition)
    assert made[0].partition.sizes.tolist() == [10]


def test_users_who_agree_are_rarely_split(one_taste, rng):
    start = make_partition(one_taste, [0] * 10)
    made = [split_merge(one_taste, start, np.array([0, 1]), rng).is_made for _ in range(20)]
    assert sum(made) < 10


def test_probabilities_of_all_divisions_sum_to_one(rng):
    target = make_target([ORDER, ORDER[::-1], [1, 0, 2, 3], [3, 1, 2, 0], [2, 0, 1, 3]])
    partition = make_partition(target, [0] * 5)
    whole = target.fit(partition.pair_counts[0], (partition.tau[0], partition.nu[0]))
    launch = Launch.of(target, np.arange(5), np.array([3, 1]), whole, rng)
    total = 0.0
    for free in product([0, 1], repeat=3):
        side = np.empty(5, dtype=np.int32)
        side[[0, 2, 4]] = free
        side[[3, 1]] = [0, 1]
        total += np.exp(launch.log_prob(side))
    assert total == pytest.approx(1.0)
    drawn = launch.draw(rng)
    assert drawn[3] == 0
    assert drawn[1] == 1


def test_a_launch_does_not_look_at_the_present_division(two_tastes):
    members, users = np.arange(16), np.array([0, 15])
    launches = []
    for labels in ([0] * 16, [0] * 8 + [1] * 8):
        partition = make_partition(two_tastes, labels)
        counts = partition.pair_counts.sum(axis=0)
        whole = two_tastes.fit(counts, (np.zeros_like(counts), np.zeros_like(counts)))
        rng = np.random.default_rng(5)
        launches.append(Launch.of(two_tastes, members, users, whole, rng).log_side)
    np.testing.assert_array_equal(*launches)


def test_gain_of_a_split_is_the_change_of_the_log_joint(two_tastes):
    from penchant.people.mixing import log_prior_of_sizes

    parts = make_partition(two_tastes, [0] * 8 + [1] * 8)
    blank = np.zeros_like(parts.tau[0])
    fits = [two_tastes.fit(counts, (blank, blank)) for counts in parts.pair_counts]
    whole = two_tastes.fit(parts.pair_counts.sum(axis=0), (blank, blank))
    expected = sum(fit.log_evidence for fit in fits) - whole.log_evidence
    expected += log_prior_of_sizes(np.array([8, 8]), 1.0) - log_prior_of_sizes(np.array([16]), 1.0)
    assert two_tastes.log_gain(whole, fits, np.array([8, 8])) == pytest.approx(expected)


def test_identical_users_have_no_direction_of_disagreement(one_taste, rng):
    partition = make_partition(one_taste, [0] * 10)
    whole = one_taste.fit(partition.pair_counts[0], (partition.tau[0], partition.nu[0]))
    launch = Launch.of(one_taste, np.arange(10), np.array([0, 1]), whole, rng)
    assert np.isfinite(launch.log_side).all()


def test_difference_matrix_takes_differences(rng):
    f = rng.standard_normal(4)
    winner, loser, weight = np.array([0, 2]), np.array([3, 1]), np.array([1.0, 0.5])
    expected = weight * (f[winner] - f[loser])
    np.testing.assert_allclose(difference_matrix(winner, loser, weight, 4) @ f, expected)
