"""Splits, merges and deletions: of the search only ever up, of chains with the right odds."""

from itertools import product
from typing import ClassVar

import numpy as np
import pytest

from penchant.communities import Answers, MixtureData, component, count_pairs, split_merge
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import ItemHyper, Settings, Sites
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Probit

N_ITEMS = 8


def draw(tastes, n_users=120, n_votes=20, seed=0):
    """A crowd whose users have one of the tastes (K, n) each, and who has which."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_users) % len(tastes)
    user = np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(N_ITEMS, size=len(user))
    b = (a + rng.integers(1, N_ITEMS, size=len(user))) % N_ITEMS
    f, rows = tastes[truth[user]], np.arange(len(user))
    wins = f[rows, a] - f[rows, b] + rng.standard_normal(len(user)) > 0
    data = Comparisons.from_pairs(
        np.where(wins, a, b), np.where(wins, b, a), user=user, items=range(N_ITEMS)
    )
    hyper = ItemHyper(Independent(2.0), Probit())
    return MixtureData(Answers.of(data), Inputs(index=np.arange(N_ITEMS)), hyper), truth


def tastes(k, seed=5):
    return 1.5 * np.random.default_rng(seed).standard_normal((k, N_ITEMS))


def placed(crowd, labels):
    labels = np.asarray(labels)
    return component.allocate(crowd.model(crowd.hyper.theta), np.eye(labels.max() + 1)[labels])


def test_the_spectrum_tells_one_taste_from_two():
    everybody = np.arange(120)
    strengths = []
    for k in (1, 2):
        crowd, _ = draw(tastes(k))
        together = component.single_component(crowd, crowd.hyper.theta)
        strengths.append(split_merge.disagreement(together, 0, everybody).strength)
    assert strengths[0][0] < split_merge.NOISE_SHARE < strengths[1][0]
    assert (strengths[1][:-1] >= strengths[1][1:]).all()


def test_the_spectrum_is_that_of_the_dense_scores():
    crowd, _ = draw(tastes(2))
    together = component.single_component(crowd, crowd.hyper.theta)
    spectrum = split_merge.disagreement(together, 0, np.arange(120), n_directions=3)
    taste, prior = together.components[0], together.model.prior
    D = prior.design.matrix().toarray()
    scores = crowd.answers.counts.toarray() * taste.terms.pairs.d1 @ D @ prior.factor
    white = np.linalg.solve(taste.state.lower, (scores - scores.mean(axis=0)).T)
    values = np.linalg.eigvalsh(white @ white.T)[::-1]
    effective = N_ITEMS - np.sum(np.diagonal(taste.state.lower) ** -2.0)
    edge = (1.0 + np.sqrt(effective / 120)) ** 2
    np.testing.assert_allclose(spectrum.strength, values[:3] / edge, rtol=1e-6)
    along = (scores - scores.mean(axis=0)) @ spectrum.weights
    np.testing.assert_allclose(
        np.abs(along / along.std(axis=0)), np.abs(spectrum.scores), rtol=1e-5
    )


def test_two_tastes_are_split_and_the_objective_rises():
    crowd, truth = draw(tastes(2))
    together = component.single_component(crowd, crowd.hyper.theta)
    divided = split_merge.SplitSearch().split(together, 0)
    assert divided is not None
    assert divided.n_communities == 2
    assert divided.objective > together.objective
    again = component.allocate(divided.model, divided.responsibilities)
    assert divided.objective == pytest.approx(again.objective, abs=0.05)
    np.testing.assert_allclose(divided.responsibilities.sum(axis=1), 1.0)
    agrees = np.mean((divided.responsibilities[:, 0] > 0.5) == truth)
    assert max(agrees, 1.0 - agrees) > 0.95


def test_one_taste_is_not_split_and_not_tried_twice(monkeypatch):
    crowd, _ = draw(tastes(1))
    together = component.single_component(crowd, crowd.hyper.theta)
    search = split_merge.SplitSearch()
    assert search.split(together, 0) is None
    monkeypatch.setattr("penchant.communities.split_merge._ways", pytest.fail)
    assert search.split(together, 0) is None


def test_a_taste_that_is_spread_over_communities_is_gathered(monkeypatch):
    """In none of them is it worth a community of its own, until those elsewhere may join it."""
    crowd, truth = draw(tastes(5), n_users=100, n_votes=12)
    spread = placed(crowd, np.where(truth == 4, np.arange(100) // 5 % 4, truth))
    gathered = split_merge.SplitSearch().split(spread, 3)
    assert gathered is not None
    assert gathered.n_communities == 5
    assert gathered.objective > spread.objective + 10.0
    monkeypatch.setattr(split_merge, "_open_to_all", lambda *_: None)
    assert split_merge.SplitSearch().split(spread, 3) is None


def test_a_needless_division_is_merged():
    crowd, truth = draw(tastes(2))
    three = np.where((truth == 0) & (np.arange(120) < 60), 2, truth)
    divided = placed(crowd, three)
    merged = split_merge.merge(divided)
    assert merged is not None
    assert merged.n_communities == 2
    assert merged.objective > divided.objective
    assert split_merge.merge(merged) is None
    assert merged.objective == pytest.approx(
        placed(crowd, truth).objective, abs=split_merge.LEAST_GAIN
    )


def test_forced_merges_and_splits_lose_least():
    crowd, truth = draw(tastes(3))
    right = placed(crowd, truth)
    assert split_merge.merge(right) is None
    fewer, more = split_merge.force_merge(right), split_merge.force_split(right)
    assert (fewer.n_communities, more.n_communities) == (2, 4)
    assert fewer.objective < right.objective


def test_who_cannot_be_divided():
    crowd, _ = draw(tastes(1), n_users=2)
    alone = placed(crowd, [0, 1])
    with pytest.raises(DataError, match="divided further"):
        split_merge.force_split(alone)


def test_a_needless_community_is_deleted_and_a_real_one_is_not():
    crowd, truth = draw(tastes(2))
    rng = np.random.default_rng(0)
    mixed = np.where(rng.random(120) < 0.1, 2, truth)
    divided = placed(crowd, mixed)
    left = split_merge.delete(divided)
    assert left is not None
    assert left.objective > divided.objective
    assert split_merge.delete(placed(crowd, truth)) is None


ORDER = [0, 1, 2, 3]
OTHER = [1, 0, 3, 2]


def make_target(orders):
    data = Comparisons.from_rankings(orders, users=range(len(orders)), items=range(4))
    hyper = ItemHyper(Independent(4.0), Probit())
    items = Inputs(index=np.arange(4))
    mixture = MixtureData(
        Answers.of(data.as_pairs()), items, hyper, settings=Settings(tolerance=1e-4)
    )
    return split_merge.Target(mixture, hyper.theta, 1.0)


def make_partition(target, labels):
    labels = np.asarray(labels, dtype=np.int32)
    k = labels.max() + 1
    counts = count_pairs(target.mixture.answers.counts, labels, k)
    blank = Sites.zeros(counts.shape[1])
    groups = tuple(split_merge.Group(each, blank, target.theta) for each in counts)
    return split_merge.Partition(labels, groups)


def fits_of(target, partition):
    """Of all users together, and of each community."""
    total = sum(group.counts for group in partition.groups)
    blank = partition.groups[0].sites
    return target.fit(total, blank), [target.fit(group.counts, blank) for group in partition.groups]


@pytest.fixture
def two_tastes():
    return make_target([ORDER] * 8 + [ORDER[::-1]] * 8)


@pytest.fixture
def agreeing():
    return make_target([ORDER] * 10)


def consistent(target, partition):
    counts = count_pairs(target.mixture.answers.counts, partition.assignment, len(partition.groups))
    np.testing.assert_allclose([group.counts for group in partition.groups], counts)
    assert partition.sizes.min() > 0


def test_a_mixed_community_is_split_where_it_should_be(two_tastes, rng):
    move = split_merge.split_or_merge(
        two_tastes, make_partition(two_tastes, [0] * 16), np.array([0, 15]), rng
    )
    assert move.is_split
    assert move.is_accepted
    consistent(two_tastes, move.partition)
    assert len(set(move.partition.assignment[:8])) == 1
    assert len(set(move.partition.assignment[8:])) == 1


def test_different_communities_are_not_merged(two_tastes, rng):
    start = make_partition(two_tastes, [0] * 8 + [1] * 8)
    move = split_merge.split_or_merge(two_tastes, start, np.array([0, 15]), rng)
    assert not move.is_split
    assert not move.is_accepted
    assert move.partition is start


def test_a_divided_community_is_merged(agreeing, rng):
    start = make_partition(agreeing, [0, 1] * 5)
    moves = [split_merge.split_or_merge(agreeing, start, np.array([0, 1]), rng) for _ in range(20)]
    made = [move for move in moves if move.is_accepted]
    assert made
    consistent(agreeing, made[0].partition)
    assert made[0].partition.sizes.tolist() == [10]


def test_users_who_agree_are_rarely_split(agreeing, rng):
    start = make_partition(agreeing, [0] * 10)
    made = [
        split_merge.split_or_merge(agreeing, start, np.array([0, 1]), rng).is_accepted
        for _ in range(20)
    ]
    assert sum(made) < 10


def test_probabilities_of_all_divisions_sum_to_one(rng):
    target = make_target([ORDER, ORDER[::-1], [1, 0, 2, 3], [3, 1, 2, 0], [2, 0, 1, 3]])
    partition = make_partition(target, [0] * 5)
    whole, _ = fits_of(target, partition)
    launch = split_merge.Launch.of(target, np.arange(5), np.array([3, 1]), whole, rng)
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
        whole, _ = fits_of(two_tastes, partition)
        rng = np.random.default_rng(5)
        launches.append(split_merge.Launch.of(two_tastes, members, users, whole, rng).log_side)
    np.testing.assert_array_equal(*launches)


def test_gain_of_a_split_is_the_change_of_the_log_joint(two_tastes):
    parts = make_partition(two_tastes, [0] * 8 + [1] * 8)
    whole, fits = fits_of(two_tastes, parts)
    expected = sum(fit.log_evidence for fit in fits) - whole.log_evidence
    expected += split_merge.log_prior_of_sizes(
        np.array([8, 8]), 1.0
    ) - split_merge.log_prior_of_sizes(np.array([16]), 1.0)
    assert two_tastes.log_gain(whole, fits, np.array([8, 8])) == pytest.approx(expected)


def test_identical_users_have_no_direction_of_disagreement(agreeing, rng):
    partition = make_partition(agreeing, [0] * 10)
    whole, _ = fits_of(agreeing, partition)
    launch = split_merge.Launch.of(agreeing, np.arange(10), np.array([0, 1]), whole, rng)
    assert np.isfinite(launch.log_side).all()


class Remembering(split_merge.Target):
    """Fits are asked for again and again: there are few groups of few users."""

    known: ClassVar = {}

    def fit(self, pair_counts, start):
        key = pair_counts.tobytes()
        if key not in self.known:
            self.known[key] = super().fit(pair_counts, Sites.zeros(len(pair_counts)))
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
        evidence = [fit.log_evidence for fit in fits_of(target, partition)[1]]
        log_joint.append(sum(evidence) + split_merge.log_prior_of_sizes(partition.sizes, 1.0))
    exact = np.exp(log_joint - np.logaddexp.reduce(log_joint))
    rng = np.random.default_rng(0)
    partition, seen = make_partition(target, (0, 0, 0)), []
    for _ in range(12_000):
        partition = split_merge.merge_similar_or_divide(target, partition, rng).partition
        seen.append(partitions.index(canonical(partition.assignment)))
    batches = np.eye(len(partitions))[seen].reshape(30, -1, len(partitions)).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    np.testing.assert_array_less(np.abs(batches.mean(axis=0) - exact), 4.0 * error)
    assert error.max() < 0.03


def test_a_taste_that_two_communities_share_is_united_at_any_size(rng):
    target = make_target([ORDER] * 30)
    start = make_partition(target, [0] * 27 + [1] * 3)
    moves = [split_merge.merge_similar(target, start, rng) for _ in range(5)]
    assert all(move.is_accepted for move in moves)
    consistent(target, moves[0].partition)
    assert moves[0].partition.sizes.tolist() == [30]


def test_different_tastes_are_not_united(rng):
    target = make_target([ORDER] * 8 + [ORDER[::-1]] * 8)
    start = make_partition(target, [0] * 8 + [1] * 8)
    assert not any(split_merge.merge_similar(target, start, rng).is_accepted for _ in range(5))


def test_the_alike_are_tried_first(rng):
    target = make_target([ORDER] * 12 + [ORDER[::-1]] * 6)
    start = make_partition(target, [0] * 6 + [1] * 6 + [2] * 6)
    for _ in range(5):
        united = split_merge.merge_similar(target, start, rng).partition
        assert sorted(united.sizes.tolist()) in ([6, 12], [6, 6, 6])
        assert len(set(united.assignment[12:])) == 1


def test_a_division_is_rare_but_consistent(rng):
    target = make_target([ORDER, OTHER] * 4)
    start = make_partition(target, [0] * 8)
    made = [
        move
        for move in (split_merge.divide_by_coin(target, start, rng) for _ in range(300))
        if move.is_accepted
    ]
    assert made
    consistent(target, made[0].partition)


def test_one_community_has_nobody_to_unite_with(rng):
    target = make_target([ORDER] * 3)
    start = make_partition(target, [0] * 3)
    assert split_merge.merge_similar(target, start, rng).partition is start
