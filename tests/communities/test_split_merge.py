"""Splits, merges and deletions: of the search only ever up, of chains with the right odds."""

from itertools import product

import numpy as np
import pytest

from penchant import communities
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import Settings, Sites
from penchant.kernels import Independent
from tests.communities.simulation import (
    canonical,
    exact_posterior,
    mixture_of,
    people,
    tastes,
    votes,
)

pytestmark = pytest.mark.usefixtures("remembered_fits")

N_ITEMS, N_USERS = 8, 120


def draw(k, n_users=N_USERS, n_votes=20):
    """A mixture of users of k tastes, and who has which."""
    data = votes(people(tastes(k, N_ITEMS), n_users), n_votes)
    return mixture_of(data, Independent(2.0)), np.arange(n_users) % k


def placed(mixture, labels):
    labels = np.asarray(labels)
    return communities.allocate(
        mixture.model(mixture.hyper.theta), np.eye(labels.max() + 1)[labels]
    )


def together(mixture):
    return communities.single_component(mixture, mixture.hyper.theta)


def test_the_spectrum_tells_one_taste_from_two():
    one, two = (
        communities.disagreement(together(draw(k)[0]), 0, np.arange(N_USERS)).strength
        for k in (1, 2)
    )
    assert one[0] < communities.NOISE_SHARE < two[0]
    assert (two[:-1] >= two[1:]).all()


def test_the_spectrum_is_that_of_the_dense_scores():
    mixture, _ = draw(2)
    state = together(mixture)
    spectrum = communities.disagreement(state, 0, np.arange(N_USERS), n_directions=3)
    taste, prior = state.components[0], state.model.prior
    D = prior.design.matrix().toarray()
    scores = mixture.answers.counts.toarray() * taste.terms.pairs.d1 @ D @ prior.factor
    white = np.linalg.solve(taste.state.lower, (scores - scores.mean(axis=0)).T)
    values = np.linalg.eigvalsh(white @ white.T)[::-1]
    effective = N_ITEMS - np.sum(np.diagonal(taste.state.lower) ** -2.0)
    edge = (1.0 + np.sqrt(effective / N_USERS)) ** 2
    np.testing.assert_allclose(spectrum.strength, values[:3] / edge, rtol=1e-6)
    along = (scores - scores.mean(axis=0)) @ spectrum.weights
    expected = np.abs(along / along.std(axis=0))
    np.testing.assert_allclose(expected, np.abs(spectrum.scores), rtol=1e-5)


def test_two_tastes_are_split_and_the_objective_rises():
    mixture, truth = draw(2)
    whole = together(mixture)
    divided = communities.SplitSearch().split(whole, 0)
    assert divided is not None
    assert divided.n_communities == 2
    assert divided.objective > whole.objective
    again = communities.allocate(divided.model, divided.responsibilities)
    assert divided.objective == pytest.approx(again.objective, abs=0.05)
    np.testing.assert_allclose(divided.responsibilities.sum(axis=1), 1.0)
    agrees = np.mean((divided.responsibilities[:, 0] > 0.5) == truth)
    assert max(agrees, 1.0 - agrees) > 0.95


def test_one_taste_is_not_split_and_tried_again_only_where_something_changed(monkeypatch):
    whole = together(draw(1)[0])
    search, tried = communities.SplitSearch(), []
    assert search.split(whole, 0) is None
    nothing = communities.Spectrum(np.zeros(0), np.zeros((N_USERS, 0)), np.zeros((N_ITEMS, 0)), 1.0)
    monkeypatch.setattr(
        "penchant.communities.split_merge.disagreement",
        lambda *given: tried.append(given) or nothing,
    )
    assert search.split(whole, 0) is None
    assert not tried
    model = whole.mixture.model(whole.model.hyper.theta + 5.0)
    assert search.split(communities.allocate(model, whole.responsibilities), 0) is None
    assert search.split(communities.allocate(whole.model, 2.0 * whole.responsibilities), 0) is None
    assert len(tried) == 2


