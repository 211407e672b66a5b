"""Paths of all items as one Gaussian: a Kalman filter forwards in time, its adjoint backwards.

g = u[w] − u[l] + zᵀβ.  A utility is a constant plus an Ornstein–Uhlenbeck path of the item's own,
c ~ N(0, K), β ~ N(0, diag(sd²)). The state of `layout` holds β, c and how far x = u − c is, which
moves by x ← φ x + new for items that meet. With m and P its mean and covariance, H the directions
that the step's comparisons have, L and b the Laplacian and the shift of the comparisons, and before
these C₀ = H P, S₀ = H P Hᵀ, N = (I + L S₀)⁻¹,

    C = Nᵀ C₀,  S = S₀ N,    P ← P − C₀ᵀ L C,    m ← m + Cᵀ(b − L H m).

Backwards go λ = ∂ log Z/∂m and Λ = λλᵀ − 2 ∂ log Z/∂P (the smoother of Bryson and Frazier), which
give all posterior moments and the evidence's gradient: with S − C Λ Cᵀ the covariance and μ the
mean of H given everything, λ ← λ + Hᵀ(b − L μ) and Λ ← Λ + Hᵀ D + Dᵀ H, where
D = L(½(I − (S − C Λ Cᵀ) L) H − C Λ). Nothing is inverted but I + L S₀. Small matrices are
multiplied by `dot`, which takes half the time of `@`.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import get_blas_funcs, lapack

from penchant.data import Comparisons
from penchant.errors import DataError, NumericalError
from penchant.gp.dynamic.layout import Layout
from penchant.gp.effects import PRIOR_SD, Covariates
from penchant.gp.rows import Rows
from penchant.likelihoods import Outcomes
from penchant.numerics.types import FloatArray, IntArray

MOST_PERIODS = 300
"""Into which the time of all comparisons is divided by default."""
FURTHEST = 1e12
"""Periods from the first; paths have long relaxed by then."""


@dataclass(frozen=True)
class TimeGrid:
    """Periods of equal length from a first day on, numbered from 0; days since 1970."""

    origin: float
    length: float

    @classmethod
    def of(cls, time: FloatArray, length: float | None) -> "TimeGrid":
        """Of the length given, else as many periods as there are times, up to a few hundred."""
        days = np.unique(time)
        if length is None:
            gap = float(np.diff(days).min(initial=np.inf))
            span = float(days[-1] - days[0])
            length = max(span / MOST_PERIODS, gap) if span else 1.0
        return cls(float(days[0]), float(length))

    def period(self, time: FloatArray) -> IntArray:
        """The number of each time's period."""
        number = np.floor((time - self.origin) / self.length + 1e-9)
        return np.clip(number, -FURTHEST, FURTHEST).astype(np.intp)


def timed_rows(data: Comparisons, grid: TimeGrid) -> Rows:
    """Return all comparisons as rows in periods; order and covariates are further points."""
    period, tie = grid.period(check_time(data)), data.tie if data.tie.any() else None
    count, shown = data.count.astype(float), Covariates.of(data)
    if shown is None:
        shown = Covariates((), np.zeros((0, len(data))), np.zeros(0))
    return Rows(
        data.winner,
        data.loser,
        count,
        Outcomes(tie, data.margin),
        period=period,
        shown=replace(shown, sd=_effect_sd(shown.z, count)),
    )


def _effect_sd(z: FloatArray, count: FloatArray) -> FloatArray:
    """(q,) prior standard deviations of the effects of z (q, m): by the root mean square of what a
    covariate is where it is not zero, so that its unit does not matter."""
    n_told = np.sum(count * (z != 0.0), axis=1)
    square = np.sum(count * z**2, axis=1) / np.maximum(n_told, 1.0)
    return PRIOR_SD / np.sqrt(np.where(n_told > 0.0, square, 1.0))


def check_time(data: Comparisons) -> FloatArray:
    """The times of comparisons, which drift and half-lives need."""
    if data.time is None:
        raise DataError(
            "these comparisons do not say when they were made: give time=… for each (dates or "
            "days), or leave drift and half_life out"
        )
    return data.time


class Update(NamedTuple):
    """A step: see above. S and C are those given its comparisons. L: a vector where it is diagonal.
    path: (k, f) covariances of paths with the state, by what was known of it before."""

    H: Any
    L: FloatArray
    S: FloatArray
    C: FloatArray
    path: FloatArray


class Moments(NamedTuple):
    """Means, or covariances (r × r a step), of directions; λ of all slots of all steps and what
    stands there, or the diagonals of Λ and (N,) of Λ P; and λ, or Λ, of the first state."""

    directions: FloatArray
    by_slot: FloatArray
    by_path: FloatArray
    by_first: FloatArray


