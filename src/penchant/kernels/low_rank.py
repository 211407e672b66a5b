"""A covariance between items that is itself learned, through few directions of taste.

Where items are many, their covariance has too many entries to learn one by one: here tastes differ
along k directions, and by what each item has of its own.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from penchant.errors import DataError
from penchant.kernels.base import Kernel
from penchant.kernels.inputs import Inputs
from penchant.numerics.optimize import weak_prior
from penchant.numerics.types import FloatArray, IntArray

VARIANCE_BOUNDS = (1e-5, 1e5)
DIRECTION_SHARE = 0.15
"""A priori, what the variance of an item along one direction is, of the item's own at the start."""


@dataclass(frozen=True, eq=False, repr=False)
class LowRankCovariance(Kernel):
    """directions directionsᵀ + variance · I over the n items of the universe.

    directions: (n, k); variance: of what each item has of its own. `theta` holds the directions
    row by row, then the variance's logarithm. New items have no place.

    >>> kernel = LowRankCovariance(np.array([[1.0], [2.0]]), 0.5)
    >>> kernel(Inputs(index=np.array([0, 1])))
    array([[1.5, 2. ], [2. , 4.5]])
    """

    directions: FloatArray
    variance: float

    @classmethod
    def begin(cls, place: IntArray, rank: int, variance: float) -> Self:
        """Where learning starts: small random directions.

        place: (n,) of each item in an order that does not depend on names, see `pair_keys`.
        """
        draws = np.random.default_rng(0).standard_normal((len(place), rank))
        return cls(np.sqrt(0.1 * variance / rank) * draws[place], variance)

    def __repr__(self) -> str:
        n, k = self.directions.shape
        return f"LowRankCovariance(n_items={n}, rank={k}, variance={self.variance:.4g})"

    @property
    def theta(self) -> FloatArray:
        return np.append(self.directions.ravel(), np.log(self.variance))

    @property
    def bounds(self) -> FloatArray:
        box = np.tile([-np.inf, np.inf], (self.directions.size + 1, 1))
        box[-1] = np.log(VARIANCE_BOUNDS)
        box[-1] = min(box[-1, 0], np.log(self.variance)), max(box[-1, 1], np.log(self.variance))
        return box

    @property
    def names(self) -> tuple[str, ...]:
        n, k = self.directions.shape
        entries = tuple(f"directions[{i},{j}]" for i in range(n) for j in range(k))
        return (*entries, "variance")

    def with_theta(self, theta: FloatArray) -> Self:
        directions = np.reshape(theta[:-1], self.directions.shape)
        return type(self)(directions, float(np.exp(theta[-1])))

    def log_prior(self, start: Self) -> tuple[float, FloatArray]:
        """Normal directions, on the scale of the start's variance, and a weak prior of that."""
        precision = 1.0 / (DIRECTION_SHARE * start.variance)
        value = -0.5 * precision * float(np.sum(self.directions**2))
        own, by_own = weak_prior(np.log([self.variance]), np.log([start.variance]))
        return value + own, np.append(-precision * self.directions.ravel(), by_own)

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        rows = self._place(A)
        columns = rows if B is None else self._place(B)
        K: FloatArray = self.directions[rows] @ self.directions[columns].T
        K += self.variance * (rows[:, None] == columns)
        return K

    def _diag(self, A: Inputs) -> FloatArray:
        mine = self.directions[self._place(A)]
        variances: FloatArray = np.einsum("ij,ij->i", mine, mine) + self.variance
        return variances

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        rows = self._place(A)
        columns = rows if B is None else self._place(B)
        slope = np.zeros_like(self.directions)
        np.add.at(slope, rows, G @ self.directions[columns])
        np.add.at(slope, columns, G.T @ self.directions[rows])
        own = self.variance * float(np.sum(G * (rows[:, None] == columns)))
        return np.append(slope.ravel(), own)

    def _place(self, A: Inputs) -> IntArray:
        if A.index is None or A.index.max(initial=0) >= len(self.directions):
            raise DataError(
                f"a learned covariance knows its {len(self.directions)} items only, and was asked "
                "about others: give the items features X and use a kernel on them, such as RBF"
            )
        return A.index
