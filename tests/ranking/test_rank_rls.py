"""RankRLS: the whole path against direct solves, left-out predictions against refits."""

import numpy as np
import pytest

from penchant.kernels import RBF
from penchant.ranking import (
    Groups,
    Pairs,
    disagreement,
    kernel_features,
    leave_group_out,
    leave_out_error,
    ridge_path,
)

ALPHAS = np.array([0.01, 0.3, 10.0])


@pytest.fixture
def X(rng):
    return rng.standard_normal((40, 3))


@pytest.fixture
def groups(rng):
    sizes = [3, 1, 12, 9, 15]
    scores = rng.standard_normal(40)
    return Groups(rng.permutation(np.repeat(np.arange(5), sizes)), scores)


def dense_laplacian(group):
    adjacency = (group[:, None] == group).astype(float)
    return np.diag(adjacency.sum(axis=1)) - adjacency


def brute_force(K, group, scores, alpha, rows):
    """Refit without `rows`, by the printed system (LK + λI) a = Ls, and predict them."""
    kept = np.setdiff1d(np.arange(len(K)), rows)
    L = dense_laplacian(group[kept])
    A = L @ K[np.ix_(kept, kept)] + alpha * np.eye(len(kept))
    return K[np.ix_(rows, kept)] @ np.linalg.solve(A, L @ scores[kept])


def test_every_ridge_solves_the_printed_system(X, groups):
    K = RBF(1.3)(X)
    L = dense_laplacian(groups.group)
    feature_map, features = kernel_features(RBF(1.3), X, X)
    weights = ridge_path(features, groups).weights(ALPHAS)
    for alpha, w in zip(ALPHAS, weights.T, strict=True):
        a = np.linalg.solve(L @ K + alpha * np.eye(40), L @ groups.scores)
        np.testing.assert_allclose(features @ w, K @ a, atol=1e-8)
        new = RBF(1.3)(X + 0.1, feature_map.landmarks) @ feature_map.dual(w)
        np.testing.assert_allclose(new, RBF(1.3)(X + 0.1, X) @ a, atol=1e-8)


@pytest.mark.parametrize("rank", ["full", "low"])  # the low one goes through Woodbury
def test_leave_group_out_is_a_refit(X, groups, rank, monkeypatch):
    features = kernel_features(RBF(1.3), X, X)[1] if rank == "full" else X
    monkeypatch.setattr("penchant.ranking.rank_rls._MAX_NUMBERS", 500)  # several chunks of ridges
    K = features @ features.T
    path = ridge_path(features, groups)
    predicted = leave_group_out(path, features @ path.axes, groups, ALPHAS)
    for q in range(groups.n_groups):
        rows = np.flatnonzero(groups.group == q)
        for k, alpha in enumerate(ALPHAS):
            expected = brute_force(K, groups.group, groups.scores, alpha, rows)
            np.testing.assert_allclose(predicted[rows, k], expected - expected.mean(), atol=1e-9)


def test_error_over_groups_counts_the_refits(X, groups):
    features = kernel_features(RBF(1.3), X, X)[1]
    K = features @ features.T
    predicted = np.empty((40, 3))
    for q in range(groups.n_groups):
        rows = np.flatnonzero(groups.group == q)
        for k, alpha in enumerate(ALPHAS):
            predicted[rows, k] = brute_force(K, groups.group, groups.scores, alpha, rows)
    pairs = groups.ordered_pairs()
    expected = disagreement(predicted, pairs) / pairs.weight.sum()
    path = ridge_path(features, groups)
    np.testing.assert_allclose(leave_out_error(path, features, groups, ALPHAS), expected)


def test_error_within_one_group_counts_the_refits(X, rng):
    scores = X[:, 0] + 0.5 * rng.standard_normal(40)
    graph = Groups(np.zeros(40, dtype=np.intp), scores)
    features = kernel_features(RBF(1.3), X, X)[1]
    K = features @ features.T
    wrong, total = np.zeros(3), 0.0
    for rows in graph.blocks(10):
        pairs = graph.take(rows).ordered_pairs()
        same_strength = ALPHAS * (40 - len(rows)) / 40
        predicted = [brute_force(K, graph.group, scores, alpha, rows) for alpha in same_strength]
        wrong += disagreement(np.column_stack(predicted), pairs)
        total += pairs.weight.sum()
    path = ridge_path(features, graph)
    np.testing.assert_allclose(leave_out_error(path, features, graph, ALPHAS), wrong / total)


def test_error_over_pairs_counts_the_refits(X, make_comparisons):
    data = make_comparisons(n_items=40, n_pairs=70, utilities=2.0 * X[:, 0])
    graph = Pairs(data.winner, data.loser, data.count.astype(float), np.ones(len(data)), 40)
    features = kernel_features(RBF(1.3), X, X)[1]
    wrong = np.zeros(3)
    for e in range(len(data)):
        rest = ridge_path(features, graph.take(np.arange(len(data)) != e)).weights(ALPHAS)
        lead = (features[data.winner[e]] - features[data.loser[e]]) @ rest
        wrong += data.count[e] * (lead < 0)
    path = ridge_path(features, graph)
    expected = wrong / data.count.sum()
    np.testing.assert_allclose(leave_out_error(path, features, graph, ALPHAS), expected)


def test_nothing_can_be_left_out_of_three_rows():
    graph = Groups(np.zeros(3, dtype=np.intp), np.arange(3.0))
    features = np.arange(3.0)[:, None]
    path = ridge_path(features, graph)
    assert np.isnan(leave_out_error(path, features, graph, ALPHAS)).all()


def test_the_grid_follows_the_scale(X, groups):
    one, other = ridge_path(X, groups), ridge_path(10.0 * X, groups)
    np.testing.assert_allclose(100.0 * one.default_alphas(), other.default_alphas())