def test_a_taste_that_is_spread_over_communities_is_gathered(monkeypatch):
    """In none of them is it worth a community of its own, until those elsewhere may join it."""
    mixture, truth = draw(5, n_users=100, n_votes=12)
    spread = placed(mixture, np.where(truth == 4, np.arange(100) // 5 % 4, truth))
    gathered = communities.SplitSearch().split(spread, 3)
    assert gathered is not None
    assert gathered.n_communities == 5
    assert gathered.objective > spread.objective + 10.0
    monkeypatch.setattr("penchant.communities.split_merge.NEAR_PAYING", -np.inf)
    assert communities.SplitSearch().split(spread, 3) is None


def test_a_needless_division_is_merged():
    mixture, truth = draw(2)
    divided = placed(mixture, np.where((truth == 0) & (np.arange(N_USERS) < 60), 2, truth))
    merged = communities.merge(divided)
    assert merged is not None
    assert merged.n_communities == 2
    assert merged.objective > divided.objective
    assert communities.merge(merged) is None
    right = placed(mixture, truth).objective
    assert merged.objective == pytest.approx(right, abs=communities.LEAST_GAIN)


def test_forced_merges_and_splits_lose_least():
    right = placed(*draw(3))
    assert communities.merge(right) is None
    fewer, more = communities.force_merge(right), communities.force_split(right)
    assert (fewer.n_communities, more.n_communities) == (2, 4)
    assert fewer.objective < right.objective
    with pytest.raises(DataError, match="divided further"):
        communities.force_split(placed(draw(1, n_users=2)[0], [0, 1]))


def test_a_needless_community_is_deleted_and_a_real_one_is_not():
    mixture, truth = draw(2)
    rng = np.random.default_rng(0)
    divided = placed(mixture, np.where(rng.random(N_USERS) < 0.1, 2, truth))
    left = communities.delete(divided)
    assert left is not None
    assert left.objective > divided.objective
    assert communities.delete(placed(mixture, truth)) is None


def test_the_gain_of_a_split_counts_the_concentration():
    """A further community costs −log λ: it is as much likelier as λ is larger."""
    data, gains = votes(people(np.outer([1.0, -1.0], [4.0, 1.0, -1.0, -4.0]), 12), 6), []
    for concentration in (0.5, 5.0):
        mixture = mixture_of(data, Independent(2.0), concentration=concentration)
        divided = communities.SplitSearch().split(together(mixture), 0)
        gains.append(divided.objective - together(mixture).objective)
    assert gains[1] - gains[0] == pytest.approx(np.log(10.0), abs=1e-2)


ORDER, OTHER = [0, 1, 2, 3], [1, 0, 3, 2]
TWO_TASTES, AGREEING = [ORDER] * 8 + [ORDER[::-1]] * 8, [ORDER] * 10


def make_partition(orders, labels):
    """Users with a ranking of four items each, in these communities."""
    data = Comparisons.from_rankings(orders, users=range(len(orders)), items=range(4)).as_pairs()
    mixture = mixture_of(data, Independent(4.0), settings=Settings(tolerance=1e-4))
    labels, theta = np.asarray(labels, dtype=np.int32), mixture.hyper.theta
    counts = communities.count_pairs(mixture.answers.counts, labels, labels.max() + 1)
    groups = tuple(communities.Group(each, Sites.zeros(counts.shape[1]), theta) for each in counts)
    return communities.Partition(mixture, theta, 1.0, labels, groups)


def fit_all(partition):
    """The fit of all users together."""
    return partition.fit(sum(g.counts for g in partition.groups), partition.groups[0].sites)


def check_counts(partition):
    counts = partition.mixture.answers.counts
    expected = communities.count_pairs(counts, partition.assignment, len(partition.groups))
    np.testing.assert_allclose([group.counts for group in partition.groups], expected)
    assert partition.sizes.min() > 0


@pytest.mark.parametrize(
    ("orders", "labels", "users", "is_split", "low", "high"),
    [
        (TWO_TASTES, [0] * 16, [0, 15], True, 20, 20),
        (TWO_TASTES, [0] * 8 + [1] * 8, [0, 15], False, 0, 0),
        (AGREEING, [0, 1] * 5, [0, 1], False, 1, 20),
        (AGREEING, [0] * 10, [0, 1], True, 0, 9),
    ],
    ids=["two tastes together", "two tastes apart", "one taste apart", "one taste together"],
)
def test_a_community_is_split_or_merged_where_it_should_be(
    orders, labels, users, is_split, low, high, rng
):
    start = make_partition(orders, labels)
    moves = [communities.split_or_merge(start, np.array(users), rng) for _ in range(20)]
    assert all(move.is_split == is_split for move in moves)
    assert low <= sum(move.is_accepted for move in moves) <= high
    for move in moves:
        check_counts(move.partition)
        assert move.is_accepted == (move.partition is not start)
        if move.is_accepted and not is_split:
            assert move.partition.sizes.tolist() == [10]
        if move.is_accepted and orders is TWO_TASTES:
            assert canonical(move.partition.assignment) == (0,) * 8 + (1,) * 8


def test_a_launch_draws_with_the_probabilities_that_it_states(rng):
    orders = [ORDER, ORDER[::-1], [1, 0, 2, 3], [3, 1, 2, 0], [2, 0, 1, 3]]
    partition = make_partition(orders, [0] * 5)
    anchors = np.array([3, 1])
    launch = communities.Launch.of(partition, np.arange(5), anchors, fit_all(partition), rng)
    total = 0.0
    for free in product([0, 1], repeat=3):
        side = np.empty(5, dtype=np.int32)
        side[[0, 2, 4]], side[anchors] = free, [0, 1]
        total += np.exp(launch.log_prob(side))
    assert total == pytest.approx(1.0)
    assert launch.draw(rng)[anchors].tolist() == [0, 1]


def test_a_launch_does_not_look_at_the_present_division():
    launches = []
    for labels in ([0] * 16, [0] * 8 + [1] * 8):
        partition, rng = make_partition(TWO_TASTES, labels), np.random.default_rng(5)
        given = np.arange(16), np.array([0, 15]), fit_all(partition)
        launches.append(communities.Launch.of(partition, *given, rng).log_side)
    np.testing.assert_array_equal(*launches)


def test_a_launch_among_identical_users_is_finite(rng):
    partition = make_partition(AGREEING, [0] * 10)
    launch = communities.Launch.of(
        partition, np.arange(10), np.array([0, 1]), fit_all(partition), rng
    )
    assert np.isfinite(launch.log_side).all()


def test_gain_of_a_split_is_the_change_of_the_log_joint():
    partition = make_partition(TWO_TASTES, [0] * 8 + [1] * 8)
    whole, fits = fit_all(partition), [partition.fit(*group[:2]) for group in partition.groups]
    expected = sum(fit.log_evidence for fit in fits) - whole.log_evidence
    expected += communities.log_prior_of_sizes(np.array([8, 8]), 1.0)
    expected -= communities.log_prior_of_sizes(np.array([16]), 1.0)
    assert partition.log_gain(whole, fits, np.array([8, 8])) == pytest.approx(expected)


def test_moves_leave_the_posterior_over_partitions_as_it_is():
    partition, seen, outcomes = make_partition([ORDER, ORDER, OTHER], (0, 0, 0)), [], set()
    exact, rng = exact_posterior(partition.mixture), np.random.default_rng(0)
    partitions = list(exact)
    for _ in range(9_000):
        move = communities.merge_similar_or_divide(partition, rng)
        assert move.is_accepted == (move.partition is not partition)
        outcomes.add((move.is_split, move.is_accepted))
        partition = move.partition
        seen.append(partitions.index(canonical(partition.assignment)))
    assert len(outcomes) == 4  # splits and merges, accepted and not
    batches = np.eye(len(partitions))[seen].reshape(30, -1, len(partitions)).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    off = np.abs(batches.mean(axis=0) - list(exact.values()))
    np.testing.assert_array_less(off, 4.0 * error)
    assert error.max() < 0.03


@pytest.mark.parametrize(
    ("orders", "labels", "sizes"),
    [
        ([ORDER] * 30, [0] * 27 + [1] * 3, [[30]]),  # of one taste, at any size
        ([ORDER] * 12 + [ORDER[::-1]] * 6, np.repeat([0, 1, 2], 6), [[6, 12], [6, 6, 6]]),
        (TWO_TASTES, [0] * 8 + [1] * 8, [[8, 8]]),
        ([ORDER] * 3, [0] * 3, [[3]]),  # none to merge with
    ],
)
def test_similar_communities_are_merged(orders, labels, sizes, rng):
    start = make_partition(orders, labels)
    for _ in range(5):
        merged = communities.merge_similar(start, rng).partition
        check_counts(merged)
        assert sorted(merged.sizes.tolist()) in sizes
        assert len(set(merged.assignment[-3:])) == 1


def test_a_division_is_rare_but_consistent(rng):
    start = make_partition([ORDER, OTHER] * 4, [0] * 8)
    moves = (communities.divide_by_coin(start, rng) for _ in range(300))
    accepted = [move.partition for move in moves if move.is_accepted]
    assert accepted
    check_counts(accepted[0])