@dataclass(frozen=True)
class PathPrior:
    """K of the constants, the paths' variance and timescale, the effects' standard deviations.

    dtype: of what is as large as the state; what is as large as a step is always double.
    """

    constants: FloatArray
    variance: float
    timescale: float
    effect_sd: FloatArray
    layout: Layout
    dtype: Any = np.float64
    residual: float = 0.0
    space: str = "items × periods"

    @property
    def rank(self) -> int:
        """Items times the periods in which they met."""
        return len(self.layout.gap)

    @property
    def flops(self) -> float:
        """Of a sweep's dense algebra."""
        shapes = [step.H.shape for step in self.layout.steps]
        return 4.0 * float(sum(r * f**2 for r, f in shapes))

    def coarse(self, tolerance: float) -> "PathPrior":
        """There is no coarser one."""
        return self

    @cached_property
    def keep(self) -> FloatArray:
        """(N,) φ = exp(−Δ/ℓ), what a path keeps of itself since it was last seen."""
        return np.exp(-self.layout.gap / self.timescale)

    @cached_property
    def moves(self) -> tuple[FloatArray, FloatArray]:
        """What slots keep of themselves before each step, and the variance of what is new."""
        layout = self.layout
        total = layout.steps[-1].slots.stop
        scale, noise = np.ones(total), np.zeros(total)
        scale[layout.paths] = self.keep
        noise[layout.paths] = -self.variance * np.expm1(-2.0 * layout.gap / self.timescale)
        noise[layout.entering] = np.diagonal(self.constants)[layout.entrants]
        return scale, noise

    def refresh(self, weight: FloatArray, shift: FloatArray) -> "PathState":
        """Condition on sites: O(f²) a direction, f the size of the state."""
        layout, single, q = self.layout, self.dtype, len(self.effect_sd)
        each = (layout.products * weight[:, None, None]).ravel()
        n_squares, is_definite = layout.steps[-1].square.stop, bool((weight >= 0.0).all())
        laplacians: Any = np.bincount(layout.row_squares.ravel(), each, n_squares) * 1.0
        scales, noises = (some.astype(single) for some in self.moves)
        P = np.zeros((layout.steps[0].H.shape[1],) * 2, single)
        P[:q, :q] = np.diag(self.effect_sd**2)
        if layout.is_coupled:
            P[-len(self.constants) :, -len(self.constants) :] = self.constants
        gemm = get_blas_funcs("gemm", (P,))
        updates, pivots = [], []
        for step in layout.steps:
            if step.kept is not None:
                P = _resized(P, step.kept)
            scale, H = scales[step.slots], step.H.astype(single, copy=False)
            r, f = H.shape
            P *= scale[:, None]
            P *= scale
            path = P.take(step.now, axis=0)
            P.ravel()[:: f + 1] += noises[step.slots]
            prior = H.dot(P)
            S = H.dot(prior.T).astype(float, copy=False)
            L = laplacians[step.square].reshape(r, r)
            L = L.diagonal() if step.by_row else L
            identity = _identity(r)
            lu, _, N, info = lapack.dgesv(identity + _times(L, S), identity)
            if info or not (is_definite or np.linalg.slogdet(N)[0] > 0.0):
                raise NumericalError("the precision of the paths is not positive definite")
            C = N.T.astype(single, copy=False).dot(prior)
            LC = _times(L.astype(single, copy=False), C)
            gemm(-1.0, LC.T, prior.T, trans_b=1, beta=1.0, c=P.T, overwrite_c=1)  # P −= (HP)ᵀ L C
            updates.append(Update(H, L, S.dot(N), C, path))
            pivots.append(lu.diagonal())
        log_det = float(np.log(np.abs(np.concatenate(pivots))).sum())
        return PathState(self, shift, updates, log_det)


def _resized(P: FloatArray, kept: IntArray) -> FloatArray:
    """Rows and columns of P by where they were; −1: zeros."""
    new = kept < 0
    P = P.take(kept, axis=0).take(kept, axis=1)
    P[new] = P[:, new] = 0.0
    return P


@lru_cache(maxsize=1_000)
def _identity(r: int) -> FloatArray:
    return np.eye(r)


def _times(L: Any, X: Any) -> Any:
    """L X; L: a matrix, or its diagonal."""
    return (L * X.T).T if L.ndim == 1 else L.dot(X)


