"""Kernels of features: RBF and Matérn, of the distance between rows; the linear kernel; and an RBF
with a linear part."""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy import sparse

from penchant.errors import DataError
from penchant.kernels.base import Leaf, NotGiven, positive
from penchant.kernels.inputs import Features, Inputs, as_dense
from penchant.numerics import linalg
from penchant.numerics.dispatch import CPU, namespace
from penchant.numerics.linalg import squared_distances, to_numpy
from penchant.numerics.optimize import PRIOR_SPREAD, weak_prior
from penchant.numerics.types import FloatArray

COLUMNS_AT_ONCE = 256
"""Columns of sparse features that are made dense at a time: bounds memory."""
SHRINKAGE, TAIL = 0.7, 1.0
"""Scale and degrees of freedom of Student's t, the prior of log-lengthscales around a common value:
its peak is sharp and its tails heavy, so that few leave the common value, and freely. Without it,
30 noisy answers with 8 features were predicted with a recalibration slope of .7."""
LEAVING_PULL = (TAIL + 1.0) * float(np.log1p(1.0 / (TAIL * SHRINKAGE**2)))
"""Slope of the evidence that moves a log-lengthscale by 1 from the common value: a slope that falls
linearly to zero on the way gains half of it, which is what that prior costs."""
MEASURED_ROWS = 1000
"""Rows whose distances give the median: 1,000 rows have half a million pairs."""
COMMON_STEPS, COMMON_TOLERANCE = 200, 1e-12
"""Of the fixed-point iteration for the common value, in nats of a log-lengthscale."""


class Stationary(Leaf):
    """variance · φ(s), with s = Σ_d (x_d − x'_d)² / lengthscale_d²."""

    lengthscale: float | tuple[float, ...]
    variance: float

    @abstractmethod
    def _correlation(self, squared: FloatArray) -> FloatArray:
        """φ(s), in place of s."""

    @abstractmethod
    def _log_slope(self, squared: FloatArray) -> FloatArray | float:
        """φ'(s)/φ(s): a ratio in which the exponentials cancel."""

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        V = None if B is None else self._scaled(B)
        K = self._correlation(squared_distances(self._scaled(A), V))
        K *= self.variance
        return K

    def _diag(self, A: Inputs) -> FloatArray:
        return np.full(len(A), self.variance)

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        U = self._scaled(A)
        V = U if B is None else self._scaled(B)
        is_sparse = isinstance(U, sparse.sparray)
        is_common = not isinstance(self.lengthscale, tuple)
        if not is_sparse:
            centre = U.mean(axis=0)
            U, V = U - centre, V - centre
        squared = squared_distances(U, None if B is None else V)
        log_slope = self._log_slope(squared)
        distances = squared.copy() if is_sparse and is_common else None
        M = self._correlation(squared)
        M *= G
        for_variance = self.variance * float(M.sum())
        M *= log_slope
        if B is None:  # distances are zero on the diagonal, weights may be large
            own = np.arange(len(M))
            M[own, own] = 0.0
        spread = _weighted_spread(M, U, V) if distances is None else np.vdot(M, distances)
        slopes = -2.0 * self.variance * spread
        return np.append(slopes.sum() if is_common else slopes, for_variance)

    def log_prior(self, start: Self) -> tuple[float, FloatArray]:
        """Weak around the start; several lengthscales are shrunk towards a common value."""
        d = len(self.lengthscale) if isinstance(self.lengthscale, tuple) else 1
        if d == 1:
            return super().log_prior(start)
        moved = self.theta - start.theta
        common = _common(moved[:d])
        z = (moved[:d] - common) / SHRINKAGE
        shrunk = -0.5 * (TAIL + 1.0) * float(np.log1p(z**2 / TAIL).sum())
        # the common value is the best one, so it adds nothing to the slopes
        pull = -(TAIL + 1.0) * z / (TAIL + z**2) / SHRINKAGE
        held, along = weak_prior(np.append(common, moved[d:]), np.zeros(1 + len(moved) - d))
        return shrunk + held, np.append(pull, along[1:])

    def at_scale_of(self, items: Inputs) -> Self:
        if not isinstance(self.lengthscale, NotGiven):
            return self
        return replace(self, lengthscale=self.typical_distance(items))  # type: ignore[type-var]

    def typical_distance(self, items: Inputs) -> float:
        """Median distance between items, in lengthscales."""
        return typical_distance(self._scaled(items.on(CPU)))

    def _scaled(self, A: Inputs) -> Features:
        X = A.features()
        if isinstance(self.lengthscale, tuple) and len(self.lengthscale) != X.shape[1]:
            raise DataError(
                f"{type(self).__name__} has {len(self.lengthscale)} lengthscales, X has "
                f"{X.shape[1]} features: give one lengthscale a feature, or a single number"
            )
        if isinstance(X, sparse.sparray):
            inverse = np.broadcast_to(1.0 / np.asarray(self.lengthscale), X.shape[1])
            return sparse.csr_array(X @ sparse.diags_array(inverse))
        return A.device.matrix(X / np.asarray(self.lengthscale))


