"""Criteria: which question teaches most, one function of the belief for each.

A criterion takes (belief, pairs (k, 2), rng) and returns scores (k,); the pair with the highest
score is asked. Scores do not depend on which item of a pair stands first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import entr, ndtr

from penchant.ask.belief import Belief
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray, IntArray

Score = Callable[[Belief, IntArray, np.random.Generator], FloatArray]

BLOCK = 1 << 14
"""Pairs scored together: their temporaries stay in cache."""
_CERTAIN = 40.0
"""Standard deviations beyond which a normal density is zero in double precision."""
_SQRT_2PI = np.sqrt(2.0 * np.pi)
_WIDTHS = np.geomspace(0.3, 3.0, 8)
_GRID = np.concatenate([np.linspace(0.0, 10.0, 1001), np.geomspace(10.05, 200.0, 400)])
_PROBES = np.geomspace(1e-9, 200.0, 455)
_NARROW = 0.3
"""If the answer's entropy decays within this difference of utilities, the grid is rescaled."""


@dataclass(frozen=True)
class Criterion:
    """A score, and whether it depends on variances: then a batch updates them after each pick.

    >>> CRITERIA["information_gain"].reads_variances, CRITERIA["random"].reads_variances
    (True, False)
    """

    score: Score
    reads_variances: bool


CRITERIA: dict[str, Criterion] = {}
"""Every criterion by name."""


def criterion(reads_variances: bool) -> Callable[[Score], Score]:
    """Decorator: register a score under its function's name; see `Criterion`.

    >>> @criterion(reads_variances=False)
    ... def closest(joint, pairs, rng):
    ...     return -abs(joint.mean[pairs[:, 0]] - joint.mean[pairs[:, 1]])
    >>> CRITERIA.pop("closest").reads_variances
    False
    """

    def register(score: Score) -> Score:
        CRITERIA[score.__name__] = Criterion(score, reads_variances)
        return score

    return register


def _in_blocks(
    belief: Belief, pairs: IntArray, score: Callable[[FloatArray, FloatArray, IntArray], FloatArray]
) -> FloatArray:
    """Score (mean, variance, pairs) of the differences, a block at a time."""
    scores = np.empty(len(pairs))
    for start in range(0, len(pairs), BLOCK):
        part = pairs[start : start + BLOCK]
        mean, var = belief.difference(part[:, 0], part[:, 1])
        scores[start : start + BLOCK] = score(mean, var, part)
    return scores


@criterion(reads_variances=True)
def variance_ratio(belief: Belief, pairs: IntArray, rng: np.random.Generator) -> FloatArray:
    """Variance of the difference over its squared mean (000, section 5): close and uncertain.

    Where means are equal, as before the first answer, the larger variance scores higher.
    """
    # variances of differences, since the overall level is not identified
    everything = np.arange(len(belief))
    spread = belief.difference(everything, np.zeros_like(everything)).var
    least = 1e-12 * max(float(spread.max()), 1e-300)

    def score(mean: FloatArray, var: FloatArray, _: IntArray) -> FloatArray:
        return var / (mean * mean + least)

    return _in_blocks(belief, pairs, score)


@criterion(reads_variances=True)
def information_gain(belief: Belief, pairs: IntArray, rng: np.random.Generator) -> FloatArray:
    """Mutual information, in nats, between the answer and the utilities: H[E p] − E[H[p]].

    The second term is the noise of the respondent: a coin toss for them teaches nothing.
    """
    likelihood = belief.likelihood
    expected_entropy = _expected_entropy(likelihood)

    def score(mean: FloatArray, var: FloatArray, _: IntArray) -> FloatArray:
        return np.maximum(_entropy(likelihood, mean, var) - expected_entropy(mean, var), 0.0)

    return _in_blocks(belief, pairs, score)


