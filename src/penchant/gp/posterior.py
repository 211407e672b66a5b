"""The posterior over utilities: an immutable joint Gaussian over a set of items.

f = Φ w + rest, where w has the posterior N(coefficients, (lower lowerᵀ)⁻¹) and `rest` is what the
pivots leave unexplained of the prior (zero for items whose comparisons were used exactly).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from penchant.gp.items.edges import ItemDifferences
from penchant.gp.items.prior import Basis
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import cholesky, gram, multiply, solve_lower
from penchant.numerics.types import FloatArray, IntArray

JOINT_REST_LIMIT = 4_000
"""Up to this many items the unexplained prior is sampled jointly, beyond it independently."""


class Normal(NamedTuple):
    """Means and variances, one per entry."""

    mean: FloatArray
    var: FloatArray


@dataclass(frozen=True, eq=False)
class Posterior:
    """Utilities of the `target` items given the comparisons.

    universe: the items that the model was fitted on; target: the items looked at, by default
    the same. All index arguments are positions in `target`.
    """

    kernel: Kernel
    likelihood: Likelihood
    universe: Inputs
    target: Inputs
    basis: Basis
    coefficients: FloatArray
    lower: FloatArray

    def at(self, target: Inputs) -> "Posterior":
        """The same posterior, looked at on other items (new ones, or a subset)."""
        return replace(self, target=target)

    def __len__(self) -> int:
        return len(self.target)

    @cached_property
    def features(self) -> FloatArray:
        """Φ of the target items, (n, r)."""
        return self.basis.features(self.kernel, self.universe, self.target)

    @cached_property
    def half(self) -> FloatArray:
        """(r, n) with halfᵀ half = Φ B⁻¹ Φᵀ, the explained part of the covariance."""
        return solve_lower(self.lower, self.features.T)

    @cached_property
    def mean(self) -> FloatArray:
        """(n,) posterior mean utilities."""
        return multiply(self.features, self.coefficients)

    @cached_property
    def var(self) -> FloatArray:
        """(n,) posterior variances of the utilities."""
        explained: FloatArray = np.einsum("ij,ij->j", self.half, self.half)
        return explained + self._rest

    @cached_property
    def contrast_var(self) -> FloatArray:
        """(n,) variances of the utilities relative to the average item.

        Comparisons say nothing about a shift of all utilities at once: this leaves it out. What
        the pivots leave unexplained is taken as independent between items.
        """
        n = len(self)
        contrast = self.half - self.half.mean(axis=1, keepdims=True)
        variance: FloatArray = np.einsum("ij,ij->j", contrast, contrast)
        variance += self._rest * (1.0 - 2.0 / n) + self._rest.sum() / n**2
        return variance

    @cached_property
    def _rest(self) -> FloatArray:
        prior = self.kernel.diag(self.target)
        rest = prior - np.einsum("ij,ij->i", self.features, self.features)
        # differences of the size of rounding are not variance
        return np.where(rest > 1e-9 * prior, rest, 0.0)

    def _rest_between(self, first: IntArray, second: IntArray) -> FloatArray:
        """Unexplained prior covariance of each pair, zero where either item is explained."""
        between = np.zeros(len(first))
        open_pairs = np.flatnonzero((self._rest[first] > 0) & (self._rest[second] > 0))
        if len(open_pairs):
            a, b = first[open_pairs], second[open_pairs]
            explained = np.einsum("ij,ij->i", self.features[a], self.features[b])
            prior = self.kernel.paired(self.target.take(a), self.target.take(b))
            between[open_pairs] = prior - explained
        return between

    def difference(self, first: IntArray, second: IntArray) -> Normal:
        """Marginals of f[first] − f[second], each (k,)."""
        explained = ItemDifferences(first, second, len(self)).variances(self.half)
        rest = self._rest[first] + self._rest[second] - 2.0 * self._rest_between(first, second)
        return Normal(self.mean[first] - self.mean[second], explained + np.maximum(rest, 0.0))

    def prob(self, first: IntArray, second: IntArray) -> FloatArray:
        """P(first preferred to second), (k,)."""
        return self.likelihood.prob(*self.difference(first, second))

    def covariance(self, index: IntArray | None = None) -> FloatArray:
        """(k, k) posterior covariance of some items, or of all."""
        rows = np.arange(len(self)) if index is None else index
        half = self.half[:, rows]
        explained = gram(np.asfortranarray(half))
        if not self._rest[rows].any():
            return explained
        features = self.features[rows]
        return explained + self.kernel(self.target.take(rows)) - gram(features.T)

    def sample(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """(n_samples, n) joint draws of the utilities."""
        noise = rng.standard_normal((len(self.coefficients), n_samples))
        weights = self.coefficients[:, None] + solve_lower(self.lower, noise, transposed=True)
        draws = multiply(self.features, np.asfortranarray(weights))
        unexplained = np.flatnonzero(self._rest)
        if len(unexplained):
            draws[unexplained] += self._sample_rest(unexplained, n_samples, rng)
        return draws.T

    def _sample_rest(self, items: IntArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
        noise = rng.standard_normal((len(items), n_samples))
        if len(items) > JOINT_REST_LIMIT:
            return np.sqrt(self._rest[items])[:, None] * noise
        features = self.features[items]
        rest = self.kernel(self.target.take(items)) - gram(features.T)
        lower: FloatArray = cholesky(rest, max_jitter=1e-3).lower
        return lower @ noise