@dataclass(frozen=True)
class PathState:
    """The posterior given sites, whose shift is `shift` (m,)."""

    prior: PathPrior
    shift: FloatArray
    updates: list[Update]
    log_det: float
    jitter: float = 0.0

    @cached_property
    def means(self) -> Moments:
        return self.shifted(self.shift)

    @cached_property
    def mean(self) -> FloatArray:
        return self.prior.layout.rows(self.means.directions)

    @property
    def quadratic(self) -> float:
        return float(self.shift @ self.mean)

    def covariance_times(self, y: FloatArray) -> FloatArray:
        return self.prior.layout.rows(self.shifted(y).directions)

    @cached_property
    def var(self) -> FloatArray:
        layout = self.prior.layout
        cov = self.covariances.directions[layout.row_squares]
        return np.asarray(np.einsum("mij,mij->m", layout.products, cov))

    def shifted(self, shift: FloatArray) -> Moments:
        """Means given another shift of the sites."""
        layout, (scales, _), single = self.prior.layout, self.prior.moves, self.prior.dtype
        each = (layout.weights * shift[:, None]).ravel()
        n_directions = layout.steps[-1].directions.stop
        right = np.bincount(layout.row_directions.ravel(), each, n_directions) * 1.0
        mean, by_slot, known = np.empty(len(right)), np.empty(len(scales)), np.empty(len(scales))
        state = np.zeros(layout.steps[0].H.shape[1])
        steps = list(zip(layout.steps, self.updates, strict=True))
        for step, (_, L, S, C, _) in steps:
            if step.kept is not None:
                state = np.where(step.kept < 0, 0.0, state[step.kept])
            here = step.directions
            state *= scales[step.slots]
            known[step.slots] = state
            expected = step.H.dot(state)
            slope = right[here] - _times(L, expected)
            mean[here] = expected + S.dot(slope)
            state += slope.astype(single, copy=False).dot(C)
        state[:] = 0.0  # λ
        for step, (_, L, _, C, _) in reversed(steps):
            here = step.directions
            mean[here] += C.dot(state.astype(single, copy=False))
            state += (right[here] - _times(L, mean[here])) @ step.H
            by_slot[step.slots] = state
            state *= scales[step.slots]
            if step.dropped is not None:
                state = np.where(step.dropped < 0, 0.0, state[step.dropped])
        return Moments(mean, by_slot, known[layout.paths], state)

    @cached_property
    def covariances(self) -> Moments:
        """Of the directions of each step, back to the earliest that is wanted."""
        layout, single = self.prior.layout, self.prior.dtype
        scales = self.prior.moves[0].astype(single)
        cov, by_slot = np.empty(layout.steps[-1].square.stop), np.empty(len(scales))
        size, by_path = layout.steps[-1].H.shape[1], np.empty(len(layout.gap))
        later = np.zeros((size, size), single)
        earliest = min((number for number, _ in layout.whole.values()), default=-1)
        for i in range(len(layout.steps) - 1, -1, -1):
            step, (H, L, S, C, path) = layout.steps[i], self.updates[i]
            D = C.dot(later)
            S = S - D.dot(C.T)
            cov[step.square] = S.ravel()
            if i == earliest:
                break
            # Λ += Hᵀ D + Dᵀ H, D = L(½(I − S L) H − C Λ)
            half = 0.5 * (_identity(len(S)) - _times(L, S).T)
            D = half.astype(single, copy=False) @ H - D
            D = step.J.T.astype(single, copy=False).dot(_times(L.astype(single, copy=False), D))
            later[step.touched] += D
            later[:, step.touched] += D.T
            by_slot[step.slots] = later.diagonal()
            by_path[step.nodes] = np.vecdot(path, later.take(step.now, axis=0))
            scale = scales[step.slots]
            later *= scale[:, None]
            later *= scale
            if step.dropped is not None:
                later = _resized(later, step.dropped)
        return Moments(cov, by_slot, by_path, later)

    def at(self, period: int) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of what is in a period of `Layout.whole`."""
        layout = self.prior.layout
        number, members = layout.whole[period]
        step = layout.steps[number]
        cov = self.covariances.directions[step.square].reshape(len(members), -1)
        return self.means.directions[step.directions][members], cov[np.ix_(members, members)]

    def slopes(self) -> tuple[FloatArray, float, float]:
        """∂ log Z by K (n, n), of independent constants by its diagonal alone; by the logarithms of
        the paths' variance and timescale."""
        prior, mean, cov = self.prior, self.means, self.covariances
        layout, n = prior.layout, len(prior.constants)
        gap = np.where(np.isfinite(layout.gap), layout.gap, 0.0)
        by_slot = 0.5 * (mean.by_slot**2 - cov.by_slot)
        # what the means say of how paths go with everything else
        pulls = mean.by_slot.astype(prior.dtype)
        both = zip(layout.steps, self.updates, strict=True)
        pulled = np.concatenate([update.path @ pulls[step.slots] for step, update in both])
        by_new = prior.variance * by_slot[layout.paths]
        along = mean.by_slot[layout.paths] * (mean.by_path + pulled) - cov.by_path
        along -= 2.0 * prior.keep**2 * by_new
        by_K = np.zeros_like(prior.constants)
        if layout.is_coupled:
            by_K += 0.5 * (np.outer(mean.by_first, mean.by_first) - cov.by_first)[-n:, -n:]
        by_K[layout.entrants, layout.entrants] = by_slot[layout.entering]
        return by_K, float(by_new @ (1.0 - prior.keep**2)), float(along @ gap) / prior.timescale
