"""A Gaussian over utilities written out in full, which an answer changes by rank one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penchant.ask.belief import Belief
from penchant.gp import Normal
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood, Outcomes
from penchant.numerics.linalg import gram, multiply, pivoted_cholesky
from penchant.numerics.types import FloatArray, IntArray

WIN, TIE, LOSS = 1, 0, -1


@dataclass(frozen=True, eq=False)
class Joint:
    """Mean (n,) and covariance (n, n) of n utilities: fast for all pairs at once.

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
        """The same belief, written out; one that is so already passes through."""
        if isinstance(belief, cls):
            return belief
        return cls(belief.mean, belief.covariance(), belief.likelihood)

    @classmethod
    def prior(cls, kernel: Kernel, items: Inputs, likelihood: Likelihood) -> "Joint":
        """What is believed before the first answer."""
        return cls(np.zeros(len(items)), kernel(items), likelihood)

    @classmethod
    def mixture(cls, beliefs: Sequence[Belief], weights: FloatArray) -> "Joint":
        """The Gaussian with the moments of a mixture, such as of a user's possible communities.

        weights: (k,) summing to one.
        """
        means = np.array([belief.mean for belief in beliefs])
        mean = weights @ means
        apart = np.sqrt(weights)[:, None] * (means - mean)
        cov = gram(apart)
        for weight, belief in zip(weights, beliefs, strict=True):
            cov += weight * belief.covariance()
        return cls(mean, cov, beliefs[0].likelihood)

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def var(self) -> FloatArray:
        """(n,) variances."""
        return np.diagonal(self.cov)

    @property
    def contrast_var(self) -> FloatArray:
        """(n,) variances of the utilities relative to the average item."""
        sums, n = self.cov.sum(axis=0), len(self)
        contrast: FloatArray = self.var - 2.0 * sums / n + sums.sum() / n**2
        return np.maximum(contrast, 0.0)

    def difference(self, first: IntArray, second: IntArray) -> Normal:
        """Marginals of f[first] − f[second], each (k,)."""
        # the covariance is symmetric: either memory order serves, and a flat take is faster
        flat = (self.cov if self.cov.flags.c_contiguous else self.cov.T).ravel()
        var = self.var
        between = flat.take(first * len(self) + second)
        spread = var.take(first) + var.take(second) - 2.0 * between
        return Normal(self.mean.take(first) - self.mean.take(second), np.maximum(spread, 0.0))

    def covariance(self, index: IntArray | None = None) -> FloatArray:
        """(k, k) covariance of some items, or of all."""
        return self.cov if index is None else self.cov[np.ix_(index, index)]

    def sample(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """(n_samples, n) joint draws."""
        root = pivoted_cholesky(self.cov).in_given_order()
        noise = rng.standard_normal((root.shape[1], n_samples))
        return (self.mean[:, None] + multiply(root, noise)).T

    def answered(self, first: int, second: int, answer: int) -> "Joint":
        """The belief after an answer (WIN: the first was preferred; TIE; LOSS), by its moments.

        The covariance loses d2 s sᵀ and the mean gains d1 s, where s is the covariance of all
        utilities with the difference: O(n²), exact for one answer.
        """
        side = LOSS if answer == LOSS else WIN
        s = self._with_difference(first, second)
        mean = np.array([side * (self.mean[first] - self.mean[second])])
        var = np.array([s[first] - s[second]])
        outcomes = _outcomes(answer == TIE)
        _, d1, d2 = self.likelihood.tilted(mean, var, outcomes)
        return Joint(
            self.mean + side * d1[0] * s, self.cov - np.outer(d2[0] * s, s), self.likelihood
        )

    def expecting(self, first: int, second: int) -> "Joint":
        """The belief to be expected once the question is answered, before it is.

        The mean of the posterior means is the mean now; the covariance loses E[d2] s sᵀ. This
        is how a batch avoids asking twice about the same thing.
        """
        s = self._with_difference(first, second)
        mean = np.array([self.mean[first] - self.mean[second]])
        var = np.array([s[first] - s[second]])
        likelihood = self.likelihood
        shrink = likelihood.prob(mean, var) * likelihood.tilted(mean, var, _outcomes()).d2
        shrink += likelihood.prob(-mean, var) * likelihood.tilted(-mean, var, _outcomes()).d2
        if likelihood.n_answers == 3:
            shrink += (
                likelihood.prob_tie(mean, var)
                * likelihood.tilted(mean, var, _outcomes(tie=True)).d2
            )
        return Joint(self.mean, self.cov - np.outer(shrink[0] * s, s), likelihood)

    def _with_difference(self, first: int, second: int) -> FloatArray:
        return self.cov[:, first] - self.cov[:, second]


def _outcomes(tie: bool = False) -> Outcomes:
    """One imagined answer; the curvature of a margin's likelihood is the same for every margin."""
    return Outcomes(np.array([True]) if tie else None, np.zeros(1))
