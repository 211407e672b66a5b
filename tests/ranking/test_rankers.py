"""Three rankers: RankRLS and KPCRank against their printed equations, RankSVM against LinearSVC."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.svm import LinearSVC

from penchant.errors import ConvergenceWarning
from penchant.kernels import RBF
from penchant.ranking import (
    Groups,
    Pairs,
    component_path,
    disagreement,
    fit_rank_svm,
    held_out_error,
    kernel_features,
    leave_group_out,
    leave_out_error,
    nested_cholesky,
    principal_components,
    ridge_path,
    training_pairs,
)

ALPHAS = np.array([0.01, 0.3, 10.0])


def dense_laplacian(group):
    adjacency = (group[:, None] == group).astype(float)
    return np.diag(adjacency.sum(axis=1)) - adjacency


# RankRLS


@pytest.fixture
def X(rng):
    return rng.standard_normal((40, 3))


@pytest.fixture
def groups(rng):
    sizes = [3, 1, 12, 9, 15]
    scores = rng.standard_normal(40)
    return Groups(rng.permutation(np.repeat(np.arange(5), sizes)), scores)


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
def test_leaving_a_group_out_is_a_refit(X, groups, rank, monkeypatch):
    features = kernel_features(RBF(1.3), X, X)[1] if rank == "full" else X
    monkeypatch.setattr("penchant.ranking.rank_rls._MAX_NUMBERS", 500)  # several chunks of ridges
    K, expected = features @ features.T, np.empty((40, 3))
    for q in range(groups.n_groups):
        rows = np.flatnonzero(groups.group == q)
        for k, alpha in enumerate(ALPHAS):
            expected[rows, k] = brute_force(K, groups.group, groups.scores, alpha, rows)
    path, pairs = ridge_path(features, groups), groups.ordered_pairs()
    predicted = leave_group_out(path, features @ path.axes, groups, ALPHAS)
    np.testing.assert_allclose(predicted, groups.centre(expected), atol=1e-9)
    error = disagreement(expected, pairs) / pairs.weight.sum()
    np.testing.assert_allclose(leave_out_error(path, features, groups, ALPHAS), error)


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


# KPCRank


@pytest.fixture
def problem(rng):
    """Rows, their features under a kernel, and graded preferences between them."""
    X = rng.standard_normal((90, 4))
    graph = Groups(rng.integers(8, size=90), np.sin(X[:, 0]) + 0.1 * rng.standard_normal(90))
    return X, kernel_features(RBF(1.5), X, X)[1], graph


def equation_8(K, L, scores, p):
    """Predictions on the training rows, as printed: w̄ = Λ^½ (VᵀKLKV)⁻¹ VᵀKLs, f = KVΛ^-½ w̄."""
    C = np.eye(len(K)) - 1.0 / len(K)
    K = C @ K @ C
    eigenvalues, V = np.linalg.eigh(K)
    eigenvalues, V = eigenvalues[::-1][:p], V[:, ::-1][:, :p]
    M = V.T @ K @ L @ K @ V
    w = np.sqrt(eigenvalues) * np.linalg.solve(M, V.T @ K @ L @ scores)
    return K @ V @ (w / np.sqrt(eigenvalues))


def test_every_number_of_components_solves_equation_8(problem):
    X, features, graph = problem
    K, L = RBF(1.5)(X), dense_laplacian(graph.group)
    _, _, Z = principal_components(features, 60)
    path = component_path(Z, graph)
    predictions = path.predictions(Z)
    for p in range(1, 61):
        expected = equation_8(K, L, graph.scores, p)
        np.testing.assert_allclose(predictions[:, p - 1], expected, atol=1e-8)
        np.testing.assert_allclose(Z @ path.weights(p), expected, atol=1e-8)


def test_truncation_is_the_printed_shortcut(problem):
    _, features, graph = problem
    Z = principal_components(features, 30)[2]
    M, response = graph.normal_equations(Z)
    eigenvalues, axes = np.linalg.eigh(M)
    path = component_path(Z, graph, "truncate")
    for p in (1, 5, 29):
        kept = axes[:, -p:]
        expected = kept @ ((kept.T @ response) / eigenvalues[-p:])
        np.testing.assert_allclose(path.weights(p), expected, atol=1e-9)
    whole = component_path(Z, graph).weights(30)
    np.testing.assert_allclose(path.weights(30), whole, atol=1e-7)  # all of them: the same model


def test_components_are_centred_uncorrelated_and_sorted(problem):
    _, features, _ = problem
    mean, axes, Z = principal_components(features, 20)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    variance = (Z**2).sum(axis=0)
    np.testing.assert_allclose(Z.T @ Z, np.diag(variance), atol=1e-10)
    assert np.all(np.diff(variance) < 0)
    np.testing.assert_allclose((features - mean) @ axes, Z, atol=1e-12)


def test_a_component_constant_within_groups_is_skipped(rng):
    graph = Groups(np.repeat(np.arange(6), 5), rng.standard_normal(30))
    constant = np.repeat(rng.standard_normal(6), 5)
    Z = rng.standard_normal((30, 4))
    with_constant = np.insert(Z, 2, constant, axis=1)
    path, plain = component_path(with_constant, graph), component_path(Z, graph)
    np.testing.assert_allclose(path.weights(5)[[0, 1, 3, 4]], plain.weights(4), atol=1e-12)
    assert path.weights(5)[2] == 0.0
    np.testing.assert_array_equal(path.weights(3), np.append(path.weights(2)[:2], [0, 0, 0]))


def test_more_components_than_comparisons_can_tell_apart(rng):
    graph = Groups(np.repeat(np.arange(10), 2), rng.standard_normal(20))  # rank 10
    Z = rng.standard_normal((20, 18))
    fitted = graph.centre(Z @ component_path(Z, graph).weights(18)[:, None])
    np.testing.assert_allclose(fitted[:, 0], graph.centre(graph.scores[:, None])[:, 0], atol=1e-8)


@given(st.lists(st.booleans(), min_size=2, max_size=110), st.integers(0, 2**32 - 1))
def test_nested_cholesky_skips_what_earlier_columns_explain(fresh, seed):
    rng = np.random.default_rng(seed)
    columns = [rng.standard_normal(130)]
    for new in fresh:
        columns.append(rng.standard_normal(130) if new else 2.0 * columns[-1])
    A = np.column_stack(columns)
    C, skipped = nested_cholesky(A.T @ A)
    assert skipped.tolist() == [k + 1 for k, new in enumerate(fresh) if not new]
    assert not np.triu(C, 1).any()
    np.testing.assert_allclose(C @ C.T, A.T @ A, rtol=1e-7, atol=1e-6)


def test_held_out_error_is_a_refit_for_every_fold(problem):
    _, features, graph = problem
    Z = principal_components(features, 12)[2]
    wrong, total = np.zeros(12), 0.0
    for rows in graph.blocks(5):
        kept = np.setdiff1d(np.arange(90), rows)
        train, pairs = graph.take(kept), graph.take(rows).ordered_pairs()
        for p in range(1, 13):
            M, response = train.normal_equations(Z[kept, :p])
            predicted = Z[rows, :p] @ np.linalg.solve(M, response)
            wrong[p - 1] += disagreement(predicted[:, None], pairs)[0]
        total += pairs.weight.sum()
    np.testing.assert_allclose(held_out_error(Z, graph), wrong / total)


# RankSVM


@pytest.fixture
def graded(rng):
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
def test_weights_are_those_of_linear_svc(graded, C, container):
    X, pairs, _ = graded
    weights, _ = fit_rank_svm(container(X), pairs, C, tol=1e-9)
    np.testing.assert_allclose(weights, reference(X, pairs, C), atol=1e-5)


def test_a_weight_of_two_is_the_pair_twice(graded):
    X, pairs, _ = graded
    twice = pairs._replace(weight=2.0 * pairs.weight)
    repeated = type(pairs)(*(np.tile(column, 2) for column in pairs))
    one, other = fit_rank_svm(X, twice, 0.1, 1e-9), fit_rank_svm(X, repeated, 0.1, 1e-9)
    np.testing.assert_allclose(one[0], other[0], atol=1e-8)


def test_pairs_weigh_the_same_or_their_counts_and_a_sampled_group_all_its_pairs(graded):
    _, pairs, graph = graded
    assert pairs.weight.sum() == pytest.approx(graph.n_rows)
    assert np.ptp(pairs.weight) == pytest.approx(0.0)
    graph = Groups(np.repeat([0, 1], [1000, 5]), np.arange(1005.0))
    pairs = training_pairs(graph, 20_000)
    assert 15_000 <= len(pairs.better) <= 20_000
    share = pairs.weight[graph.group[pairs.better] == 1].sum() / pairs.weight.sum()
    assert share == pytest.approx(10 / (10 + 1000 * 999 / 2))
    graph = Pairs(np.array([0, 1]), np.array([1, 2]), np.array([3.0, 1.0]), np.ones(2), 3)
    assert training_pairs(graph, 1).weight.tolist() == [3.0, 1.0]


def test_stopping_early_warns(graded):
    X, pairs, _ = graded
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        _, n_iter = fit_rank_svm(X, pairs, 10.0, tol=1e-12, max_iter=1)
    assert n_iter == 1
