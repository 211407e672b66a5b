"""RankSVM against scikit-learn's solver on the difference matrix that it avoids."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from penchant.errors import ConvergenceWarning
from penchant.ranking import Groups, Pairs, fit_rank_svm, training_pairs


@pytest.fixture
def problem(rng):
    X = rng.standard_normal((50, 6))
    scores = np.round(X @ rng.standard_normal(6) + rng.standard_normal(50))
    graph = Groups(rng.integers(4, size=50), scores)
    return X, training_pairs(graph, 10**6), graph


def reference(X, pairs, C):
    """LinearSVC on ± differences, each with half the weight."""
    differences = X[pairs.better] - X[pairs.worse]
    svc = LinearSVC(C=C, loss="squared_hinge", fit_intercept=False, tol=1e-10, max_iter=10**6)
    svc.fit(
        np.vstack([differences, -differences]),
        np.repeat([1, -1], len(differences)),
        sample_weight=np.tile(0.5 * pairs.weight, 2),
    )
    return svc.coef_[0]


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_weights_are_those_of_linear_svc(problem, C, container):
    X, pairs, _ = problem
    weights, _ = fit_rank_svm(container(X), pairs, C, tol=1e-9)
    np.testing.assert_allclose(weights, reference(X, pairs, C), atol=1e-5)


def test_a_weight_of_two_is_the_pair_twice(problem):
    X, pairs, _ = problem
    twice = pairs._replace(weight=2.0 * pairs.weight)
    repeated = type(pairs)(*(np.tile(column, 2) for column in pairs))
    one, other = fit_rank_svm(X, twice, 0.1, 1e-9), fit_rank_svm(X, repeated, 0.1, 1e-9)
    np.testing.assert_allclose(one[0], other[0], atol=1e-8)


def test_pairs_weigh_the_same_and_together_as_much_as_the_rows(problem):
    _, pairs, graph = problem
    assert pairs.weight.sum() == pytest.approx(graph.n_rows)
    assert np.ptp(pairs.weight) == pytest.approx(0.0)


def test_a_sampled_group_stands_for_all_its_pairs():
    graph = Groups(np.repeat([0, 1], [1000, 5]), np.arange(1005.0))
    pairs = training_pairs(graph, 20_000)
    share = pairs.weight[graph.group[pairs.better] == 1].sum() / pairs.weight.sum()
    assert share == pytest.approx(10 / (10 + 1000 * 999 / 2))


def test_explicit_pairs_weigh_their_counts():
    graph = Pairs(np.array([0, 1]), np.array([1, 2]), np.array([3.0, 1.0]), np.ones(2), 3)
    assert training_pairs(graph, 1).weight.tolist() == [3.0, 1.0]


def test_too_many_pairs_are_sampled():
    graph = Groups(np.zeros(1000, dtype=np.intp), np.arange(1000.0))
    assert 4000 <= len(training_pairs(graph, 5000).better) <= 5000


def test_stopping_early_warns(problem):
    X, pairs, _ = problem
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        _, n_iter = fit_rank_svm(X, pairs, 10.0, tol=1e-12, max_iter=1)
    assert n_iter == 1
