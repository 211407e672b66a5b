"""People at large: their mean utility Σ s_c f_c, of communities' tastes f_c and shares s_c.

Both are uncertain, the shares because the people who answered are a sample of U: with m_c the mean
tastes and m = Σ s_c m_c,

    Cov = Σ s_c² Cov(f_c) + Σ s_c (m_c − m)(m_c − m)ᵀ / (U + 1).

With personal taste what people share has one posterior, which knows how many they are.
"""

from typing import NamedTuple

import numpy as np

from penchant.gp import Normal, Posterior, UserPosteriors
from penchant.kernels import Inputs
from penchant.numerics.linalg import gram
from penchant.numerics.types import FloatArray


class Population(NamedTuple):
    """The mean over people of n utilities.

    parts, weights: posteriors whose weighted sum it is, (k,). apart: (C, n) √s_c (m_c − m), of
    which the squares add up to the variance between communities. n_people: U.
    """

    parts: tuple[Posterior, ...]
    weights: FloatArray
    apart: FloatArray
    n_people: float

    @classmethod
    def of_communities(cls, posteriors: tuple[Posterior, ...], sizes: FloatArray) -> "Population":
        """Everybody has the taste of their community."""
        shares, tastes = sizes / sizes.sum(), np.stack([p.mean for p in posteriors])
        return cls(posteriors, shares, _apart(shares, tastes), float(sizes.sum()))

    @classmethod
    def of_users(cls, posterior: UserPosteriors, sizes: FloatArray) -> "Population":
        """Everybody deviates from the taste of their community; memberships are their features."""
        kernel, members = posterior.user_kernel, Inputs(np.eye(len(sizes)))
        phi = posterior.user_basis.features(kernel, posterior.users, members)
        apart = _apart(sizes / sizes.sum(), posterior.shared_utilities(phi))
        return cls((posterior.population(),), np.ones(1), apart, float(sizes.sum()))

    @property
    def mean(self) -> FloatArray:
        """(n,)."""
        return np.asarray(self.weights @ np.stack([part.mean for part in self.parts]))

    def relative_to(self, others: "Population") -> Normal:
        """Means and variances (n,), less the average of other items."""
        each = [
            part.relative_to(known) for part, known in zip(self.parts, others.parts, strict=True)
        ]
        mean, var = np.stack([part.mean for part in each]), np.stack([part.var for part in each])
        apart = self.apart - others.apart.mean(axis=1, keepdims=True)
        between = np.sum(apart**2, axis=0) / (self.n_people + 1.0)
        return Normal(self.weights @ mean, self.weights**2 @ var + between)

    @property
    def covariance(self) -> FloatArray:
        """(n, n)."""
        total = gram(self.apart) / (self.n_people + 1.0)
        for weight, part in zip(self.weights, self.parts, strict=True):
            total += weight**2 * part.covariance()
        return total

    @property
    def spread(self) -> FloatArray:
        """(n,) standard deviation between communities, relative to the average item."""
        spread: FloatArray = np.linalg.norm(
            self.apart - self.apart.mean(axis=1, keepdims=True), axis=0
        )
        return spread


def _apart(shares: FloatArray, tastes: FloatArray) -> FloatArray:
    return np.sqrt(shares)[:, None] * (tastes - shares @ tastes)
