"""Paths of all items as one Gaussian, block-tridiagonal in time: exact, and linear in periods.

g = x_t[w] − x_t[l] + c[w] − c[l] + zᵀβ.  Every x[i] is an Ornstein–Uhlenbeck path, c ~ N(0, K) and
β ~ N(0, diag(sd²)) stand beside all periods (the *border*). Between neighbouring periods paths are
coupled by a number o_t times the identity, so that with L_t the Laplacian of a period's comparisons

    D_t = L_t + d_t I − o²_{t−1} D⁻¹_{t−1}     forwards,
    Σ_t = D⁻¹_t + o²_t D⁻¹_t Σ_{t+1} D⁻¹_t     backwards:

one n × n inverse a period. The border is eliminated by its Schur complement.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from scipy.linalg import lapack

from penchant.data import Comparisons
from penchant.errors import DataError, NumericalError
from penchant.gp.effects import PRIOR_SD, Covariates
from penchant.gp.rows import Rows
from penchant.likelihoods import Outcomes
from penchant.numerics.linalg import cholesky, gram, log_det_lower, solve_lower
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


@dataclass(frozen=True)
class PathPrior:
    """K of the constants, (T,) days of the periods, and the paths' variance and timescale.

    place: (m,) each meeting's row among `days`.
    """

    constants: FloatArray
    days: FloatArray
    variance: float
    timescale: float
    rows: Rows
    place: IntArray
    residual: float = 0.0
    space: str = "items × periods"

    @property
    def shown(self) -> Covariates:
        """The rows' further points: the order shown and covariates, none or more."""
        return cast(Covariates, self.rows.shown)

    @property
    def rank(self) -> int:
        """Items times periods."""
        return len(self.constants) * len(self.days)

    @property
    def flops(self) -> float:
        """Of a sweep's dense algebra."""
        return 8.0 * len(self.days) * float(len(self.constants)) ** 3

    def coarse(self, tolerance: float) -> "PathPrior":
        """There is no coarser one."""
        return self

    @cached_property
    def keep(self) -> FloatArray:
        """(T − 1,) ρ = exp(−Δ/ℓ), what a path keeps of itself from period to period."""
        return np.exp(-np.diff(self.days) / self.timescale)

    @cached_property
    def renewed(self) -> FloatArray:
        """(T − 1,) variance of what is new, σ² (1 − ρ²)."""
        return -self.variance * np.expm1(-2.0 * np.diff(self.days) / self.timescale)

    @cached_property
    def chain(self) -> tuple[FloatArray, FloatArray]:
        """Diagonal (T,) and neighbours (T − 1,) of a path's precision."""
        own = np.append(1.0 / self.variance, 1.0 / self.renewed)
        own[:-1] += self.keep**2 / self.renewed
        return own, -self.keep / self.renewed

    @cached_property
    def border(self) -> tuple[FloatArray, float]:
        """Prior precision of constants and effects, and its log determinant."""
        n, sd = len(self.constants), self.shown.sd
        lower = cholesky(self.constants).lower
        precision = np.diag(np.append(np.ones(n), sd**-2))
        precision[:n, :n] = gram(solve_lower(lower, np.eye(n)))
        return precision, -log_det_lower(lower) - 2.0 * float(np.log(sd).sum())

    def refresh(self, weight: FloatArray, shift: FloatArray) -> "PathState":
        """Condition on sites: O(T n³)."""
        n, T = len(self.constants), len(self.days)
        z, q = self.shown.z.T, len(self.shown.z)
        # right-hand sides: the sites' shift, then what couples paths to constants and to effects
        right = np.empty((T, n, 1 + n + q))
        right[:, :, 0] = self.collect(shift)
        right[:, :, 1 : n + 1] = laplacians = self._laplacians(weight)
        for k in range(q):
            right[:, :, 1 + n + k] = self.collect(weight * z[:, k])
        inverse, log_det = self._eliminate(laplacians)
        solved = self.substitute(inverse, right)
        V = solved[:, :, 1:]
        precision, border_log_det = self.border
        S = precision.copy()
        S[:n, :n] += laplacians.sum(axis=0)
        S[:n, n:] += right[:, :, n + 1 :].sum(axis=0)
        S[n:, :n] = S[:n, n:].T
        S[n:, n:] += z.T @ (weight[:, None] * z)
        S -= np.einsum("tib,tic->bc", right[:, :, 1:], V, optimize=True)
        lower, jitter = cholesky(0.5 * (S + S.T), max_jitter=0.0)
        paths, beside = self.join(solved[:, :, 0], right[:, :, 0], shift, V, lower)
        prior_log_det = -n * (np.log(self.variance) + np.log(self.renewed).sum()) + border_log_det
        log_det += log_det_lower(lower) - prior_log_det
        return PathState(self, shift, paths, beside, V, inverse, lower, log_det, jitter)

    def join(
        self, alone: FloatArray, right: FloatArray, y: FloatArray, V: FloatArray, lower: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Paths, and constants and effects, from the paths `alone` (T, n); right: Aᵀ y, (T, n)."""
        pulled = np.append(right.sum(axis=0), self.shown.z @ y)
        pulled -= np.einsum("tib,ti->b", V, right, optimize=True)
        beside = solve_lower(lower, solve_lower(lower, pulled), transposed=True)
        return alone - V @ beside, beside

    def collect(self, values: FloatArray) -> FloatArray:
        """(T, n) Aᵀ values."""
        T, n = len(self.days), len(self.constants)
        won = np.bincount(self.place * n + self.rows.winner, values, T * n)
        lost = np.bincount(self.place * n + self.rows.loser, values, T * n)
        return np.asarray(won - lost).reshape(T, n)

    def _laplacians(self, weight: FloatArray) -> FloatArray:
        """(T, n, n) L_t."""
        T, n = len(self.days), len(self.constants)
        winner, loser = self.rows.winner, self.rows.loser
        L = np.zeros((T, n, n))
        np.add.at(L, (self.place, winner, loser), -weight)
        np.add.at(L, (self.place, loser, winner), -weight)
        every = np.arange(n)
        L[:, every, every] = -L.sum(axis=2)
        return L

    def _eliminate(self, laplacians: FloatArray) -> tuple[FloatArray, float]:
        """(T, n, n) D⁻¹_t, and Σ log |D_t|."""
        own, beside = self.chain
        inverse = np.empty_like(laplacians)
        total, every = 0.0, np.arange(len(self.constants))
        for t, L in enumerate(laplacians):
            D = L.copy()
            D[every, every] += own[t]
            if t:
                D -= beside[t - 1] ** 2 * inverse[t - 1]
            factor, info = lapack.dpotrf(D, lower=1)
            if info:
                raise NumericalError("the precision of the paths is not positive definite")
            total += 2.0 * float(np.log(np.diagonal(factor)).sum())
            found, _ = lapack.dpotri(factor, lower=1)
            inverse[t] = np.tril(found) + np.tril(found, -1).T
        return inverse, total

    def substitute(self, inverse: FloatArray, right: FloatArray) -> FloatArray:
        """Paths that solve for right-hand sides (T, n, k)."""
        beside = self.chain[1]
        solved = right.copy()
        for t in range(1, len(right)):
            solved[t] -= beside[t - 1] * (inverse[t - 1] @ solved[t - 1])
        solved[-1] = inverse[-1] @ solved[-1]
        for t in range(len(right) - 2, -1, -1):
            solved[t] = inverse[t] @ (solved[t] - beside[t] * solved[t + 1])
        return solved


@dataclass(frozen=True)
class PathState:
    """Posterior of paths (T, n), and of constants and effects (n + q,) beside them.

    V: (T, n, n + q) how paths answer to what stands beside them; inverse: (T, n, n) D⁻¹;
    lower: factor of the border's precision once paths are integrated out.
    """

    prior: PathPrior
    shift: FloatArray
    paths: FloatArray
    beside: FloatArray
    V: FloatArray
    inverse: FloatArray
    lower: FloatArray
    log_det: float
    jitter: float

    @cached_property
    def mean(self) -> FloatArray:
        return self.differences(self.paths, self.beside)

    @property
    def quadratic(self) -> float:
        return float(self.shift @ self.mean)

    def differences(self, paths: FloatArray, beside: FloatArray) -> FloatArray:
        """(m,) g of the rows."""
        prior = self.prior
        rows, n = prior.rows, len(prior.constants)
        utility = paths + beside[:n]
        g = utility[prior.place, rows.winner] - utility[prior.place, rows.loser]
        return np.asarray(g + prior.shown.z.T @ beside[n:])

    @cached_property
    def blocks(self) -> FloatArray:
        """(T, n, n) covariance of paths within a period, given what stands beside them."""
        beside, inverse = self.prior.chain[1], self.inverse
        blocks = inverse.copy()
        for t in range(len(blocks) - 2, -1, -1):
            blocks[t] += beside[t] ** 2 * (inverse[t] @ blocks[t + 1] @ inverse[t])
        return blocks

    @cached_property
    def border_cov(self) -> FloatArray:
        """(n + q, n + q) covariance of constants and effects."""
        return gram(solve_lower(self.lower, np.eye(len(self.lower))))

    @cached_property
    def var(self) -> FloatArray:
        prior, rows = self.prior, self.prior.rows
        n, t, w, l = len(prior.constants), prior.place, rows.winner, rows.loser  # noqa: E741
        own = self.blocks[t, w, w] + self.blocks[t, l, l] - 2.0 * self.blocks[t, w, l]
        u = self.V[t, l] - self.V[t, w]
        every = np.arange(len(w))
        u[every, w] += 1.0
        u[every, l] -= 1.0
        u[:, n:] += prior.shown.z.T
        half = solve_lower(self.lower, u.T)
        return np.asarray(np.maximum(own, 0.0) + np.einsum("ij,ij->j", half, half))

    def covariance_times(self, y: FloatArray) -> FloatArray:
        right = self.prior.collect(y)
        alone = self.prior.substitute(self.inverse, right[:, :, None])[:, :, 0]
        return self.differences(*self.prior.join(alone, right, y, self.V, self.lower))

    def at(self, t: int) -> tuple[FloatArray, FloatArray]:
        """Mean (q + n,) and covariance of the effects, and of the utilities in a period."""
        n = len(self.prior.constants)
        cov = gram(solve_lower(self.lower, self.answer(t).T))
        q = len(cov) - n
        cov[q:, q:] += self.blocks[t]
        return np.append(self.beside[n:], self.paths[t] + self.beside[:n]), cov

    def answer(self, t: int) -> FloatArray:
        """(q + n, n + q) how effects, and utilities in a period, answer to constants and effects.

        Effects come first, as in `EffectPosterior`.
        """
        n, size = len(self.prior.constants), len(self.lower)
        through = np.roll(np.eye(size), size - n, axis=0)
        through[size - n :] -= self.V[t]
        return through

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """(T,) Σ_i E x_t² and (T − 1,) Σ_i E x_t x_{t+1}: what the paths' parameters answer to."""
        beside = self.prior.chain[1]
        half = solve_lower(self.lower, self.V.reshape(-1, self.V.shape[2]).T)
        half = half.reshape(-1, *self.paths.shape)
        square = np.einsum("tii->t", self.blocks) + np.einsum("bti,bti->t", half, half)
        lagged = -beside * np.einsum("tij,tji->t", self.inverse[:-1], self.blocks[1:])
        lagged += np.einsum("bti,bti->t", half[:, :-1], half[:, 1:])
        lagged += (self.paths[:-1] * self.paths[1:]).sum(axis=1)
        return square + (self.paths**2).sum(axis=1), lagged
