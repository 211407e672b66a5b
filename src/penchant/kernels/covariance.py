"""Covariances between items without features, learned entry by entry: of full and of low rank."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from penchant.errors import DataError
from penchant.kernels.base import Kernel
from penchant.kernels.inputs import Inputs
from penchant.numerics import linalg
from penchant.numerics.optimize import weak_prior
from penchant.numerics.types import FloatArray, IntArray


def _places(A: Inputs, B: Inputs | None, n_items: int) -> tuple[IntArray, IntArray]:
    """Where the items of A and B (or A again) stand among those whose covariance is learned."""
    places = []
    for items in (A, A if B is None else B):
        if items.index is None or items.index.max(initial=0) >= n_items:
            raise DataError(
                f"a learned covariance knows its {n_items} items only, and was asked about "
                "others: give the items features X and use a kernel on them, such as RBF"
            )
        places.append(items.index)
    return places[0], places[1]


def _factor_slope(F: FloatArray, places: tuple[IntArray, IntArray], G: FloatArray) -> FloatArray:
    """Derivative of Σ_ij G_ij (F Fᵀ)[rows, columns]_ij by the factor F, (n, k)."""
    (rows, columns), slope, G = places, np.zeros_like(F), linalg.to_numpy(G)
    np.add.at(slope, rows, G @ F[columns])
    np.add.at(slope, columns, G.T @ F[rows])
    return slope


# Full rank. Many users show directly which utilities go together. A prior shrinks the n (n+1)/2
# entries, so that few users do not overfit them. Where tastes follow a few directions, a few
# eigenvalues are far from the others: they are shrunk less, and the others more.

PSEUDO_USERS_PER_ITEM = 2.0
"""Weight of the prior near its centre: so many imagined users with independent utilities for each
item. Of .5 to 4 the one that predicts simulated users best, whatever their covariance; at .5
predictions are overconfident."""
EM_USERS_PER_ITEM = 0.5
"""The same of EM's prior, which has a closed form and shrinks large eigenvalues as much."""
LOG_DIAGONAL_BOUNDS = (-12.0, 12.0)
"""Of the factor's diagonal: beyond them the covariance is singular to rounding."""


