"""A belief: the joint Gaussian over utilities by which questions are chosen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from penchant.gp import Normal
from penchant.likelihoods import Likelihood, Outcomes
from penchant.numerics.linalg import gram, multiply, pivoted_cholesky
from penchant.numerics.types import FloatArray, IntArray

WIN, TIE, LOSS = 1, 0, -1


class Belief(Protocol):
    """A joint Gaussian over n utilities, and the likelihood of answers.

    `model.belief(user)` is one.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> belief = pc.PreferenceGP(optimize=None).fit(None, data).belief()
    >>> belief.mean.shape, belief.var.shape
    ((3,), (3,))
    """

    @property
    def likelihood(self) -> Likelihood:
        """How an answer depends on a difference of utilities."""

    @property
    def mean(self) -> FloatArray:
        """(n,) means."""

    @property
    def var(self) -> FloatArray:
        """(n,) variances."""

    @property
    def contrast_var(self) -> FloatArray:
        """(n,) variances of the utilities relative to the average item."""

    def __len__(self) -> int:
        """n."""

    def difference(self, first: IntArray, second: IntArray) -> Normal:
        """Marginals of f[first] − f[second]."""

    def covariance(self, index: IntArray | None = None) -> FloatArray:
        """(k, k) covariance of some items, or of all."""

    def sample(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """(n_samples, n) joint draws."""


@dataclass(frozen=True, eq=False)
class Part:
    """The marginal of a belief over some items, given by their positions (k,): a belief, too.

    >>> import numpy as np, penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> belief = pc.PreferenceGP(optimize=None).fit(None, data).belief()
    >>> Part(belief, np.array([0, 2])).mean.shape
    (2,)
    """

    whole: Belief
    items: IntArray

    @property
    def likelihood(self) -> Likelihood:
        return self.whole.likelihood

    @property
    def mean(self) -> FloatArray:
        return self.whole.mean[self.items]

    @property
    def var(self) -> FloatArray:
        return self.whole.var[self.items]

    @property
    def contrast_var(self) -> FloatArray:
        """(k,) variances relative to the average of the part's items."""
        return _contrast_var(self.covariance())

    def __len__(self) -> int:
        return len(self.items)

    def difference(self, first: IntArray, second: IntArray) -> Normal:
        return self.whole.difference(self.items[first], self.items[second])

    def covariance(self, index: IntArray | None = None) -> FloatArray:
        return self.whole.covariance(self.items if index is None else self.items[index])

    def sample(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        return self.whole.sample(n_samples, rng)[:, self.items]


@dataclass(frozen=True, eq=False)
class Joint:
    """A belief as arrays, mean (n,) and covariance (n, n): fast for all pairs at once.

    >>> import numpy as np
    >>> from penchant.likelihoods import Probit
    >>> belief = Joint(np.zeros(2), np.eye(2), Probit())
    >>> belief.answered(0, 1, WIN).mean.round(3)
    array([ 0.461, -0.461])
    """

    mean: FloatArray
    cov: FloatArray
    likelihood: Likelihood

    @classmethod
    def of(cls, belief: Belief) -> "Joint":
        """The belief with its covariance matrix; a `Joint` is returned unchanged."""
        if isinstance(belief, cls):
            return belief
        return cls(belief.mean, belief.covariance(), belief.likelihood)

    @classmethod
    def mixture(cls, beliefs: Sequence[Belief], weights: FloatArray) -> "Joint":
        """The Gaussian with the moments of a mixture, as over a user's possible communities.

        weights: (k,) summing to one.
        """
        means = np.array([belief.mean for belief in beliefs])
        mean = weights @ means
        cov = gram(np.sqrt(weights)[:, None] * (means - mean))
        for weight, belief in zip(weights, beliefs, strict=True):
            cov += weight * belief.covariance()
        return cls(mean, cov, beliefs[0].likelihood)

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def var(self) -> FloatArray:
        return np.diagonal(self.cov)

    @property
    def contrast_var(self) -> FloatArray:
        return _contrast_var(self.cov)

    def difference(self, first: IntArray, second: IntArray) -> Normal:
        # the covariance is symmetric: either memory order serves, and a flat take is faster
        flat = (self.cov if self.cov.flags.c_contiguous else self.cov.T).ravel()
        var = self.var
        between = flat.take(first * len(self) + second)
        spread = var.take(first) + var.take(second) - 2.0 * between
        return Normal(self.mean.take(first) - self.mean.take(second), np.maximum(spread, 0.0))

    def covariance(self, index: IntArray | None = None) -> FloatArray:
        return self.cov if index is None else self.cov[np.ix_(index, index)]

    def sample(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        root = pivoted_cholesky(self.cov).in_given_order()
        noise = rng.standard_normal((root.shape[1], n_samples))
        return (self.mean[:, None] + multiply(root, noise)).T

    def answered(self, first: int, second: int, answer: int) -> "Joint":
        """The belief after an answer (WIN: the first was preferred; TIE; LOSS), by moment matching.

        mean + d1 s and cov − d2 s sᵀ, where s is the covariance of all utilities with the
        difference: O(n²), exact for one answer.
        """
        side = LOSS if answer == LOSS else WIN
        s = self.cov[:, first] - self.cov[:, second]
        mean = np.array([side * (self.mean[first] - self.mean[second])])
        var = np.array([s[first] - s[second]])
        _, d1, d2 = self.likelihood.tilted(mean, var, _outcomes(answer == TIE))
        cov = self.cov - np.outer(d2[0] * s, s)
        return Joint(self.mean + side * d1[0] * s, cov, self.likelihood)

    def expecting(self, first: int | IntArray, second: int | IntArray) -> "Joint":
        """The expected belief after one or several open questions are answered.

        The expected posterior mean is the mean now. One answer reduces the covariance by
        E[d2] s sᵀ, as a Gaussian site of precision τ = E[d2] / (1 − v E[d2]) on a difference of
        variance v does. Several questions are several such sites, each with its present τ. With
        this a batch avoids asking twice about the same thing.
        """
        first, second = np.atleast_1d(first), np.atleast_1d(second)
        mean, var = self.difference(first, second)
        likelihood, n = self.likelihood, len(first)
        shrink = np.zeros(n)
        for side in (mean, -mean):
            shrink += likelihood.prob(side, var) * likelihood.tilted(side, var, _outcomes(n=n)).d2
        if likelihood.n_answers == 3:
            tie = _outcomes(tie=True, n=n)
            shrink += likelihood.prob_tie(mean, var) * likelihood.tilted(mean, var, tie).d2
        root = np.sqrt(shrink)
        scaled = root * (self.cov[:, first] - self.cov[:, second])
        # Σ − S (T⁻¹ + AΣAᵀ)⁻¹ Sᵀ with S = ΣAᵀ, both sides scaled by √E[d2]: the diagonal is one
        inner = root[:, None] * (scaled[first] - scaled[second])
        np.fill_diagonal(inner, 1.0)
        cov = self.cov - multiply(scaled, cho_solve(cho_factor(inner), scaled.T))
        return Joint(self.mean, cov, likelihood)


def _contrast_var(cov: FloatArray) -> FloatArray:
    """(n,) variances relative to the average item."""
    sums, n = cov.sum(axis=0), len(cov)
    contrast: FloatArray = np.diagonal(cov) - 2.0 * sums / n + sums.sum() / n**2
    return np.maximum(contrast, 0.0)


def _outcomes(tie: bool = False, n: int = 1) -> Outcomes:
    """Wins or ties, with margin 0: the curvature of a margin's likelihood does not depend on it."""
    return Outcomes(np.full(n, True) if tie else None, np.zeros(n))
