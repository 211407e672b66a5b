"""The posterior over utilities: an immutable joint Gaussian over a set of items.

f = Φ w + rest, where w has the posterior N(coefficients, (lower lowerᵀ)⁻¹) and `rest` is what the
pivots leave unexplained of the prior (zero for items whose comparisons were used exactly). Where
answers of one person go together, the weights' covariance is wider: lower⁻ᵀ (I + G Gᵀ) lower⁻¹ with
G the `widening`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics import linalg
from penchant.numerics.dispatch import like, on_cpu
from penchant.numerics.types import FloatArray, IntArray

JOINT_REST_LIMIT = 4_000
"""Up to this many items the unexplained prior is sampled jointly, beyond it independently."""
REST_BLOCK = 256
"""Rows of the unexplained prior that are added up at a time."""
SAMPLE_BLOCK = 2**24
"""Most numbers drawn at once, so that memory does not grow with items × draws."""


class Normal(NamedTuple):
    """Means and variances, one per entry."""

    mean: FloatArray
    var: FloatArray


class Recalibration(NamedTuple):
    """Predictions of answers as an average over slopes s: differences of mean s m, variance √s v.

    A slope above one predicts more surely. The variance follows so that no slope makes a
    prediction sure where little is known. weights: of the slopes; they add up to one.
    """

    slopes: tuple[float, ...] = (1.0,)
    weights: tuple[float, ...] = (1.0,)

    @property
    def slope(self) -> float:
        """The mean slope, in logarithms.

        >>> Recalibration((1.0, 4.0), (0.5, 0.5)).slope
        2.0
        """
        return float(np.exp(np.dot(self.weights, np.log(self.slopes))))

    def differences(
        self, plain: Normal, where: FloatArray | bool = True
    ) -> Iterator[tuple[float, Normal]]:
        """Each weight with the differences at its slope; at slope one elsewhere."""
        for slope, weight in zip(self.slopes, self.weights, strict=True):
            s = np.where(where, slope, 1.0)
            yield weight, Normal(s * plain.mean, np.sqrt(s) * plain.var)


AS_IT_IS = Recalibration()
"""Predictions of the posterior itself."""


@dataclass(frozen=True)
class Basis:
    """The pivots through which the prior is seen: f(x) = φ(x)ᵀ w + rest, w ~ N(0, I).

    first: (r,) universe positions of the pivot items; second: None in item space, the losers
    of the pivot comparisons in comparison space. lower: (r, r) factor of the pivots' prior.
    rotation: (r, k) orthonormal directions, where φ is seen along these alone.
    """

    first: IntArray
    second: IntArray | None
    lower: FloatArray
    rotation: FloatArray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return on_cpu(vars(self))

    def features(self, kernel: Kernel, universe: Inputs, target: Inputs) -> FloatArray:
        """φ of the target items, (len(target), r), or along the rotation (len(target), k)."""
        features = self._of_pivots(kernel, universe, target)
        return features if self.rotation is None else linalg.multiply(features, self.rotation)

    def _of_pivots(self, kernel: Kernel, universe: Inputs, target: Inputs) -> FloatArray:
        """The pivots have their rows of the factor, others need a solve."""
        if self.second is not None or target.index is None or universe.index is None:
            return self._solved(kernel, universe, target)
        row = np.full(len(universe), -1)
        row[self.first] = np.arange(len(self.first))
        row = row[target.index]
        features: FloatArray = self.lower[row]
        others = np.flatnonzero(row < 0)
        if len(others):
            features[others] = self._solved(kernel, universe, target.take(others))
        return features

    def _solved(self, kernel: Kernel, universe: Inputs, target: Inputs) -> FloatArray:
        cross = kernel(target, universe.take(self.first))
        if self.second is not None:
            cross -= kernel(target, universe.take(self.second))
        return linalg.solve_lower(self.lower, cross.T, overwrite=True).T


@dataclass(frozen=True)
class PartBasis(Basis):
    """The same pivots, for a kernel that is a part of their prior: each item needs a solve."""

    def features(self, kernel: Kernel, universe: Inputs, target: Inputs) -> FloatArray:
        """φ of the target items, (len(target), r)."""
        return self._solved(kernel, universe, target)


@dataclass(frozen=True, eq=False)
class EffectPosterior:
    """Effects β, and the weights w of the utilities when β is known.

    In units of the prior, b = β/sd, the precision of (b, w) has the Cholesky factor
    [[lower, 0], [coupling, the utilities' own lower]]: the marginal of w is a `Posterior` as ever.
    """

    names: tuple[str, ...]
    sd: FloatArray
    scaled_mean: FloatArray
    lower: FloatArray
    coupling: FloatArray

    @property
    def mean(self) -> FloatArray:
        """(q,) β̂."""
        return self.sd * self.scaled_mean

    def coupled(self, own_lower: FloatArray) -> FloatArray:
        """(r, q) C, by how much w, in units of its own precision, follows b; always NumPy's."""
        return linalg.to_numpy(linalg.solve_lower(own_lower, self.coupling))

    def covariance(self, own_lower: FloatArray) -> FloatArray:
        """(q, q) of β: sd (lower⁻ᵀ (I + CᵀC) lower⁻¹) sd, C the coupling."""
        half = linalg.solve_lower(self.lower, np.diag(self.sd))
        through = linalg.multiply(self.coupled(own_lower), half)
        return linalg.gram(half) + linalg.gram(through)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Utilities of the `target` items given the comparisons.

    universe: the items that the model was fitted on; target: the items looked at, by default
    the same. All index arguments are positions in `target`. widening: (r, q) G, or None for
    nothing: see `items.cluster_robust`. effects: of order and covariates, or None. calibration: of
    predictions of answers.
    """

    kernel: Kernel
    likelihood: Likelihood
    universe: Inputs
    target: Inputs
    basis: Basis
    coefficients: FloatArray
    lower: FloatArray
    widening: FloatArray | None = None
    effects: EffectPosterior | None = None
    calibration: Recalibration = AS_IT_IS

    def at(self, target: Inputs | None) -> "Posterior":
        """The same posterior, looked at on other items (new ones, or a subset), if any."""
        return self if target is None else replace(self, target=target.on(self.universe.device))

    def of_source(self, part: Kernel) -> "Posterior":
        """The posterior of one summand f_s of f = Σ f_s, whose prior covariance K_s is `part`.

        Answers tell about w alone, and Cov(f_s, w) = Φ_s = K_s(·, pivots) lower⁻ᵀ. So f_s is
        Φ_s w plus a rest of covariance K_s − Φ_s Φ_sᵀ, of which no answer tells (000 Eq. 3: the
        posterior of f and of g, by way of that of their sum).
        """
        pivots = PartBasis(self.basis.first, self.basis.second, self.basis.lower)
        return replace(self, kernel=part, basis=pivots)

    def __len__(self) -> int:
        return len(self.target)

    def __getstate__(self) -> dict[str, Any]:
        return on_cpu(vars(self))

    @cached_property
    def features(self) -> FloatArray:
        """Φ of the target items, (n, r)."""
        return self.basis.features(self.kernel, self.universe, self.target)

    @cached_property
    def half(self) -> FloatArray:
        """(r + q, n) with halfᵀ half = Φ Cov(w) Φᵀ, the explained part of the covariance."""
        own = linalg.solve_lower(self.lower, self.features.T)
        if self.widening is None:
            return own
        return linalg.stack_rows(own, linalg.multiply(self.widening.T, own))

    @property
    def widened(self) -> float:
        """How many times as wide intervals are as those of independent answers, on the whole."""
        if self.widening is None:
            return 1.0
        plain = replace(self, widening=None)
        return float(np.sqrt(self.contrast_var.sum() / plain.contrast_var.sum()))

    @cached_property
    def mean(self) -> FloatArray:
        """(n,) posterior mean utilities."""
        return _locked(linalg.multiply(self.features, self.coefficients))

    @cached_property
    def var(self) -> FloatArray:
        """(n,) posterior variances of the utilities."""
        variances: FloatArray = linalg.column_squares(self.half) + self._rest
        return _locked(variances)

    @cached_property
    def contrast_var(self) -> FloatArray:
        """(n,) variances of the utilities relative to the average item."""
        return self.relative_to(self).var

    def relative_to(self, others: "Posterior") -> Normal:
        """Means and variances (n,) of the utilities less the average one of other items.

        Comparisons say nothing about a shift of all utilities at once: this leaves it out. Of
        what the pivots leave unexplained, C_ii − 2 (C1)_i/n + 1ᵀC1/n² needs row sums alone.
        """
        n = len(others)
        contrast = self.half - others.half.mean(axis=1, keepdims=True)
        variance: FloatArray = linalg.column_squares(contrast)
        within = others._rest_sums(others)
        across = within if self is others else self._rest_sums(others)
        variance += self._rest - 2.0 * across / n + within.sum() / n**2
        return Normal(self.mean - others.mean.mean(), np.maximum(variance, 0.0))

    def _rest_sums(self, others: "Posterior") -> FloatArray:
        """(n,) each item's unexplained prior covariance with all others, added up."""
        sums = np.zeros(len(self))
        mine, theirs = np.flatnonzero(self._rest), np.flatnonzero(others._rest)
        if len(mine) and len(theirs):
            items = others.target.take(theirs)
            total = linalg.to_numpy(others.features[theirs].sum(axis=0))
            for start in range(0, len(mine), REST_BLOCK):
                rows = mine[start : start + REST_BLOCK]
                prior = linalg.to_numpy(self.kernel(self.target.take(rows), items).sum(axis=1))
                sums[rows] = prior - linalg.multiply(self.features[rows], total)
        return sums

    @cached_property
    def _rest(self) -> FloatArray:
        prior = self.kernel.diag(self.target)
        rest = prior - linalg.row_squares(self.features)
        # differences of the size of rounding are not variance
        return np.where(rest > 1e-9 * prior, rest, 0.0)

    def _rest_between(self, first: IntArray, second: IntArray) -> FloatArray:
        """Unexplained prior covariance of each pair, zero where either item is explained."""
        between = np.zeros(len(first))
        open_pairs = np.flatnonzero((self._rest[first] > 0) & (self._rest[second] > 0))
        if len(open_pairs):
            a, b = first[open_pairs], second[open_pairs]
            explained = linalg.row_products(self.features[a], self.features[b])
            prior = self.kernel.paired(self.target.take(a), self.target.take(b))
            between[open_pairs] = prior - explained
        return between

    def difference(self, first: IntArray, second: IntArray, z: FloatArray | None = None) -> Normal:
        """Marginals of f[first] − f[second], each (k,); z: (q, k), of zᵀβ more."""
        explained = linalg.edge_variances(self.half, linalg.EdgeIndex(first, second))
        rest = self._rest[first] + self._rest[second] - 2.0 * self._rest_between(first, second)
        # of twins nothing but rounding is left, which must not be negative
        var = np.maximum(explained, 0.0) + np.maximum(rest, 0.0)
        mean, effects = self.mean[first] - self.mean[second], self.effects
        if z is None or effects is None:
            return Normal(mean, var)
        # with h = L⁻¹(φ_first − φ_second), C the coupling and u = lower⁻¹(sd z):
        # |u|² + |h − C u|² for |h|²
        u = linalg.solve_lower(effects.lower, effects.sd[:, None] * z)
        C = effects.coupled(self.lower)
        if self.widening is not None:  # as in `half`
            C = np.concatenate([C, linalg.to_numpy(linalg.multiply(self.widening.T, C))])
        meeting = linalg.to_numpy(linalg.multiply(self.half.T, C))
        together = np.einsum("qk,kq->k", u, meeting[first] - meeting[second])
        inflated = u + linalg.multiply(linalg.gram(C), u)
        var = var + np.einsum("qk,qk->k", u, inflated) - 2.0 * together
        return Normal(mean + linalg.multiply(z.T, effects.mean), np.maximum(var, 0.0))

    def combined(self, items: IntArray, rows: Any) -> Normal:
        """Marginals (k,) of weighted sums of these items' utilities, rows: sparse (k, p)."""
        cov = self.covariance(items)
        var = np.asarray(rows.multiply(rows @ cov).sum(axis=1), dtype=np.float64).ravel()
        return Normal(rows @ self.mean[items], np.maximum(var, 0.0))

    def prob(self, first: IntArray, second: IntArray) -> FloatArray:
        """P(first preferred to second), (k,)."""
        return self.likelihood.prob(*self.difference(first, second))

    def covariance(self, index: IntArray | None = None) -> FloatArray:
        """(k, k) posterior covariance of some items, or of all."""
        rows = np.arange(len(self)) if index is None else index
        explained = linalg.gram(linalg.take_columns(self.half, rows))
        if not self._rest[rows].any():
            return linalg.to_numpy(explained)
        return linalg.to_numpy(explained + self._rest_covariance(rows))

    def _rest_covariance(self, items: IntArray) -> FloatArray:
        """(k, k) unexplained prior covariance of some items."""
        return self.kernel(self.target.take(items)) - linalg.gram(self.features[items].T)

    def sample(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """(n_samples, n) joint draws of the utilities."""
        return linalg.to_numpy(self.draws(n_samples, rng)).T

    def draws(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """(n, n_samples) of them, where the posterior lives."""
        noise = linalg.normal_like(self.lower, (len(self.coefficients), n_samples), rng)
        if self.widening is not None:
            widening = like(self.widening, self.lower)
            further = linalg.normal_like(self.lower, (widening.shape[1], n_samples), rng)
            noise += linalg.multiply(widening, further)
        if n_samples < len(self.coefficients):
            weights = linalg.solve_lower(self.lower, noise, transposed=True)
            draws = linalg.multiply(self.features, weights)
        else:  # the same numbers: with so many draws the factor of the covariance pays
            half = linalg.solve_lower(self.lower, self.features.T)
            draws = linalg.multiply(half.T, noise)
        draws += like(self.mean, self.lower)[:, None]
        unexplained = np.flatnonzero(self._rest)
        if len(unexplained):
            noise = linalg.normal_like(self.lower, (len(unexplained), n_samples), rng)
            if len(unexplained) > JOINT_REST_LIMIT:
                rest = like(np.sqrt(self._rest[unexplained])[:, None], self.lower) * noise
            else:
                covariance = like(self._rest_covariance(unexplained), self.lower)
                lower = linalg.cholesky(covariance, max_jitter=1e-3).lower
                rest = linalg.multiply(lower, noise)
            draws[unexplained] += rest
        return draws


class RankSummary(NamedTuple):
    """Per item, (n,): P(best), and the interval of ranks (1 = best) at the asked level."""

    prob_best: FloatArray
    rank_low: IntArray
    rank_high: IntArray


def summarize_ranks(
    posterior: Any, level: float, n_samples: int, rng: np.random.Generator
) -> RankSummary:
    """Rank the items in each of many joint draws, `posterior.sample`, of the utilities.

    Draws are taken in blocks; ranks are kept in 32 bits.
    """
    block, parts = max(1, SAMPLE_BLOCK // len(posterior)), []
    for start in range(0, n_samples, block):
        size = min(block, n_samples - start)
        is_ours = isinstance(posterior, Posterior)
        draws = posterior.draws(size, rng) if is_ours else posterior.sample(size, rng).T
        parts.append(linalg.ranks_in_columns(draws))
    tail = 0.5 * (1.0 - level)
    ends = np.quantile(np.arange(n_samples), [tail, 1.0 - tail], method="nearest").astype(np.intp)
    first, (low, high) = linalg.rank_statistics(parts, ends)
    return RankSummary(first / n_samples, low, high)


def _locked(kept: FloatArray) -> FloatArray:
    """Make a cached array read-only."""
    if isinstance(kept, np.ndarray):
        kept.flags.writeable = False
    return kept