@criterion(reads_variances=True)
def expected_best(belief: Belief, pairs: IntArray, rng: np.random.Generator) -> FloatArray:
    """Expected utility of the better of the two: for finding the best item, not the order."""
    utility = belief.mean

    def score(mean: FloatArray, var: FloatArray, part: IntArray) -> FloatArray:
        # E max(a, b) = E b + E (a − b)⁺, symmetrised: swapping the pair gives the same bits
        middle = 0.5 * (utility.take(part[:, 0]) + utility.take(part[:, 1]))
        size, sd = np.abs(mean), np.sqrt(var)
        z = np.minimum(size / np.maximum(sd, 1e-300), _CERTAIN)
        gain = size * (ndtr(z) - 0.5) + sd * np.exp(-0.5 * z * z) / _SQRT_2PI
        return np.asarray(middle + gain)

    return _in_blocks(belief, pairs, score)


@criterion(reads_variances=False)
def thompson(belief: Belief, pairs: IntArray, rng: np.random.Generator) -> FloatArray:
    """The best item of one posterior draw against the best of another."""
    one, other = belief.sample(2, rng)
    first, second = pairs[:, 0], pairs[:, 1]
    duel = np.maximum(one[first] + other[second], other[first] + one[second])
    return np.asarray(duel)


@criterion(reads_variances=False)
def random(belief: Belief, pairs: IntArray, rng: np.random.Generator) -> FloatArray:
    """Uniformly random pairs: the baseline, and an unselected sample to check predictions on."""
    return rng.random(len(pairs))


def _entropy(likelihood: Likelihood, mean: FloatArray, var: FloatArray) -> FloatArray:
    """Entropy of the answer, in nats, where the difference is N(mean, var)."""
    win = likelihood.prob(mean, var)
    tie = likelihood.prob_tie(mean, var) if likelihood.n_answers == 3 else 0.0
    # rounding may lift a sum of probabilities above one
    return np.asarray(entr(win) + entr(tie) + entr(np.maximum(1.0 - win - tie, 0.0)))


@cache
def _expected_entropy(likelihood: Likelihood) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """E[H] over N(mean, var) of the answer's entropy H(g), where g itself is known.

    H is even in g. It is approximated once by a constant and Gaussian bumps at plus and minus its
    peak p, whose expectations are known: that of exp(−(g − p)²/2c) is
    √(c/(c + var)) exp(−(mean − p)²/2(c + var)). The error is 1e-5 (probit) to 2e-4 nats. Nearly
    noiseless answers have no visible bump: then H is the constant.
    """
    grid = _grid_of(likelihood)
    entropy = _entropy(likelihood, grid, np.zeros(len(grid)))
    floor = float(entropy[-1])
    bump, step = entropy - floor, np.gradient(grid)
    peak = float(grid[bump.argmax()])
    mass, spread = float(step @ bump), float((step * bump) @ (grid - peak) ** 2)
    terms: list[tuple[float, float]] = []
    if mass > 0.0 and spread > 0.0:
        widths = spread / mass * _WIDTHS
        shapes = _bumps(grid[:, None], peak, widths)
        heights = np.linalg.lstsq(shapes, bump, rcond=1e-13)[0] * np.sqrt(widths)
        terms = list(zip(heights.tolist(), widths.tolist(), strict=True))

    def expected(mean: FloatArray, var: FloatArray) -> FloatArray:
        total = np.full(mean.shape, floor)
        for height, width in terms:
            spread = var + width
            part = _bumps(mean, peak, spread)
            part /= np.sqrt(spread, out=spread)
            part *= height
            total += part
        return total

    return expected


def _grid_of(likelihood: Likelihood) -> FloatArray:
    """Differences at which the entropy is tabulated, on the scale on which it decays."""
    entropy = _entropy(likelihood, _PROBES, np.zeros(len(_PROBES)))
    bump = np.abs(entropy - entropy[-1])
    reach = _PROBES[np.flatnonzero(bump > 1e-3 * bump.max(initial=0.0))[-1:]]
    if not reach.size or reach[0] > _NARROW:
        return _GRID
    return _GRID * (reach[0] / 4.0)  # probit's decays at 4


def _bumps(g: FloatArray, peak: float, width: FloatArray) -> FloatArray:
    """exp(−(g − peak)²/2 width) + exp(−(g + peak)²/2 width)."""
    if peak == 0.0:
        bump = -0.5 * g * g / width
        np.exp(bump, out=bump)
        bump *= 2.0
        return bump
    right, left = g - peak, g + peak
    return np.asarray(np.exp(-0.5 * right * right / width) + np.exp(-0.5 * left * left / width))
