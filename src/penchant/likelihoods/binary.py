"""Probit and logit: a comparison has a winner and nothing else.

Their log-likelihoods, log Φ(g) and log σ(g), come with three derivatives that keep their digits
far in the tails.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, ndtr

from penchant.likelihoods.base import WINS, Likelihood, LogProb, Outcomes, Tilted
from penchant.numerics import quadrature
from penchant.numerics.types import FloatArray, IntArray

# The probit (Thurstone) likelihood: a win if g + N(0, 1) is positive.

_SQRT_HALF = np.sqrt(0.5)
_SQRT_HALF_PI = np.sqrt(0.5 * np.pi)
_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)

_TAIL = -8.0  # below it z + N(z)/Φ(z) cancels, and the continued fraction is used
_FRACTION_DEPTH = 16  # levels of the continued fraction: machine precision below _TAIL
_LARGE = 4.0  # beyond it Φ(−z)/N(z) comes from erfcx, which costs three times as much
_CHUNK = 1 << 13  # temporaries of this length stay in cache: twice as fast on long arrays


@dataclass(frozen=True)
class Probit(Likelihood):
    """P(win | g) = Φ(g): Gaussian noise of variance one on the difference; no parameters.

    >>> import numpy as np
    >>> Probit().prob(np.array([0.0, 2.0]), np.array([1.0, 3.0])).round(4)
    array([0.5   , 0.8413])
    """

    log_concave: ClassVar[bool] = True

    @property
    def choice_scale(self) -> float:
        return 1.702  # the κ for which σ(κ g) is nearest to Φ(g)

    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        return LogProb(*_log_ndtr(g, 3))

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        scale = np.sqrt(1.0 + var)
        log_z, d1, d2 = _log_ndtr(mean / scale, 2)  # 000, Eq. 11
        return Tilted(log_z, d1 / scale, -d2 / (1.0 + var))

    def prob(self, mean: FloatArray, var: FloatArray) -> FloatArray:
        return np.asarray(ndtr(mean / np.sqrt(1.0 + var)))


def _log_ndtr(z: FloatArray, n_derivatives: int) -> FloatArray:
    """log Φ(z) and its first two or three derivatives, (n_derivatives + 1, *z.shape).

    With h = N(z)/Φ(z) they are h, −h(z + h) and h((z + h)(z + 2h) − 1). All are finite and
    accurate down to z near −1e150. The cost is one ndtr, one exp and two logs.
    """
    flat = z.ravel()
    out = np.empty((n_derivatives + 1, flat.size))
    for start in range(0, flat.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        _fill_log_ndtr(flat[part], out[:, part])
    return out.reshape(len(out), *z.shape)


def _fill_log_ndtr(z: FloatArray, out: FloatArray) -> None:
    size = np.abs(z)
    log_density = -0.5 * size * size - _LOG_SQRT_2PI
    density = np.exp(log_density)
    upper_tail = ndtr(-size)
    below, far, large = z < 0, z < _TAIL, size > _LARGE
    mills = upper_tail / np.where(large, 1.0, density)  # Φ(−|z|)/N(z)
    if large.any():
        mills[large] = _SQRT_HALF_PI * erfcx(_SQRT_HALF * size[large])
    # Φ(z) is mills · N(z) below zero and 1 − upper_tail above: each form where it has digits.
    mass = np.where(below, mills, 1.0 - upper_tail)
    out[0] = np.where(below, np.log(mills) + log_density, np.log1p(-upper_tail))
    hazard = np.where(below, 1.0, density) / mass
    excess = np.where(far, 0.0, z + hazard)
    out[1], out[2] = hazard, -hazard * excess
    if len(out) > 3:
        out[3] = hazard * (excess * (excess + hazard) - 1.0)
    if far.any():
        for row, tail in zip(out[1:], _log_ndtr_tail(size[far]), strict=False):
            row[far] = tail


def _log_ndtr_tail(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The three derivatives of log Φ at −x for large x, from Laplace's continued fraction.

    h(−x) = x + e₁ with e_k = 1/(x + (k+1) e_{k+1}). The differences of the closed forms, which
    cancel, become products: h(z + h) = (x + e₁) e₁ and d3 = 2 h e₁² e₂ (3e₃ − 2e₂).
    """
    levels = [np.zeros_like(x)]
    for k in range(_FRACTION_DEPTH, 0, -1):
        levels.append(1.0 / (x + (k + 1) * levels[-1]))
    e3, e2, e1 = levels[-3:]
    hazard = x + e1
    # h e₁ ≤ 1 exactly; forming e₁ first keeps every product in range for x near 1e150.
    return hazard, -hazard * e1, 2.0 * (hazard * e1) * e1 * (e2 * (3.0 * e3 - 2.0 * e2))


