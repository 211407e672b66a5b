"""How far a bounded rank of the users' kernel can put results off.

The factor leaves out E = K_u − Φ_uΦ_uᵀ, of which the diagonal was given back to each user. With
λ ≥ the largest eigenvalue of E, both the right prior and the one used lie between Φ_uΦ_uᵀ and
Φ_uΦ_uᵀ + λ I, and so do their posteriors at the same sites. Let H be the difference of the
posteriors of those two: for any contrast a, |Δ var| ≤ aᵀHa and, by Cauchy and Schwarz with the
sites' shift b, |Δ mean| ≤ √(aᵀHa · bᵀHb).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from penchant.gp.users.arrow import ArrowState
from penchant.gp.users.pivots import UserFactor
from penchant.kernels import Inputs, Kernel
from penchant.numerics.linalg import gram
from penchant.numerics.types import FloatArray

STEEPEST = 0.4
"""The most that a probability rises with a difference, probit or logit."""
EXACT_USERS = 3_000
"""Up to this many users the largest eigenvalue is bounded by the rows of E, beyond by its trace."""


class RankError(NamedTuple):
    """Bounds over all answers given: of the variance and the mean of a difference, and of P."""

    var: float
    mean: float
    prob: float

    @property
    def word(self) -> str:
        """For a warning."""
        return (
            f"variances of differences may be off by up to {self.var:.3g}, their means by "
            f"{self.mean:.3g}, probabilities by {self.prob:.2g}"
        )


def largest_left(kernel: Kernel, users: Inputs, factor: UserFactor) -> float:
    """λ: no eigenvalue of what the factor leaves out is larger."""
    if factor.missed is None:
        return 0.0
    trace = float(factor.missed.sum())
    if len(users) > EXACT_USERS:
        return trace
    left = kernel(users) - gram(factor.rows.T)
    return min(trace, float(np.abs(left).sum(axis=1).max()))


def rank_error(state: ArrowState, largest: float) -> RankError:
    """Bounds at the sites of a state, `largest` being λ.

    With v the smaller variance, |Δ P| ≤ .4 |Δ mean| + ¼ |Δ var| / (1 + v), the most that
    Φ(m/√(1 + v)) changes with v being less than ¼ / (1 + v), and never more than 1.
    """
    prior = state.prior
    n_users = len(prior.user_factor)
    low, high = (
        replace(prior, missed=np.full(n_users, left)).refresh(state.weight, state.shift)
        for left in (0.0, largest)
    )
    gap: FloatArray = np.maximum(high.var - low.var, 0.0)
    shift = np.sqrt(gap * max(high.quadratic - low.quadratic, 0.0))
    prob = STEEPEST * shift + 0.25 * gap / (1.0 + low.var)
    return RankError(
        float(gap.max(initial=0.0)),
        float(shift.max(initial=0.0)),
        min(1.0, float(prob.max(initial=0.0))),
    )
