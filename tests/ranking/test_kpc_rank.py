"""KPCRank: every number of components against the printed Eq. 8."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penchant.kernels import RBF
from penchant.ranking import (
    Groups,
    component_path,
    disagreement,
    held_out_error,
    kernel_features,
    nested_cholesky,
    principal_components,
)


@pytest.fixture
def problem(rng):
    X = rng.standard_normal((90, 4))
    graph = Groups(rng.integers(8, size=90), np.sin(X[:, 0]) + 0.1 * rng.standard_normal(90))
    return X, graph


def dense_laplacian(group):
    adjacency = (group[:, None] == group).astype(float)
    return np.diag(adjacency.sum(axis=1)) - adjacency


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
    X, graph = problem
    K, L = RBF(1.5)(X), dense_laplacian(graph.group)
    _, features = kernel_features(RBF(1.5), X, X)
    _, _, Z = principal_components(features, 60)
    path = component_path(Z, graph)
    predictions = path.predictions(Z)
    for p in range(1, 61):
        expected = equation_8(K, L, graph.scores, p)
        np.testing.assert_allclose(predictions[:, p - 1], expected, atol=1e-8)
        np.testing.assert_allclose(Z @ path.weights(p), expected, atol=1e-8)


def test_truncation_is_the_printed_shortcut(problem):
    X, graph = problem
    _, features = kernel_features(RBF(1.5), X, X)
    Z = principal_components(features, 30).scores
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
    X, _ = problem
    _, features = kernel_features(RBF(1.5), X, X)
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


@given(st.integers(1, 120), st.integers(0, 2**32 - 1))
def test_nested_cholesky_is_cholesky(p, seed):
    A = np.random.default_rng(seed).standard_normal((p, p + 20))
    C, skipped = nested_cholesky(A @ A.T)
    assert len(skipped) == 0
    np.testing.assert_allclose(C, np.linalg.cholesky(A @ A.T), rtol=1e-7, atol=1e-7)


@given(st.lists(st.booleans(), min_size=2, max_size=110), st.integers(0, 2**32 - 1))
def test_nested_cholesky_skips_what_earlier_columns_explain(fresh, seed):
    rng = np.random.default_rng(seed)
    columns = [rng.standard_normal(130)]
    for new in fresh:
        columns.append(rng.standard_normal(130) if new else 2.0 * columns[-1])
    A = np.column_stack(columns)
    C, skipped = nested_cholesky(A.T @ A)
    assert skipped.tolist() == [k + 1 for k, new in enumerate(fresh) if not new]
    np.testing.assert_allclose(C @ C.T, A.T @ A, rtol=1e-7, atol=1e-6)


def test_held_out_error_is_a_refit_for_every_fold(problem):
    X, graph = problem
    _, features = kernel_features(RBF(1.5), X, X)
    Z = principal_components(features, 12).scores
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