@dataclass(frozen=True)
class RBF(Stationary):
    """Squared exponential: variance · exp(−½ Σ_d (x_d − x'_d)² / lengthscale_d²); 000 Eq. 1.

    Parameters
    ----------
    lengthscale : float or sequence of d floats
        Distance over which utilities become independent. One lengthscale a feature (ARD) shows
        which features matter: an irrelevant one gets a long lengthscale. Not given, it is 1 outside
        a fit; in a fit it starts (or stays, with optimize=None) at the median distance between the
        items.
    variance : float
        Prior variance of a utility.

    >>> RBF(lengthscale=2.0)(np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.607], [0.607, 1.   ]])
    """

    lengthscale: float | tuple[float, ...] = positive(NotGiven(1.0), 1e-5, 1e5, per_feature=True)
    variance: float = positive(1.0, 1e-5, 1e5)

    def _correlation(self, squared: FloatArray) -> FloatArray:
        squared *= -0.5
        return namespace(squared).exp(squared, out=squared)

    def _log_slope(self, squared: FloatArray) -> float:
        return -0.5


@dataclass(frozen=True)
class Matern(Stationary):
    """Matérn kernel: like RBF, for utilities that are rougher functions of the features.

    Parameters
    ----------
    nu : 0.5, 1.5 or 2.5
        Roughness: a path has ceil(nu) − 1 derivatives.
    lengthscale, variance
        As in RBF.

    >>> Matern(nu=0.5)(np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.368], [0.368, 1.   ]])
    """

    nu: float = 2.5
    lengthscale: float | tuple[float, ...] = positive(NotGiven(1.0), 1e-5, 1e5, per_feature=True)
    variance: float = positive(1.0, 1e-5, 1e5)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu not in (0.5, 1.5, 2.5):
            raise DataError(
                f"Matern: nu is {self.nu!r}: it must be 0.5, 1.5 or 2.5; for smoother use RBF"
            )

    def _correlation(self, squared: FloatArray) -> FloatArray:
        squared *= 2.0 * self.nu
        xp = namespace(squared)
        r: FloatArray = xp.sqrt(squared, out=squared)
        polynomial = self._polynomial(r)
        xp.negative(r, out=r)
        xp.exp(r, out=r)
        r *= polynomial
        return r

    def _log_slope(self, squared: FloatArray) -> FloatArray:
        xp = namespace(squared)
        r = xp.sqrt(2.0 * self.nu * squared)
        if self.nu == 0.5:  # −1/(2r), unbounded at r = 0, where it meets no distance
            ratio: FloatArray = xp.where(r > 0.0, -0.5 / xp.where(r > 0.0, r, 1.0), 0.0)
        elif self.nu == 1.5:  # φ' = −(3/2) exp(−r)
            ratio = -1.5 / (1.0 + r)
        else:  # φ' = −(5/6) (1 + r) exp(−r)
            ratio = -(1.0 + r) / self._polynomial(r)
            ratio *= 5.0 / 6.0
        return ratio

    def _polynomial(self, r: FloatArray) -> FloatArray | float:
        """What multiplies exp(−r): 1, 1 + r, or 1 + r + r²/3."""
        if self.nu == 0.5:
            return 1.0
        return 1.0 + r if self.nu == 1.5 else 1.0 + r * (1.0 + r / 3.0)


@dataclass(frozen=True)
class Linear(Leaf):
    """Utilities linear in the features: variance · xᵀx'.

    variance: not given, it is 1 outside a fit; in a fit it starts (or stays, with optimize=None)
    where the difference between two typical items has a variance of two.

    >>> Linear(variance=2.0)(np.array([[1.0, 2.0]]))
    array([[10.]])
    """

    variance: float = positive(NotGiven(1.0), 1e-5, 1e5)

    def at_scale_of(self, items: Inputs) -> "Linear":
        if not isinstance(self.variance, NotGiven):
            return self
        return replace(self, variance=2.0 / typical_distance(items.features()) ** 2)

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        X = A.device.matrix(A.features())
        K = (self.variance * X) @ (X if B is None else B.device.matrix(B.features())).T
        return as_dense(K)

    def _diag(self, A: Inputs) -> FloatArray:
        return self.variance * linalg.row_squares(A.features())

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        X = A.device.matrix(A.features())
        if isinstance(X, sparse.sparray):  # one row a word would be dense in G X
            return np.array([np.vdot(G, self._matrix(A, B))])
        met = G @ (X if B is None else B.device.matrix(B.features()))
        return np.array([self.variance * linalg.inner(X, met)])


