"""The probit (Thurstone) likelihood: a win if g + N(0, 1) is positive.

log Φ(g) and its three derivatives keep their digits far in the tails.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import erfcx, ndtr

from penchant.likelihoods.base import WINS, Likelihood, LogProb, Outcomes, Tilted
from penchant.numerics.types import FloatArray

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
