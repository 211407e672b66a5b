"""Graphs of preferences, kernel features, and disagreement."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penchant.data import Comparisons
from penchant.kernels import RBF
from penchant.ranking import Groups, Pairs, disagreement, kernel_features


def dense_laplacian(graph: Groups) -> np.ndarray:
    adjacency = (graph.group[:, None] == graph.group).astype(float)
    return np.diag(adjacency.sum(axis=1)) - adjacency


def all_pairs(graph: Groups) -> Pairs:
    """The same comparisons written out one by one."""
    better, worse, margin = [], [], []
    for i, j in combinations(range(graph.n_rows), 2):
        if graph.group[i] == graph.group[j]:
            i, j = (i, j) if graph.scores[i] >= graph.scores[j] else (j, i)
            better.append(i)
            worse.append(j)
            margin.append(graph.scores[i] - graph.scores[j])
    count = np.ones(len(better))
    return Pairs(np.array(better), np.array(worse), count, np.array(margin), graph.n_rows)


groups_of_scores = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=25
).map(
    lambda rows: Groups(
        np.unique([group for group, _ in rows], return_inverse=True)[1],
        np.array([score for _, score in rows], dtype=float),
    )
)


@given(groups_of_scores)
def test_root_and_target_of_groups(graph):
    root = graph.root(np.eye(graph.n_rows))
    L = dense_laplacian(graph)
    np.testing.assert_allclose(root.T @ root, L, atol=1e-12)
    np.testing.assert_allclose(root.T @ graph.target, L @ graph.scores, atol=1e-11)


@given(groups_of_scores)
def test_ordered_pairs_are_all_pairs_of_unequal_score(graph):
    expected = all_pairs(graph)
    decided = expected.margin > 0
    pairs = graph.ordered_pairs()
    assert sorted(zip(pairs.better, pairs.worse, strict=True)) == sorted(
        zip(expected.winner[decided], expected.loser[decided], strict=True)
    )


@given(groups_of_scores, st.integers(1, 6))
def test_a_reach_samples_pairs_without_repeats(graph, reach):
    pairs = graph.ordered_pairs(reach)
    assert len(set(zip(pairs.better, pairs.worse, strict=True))) == len(pairs.better)
    assert len(pairs.better) <= reach * graph.n_rows
    assert np.all(graph.scores[pairs.better] > graph.scores[pairs.worse])
    assert np.all(graph.group[pairs.better] == graph.group[pairs.worse])
    for group in np.unique(graph.group[pairs.better]):
        assert pairs.weight[graph.group[pairs.better] == group].sum() == pytest.approx(1.0)


def test_a_reach_samples_near_and_far_scores_alike():
    graph = Groups(np.zeros(1001, dtype=np.intp), np.arange(1001.0))
    pairs = graph.ordered_pairs(reach=32)
    gap = graph.scores[pairs.better] - graph.scores[pairs.worse]
    assert len(gap) == 32 * 1001
    assert gap.mean() == pytest.approx(1002 / 3, rel=0.02)  # that of two random rows


def test_groups_equal_their_pairs(rng):
    graph = Groups(rng.integers(3, size=20), rng.standard_normal(20))
    Z = rng.standard_normal((20, 4))
    for one, other in zip(
        graph.normal_equations(Z), all_pairs(graph).normal_equations(Z), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-11)


def test_pairs_share_the_laplacian_of_comparisons(rng, make_comparisons):
    data = make_comparisons(n_items=9, n_pairs=40)
    graph = Pairs(data.winner, data.loser, data.count.astype(float), np.ones(len(data)), 9)
    gram, response = graph.normal_equations(np.eye(9))
    np.testing.assert_allclose(gram, data.laplacian().toarray(), atol=1e-12)
    root = graph.root(np.eye(9))
    np.testing.assert_allclose(root.T @ root, gram, atol=1e-12)
    np.testing.assert_allclose(root.T @ graph.target, response, atol=1e-12)


def test_ties_pull_together_but_order_nothing():
    graph = Pairs(np.array([0, 1]), np.array([1, 2]), np.ones(2), np.array([0.0, 1.0]), 3)
    assert graph.ordered_pairs().better.tolist() == [1]
    assert graph.normal_equations(np.eye(3))[0][0, 1] == -1.0


@pytest.mark.parametrize("n_groups", [1, 7])
def test_folds_of_groups_hold_out_whole_units(rng, n_groups):
    graph = Groups(np.arange(35) % n_groups, rng.standard_normal(35))
    seen = []
    for fold in graph.folds(5):
        assert not set(fold.train_rows) & set(fold.valid_rows)
        assert fold.train.n_rows == len(fold.train_rows)
        if n_groups > 1:
            assert not set(graph.group[fold.train_rows]) & set(graph.group[fold.valid_rows])
        scores = graph.scores[fold.valid_rows]
        assert np.all(scores[fold.valid.better] > scores[fold.valid.worse])
        seen.extend(fold.valid_rows)
    assert sorted(seen) == list(range(35))


def test_folds_of_pairs_hold_out_each_comparison_once():
    data = Comparisons.from_pairs([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2], items=range(5))
    graph = Pairs(data.winner, data.loser, data.count.astype(float), np.ones(6), 5)
    held_out = []
    for fold in graph.folds(4):
        pairs = list(zip(fold.valid.better, fold.valid.worse, strict=True))
        assert len(pairs) + len(fold.train.winner) == 6
        held_out += pairs
    assert sorted(held_out) == list(zip(data.winner, data.loser, strict=True))


@pytest.mark.parametrize("n_landmarks", [60, 12])
def test_features_give_the_kernel_or_its_nystrom_approximation(rng, n_landmarks):
    X, kernel = rng.standard_normal((60, 4)), RBF(2.0)
    X[47] = X[33]  # the duplicate row brings no feature of its own
    landmarks = X if n_landmarks == 60 else X[:12]
    feature_map, features = kernel_features(kernel, X, landmarks)
    cross = kernel(X, landmarks)
    expected = cross @ np.linalg.pinv(kernel(landmarks), hermitian=True) @ cross.T
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-8)
    assert features.shape[1] == min(n_landmarks, 59)
    weights = rng.standard_normal(features.shape[1])
    predicted = kernel(X, feature_map.landmarks) @ feature_map.dual(weights)
    np.testing.assert_allclose(predicted, features @ weights, atol=1e-8)


def test_a_smooth_kernel_has_few_features():
    X = np.linspace(0.0, 1.0, 300)[:, None]
    _, features = kernel_features(RBF(1.0), X, X)
    assert features.shape[1] < 15
    np.testing.assert_allclose(features @ features.T, RBF(1.0)(X), atol=1e-10)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=12))
def test_disagreement_is_equation_4(rows):
    scores, predictions = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    wrong = 0.0
    for i in range(len(rows)):
        for j in range(len(rows)):
            if scores[i] != scores[j]:  # Eq. 4 as printed charges ties in s whatever f says
                sign_s = 1 if scores[i] > scores[j] else -1
                sign_f = 1 if predictions[i] > predictions[j] else -1
                wrong += 0.5 * abs(sign_s - sign_f)
    pairs = Groups(np.zeros(len(rows), dtype=np.intp), scores).ordered_pairs()
    ones = pairs._replace(weight=np.ones(len(pairs.better)))
    np.testing.assert_allclose(disagreement(predictions[:, None], ones), [wrong / 2])


def test_chunks_add_up(rng, monkeypatch):
    pairs = Groups(rng.integers(4, size=60), rng.standard_normal(60)).ordered_pairs()
    predictions = rng.standard_normal((60, 3))
    whole = disagreement(predictions, pairs)
    monkeypatch.setattr("penchant.ranking.graph._CHUNK", 50)
    np.testing.assert_allclose(disagreement(predictions, pairs), whole)
