"""Paths of all items as one Gaussian: a Kalman filter forwards in time, its adjoint backwards.

g = u[w] − u[l] + zᵀβ.  A utility is a constant plus an Ornstein–Uhlenbeck path of the item's own,
c ~ N(0, K), β ~ N(0, diag(sd²)). The state (u, c, β) of `layout` moves by u ← φ u + (1 − φ) c + new
for items that meet. With m and P its mean and covariance, J the directions that the step's
comparisons have, C = J P, S = J P Jᵀ, L and b the Laplacian and the shift of the comparisons,

    G = (I + L S)⁻¹ L,    P ← P − Cᵀ G C,    m ← m + Cᵀ(b − G(S b + J m)).

Backwards go λ = ∂ log Z/∂m and Λ = λλᵀ − 2 ∂ log Z/∂P (the smoother of Bryson and Frazier), which
give all posterior moments and the evidence's gradient. Nothing is inverted but I + L S.
"""

from dataclasses import dataclass, replace
from functools import cached_property
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
    """A step: see above. N = (I + L S)⁻¹. path: (k, f) of the paths with the state before."""

    J: Any
    S: FloatArray
    C: FloatArray
    G: FloatArray
    N: FloatArray
    path: FloatArray


class Moments(NamedTuple):
    """Means, or covariances (r × r a step), of directions; what λ, or Λ, says of parameters."""

    directions: FloatArray
    by_new: FloatArray
    by_keep: FloatArray
    by_constants: FloatArray


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
        return 4.0 * self.layout.steps[-1].directions.stop * float(self.layout.size) ** 2

    def coarse(self, tolerance: float) -> "PathPrior":
        """There is no coarser one."""
        return self

    @cached_property
    def keep(self) -> FloatArray:
        """(N,) φ = exp(−Δ/ℓ), what a path keeps of itself since it was last seen."""
        return np.exp(-self.layout.gap / self.timescale)

    def refresh(self, weight: FloatArray, shift: FloatArray) -> "PathState":
        """Condition on sites: O(f²) a direction, f the size of the state."""
        layout, single = self.layout, self.dtype
        each = (layout.products * weight[:, None, None]).ravel()
        n_squares, is_definite = layout.steps[-1].square.stop, bool((weight >= 0.0).all())
        laplacians = np.bincount(layout.row_squares.ravel(), each, n_squares) * 1.0
        new = -self.variance * np.expm1(-2.0 * layout.gap / self.timescale)
        keeps, constants = self.keep.astype(single), self.constants.astype(single)
        P = np.zeros((layout.size, layout.size), single)
        P[: len(self.effect_sd), : len(self.effect_sd)] = np.diag(self.effect_sd**2)
        gemm = get_blas_funcs("gemm", (P,))
        updates, pivots = [], []
        for step in layout.steps:
            at, now, beside, keep = step.at, step.now, step.constants, keeps[step.nodes]
            k, J = len(now), step.J.astype(single)
            if len(step.new):
                came = layout.constants[step.new]
                P[came] = P[:, came] = 0.0
                P[np.ix_(came, came)] = constants[np.ix_(step.new, step.new)]
            C, constant = P.take(at, axis=0), P.take(beside, axis=0)
            path = C[:k] - constant
            C[:k] -= (1.0 - keep)[:, None] * path
            constant = C.take(beside, axis=1)
            moved = constant + keep * (C.take(now, axis=1) - constant)
            moved.ravel()[: k * k : k + 1] += new[step.nodes]
            C[:, now] = moved
            P[now], P[:, now] = C[:k], C[:k].T
            C = J @ C
            S = (J @ C.take(at, axis=1).T).astype(float)
            r = len(S)
            L = laplacians[step.square].reshape(r, r)
            B = L @ S
            B.ravel()[:: r + 1] += 1.0
            lu, _, N, info = lapack.dgesv(B, np.eye(r))
            if info or not (is_definite or np.linalg.slogdet(B)[0] > 0.0):
                raise NumericalError("the precision of the paths is not positive definite")
            G = N @ L
            G = 0.5 * (G + G.T)
            # P −= Cᵀ G C in place
            gemm(-1.0, (G.astype(single) @ C).T, C.T, trans_b=1, beta=1.0, c=P.T, overwrite_c=1)
            updates.append(Update(J, S, C, G, N, path))
            pivots.append(np.diagonal(lu))
        log_det = float(np.log(np.abs(np.concatenate(pivots))).sum())
        return PathState(self, shift, updates, log_det)


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
        layout, keeps, single = self.prior.layout, self.prior.keep, self.prior.dtype
        each = (layout.weights * shift[:, None]).ravel()
        n_directions = layout.steps[-1].directions.stop
        right = np.bincount(layout.row_directions.ravel(), each, n_directions) * 1.0
        mean, by_new, by_keep = np.empty(len(right)), np.empty(len(keeps)), np.empty(len(keeps))
        by_constants, state = np.zeros(len(layout.constants)), np.zeros(layout.size)
        steps = list(zip(layout.steps, self.updates, strict=True))
        for step, (_, _, C, G, N, _) in steps:
            if len(step.new):
                state[layout.constants[step.new]] = 0.0
            here, now, constant = step.directions, step.now, state[step.constants]
            by_keep[step.nodes] = path = state[now] - constant
            state[now] = constant + keeps[step.nodes] * path
            mean[here] = known = step.J @ state[step.at]
            right[here] = slope = N @ right[here] - G @ known
            state += slope.astype(single) @ C
        state[:] = 0.0  # λ
        for step, (_, S, C, G, _, path) in reversed(steps):
            here, now, keep = step.directions, step.now, keeps[step.nodes]
            later = C @ state.astype(single)
            slope = right[here] - G @ later
            mean[here] += S @ slope + later
            state[step.at] += slope @ step.J
            by_new[step.nodes] = by_now = state[now]
            state[step.constants] += (1.0 - keep) * by_now
            state[now] = keep * by_now
            by_keep[step.nodes] += path @ state.astype(single)
            if len(step.new):
                came = layout.constants[step.new]
                by_constants[step.new], state[came] = state[came], 0.0
        return Moments(mean, by_new, by_keep * by_new, by_constants)

    @cached_property
    def covariances(self) -> Moments:
        """Of the directions of each step, back to the earliest that is wanted."""
        layout, n, single = self.prior.layout, len(self.prior.constants), self.prior.dtype
        cov, keeps = np.empty(layout.steps[-1].square.stop), self.prior.keep.astype(single)
        by_new, by_keep = np.empty((2, len(keeps)))
        by_constants, later = np.zeros((n, n)), np.zeros((layout.size, layout.size), single)
        earliest = min((number for number, _ in layout.whole.values()), default=-1)
        for i in range(len(layout.steps) - 1, -1, -1):
            step, (J, S, C, G, N, path) = layout.steps[i], self.updates[i]
            D = C @ later
            X = (D @ C.T).astype(float)
            cov[step.square] = (S @ N - N.T @ X @ N).ravel()
            if i == earliest:
                break
            at, now, beside, keep = step.at, step.now, step.constants, keeps[step.nodes]
            p, k, slots = len(at), len(now), np.append(at, beside)
            D = G.astype(single) @ D
            D[:, at] -= (0.5 * (G + G @ X @ G)).astype(single) @ J
            D = J.T @ D
            rows = later.take(slots, axis=0)
            rows[:p] -= D
            rows[:, at] -= D.take(slots, axis=1).T
            moved = rows.take(now, axis=1)
            by_new[step.nodes] = np.diagonal(moved)
            rows[:, beside] += (1.0 - keep) * moved
            rows[:, now] = keep * moved
            by_keep[step.nodes] = np.einsum("ij,ij->i", path, rows[:k])
            rows[p:] += (1.0 - keep)[:, None] * rows[:k]
            rows[:k] *= keep[:, None]
            later[slots], later[:, slots] = rows, rows.T
            if len(step.new):
                came = layout.constants[step.new]
                by_constants[np.ix_(step.new, step.new)] = later[np.ix_(came, came)]
                later[came] = later[:, came] = 0.0
        return Moments(cov, by_new, by_keep, by_constants)

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
        gap = np.where(np.isfinite(prior.layout.gap), prior.layout.gap, 0.0)
        keep, fade = prior.keep, prior.keep * gap / prior.timescale  # ∂φ/∂ log ℓ
        by_new = 0.5 * prior.variance * (mean.by_new**2 - cov.by_new)
        by_keep = mean.by_keep - cov.by_keep - 2.0 * keep * by_new
        by_K = 0.5 * (np.outer(mean.by_constants, mean.by_constants) - cov.by_constants)
        return by_K, float(by_new @ (1.0 - keep**2)), float(by_keep @ fade)