@dataclass(frozen=True, eq=False, repr=False)
class FreeCovariance(Kernel):
    """Any covariance between the n items of the universe: P factor factorᵀ P.

    factor: (n, n) lower triangular with a positive diagonal. P subtracts the mean over items:
    comparisons depend on differences only, so utilities are relative to the average item. `theta`
    holds the lower entries of frame⁻¹ factor row by row, the diagonal as logarithms; see `around`.
    It has no covariance with new items.

    >>> kernel = FreeCovariance.of(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> kernel(Inputs(index=np.array([1, 0]))).round(6)
    array([[ 0.5, -0.5], [-0.5,  0.5]])
    """

    factor: FloatArray
    frame: FloatArray | None = field(default=None, init=False)

    @classmethod
    def of(cls, covariance: FloatArray) -> Self:
        """From a positive definite (n, n) matrix."""
        return cls(linalg.cholesky(covariance).lower)

    def around(self, other: "FreeCovariance") -> Self:
        """The same covariance, with `theta` in the frame of another one's factor.

        Near the other covariance the evidence of many users curves alike in all directions of
        that frame, so that a search from there takes few steps.

        >>> kernel = FreeCovariance.of(4.0 * np.eye(2))
        >>> kernel.around(kernel).theta.tolist()
        [0.0, 0.0, 0.0]
        """
        return self._framed(self.factor, other.factor)

    def _framed(self, factor: FloatArray, frame: FloatArray | None) -> Self:
        kernel = type(self)(factor)
        object.__setattr__(kernel, "frame", frame)
        return kernel

    def __repr__(self) -> str:
        return f"FreeCovariance(n_items={len(self.factor)})"

    @cached_property
    def _inside(self) -> FloatArray:
        """frame⁻¹ factor."""
        return self.factor if self.frame is None else linalg.solve_lower(self.frame, self.factor)

    @cached_property
    def _inverse(self) -> FloatArray:
        """factor⁻¹."""
        return linalg.solve_lower(self.factor, np.eye(len(self.factor)))

    @cached_property
    def _centred(self) -> FloatArray:
        """P factor."""
        return self.factor - self.factor.mean(axis=0)

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray]:
        rows, columns = np.tril_indices(len(self.factor))
        return rows, columns

    @property
    def theta(self) -> FloatArray:
        rows, columns = self._entries
        values = self._inside[rows, columns]
        diagonal = rows == columns
        values[diagonal] = np.log(values[diagonal])
        return values

    @property
    def bounds(self) -> FloatArray:
        rows, columns = self._entries
        box = np.tile([-np.inf, np.inf], (len(rows), 1))
        box[rows == columns] = LOG_DIAGONAL_BOUNDS
        return box

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"factor[{i},{j}]" for i, j in zip(*self._entries, strict=True))

    def with_theta(self, theta: FloatArray) -> Self:
        inside = np.zeros_like(self.factor)
        inside[self._entries] = theta
        diagonal = np.diag_indices_from(inside)
        inside[diagonal] = np.exp(inside[diagonal])
        return self._framed(inside if self.frame is None else self.frame @ inside, self.frame)

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        rows, columns = _places(A, B, len(self.factor))
        K: FloatArray = self._centred[rows] @ self._centred[columns].T
        return A.device.matrix(K)

    def _diag(self, A: Inputs) -> FloatArray:
        return linalg.row_squares(self._centred[_places(A, None, len(self.factor))[0]])

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        slope = _factor_slope(self._centred, _places(A, B, len(self.factor)), G)
        return self._by_theta(slope - slope.mean(axis=0))

    def _by_theta(self, slope: FloatArray) -> FloatArray:
        """From a derivative by the factor to one by theta."""
        slope = slope if self.frame is None else self.frame.T @ slope
        diagonal = np.diag_indices_from(slope)
        slope[diagonal] *= self._inside[diagonal]
        return slope[self._entries]

    @property
    def pseudo_users(self) -> float:
        """The weight of EM's prior, in users."""
        return EM_USERS_PER_ITEM * len(self.factor)

    @property
    def typical_variance(self) -> float:
        """n / tr K⁻¹, the s for which K is likeliest around s I."""
        half = self._inverse
        return len(half) / float(np.vdot(half, half))

    def log_prior(self, start: Self) -> tuple[float, FloatArray]:
        """Log density of K = factor factorᵀ up to a constant, and its slope by theta.

        −ν/4 Σ log(1 + a²) over a = log(λ/s), λ the eigenvalues of K and s the start's typical
        variance, plus the weak prior of each a. Near s I that is an inverse-Wishart prior of ν
        imagined users; it treats large eigenvalues like small ones, and lets a few go further. A
        few answers that agree would raise the scale without end, a few that contradict each other
        would lower it to zero: hence the weak prior, and an s that does not follow the entries.
        """
        left, roots, _ = np.linalg.svd(self.factor)
        users = PSEUDO_USERS_PER_ITEM * len(roots)
        away = 2.0 * np.log(roots) - np.log(start.typical_variance)
        weak, by_away = weak_prior(away, np.zeros_like(away))
        by_away = by_away - 0.5 * users * away / (1.0 + away**2)
        # dK = 1/λ · d/da along each eigenvector, and d/dfactor is twice that times it
        slope = 2.0 * (left * (by_away / roots**2)) @ left.T @ self.factor
        return weak - 0.25 * users * float(np.log1p(away**2).sum()), self._by_theta(slope)

    def wishart_prior(self) -> tuple[float, FloatArray]:
        """The inverse-Wishart prior of EM's closed form, and its derivative by theta.

        Around s I with the likeliest s, which makes it invariant to scale: ν/2 (n log s − log|K|).
        """
        n, s = len(self.factor), self.typical_variance
        half = self._inverse
        log_det = 2.0 * float(np.log(np.diagonal(self.factor)).sum())
        # d/dK = ν/2 · (s K⁻² − K⁻¹), and d/dfactor is twice that times the factor
        slope = self.pseudo_users * (s * linalg.gram(half) @ half.T - half.T)
        value = 0.5 * self.pseudo_users * (n * np.log(s) - log_det)
        return value, self._by_theta(slope)

    def updated(self, G: FloatArray, n_draws: int) -> "FreeCovariance":
        """EM's next covariance: the second moment of N draws, K + 2/N K G K, averaged with the
        prior. G: (n, n) derivative of the log evidence by K.
        """
        K = self.factor @ self.factor.T
        moments = n_draws * K + 2.0 * K @ G @ K
        moments[np.diag_indices_from(moments)] += self.pseudo_users * self.typical_variance
        return FreeCovariance.of(moments / (n_draws + self.pseudo_users))

    def fitted_scale(self, new: "FreeCovariance", G: FloatArray, n_draws: int) -> float:
        """The likeliest scale of `new` for N draws with the second moment K + 2/N K G K."""
        K = self.factor @ self.factor.T
        average = K + 2.0 / n_draws * K @ G @ K
        half = linalg.solve_lower(new.factor, np.eye(len(K)))
        return float(np.vdot(linalg.gram(half), average)) / len(K)

    def scaled(self, scale: float) -> "FreeCovariance":
        """The same covariance times a number."""
        return FreeCovariance(np.sqrt(scale) * self.factor)


