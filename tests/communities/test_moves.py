"""Splits, merges and deletions: screened, and only ever up."""

import numpy as np
import pytest

from penchant.communities import Answers, MixtureData
from penchant.communities import split_merge as moves
from penchant.communities.component import allocate, everybody_together
from penchant.communities.split_merge import (
    LEAST_GAIN,
    SCREEN,
    SplitSearch,
    delete,
    disagreement,
    force_merge,
    force_split,
    merge,
)
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import ItemHyper
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
    return allocate(crowd.model(crowd.hyper.theta), np.eye(labels.max() + 1)[labels])


def test_the_spectrum_tells_one_taste_from_two():
    everybody = np.arange(120)
    strengths = []
    for k in (1, 2):
        crowd, _ = draw(tastes(k))
        together = everybody_together(crowd, crowd.hyper.theta)
        strengths.append(disagreement(together, 0, everybody).strength)
    assert strengths[0][0] < SCREEN < strengths[1][0]
    assert (strengths[1][:-1] >= strengths[1][1:]).all()


def test_the_spectrum_is_that_of_the_dense_scores():
    crowd, _ = draw(tastes(2))
    together = everybody_together(crowd, crowd.hyper.theta)
    spectrum = disagreement(together, 0, np.arange(120), n_directions=3)
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
    together = everybody_together(crowd, crowd.hyper.theta)
    divided = SplitSearch().split(together, 0)
    assert divided is not None
    assert divided.n_communities == 2
    assert divided.objective > together.objective
    again = allocate(divided.model, divided.responsibilities)
    assert divided.objective == pytest.approx(again.objective, abs=0.05)
    np.testing.assert_allclose(divided.responsibilities.sum(axis=1), 1.0)
    agrees = np.mean((divided.responsibilities[:, 0] > 0.5) == truth)
    assert max(agrees, 1.0 - agrees) > 0.95


def test_one_taste_is_not_split_and_not_tried_twice(monkeypatch):
    crowd, _ = draw(tastes(1))
    together = everybody_together(crowd, crowd.hyper.theta)
    search = SplitSearch()
    assert search.split(together, 0) is None
    monkeypatch.setattr("penchant.communities.split_merge._ways", pytest.fail)
    assert search.split(together, 0) is None


def test_a_taste_that_is_spread_over_communities_is_gathered(monkeypatch):
    """In none of them is it worth a community of its own, until those elsewhere may join it."""
    crowd, truth = draw(tastes(5), n_users=100, n_votes=12)
    spread = placed(crowd, np.where(truth == 4, np.arange(100) // 5 % 4, truth))
    gathered = SplitSearch().split(spread, 3)
    assert gathered is not None
    assert gathered.n_communities == 5
    assert gathered.objective > spread.objective + 10.0
    monkeypatch.setattr(moves, "_open_to_all", lambda *_: None)
    assert SplitSearch().split(spread, 3) is None


def test_a_needless_division_is_merged():
    crowd, truth = draw(tastes(2))
    three = np.where((truth == 0) & (np.arange(120) < 60), 2, truth)
    divided = placed(crowd, three)
    merged = merge(divided)
    assert merged is not None
    assert merged.n_communities == 2
    assert merged.objective > divided.objective
    assert merge(merged) is None
    assert merged.objective == pytest.approx(placed(crowd, truth).objective, abs=LEAST_GAIN)


def test_forced_merges_and_splits_lose_least():
    crowd, truth = draw(tastes(3))
    right = placed(crowd, truth)
    assert merge(right) is None
    fewer, more = force_merge(right), force_split(right)
    assert (fewer.n_communities, more.n_communities) == (2, 4)
    assert fewer.objective < right.objective


def test_who_cannot_be_divided():
    crowd, _ = draw(tastes(1), n_users=2)
    alone = placed(crowd, [0, 1])
    with pytest.raises(DataError, match="divided further"):
        force_split(alone)


def test_a_needless_community_is_deleted_and_a_real_one_is_not():
    crowd, truth = draw(tastes(2))
    rng = np.random.default_rng(0)
    mixed = np.where(rng.random(120) < 0.1, 2, truth)
    divided = placed(crowd, mixed)
    left = delete(divided, 2)
    assert left is not None
    assert left.objective > divided.objective
    assert delete(placed(crowd, truth), 0) is None
