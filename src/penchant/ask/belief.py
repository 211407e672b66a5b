"""What asking needs to know about a posterior, whichever model it comes from."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from penchant.gp import Normal
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray, IntArray


class Belief(Protocol):
    """A joint Gaussian over n utilities, and how answers depend on them.

    `Posterior` is one, and so is one user's posterior of a model of many users.

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
    """A belief about some of its items only, by their positions in `items` (k,).

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
        """That of the whole."""
        return self.whole.likelihood

    @property
    def mean(self) -> FloatArray:
        """(k,) means."""
        return self.whole.mean[self.items]

    @property
    def var(self) -> FloatArray:
        """(k,) variances."""
        return self.whole.var[self.items]

    @property
    def contrast_var(self) -> FloatArray:
        """(k,) variances relative to the average of the part's items."""
        cov = self.covariance()
        sums, k = cov.sum(axis=0), len(self)
        contrast: FloatArray = np.diagonal(cov) - 2.0 * sums / k + sums.sum() / k**2
        return np.maximum(contrast, 0.0)

    def __len__(self) -> int:
        return len(self.items)

    def difference(self, first: IntArray, second: IntArray) -> Normal:
        """Marginals of f[first] − f[second]."""
        return self.whole.difference(self.items[first], self.items[second])

    def covariance(self, index: IntArray | None = None) -> FloatArray:
        """Covariance of some of the part's items, or of all."""
        return self.whole.covariance(self.items if index is None else self.items[index])

    def sample(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """(n_samples, k) joint draws."""
        return self.whole.sample(n_samples, rng)[:, self.items]
