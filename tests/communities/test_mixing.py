"""Split and merge moves, and reunions."""

from itertools import product
from typing import ClassVar

import numpy as np
import pytest

from penchant.communities import Answers, MixtureData
from penchant.communities.data import count_pairs
from penchant.communities.split_merge import (
    Launch,
    Partition,
    Target,
    _place_of_pair,
    divide_by_coin,
    log_prior_of_sizes,
    reunite,
    split_merge,
    unite_alike,
)
from penchant.data import Comparisons
from penchant.gp import ItemHyper, Settings
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Probit

ORDER = [0, 1, 2, 3]
OTHER = [1, 0, 3, 2]


def make_target(orders):
    data = Comparisons.from_rankings(orders, users=range(len(orders)), items=range(4))
    hyper = ItemHyper(Independent(4.0), Probit())
    items = Inputs(index=np.arange(4))
    mixture = MixtureData(
        Answers.of(data.as_pairs()), items, hyper, settings=Settings(tolerance=1e-4)
    )
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
def single_population():
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


def test_a_divided_community_is_merged(single_population, rng):
    start = make_partition(single_population, [0, 1] * 5)
    moves = [split_merge(single_population, start, np.array([0, 1]), rng) for _ in range(20)]
    made = [move for move in moves if move.is_made]
    assert made
    consistent(single_population, made[0].partition)
    assert made[0].partition.sizes.tolist() == [10]


def test_users_who_agree_are_rarely_split(single_population, rng):
    start = make_partition(single_population, [0] * 10)
    made = [split_merge(single_population, start, np.array([0, 1]), rng).is_made for _ in range(20)]
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
    parts = make_partition(two_tastes, [0] * 8 + [1] * 8)
    blank = np.zeros_like(parts.tau[0])
    fits = [two_tastes.fit(counts, (blank, blank)) for counts in parts.pair_counts]
    whole = two_tastes.fit(parts.pair_counts.sum(axis=0), (blank, blank))
    expected = sum(fit.log_evidence for fit in fits) - whole.log_evidence
    expected += log_prior_of_sizes(np.array([8, 8]), 1.0) - log_prior_of_sizes(np.array([16]), 1.0)
    assert two_tastes.log_gain(whole, fits, np.array([8, 8])) == pytest.approx(expected)


def test_identical_users_have_no_direction_of_disagreement(single_population, rng):
    partition = make_partition(single_population, [0] * 10)
    whole = single_population.fit(partition.pair_counts[0], (partition.tau[0], partition.nu[0]))
    launch = Launch.of(single_population, np.arange(10), np.array([0, 1]), whole, rng)
    assert np.isfinite(launch.log_side).all()


class Remembering(Target):
    """Fits are asked for again and again: there are few groups of few users."""

    known: ClassVar = {}

    def fit(self, pair_counts, start):
        key = pair_counts.tobytes()
        if key not in self.known:
            self.known[key] = super().fit(pair_counts, (0.0 * start[0], 0.0 * start[1]))
        return self.known[key]


def canonical(assignment):
    names = {}
    return tuple(names.setdefault(label, len(names)) for label in assignment.tolist())


def test_moves_leave_the_posterior_over_partitions_as_it_is():
    target = Remembering(*make_target([ORDER, ORDER, OTHER]))
    partitions = [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]
    log_joint = []
    for labels in partitions:
        partition = make_partition(target, labels)
        blank = np.zeros_like(partition.tau[0])
        evidence = [
            target.fit(counts, (blank, blank)).log_evidence for counts in partition.pair_counts
        ]
        log_joint.append(sum(evidence) + log_prior_of_sizes(partition.sizes, 1.0))
    exact = np.exp(log_joint - np.logaddexp.reduce(log_joint))
    rng = np.random.default_rng(0)
    partition, seen = make_partition(target, (0, 0, 0)), []
    for _ in range(12_000):
        partition = reunite(target, partition, rng).partition
        seen.append(partitions.index(canonical(partition.assignment)))
    batches = np.eye(len(partitions))[seen].reshape(30, -1, len(partitions)).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    np.testing.assert_array_less(np.abs(batches.mean(axis=0) - exact), 4.0 * error)
    assert error.max() < 0.03


def test_a_taste_that_two_communities_share_is_united_at_any_size(rng):
    target = make_target([ORDER] * 30)
    start = make_partition(target, [0] * 27 + [1] * 3)
    moves = [unite_alike(target, start, rng) for _ in range(5)]
    assert all(move.is_made for move in moves)
    consistent(target, moves[0].partition)
    assert moves[0].partition.sizes.tolist() == [30]


def test_different_tastes_are_not_united(rng):
    target = make_target([ORDER] * 8 + [ORDER[::-1]] * 8)
    start = make_partition(target, [0] * 8 + [1] * 8)
    assert not any(unite_alike(target, start, rng).is_made for _ in range(5))


def test_the_alike_are_tried_first(rng):
    target = make_target([ORDER] * 12 + [ORDER[::-1]] * 6)
    start = make_partition(target, [0] * 6 + [1] * 6 + [2] * 6)
    for _ in range(5):
        united = unite_alike(target, start, rng).partition
        assert sorted(united.sizes.tolist()) in ([6, 12], [6, 6, 6])
        assert len(set(united.assignment[12:])) == 1


def test_a_division_is_rare_but_consistent(rng):
    target = make_target([ORDER, OTHER] * 4)
    start = make_partition(target, [0] * 8)
    made = [
        move for move in (divide_by_coin(target, start, rng) for _ in range(300)) if move.is_made
    ]
    assert made
    consistent(target, made[0].partition)


def test_one_community_has_nobody_to_unite_with(rng):
    target = make_target([ORDER] * 3)
    start = make_partition(target, [0] * 3)
    assert unite_alike(target, start, rng).partition is start


@pytest.mark.parametrize("n", [2, 5])
def test_pairs_are_numbered_as_numpy_does(n):
    places = [_place_of_pair(i, j, n) for i, j in zip(*np.triu_indices(n, 1), strict=True)]
    assert places == list(range(n * (n - 1) // 2))
