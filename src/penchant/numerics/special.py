"""Logarithms of distribution functions, with derivatives that stay right far in the tails."""

import numpy as np
from scipy.special import erfcx, ndtr

from penchant.numerics.types import FloatArray

_SQRT_HALF = np.sqrt(0.5)
_SQRT_HALF_PI = np.sqrt(0.5 * np.pi)
_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)

# Below this point z + N(z)/Φ(z) cancels, and 16 levels of the fraction reach machine precision.
_TAIL = -8.0
_FRACTION_DEPTH = 16

_LARGE = 4.0  # beyond it Φ(−z)/N(z) is better had from erfcx, at three times the price

_CHUNK = 1 << 13  # temporaries of this length stay in cache: twice as fast on long arrays

Derivatives = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def log_ndtr_derivatives(z: FloatArray) -> Derivatives:
    """log Φ(z) and its first three derivatives, for the price of one ndtr, one exp, two logs.

    With h = N(z)/Φ(z) they are h, −h(z + h) and h((z + h)(z + 2h) − 1). Finite and accurate
    in every digit that matters down to z near −1e150.

    >>> import numpy as np
    >>> [float(d[0]) for d in log_ndtr_derivatives(np.array([-1e100]))]
    [-5e+199, 1e+100, -1.0, 2e-300]
    """
    value, first, second, third = _log_ndtr_rows(z, 4)
    return value, first, second, third


def log_ndtr_slopes(z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log Φ(z) and its first two derivatives, as `log_ndtr_derivatives` has them."""
    value, first, second = _log_ndtr_rows(z, 3)
    return value, first, second


def _log_ndtr_rows(z: FloatArray, n_rows: int) -> FloatArray:
    flat = z.ravel()
    out = np.empty((n_rows, flat.size))
    for start in range(0, flat.size, _CHUNK):
        piece = slice(start, start + _CHUNK)
        _log_ndtr_piece(flat[piece], out[:, piece])
    return out.reshape(n_rows, *z.shape)


def _log_ndtr_piece(z: FloatArray, out: FloatArray) -> None:
    size = np.abs(z)
    log_density = -0.5 * size * size - _LOG_SQRT_2PI
    density = np.exp(log_density)
    upper_tail = ndtr(-size)
    below, far, large = z < 0, z < _TAIL, size > _LARGE
    if large.any():
        mills = upper_tail / np.where(large, 1.0, density)
        mills[large] = _SQRT_HALF_PI * erfcx(_SQRT_HALF * size[large])
    else:
        mills = upper_tail / density  # Φ(−|z|)/N(z)
    # Φ(z) is mills · N(z) below zero and 1 − upper_tail above: each form where it has digits.
    mass = np.where(below, mills, 1.0 - upper_tail)
    out[0] = np.where(below, np.log(mills) + log_density, np.log1p(-upper_tail))
    hazard = np.where(below, 1.0, density) / mass
    excess = np.where(far, 0.0, z + hazard)
    out[1], out[2] = hazard, -hazard * excess
    if len(out) > 3:
        out[3] = hazard * (excess * (excess + hazard) - 1.0)
    if far.any():
        for row, tail in zip(out[1:], _hazard_in_tail(size[far]), strict=False):
            row[far] = tail


def _hazard_in_tail(x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The three derivatives of log Φ at −x for large x, from Laplace's continued fraction.

    h(−x) = x + e₁ with e_k = 1/(x + (k+1) e_{k+1}); the cancelling differences of the closed
    forms turn into products: h(z + h) = (x + e₁) e₁ and d3 = 2 h e₁² e₂ (3e₃ − 2e₂).
    """
    levels = [np.zeros_like(x)]
    for k in range(_FRACTION_DEPTH, 0, -1):
        levels.append(1.0 / (x + (k + 1) * levels[-1]))
    e3, e2, e1 = levels[-3:]
    hazard = x + e1
    # h e₁ ≤ 1 exactly; forming e₁ first keeps every product in range for x near 1e150.
    return hazard, -hazard * e1, 2.0 * (hazard * e1) * e1 * (e2 * (3.0 * e3 - 2.0 * e2))


def log_expit_derivatives(g: FloatArray) -> Derivatives:
    """log σ(g) of the logistic function σ and its first three derivatives.

    >>> import numpy as np
    >>> [float(d[0]) for d in log_expit_derivatives(np.array([-1000.0]))]
    [-1000.0, 1.0, -0.0, -0.0]
    """
    decay = np.exp(-np.abs(g))
    small = decay / (1.0 + decay)  # σ(−|g|)
    lose = np.where(g < 0, 1.0 - small, small)  # σ(−g)
    value = np.minimum(g, 0.0) - np.log1p(decay)
    second = -small * (1.0 - small)
    return value, lose, second, second * (2.0 * lose - 1.0)
