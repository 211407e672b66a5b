"""The users' kernel through a few of its users: a factor that is linear in their number."""

from typing import NamedTuple

import numpy as np

from penchant.kernels import Inputs, Kernel
from penchant.numerics.linalg import multiply, solve_lower
from penchant.numerics.types import FloatArray, IntArray


class UserFactor(NamedTuple):
    """K ≈ rows @ rows.T over users; rows: (U, r), pivots: (r,), residual: largest left variance."""

    rows: FloatArray
    pivots: IntArray
    residual: float

    @property
    def lower(self) -> FloatArray:
        """(r, r) lower triangular factor of the pivots' own covariance."""
        return self.rows[self.pivots]

    def pullback(self, kernel: Kernel, users: Inputs, slopes: FloatArray) -> FloatArray:
        """Gradient by the kernel's theta, given that by the rows (U, r).

        K ≈ K_UP K_PP⁻¹ K_PU: the slopes meet the derivative of each factor.
        """
        M = 0.5 * solve_lower(self.lower, slopes.T, transposed=True).T
        through = solve_lower(self.lower, multiply(self.rows.T, M), transposed=True)
        pivots = users.take(self.pivots)
        return 2.0 * kernel.pullback(users, M, pivots) - kernel.pullback(
            pivots, 0.5 * (through + through.T)
        )


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
    rank = len(pivots)
    return UserFactor(
        np.ascontiguousarray(rows[:, :rank]), np.array(pivots, dtype=np.intp), float(left.max())
    )
