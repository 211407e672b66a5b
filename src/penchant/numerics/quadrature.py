"""One-dimensional Gaussian integrals of functions that vary on a scale near one.

Three rules, each accurate where it is used:

* ``normal_rule``: the trapezoidal rule on a normal density. For analytic integrands it
  converges exponentially in 1/step and needs fewer nodes than Gauss–Hermite, as long as the
  standard deviation is not much wider than the integrand's own scale.
* ``panels``: Gauss–Legendre on panels cut where likelihoods bend, for wide densities, in which
  Gauss–Hermite centred on the prior is wrong in the second digit.
* ``logistic_rule``: the Gauss rule of the logistic density.

Nodes lie on the leading axis, (q, m), so that per-edge arrays (m,) broadcast.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import numpy as np
from scipy.linalg import eigh_tridiagonal

from penchant.numerics.types import FloatArray, IntArray

_LOG_SQRT_2PI = 0.5 * np.log(2.0 * np.pi)
_WIDTHS = (0.5, 1.0, 2.0, 4.0)  # standard deviations that have a trapezoidal rule
WIDEST = _WIDTHS[-1]
_CUTS = np.array([-12.0, -3.0, 0.0, 3.0, 12.0])
_LEGENDRE = np.polynomial.legendre.leggauss(32)
PANEL_NODES = 32 * (_CUTS.size + 2)  # the most nodes of ``panels``, with one further cut
_REACH = 9.0  # standard deviations; what lies beyond is below 1e-18
_NEGLIGIBLE = 40.0  # a log-density this far below its maximum adds nothing
_DOUBLINGS = 64  # of a window; a density that needs more is a spike on a flat plateau
_CHUNK = 1 << 14  # node values at a time: they stay in cache however many edges there are

_NARROW_VARIANCE = 1e-4  # up to it moments of a tilted density lose digits; at zero there are none
_MOST_SHIFT = 2.0  # sd by which a likelihood may shift a Gaussian whose nodes still cover it
_MOST_CURVED = 2.0  # the largest second derivative of a log p that varies on a scale near one

LogProb = Callable[[FloatArray], Sequence[FloatArray]]
"""g (q, m) or (m,) → log p and its first two derivatives or more."""
LogProbOf = Callable[[IntArray, FloatArray], Sequence[FloatArray]]
"""The same for some of the rows: their numbers (k,), and g (q, k) or (k,)."""


def chunks(rows: IntArray, n_nodes: int) -> Iterator[IntArray]:
    """Pieces of ``rows`` so short that n_nodes values per row fit into the cache."""
    step = max(1, _CHUNK // n_nodes)
    return (rows[start : start + step] for start in range(0, rows.size, step))


def narrow_groups(
    sd: FloatArray, resolution: float
) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Rows of similar sd with the normal rule (x, w) for them, in chunks (rows, x, w)."""
    group = np.searchsorted(_WIDTHS, sd)
    for index, max_sd in enumerate(_WIDTHS):
        x, w = normal_rule(max_sd, resolution)
        for rows in chunks(np.flatnonzero(group == index), x.size):
            yield rows, x, w


def wide_rows(sd: FloatArray) -> IntArray:
    """The rows that ``narrow_groups`` leaves out (a NaN is wide, and stays a NaN)."""
    return np.flatnonzero(~(sd <= WIDEST))


@cache
def normal_rule(max_sd: float, resolution: float) -> tuple[FloatArray, FloatArray]:
    """Trapezoidal nodes x and weights w: E[F(x)] ≈ Σ w F(x) for x ~ N(0, 1), w sums to one.

    For F(x) = p(mean + sd·x) with sd ≤ max_sd; the nodes mean + sd·x are at most ``resolution``
    apart. With p analytic within a of the real line, the error is near exp(−2πa/resolution).

    >>> x, w = normal_rule(1.0, 0.63)
    >>> bool(abs(w @ x**4 - 3.0) < 1e-9)
    True
    """
    step = min(0.85, resolution / max_sd)  # the density itself costs exp(−2π²/step²)
    reach = int(np.ceil((7.4 + 0.5 * max_sd) / step))  # p may shift the mass by v/2
    x = step * np.arange(-reach, reach + 1.0)
    w = np.exp(-0.5 * x * x)
    return _frozen(x), _frozen(w / w.sum())


@cache
def logistic_rule(n_nodes: int) -> tuple[FloatArray, FloatArray]:
    """Gauss nodes and weights of the logistic density e⁻ˢ/(1 + e⁻ˢ)².

    Its orthogonal polynomials are continuous Hahn polynomials, whose recurrence coefficients
    k⁴π²/(4k² − 1) are known in closed form (Golub and Welsch give nodes from them).

    >>> s, w = logistic_rule(8)
    >>> bool(abs(w @ s**2 - np.pi**2 / 3) < 1e-12)
    True
    """
    k = np.arange(1.0, n_nodes)
    off_diagonal = np.pi * k**2 / np.sqrt(4.0 * k**2 - 1.0)
    nodes, vectors = eigh_tridiagonal(np.zeros(n_nodes), off_diagonal)
    return _frozen(nodes), _frozen(vectors[0] ** 2)


