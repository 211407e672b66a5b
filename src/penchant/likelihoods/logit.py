"""The logit (Bradley–Terry) likelihood: the odds of a win are exp(g)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from penchant.likelihoods.base import WINS, Likelihood, LogProb, Outcomes, Tilted
from penchant.numerics import quadrature
from penchant.numerics.types import FloatArray

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
        out = np.empty((3, mean.size))
        for rows, x, w in quadrature.narrow_groups(sd, _RESOLUTION):
            out[:, rows] = _average_of_sigmoids(upper[rows], sd[rows], x, w)
        wide = quadrature.wide_rows(sd)
        deep = upper[wide] < _DEEP * sd[wide]
        for rows in quadrature.chunks(wide[~deep], _STEPS):
            out[:, rows] = _average_of_steps(upper[rows], sd[rows])
        if deep.any():
            out[:, wide[deep]] = super().tilted(upper[wide[deep]], var[wide[deep]])
        log_z, d1, d2 = out
        log_z = np.where(low, mean + 0.5 * var + log_z, log_z)
        return Tilted(log_z, np.where(low, 1.0 - d1, d1), d2)


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
