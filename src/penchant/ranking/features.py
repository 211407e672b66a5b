"""Kernels as features: Φ with K = ΦΦᵀ, exact through all rows or Nyström through landmarks.

Every ranker is linear in Φ, so one map serves them all, and its rank r is what they cost.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penchant.numerics.linalg import pivoted_cholesky, solve_lower
from penchant.numerics.types import FloatArray

KernelFunction = Callable[[Any, Any], FloatArray]
"""k(A, B): covariances (len(A), len(B)) of two sets of rows."""

RANK_TOLERANCE = 1e-12
"""Landmarks whose variance is explained up to this share by the others are redundant."""


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """φ(x) = C⁻¹ k(landmarks, x), with CCᵀ the kernel matrix of the landmarks.

    landmarks : (r, d) rows, dense or sparse. lower : (r, r), the factor C.
    """

    landmarks: Any
    lower: FloatArray

    def dual(self, weights: FloatArray) -> FloatArray:
        """Coefficients a (r,) of the same function as k(x, landmarks) @ a."""
        return solve_lower(self.lower, weights, transposed=True)


def kernel_features(
    kernel: KernelFunction, X: Any, candidates: Any
) -> tuple[FeatureMap, FloatArray]:
    """Features Φ (n, r) of the rows X, and the map that made them.

    With `candidates` the rows X themselves, ΦΦᵀ equals the kernel matrix up to rounding;
    with a subset of them it is the Nyström approximation, linear in n.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [1.0]])
    >>> _, features = kernel_features(lambda A, B: A @ B.T + 1.0, X, X)
    >>> (features @ features.T).round(6)
    array([[1., 1., 1.], [1., 2., 2.], [1., 2., 2.]])
    """
    factor = pivoted_cholesky(kernel(candidates, candidates), RANK_TOLERANCE)
    feature_map = FeatureMap(candidates[factor.pivots], factor.lower)
    if X is candidates:
        return feature_map, factor.in_given_order()
    return feature_map, solve_lower(factor.lower, kernel(feature_map.landmarks, X)).T
