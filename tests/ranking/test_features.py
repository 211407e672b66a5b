"""Kernel features: exact through all rows, Nyström through some."""

import numpy as np
import pytest

from penchant.kernels import RBF
from penchant.ranking import kernel_features


def test_exact_features_reproduce_the_kernel(rng):
    X = rng.standard_normal((40, 3))
    X[7] = X[3]
    kernel = RBF(1.5)
    feature_map, features = kernel_features(kernel, X, X)
    np.testing.assert_allclose(features @ features.T, kernel(X), atol=1e-10)
    assert features.shape[1] <= 39  # the duplicate row brings no feature of its own
    weights = rng.standard_normal(features.shape[1])
    predicted = kernel(X, feature_map.landmarks) @ feature_map.dual(weights)
    np.testing.assert_allclose(predicted, features @ weights, atol=1e-8)


def test_landmarks_give_the_nystrom_kernel(rng):
    X = rng.standard_normal((60, 4))
    landmarks = X[:12]
    kernel = RBF(2.0)
    feature_map, features = kernel_features(kernel, X, landmarks)
    cross = kernel(X, landmarks)
    expected = cross @ np.linalg.solve(kernel(landmarks), cross.T)
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-9)
    weights = rng.standard_normal(12)
    predicted = kernel(X, feature_map.landmarks) @ feature_map.dual(weights)
    np.testing.assert_allclose(predicted, features @ weights, atol=1e-9)


def test_a_smooth_kernel_has_few_features():
    X = np.linspace(0.0, 1.0, 300)[:, None]
    _, features = kernel_features(RBF(1.0), X, X)
    assert features.shape[1] < 15
    assert np.abs(features @ features.T - RBF(1.0)(X)).max() == pytest.approx(0.0, abs=1e-10)