# Low rank. The covariance of many items has too many entries to learn one by one: here
# utilities vary along k directions, and independently for each item.

VARIANCE_BOUNDS = (1e-5, 1e5)
"""As of the other kernels."""
DIRECTION_SHARE = 0.15
"""Prior variance of an item along one direction, as a share of `variance` at the start."""


@dataclass(frozen=True, eq=False, repr=False)
class LowRankCovariance(Kernel):
    """directions directionsᵀ + variance · I over the n items of the universe.

    directions: (n, k); variance: of the independent effect of each item. `theta` holds the
    directions row by row, then the variance's logarithm. It has no covariance with new items.

    >>> kernel = LowRankCovariance(np.array([[1.0], [2.0]]), 0.5)
    >>> kernel(Inputs(index=np.array([0, 1])))
    array([[1.5, 2. ], [2. , 4.5]])
    """

    directions: FloatArray
    variance: float

    @classmethod
    def begin(cls, place: IntArray, rank: int, variance: float) -> Self:
        """Small random directions, from which learning starts.

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
        low, high = VARIANCE_BOUNDS
        box[-1] = np.log([min(low, self.variance), max(high, self.variance)])
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
        """Normal directions on the scale of the start's variance, and a weak prior of that."""
        precision = 1.0 / (DIRECTION_SHARE * start.variance)
        value = -0.5 * precision * float(np.sum(self.directions**2))
        own, by_own = weak_prior(np.log([self.variance]), np.log([start.variance]))
        return value + own, np.append(-precision * self.directions.ravel(), by_own)

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        rows, columns = _places(A, B, len(self.directions))
        K: FloatArray = self.directions[rows] @ self.directions[columns].T
        K += self.variance * (rows[:, None] == columns)
        return A.device.matrix(K)

    def _diag(self, A: Inputs) -> FloatArray:
        rows, _ = _places(A, None, len(self.directions))
        return linalg.row_squares(self.directions[rows]) + self.variance

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        rows, columns = places = _places(A, B, len(self.directions))
        own = self.variance * float(np.sum(linalg.to_numpy(G) * (rows[:, None] == columns)))
        return np.append(_factor_slope(self.directions, places, G).ravel(), own)
