"""Many independent items: sparse algebra and Bethe's determinant against dense factors."""

import numpy as np
import pytest

from penchant.communities import Answers, MixtureData, find_communities
from penchant.communities import component as tastes
from penchant.communities.bethe import BethePrior
from penchant.communities.split_merge import _main_directions
from penchant.data import Comparisons
from penchant.gp import Edges, ItemHyper, factor_prior
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Outcomes, Probit, Ties
from penchant.metrics import adjusted_rand

VARIANCE = 1.7
N_ITEMS = 12


def crowd_of(n_users, likelihood=None, n_tastes=4, n_votes=24):
    """Votes of users of a few tastes in turn."""
    rng = np.random.default_rng(0)
    utilities = 2.0 * rng.standard_normal((n_tastes, N_ITEMS))
    user = np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(N_ITEMS, size=len(user))
    b = (a + rng.integers(1, N_ITEMS, size=len(user))) % N_ITEMS
    lead = utilities[user % n_tastes, a] - utilities[user % n_tastes, b]
    wins = lead + rng.standard_normal(len(user)) > 0
    data = Comparisons.from_pairs(
        np.where(wins, a, b), np.where(wins, b, a), user=user, items=range(N_ITEMS)
    )
    hyper = ItemHyper(Independent(2.0), likelihood or Probit())
    return MixtureData(Answers.of(data), Inputs(index=np.arange(N_ITEMS)), hyper)


def states(winner, loser, seed=0):
    """Sparse and dense posteriors of the same items, given the same sites."""
    rng = np.random.default_rng(seed)
    weight, shift = rng.gamma(1.0, size=len(winner)), rng.standard_normal(len(winner))
    edges = Edges.between(winner, loser, np.ones(len(winner)), Outcomes())
    items = Inputs(index=np.arange(len(edges.items)))
    dense = factor_prior(Independent(VARIANCE), items, edges)
    return BethePrior.of(VARIANCE, edges), dense, weight, shift


def tree(n=40, seed=3):
    """Every edge twice, once in either direction."""
    rng = np.random.default_rng(seed)
    child = np.arange(1, n)
    parent = (rng.random(n - 1) * child).astype(int)
    return np.append(child, parent), np.append(parent, child)


def random_graph(n=200, degree=30, seed=4):
    rng = np.random.default_rng(seed)
    winner = np.repeat(np.arange(n), degree // 2)
    return winner, (winner + rng.integers(1, n, len(winner))) % n


def test_on_a_tree_all_is_exact():
    sparse, dense, weight, shift = states(*tree())
    ours, theirs = sparse.refresh(100.0 * weight, shift), dense.refresh(100.0 * weight, shift)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-6)
    assert ours.log_det == pytest.approx(theirs.log_det, abs=1e-6)
    np.testing.assert_allclose(ours.var, theirs.var, rtol=1e-4)
    assert ours.n_settled == pytest.approx(theirs.n_settled, abs=1e-3)


def test_on_a_random_graph_little_is_missing():
    sparse, dense, weight, shift = states(*random_graph())
    ours, theirs = sparse.refresh(weight, shift), dense.refresh(weight, shift)
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-6)
    assert ours.log_det == pytest.approx(theirs.log_det, abs=3.0)  # of some six hundred
    np.testing.assert_allclose(ours.var, theirs.var, rtol=0.06)
    points = np.random.default_rng(1).standard_normal(sparse.rank)
    np.testing.assert_allclose(ours.solve(points), theirs.solve(points), atol=1e-6)
    np.testing.assert_allclose(ours.pulled(points), theirs.pulled(points), atol=1e-9)
    rows = np.random.default_rng(2).standard_normal((30, sparse.rank))
    (values, moves), (expected, same) = (_main_directions(rows, s, 2) for s in (ours, theirs))
    np.testing.assert_allclose(values, expected, rtol=1e-3)
    np.testing.assert_allclose(np.abs(moves.T @ same), np.abs(same.T @ same), atol=0.02)


def test_slopes_are_those_of_the_determinant():
    sparse, _, weight, shift = states(*random_graph(n=40, degree=8))
    state, step = sparse.refresh(weight, shift), 1e-4
    for edge in (0, 17, 100):
        up, down = (
            sparse.refresh(weight + side * step * (np.arange(len(weight)) == edge), shift)
            for side in (1.0, -1.0)
        )
        slope = (up.log_det - down.log_det) / (2.0 * step)
        assert state.var[edge] == pytest.approx(slope, rel=1e-3)
    wide, narrow = (
        BethePrior(sparse.design, VARIANCE * np.exp(side * step)).refresh(weight, shift)
        for side in (1.0, -1.0)
    )
    slope = (wide.log_det - narrow.log_det) / (2.0 * step)
    assert state.n_settled == pytest.approx(slope, rel=1e-3)


@pytest.mark.parametrize("likelihood", [Probit(), Ties(0.4)], ids=repr)
def test_slopes_of_log_z(monkeypatch, likelihood):
    monkeypatch.setattr(tastes, "TOLERANCE", 1e-16)
    monkeypatch.setattr(tastes, "MANY_ITEMS", 2)
    crowd = crowd_of(8, likelihood)
    w = np.random.default_rng(0).random((2, crowd.answers.n_answers))

    def value(theta, weights):
        model = crowd.model(theta)
        assert isinstance(model.prior, BethePrior)
        return sum(model.fit(row).log_z for row in weights)

    theta, step = crowd.hyper.theta, 1e-4
    model = crowd.model(theta)
    fitted = tuple(model.fit(row) for row in w)
    slope = model.gradient(fitted)
    for i, direction in enumerate(np.eye(len(theta))):
        rise = value(theta + step * direction, w) - value(theta - step * direction, w)
        assert slope[i] == pytest.approx(rise / (2.0 * step), rel=1e-3, abs=1e-4)
    for answer in (0, 30):
        more = step * (np.arange(w.shape[1]) == answer)
        rise = value(theta, w + more) - value(theta, w - more)
        expected = sum(model.slope(taste)[answer] for taste in fitted)
        assert expected == pytest.approx(rise / (2.0 * step), rel=1e-3, abs=1e-4)


def test_the_same_communities_are_found(monkeypatch):
    crowd = crowd_of(160)
    dense = find_communities(crowd)
    monkeypatch.setattr(tastes, "MANY_ITEMS", 2)
    found = find_communities(crowd)
    assert adjusted_rand(np.arange(160) % 4, found.labels) > 0.97
    assert found.n_communities == dense.n_communities == 4
    utilities = [np.stack([p.mean for p in g.posteriors]) for g in (found, dense)]
    np.testing.assert_allclose(*utilities, atol=0.05)
    assert found.posteriors[0].covariance().shape == (N_ITEMS, N_ITEMS)