def _frozen(shared: FloatArray) -> FloatArray:
    shared.flags.writeable = False
    return shared


def panels(low: FloatArray, high: FloatArray, *cuts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gauss–Legendre nodes and weights (q, m) on [low, high], cut at −12, −3, 0, 3, 12.

    >>> g, w = panels(np.array([-1.0]), np.array([20.0]))
    >>> bool(abs((w * g**2).sum() - (20**3 + 1) / 3) < 1e-9)
    True
    """
    fixed = np.broadcast_to(_CUTS[:, None], (_CUTS.size, low.size))
    inner = np.sort(np.vstack([fixed, *cuts]), axis=0)
    edges = np.vstack([low, np.clip(inner, low, high), high])
    x, w = _LEGENDRE
    half = 0.5 * np.diff(edges, axis=0)
    centre = edges[:-1] + half
    nodes = centre[:, None] + half[:, None] * x[:, None]
    weights = half[:, None] * w[:, None]
    return nodes.reshape(-1, low.size), weights.reshape(-1, low.size)


def wide_nodes(mean: FloatArray, var: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Panelled nodes and weights (q, m): E[F(g)] ≈ Σ w F(g) for g ~ N(mean, var), var > 0."""
    sd = np.sqrt(var)
    g, w = panels(mean - _REACH * sd, mean + _REACH * sd)
    return g, w * np.exp(-0.5 * ((g - mean) / sd) ** 2 - _LOG_SQRT_2PI) / sd


def expected(log_prob: LogProbOf, mean: FloatArray, var: FloatArray) -> FloatArray:
    """(3, m) E[log p(g)] and E of its first two derivatives, for g ~ N(mean, var)."""
    sd = np.sqrt(var)
    averages = np.empty((3, mean.size))
    for rows, x, w in narrow_groups(sd, resolution=0.3):
        terms = log_prob(rows, mean[rows] + np.multiply.outer(x, sd[rows]))
        averages[:, rows] = [w @ term for term in terms[:3]]
    for rows in chunks(wide_rows(sd), PANEL_NODES):
        g, weight = wide_nodes(mean[rows], var[rows])
        averages[:, rows] = [(weight * term).sum(axis=0) for term in log_prob(rows, g)[:3]]
    return averages


def tilted(log_prob: LogProbOf, mean: FloatArray, var: FloatArray, log_concave: bool) -> FloatArray:
    """(3, m) log Z of p(g) N(g | mean, var), ∂log Z/∂mean and −∂²log Z/∂mean²."""
    found = np.empty((3, mean.size))
    is_narrow = var <= _NARROW_VARIANCE
    narrow = np.flatnonzero(is_narrow)
    if narrow.size:
        at = np.ones(narrow.size), mean[narrow], var[narrow], log_concave
        found[:, narrow] = tilted_power(lambda rows, g: log_prob(narrow[rows], g), *at)
    for rows in chunks(np.flatnonzero(~is_narrow), PANEL_NODES):
        log_z, shift, ratio = tilted_moments(
            partial(log_prob, rows), mean[rows], var[rows], log_concave
        )
        # Moments of the tilted density give the derivatives: its mean is m + v d1, its variance
        # v − v² d2. Averages of derivatives are less accurate where v is large.
        found[:, rows] = log_z, shift / np.sqrt(var[rows]), (1.0 - ratio) / var[rows]
    return found


def tilted_power(
    log_prob: LogProbOf, power: FloatArray, mean: FloatArray, var: FloatArray, log_concave: bool
) -> FloatArray:
    """`tilted` for p to a power (m,) between 0 and 1, divided by the power.

    Averages of derivatives keep their digits however small the power is.
    """
    found = np.empty((3, mean.size))
    for rows, log_z, _, mass, terms in power_nodes(log_prob, power, mean, var, log_concave):
        c, slope, curvature = power[rows], terms[1], terms[2]
        d1 = (mass * slope).sum(axis=0)
        d2 = -(mass * (curvature + c * (slope - d1) ** 2)).sum(axis=0)
        found[:, rows] = log_z / c, d1, d2
    return found


def power_nodes(
    log_prob: LogProbOf, power: FloatArray, mean: FloatArray, var: FloatArray, log_concave: bool
) -> Iterator[tuple[IntArray, FloatArray, FloatArray, FloatArray, Sequence[FloatArray]]]:
    """Quadrature of p(g)^power N(g | mean, var), in chunks: rows, log Z, nodes g and weights, and
    `log_prob` at the nodes."""
    sd = np.sqrt(var)
    _, slope, curvature, *_ = log_prob(np.arange(mean.size), mean)
    shift = power * sd * np.abs(slope)  # at most, in units of sd
    bend = np.abs(curvature) * np.minimum(1.0, 20.0 * var)  # little within a narrow Gaussian
    near = np.flatnonzero((shift <= _MOST_SHIFT) & (bend <= _MOST_CURVED))
    for some, x, w in narrow_groups(sd[near], resolution=0.3):
        rows = near[some]
        g = mean[rows] + np.multiply.outer(x, sd[rows])
        terms = log_prob(rows, g)
        log_mass = power[rows] * terms[0]
        top = log_mass.max(axis=0)
        mass = w[:, None] * np.exp(log_mass - top)
        total = mass.sum(axis=0)
        yield rows, top + np.log(total), g, mass / total, terms
    far = np.setdiff1d(np.arange(mean.size), near[sd[near] <= WIDEST])
    for rows in chunks(far, PANEL_NODES):

        def to_power(g: FloatArray, rows: IntArray = rows) -> Sequence[FloatArray]:
            return [power[rows] * term for term in log_prob(rows, g)]

        log_z, g, mass = tilted_nodes(to_power, mean[rows], var[rows], log_concave)
        yield rows, log_z, g, mass, log_prob(rows, g)


def tilted_moments(
    log_prob: LogProb, mean: FloatArray, var: FloatArray, log_concave: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log Z of p(g) N(g | mean, var), and mean and variance of (g − mean)/sd under it."""
    log_z, g, mass = tilted_nodes(log_prob, mean, var, log_concave)
    x = (g - mean) / np.sqrt(var)
    shift = (mass * x).sum(axis=0)
    return log_z, shift, (mass * (x - shift) ** 2).sum(axis=0)


def tilted_nodes(
    log_prob: LogProb, mean: FloatArray, var: FloatArray, log_concave: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log Z (m,) of p(g) N(g | mean, var), var > 0, and nodes and weights (q, m) of the density
    p(g) N(g | mean, var) / Z; weights sum to one.

    ``log_prob`` gives log p and its first two derivatives at nodes (q, m) or (m,).
    """
    sd = np.sqrt(var)
    if log_concave:
        mode = _tilted_mode(log_prob, mean, var)
        low, high = _tilted_window(log_prob, mode, mean, sd)
        g, w = panels(low, high, mode)
    else:
        g, w = panels(mean - _REACH * sd, mean + _REACH * sd)
    x = (g - mean) / sd
    log_density = log_prob(g)[0] - 0.5 * x * x
    top = log_density.max(axis=0)
    mass = w * np.exp(log_density - top)
    total = mass.sum(axis=0)
    mass /= total
    return top + np.log(total / sd) - _LOG_SQRT_2PI, g, mass


def _tilted_mode(log_prob: LogProb, mean: FloatArray, var: FloatArray) -> FloatArray:
    """The mode of a log-concave p times N(mean, var), near enough to centre a window on."""
    slope = log_prob(mean)[1]
    # p's slope falls with g, so the mode lies between the mean and one full step from it.
    low = np.minimum(mean, mean + var * slope)
    high = np.maximum(mean, mean + var * slope)
    g = mean.copy()
    for _ in range(30):
        _, d1, d2, *_ = log_prob(g)
        gradient = d1 - (g - mean) / var
        low = np.where(gradient > 0, g, low)
        high = np.where(gradient > 0, high, g)
        newton = g + gradient / (1.0 / var - d2)
        g = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
    return g


def _tilted_window(
    log_prob: LogProb, mode: FloatArray, mean: FloatArray, sd: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """An interval around the mode outside of which p(g) N(g | mean, sd²) is negligible.

    It starts at the curvature's scale, which may be far below sd, and widens where the density
    is skewed; being more concave than the prior, the density ends within 9 sd of its mode.
    """

    def log_density(g: FloatArray) -> FloatArray:
        return log_prob(g)[0] - 0.5 * ((g - mean) / sd) ** 2

    top = log_density(mode)
    scale = 1.0 / np.sqrt(1.0 / sd**2 - log_prob(mode)[2])
    ends = []
    for side in (-1.0, 1.0):
        reach = _REACH * scale
        for _ in range(_DOUBLINGS):
            drop = top - log_density(mode + side * reach)
            short = (drop < _NEGLIGIBLE) & (reach < _REACH * sd)
            if not short.any():
                break
            reach = np.where(short, np.minimum(2.0 * reach, _REACH * sd), reach)
        else:
            reach = np.where(short, _REACH * sd, reach)
        ends.append(mode + side * reach)
    return ends[0], ends[1]
