"""The users' kernel through a few of its users: a factor that is linear in their number."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from penchant.gp.users.arrowhead import ArrowState
from penchant.kernels import Inputs, Kernel
from penchant.numerics.linalg import gram, multiply, solve_lower
from penchant.numerics.types import FloatArray, IntArray

DIAGONAL_BLOCK = 256
"""Users whose variances are differentiated at a time."""


class UserFactor(NamedTuple):
    """K ≈ rows @ rows.T over users; rows: (U, r), pivots: (r,).

    missed: (U,) variances that it leaves out, None where they are within the tolerance.
    """

    rows: FloatArray
    pivots: IntArray
    missed: FloatArray | None

    @property
    def residual(self) -> float:
        """The largest variance that was left out."""
        return 0.0 if self.missed is None else float(self.missed.max(initial=0.0))

    @property
    def lower(self) -> FloatArray:
        """(r, r) lower triangular factor of the pivots' own covariance."""
        return self.rows[self.pivots]

    def pullback(
        self, kernel: Kernel, users: Inputs, slopes: FloatArray, own: FloatArray
    ) -> FloatArray:
        """Gradient by the kernel's theta, given that by the rows (U, r) and by what is missed (U,).

        K ≈ K_UP K_PP⁻¹ K_PU: the slopes meet the derivative of each factor; what is missed is the
        diagonal of K less that.
        """
        by_diagonal = np.zeros(len(kernel.theta))
        if self.missed is not None:
            slopes = slopes - 2.0 * own[:, None] * self.rows
            for start in range(0, len(users), DIAGONAL_BLOCK):
                some = np.arange(start, min(start + DIAGONAL_BLOCK, len(users)))
                by_diagonal += kernel.pullback(users.take(some), np.diag(own[some]))
        M = 0.5 * solve_lower(self.lower, slopes.T, transposed=True).T
        through = solve_lower(self.lower, multiply(self.rows.T, M), transposed=True)
        pivots = users.take(self.pivots)
        through = kernel.pullback(pivots, 0.5 * (through + through.T))
        return by_diagonal + 2.0 * kernel.pullback(users, M, pivots) - through


def factor_users(kernel: Kernel, users: Inputs, max_rank: int, tolerance: float) -> UserFactor:
    """Pivoted Cholesky by columns: each pivot is the user about whom most is left unexplained.

    Only U × r numbers are ever made, at a cost of U r².
    """
    left = kernel.diag(users)
    enough = tolerance * float(left.max())
    rows = np.zeros((len(users), min(max_rank, len(users))))
    pivots: list[int] = []
    for column in range(rows.shape[1]):
        pivot = int(np.argmax(left))
        if left[pivot] <= enough:
            break
        known = rows[:, :column]
        cross = kernel(users, users.take(np.array([pivot])))[:, 0] - multiply(known, known[pivot])
        rows[:, column] = cross / np.sqrt(left[pivot])
        # what the pivots explain among themselves is exact: above the diagonal is zero
        rows[pivots, column] = 0.0
        left -= rows[:, column] ** 2
        pivots.append(pivot)
        left[pivots] = 0.0
    rank, is_exact = len(pivots), bool(left.max(initial=0.0) <= enough)
    return UserFactor(
        np.ascontiguousarray(rows[:, :rank]),
        np.array(pivots, dtype=np.intp),
        None if is_exact else np.maximum(left, 0.0),
    )


# How far a bounded rank of the users' kernel can put results off.
#
# The factor leaves out E = K_u − Φ_uΦ_uᵀ, of which the diagonal was given back to each user. With
# λ ≥ the largest eigenvalue of E, both the right prior and the one used lie between Φ_uΦ_uᵀ and
# Φ_uΦ_uᵀ + λ I, and so do their posteriors at the same sites. Let H be the difference of the
# posteriors of those two: for any contrast a, |Δ var| ≤ aᵀHa and, by Cauchy and Schwarz with the
# sites' shift b, |Δ mean| ≤ √(aᵀHa · bᵀHb).


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
