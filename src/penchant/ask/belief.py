"""What asking needs to know about a posterior, whichever model it comes from."""

from typing import Protocol

import numpy as np

from penchant.inference import Normal
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray, IntArray


class Belief(Protocol):
    """A joint Gaussian over n utilities, and how answers depend on them.

    `Posterior` is one, and so is one user's posterior of a model of many users.
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

    def __len__(self) -> int:
        """n."""

    def difference(self, first: IntArray, second: IntArray) -> Normal:
        """Marginals of f[first] − f[second]."""

    def covariance(self, index: IntArray | None = None) -> FloatArray:
        """(k, k) covariance of some items, or of all."""

    def sample(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """(n_samples, n) joint draws."""