# The logit (Bradley–Terry) likelihood: the odds of a win are exp(g).

_RESOLUTION = 0.63  # σ is analytic within π of the real line: log Z errs by less than 1e-10
_STEPS = 24  # nodes of the logistic rule; from sd 4 on, log Z errs by less than 1e-10
_DEEP = -30.0  # below this many standard deviations Φ nears underflow
_INV_SQRT_2PI = 1.0 / np.sqrt(2.0 * np.pi)


@dataclass(frozen=True)
class Logit(Likelihood):
    """P(win | g) = 1/(1 + exp(−g)): logistic noise on the difference; no parameters.

    >>> import numpy as np
    >>> Logit().prob(np.array([0.0, 2.0]), np.array([1.0, 0.0])).round(4)
    array([0.5   , 0.8808])
    """

    log_concave: ClassVar[bool] = True

    @property
    def choice_scale(self) -> float:
        return 1.0

    def log_prob(self, g: FloatArray, outcomes: Outcomes = WINS) -> LogProb:
        decay = np.exp(-np.abs(g))
        small = decay / (1.0 + decay)  # σ(−|g|)
        lose = np.where(g < 0, 1.0 - small, small)  # σ(−g)
        value = np.minimum(g, 0.0) - np.log1p(decay)
        second = -small * (1.0 - small)
        return LogProb(value, lose, second, second * (2.0 * lose - 1.0))

    def tilted(self, mean: FloatArray, var: FloatArray, outcomes: Outcomes = WINS) -> Tilted:
        # σ(g) = e^g σ(−g), and e^g shifts the Gaussian by v: Z(m) = e^(m + v/2) Z(−m − v). The
        # larger of the two Z is computed, so that nothing underflows or loses digits.
        low = mean < -0.5 * var
        upper = np.where(low, -mean - var, mean)
        sd = np.sqrt(var)
        out = Tilted(*np.empty((3, mean.size)))
        for rows, x, w in quadrature.narrow_groups(sd, _RESOLUTION):
            _store(out, rows, _average_of_sigmoids(upper[rows], sd[rows], x, w))
        wide = quadrature.wide_rows(sd)
        deep = upper[wide] < _DEEP * sd[wide]
        for rows in quadrature.chunks(wide[~deep], _STEPS):
            _store(out, rows, _average_of_steps(upper[rows], sd[rows]))
        if deep.any():
            _store(out, wide[deep], super().tilted(upper[wide[deep]], var[wide[deep]]))
        log_z, d1, d2 = out
        return Tilted(
            np.where(low, mean + 0.5 * var + log_z, log_z), np.where(low, 1.0 - d1, d1), d2
        )


def _store(out: Tilted, rows: IntArray, part: Tilted) -> None:
    for column, values in zip(out, part, strict=True):
        column[rows] = values


def _average_of_sigmoids(mean: FloatArray, sd: FloatArray, x: FloatArray, w: FloatArray) -> Tilted:
    """Z = E[σ(mean + sd·x)] by a rule (x, w) for the standard normal."""
    odds = np.exp(-mean - np.multiply.outer(x, sd))
    win = 1.0 / (1.0 + odds)
    lose = odds * win
    z = w @ win
    win *= lose
    d1 = (w @ win) / z  # E[1 − σ] under the tilted density
    win *= lose
    return Tilted(np.log(z), d1, d1 * (1.0 + d1) - 2.0 * (w @ win) / z)


def _average_of_steps(mean: FloatArray, sd: FloatArray) -> Tilted:
    """Z = E[Φ((mean − s)/sd)] over logistic s: σ is the average of the steps 1[g > s].

    Seen from a wide Gaussian the steps are smooth, and few nodes s suffice.
    """
    s, w = quadrature.logistic_rule(_STEPS)
    u = (mean - s[:, None]) / sd
    density = _INV_SQRT_2PI * np.exp(-0.5 * u * u)
    z = w @ ndtr(u)
    d1 = (w @ density) / (z * sd)
    return Tilted(np.log(z), d1, d1 * d1 + (w @ (u * density)) / (z * sd * sd))
