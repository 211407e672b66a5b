"""What makes a question worth asking: one function of the belief for each criterion.

A criterion takes (belief, pairs (k, 2), rng) and returns scores (k,); the pair with the highest
score is asked. Scores do not depend on which item of a pair stands first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import entr, ndtr

from penchant.ask.belief import Belief
from penchant.errors import DataError
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray, IntArray

Score = Callable[[Belief, IntArray, np.random.Generator], FloatArray]

BLOCK = 1 << 14
"""Pairs scored together: their temporaries stay in cache."""
_SQRT_2PI = np.sqrt(2.0 * np.pi)
_WIDTHS = np.geomspace(0.1, 1e3, 14)
_GRID = np.concatenate([np.linspace(0.0, 6.0, 241), np.geomspace(6.05, 60.0, 120)])


@dataclass(frozen=True)
class Criterion:
    """A score, and whether it reads variances (then a batch looks ahead at how they shrink)."""

    score: Score
    reads_variances: bool


CRITERIA: dict[str, Criterion] = {}
"""Every criterion by name."""


def criterion(reads_variances: bool) -> Callable[[Score], Score]:
    """Decorator: register a score under its function's name."""

    def register(score: Score) -> Score:
        CRITERIA[score.__name__] = Criterion(score, reads_variances)
        return score

    return register


def get(name: str) -> Criterion:
    """The criterion of that name.

    >>> get("random").reads_variances
    False
    """
    if name not in CRITERIA:
        raise DataError(f"criterion is {name!r}: it must be one of {', '.join(CRITERIA)}")
    return CRITERIA[name]


def _in_blocks(
    belief: Belief,
    pairs: IntArray,
    score: Callable[[FloatArray, FloatArray, IntArray], FloatArray],
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

    Where means are equal, as before the first answer, the larger variance wins.
    """
    least = 1e-12 * max(float(belief.var.max()), 1e-300)

    def score(mean: FloatArray, var: FloatArray, _: IntArray) -> FloatArray:
        return var / (mean * mean + least)

    return _in_blocks(belief, pairs, score)


@criterion(reads_variances=True)
def information_gain(belief: Belief, pairs: IntArray, rng: np.random.Generator) -> FloatArray:
    """Mutual information, in nats, between the answer and the utilities: H[E p] − E[H[p]].

    An answer that is a coin toss for the respondent too teaches nothing: the second term.
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
        # E max(a, b) = E b + E (a − b)⁺; halves of both sides, so that swapping changes no bit
        middle = 0.5 * (utility.take(part[:, 0]) + utility.take(part[:, 1]))
        size, sd = np.abs(mean), np.sqrt(var)
        z = size / np.maximum(sd, 1e-300)
        return middle + size * (ndtr(z) - 0.5) + sd * np.exp(-0.5 * z * z) / _SQRT_2PI

    return _in_blocks(belief, pairs, score)


@criterion(reads_variances=False)
def thompson(belief: Belief, pairs: IntArray, rng: np.random.Generator) -> FloatArray:
    """The best item of one draw against the best of another: explores as far as it is unsure."""
    one, other = belief.sample(2, rng)
    first, second = pairs[:, 0], pairs[:, 1]
    return np.maximum(one[first] + other[second], other[first] + one[second])


@criterion(reads_variances=False)
def random(belief: Belief, pairs: IntArray, rng: np.random.Generator) -> FloatArray:
    """Every pair alike: the baseline, and the part of the data that nothing has selected."""
    return rng.random(len(pairs))


def _entropy(likelihood: Likelihood, mean: FloatArray, var: FloatArray) -> FloatArray:
    """Entropy of the answer, in nats, where the difference is N(mean, var)."""
    win = likelihood.prob(mean, var)
    if likelihood.n_answers == 2:
        return np.asarray(entr(win) + entr(1.0 - win))
    tie = likelihood.prob_tie(mean, var)
    return np.asarray(entr(win) + entr(tie) + entr(np.maximum(1.0 - win - tie, 0.0)))


@cache
def _expected_entropy(likelihood: Likelihood) -> Callable[[FloatArray, FloatArray], FloatArray]:
    """E[H] over N(mean, var) of the answer's entropy H(g), where g itself is known.

    H is even in g. It is fitted once by a constant and a sum of Gaussian bumps, a exp(−g²/2c),
    whose expectations are known: a √(c/(c + var)) exp(−mean²/2(c + var)).
    """
    shapes = np.exp(-0.5 * _GRID[:, None] ** 2 / _WIDTHS)
    shapes = np.column_stack([np.ones(len(_GRID)), shapes])
    entropy = _entropy(likelihood, _GRID, np.zeros(len(_GRID)))
    constant, *heights = np.linalg.lstsq(shapes, entropy, rcond=1e-11)[0].tolist()

    def expected(mean: FloatArray, var: FloatArray) -> FloatArray:
        total = np.full(mean.shape, constant)
        square = -0.5 * mean * mean
        for height, width in zip(heights, _WIDTHS.tolist(), strict=True):
            spread = var + width
            total += (height * np.sqrt(width)) * np.exp(square / spread) / np.sqrt(spread)
        return total

    return expected