@dataclass(frozen=True)
class LinearRBF(RBF):
    """An RBF plus a linear kernel with the same relevance of each feature: the default of models.

    variance · exp(−½ Σ_d (x_d − x'_d)² / ℓ_d²) + linear · Σ_d x_d x'_d ℓ² / ℓ_d², where ℓ is the
    geometric mean of the lengthscales: a common one says nothing about the linear part, which
    carries on where an item is unlike all others.

    >>> LinearRBF(lengthscale=2.0, linear=0.5)(np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.607], [0.607, 3.   ]])
    """

    linear: float = positive(1.0, 1e-5, 1e5)
    _powers: ClassVar[dict[str, float]] = {"variance": 1.0, "linear": 1.0}

    @property
    def _weight(self) -> float:
        """linear · ℓ², of features in units of their lengthscales."""
        return self.linear * float(np.exp(2.0 * np.mean(np.log(self.lengthscale))))

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        K = super()._matrix(A, B)
        K += self._linear(self._scaled(A), None if B is None else self._scaled(B))
        return K

    def _linear(self, U: Features, V: Features | None) -> FloatArray:
        return as_dense((self._weight * U) @ (U if V is None else V).T)

    def _diag(self, A: Inputs) -> FloatArray:
        return super()._diag(A) + self._weight * linalg.row_squares(self._scaled(A))

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        U, V = self._scaled(A), None if B is None else self._scaled(B)
        slopes = super()._pullback(A, G, B)
        if not isinstance(self.lengthscale, tuple):
            return np.append(slopes, linalg.inner(G, self._linear(U, V)))
        along = self._weight * to_numpy((U * (G @ (U if V is None else V))).sum(axis=0))
        slopes[:-1] -= 2.0 * (along - along.mean())
        return np.append(slopes, along.sum())


def _common(moved: FloatArray) -> float:
    """The likeliest centre of Student's t for several log-lengthscales, with a weak prior at 0.

    Iteratively reweighted means: values far from the centre count little.
    """
    centre = float(np.median(moved))
    for _ in range(COMMON_STEPS):
        weight = (TAIL + 1.0) / (TAIL + ((moved - centre) / SHRINKAGE) ** 2) / SHRINKAGE**2
        before, centre = centre, float(weight @ moved / (weight.sum() + PRIOR_SPREAD**-2))
        if abs(centre - before) < COMMON_TOLERANCE:
            break
    return centre


def _weighted_spread(M: FloatArray, U: Features, V: Features) -> FloatArray:
    """Σ_ij M_ij (u_id − v_jd)² of each feature d, with no n × n matrix a feature."""
    spread: FloatArray
    if not isinstance(U, sparse.sparray):
        spread = M.sum(axis=1) @ U**2 + M.sum(axis=0) @ V**2
        spread -= 2.0 * (U * linalg.multiply(M, V)).sum(axis=0)
        return to_numpy(spread)
    left, right = sparse.csc_array(U), sparse.csc_array(V)
    spread = M.sum(axis=1) @ left.multiply(left) + M.sum(axis=0) @ right.multiply(right)
    for begin in range(0, U.shape[1], COLUMNS_AT_ONCE):
        some = slice(begin, begin + COLUMNS_AT_ONCE)
        crossed = left[:, some].multiply(M @ right[:, some].toarray())
        spread[some] -= 2.0 * np.asarray(crossed.sum(axis=0)).ravel()
    return spread


def typical_distance(X: Features) -> float:
    """Median distance between different rows, of up to a thousand of them; 1 if all are equal.

    >>> typical_distance(np.array([[0.0], [1.0], [3.0]]))
    2.0
    """
    n = int(X.shape[0])
    some = X[np.linspace(0, n - 1, min(n, MEASURED_ROWS)).astype(np.intp)]
    distance = np.sqrt(squared_distances(some)[np.triu_indices(some.shape[0], 1)])
    return float(np.median(distance[distance > 0.0])) if np.any(distance > 0.0) else 1.0
