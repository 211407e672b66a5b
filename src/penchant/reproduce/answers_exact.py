"""How much intervals cover that approximate nothing: best-of-k choices by importance sampling.

The same model and the same draws as `answers_choices`, utilities N(0, s²) and a softmax. Draws from
a Student t around the mode are weighted by the posterior, which gives its moments and the evidence
of s² as exactly as one likes. What still misses then is no fault of the cliques.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from penchant.numerics.optimize import PRIOR_SPREAD
from penchant.numerics.types import FloatArray, IntArray

LOG_VARIANCES = np.linspace(-1.6, 1.2, 9)
N_DRAWS, FREEDOM = 2_000, 12.0
NEWTON_STEPS = 30


class ExactCoverage(NamedTuple):
    """Share of differences in their intervals, the variance of utilities known, chosen by the
    exact evidence, or integrated over."""

    known: float
    learned: float
    integrated: float


class _Moments(NamedTuple):
    log_evidence: float
    mean: FloatArray
    covariance: FloatArray


def exact_coverage(chosen_first: IntArray, truth: FloatArray, deviations: float) -> ExactCoverage:
    """Of choices (m, k), the chosen item first in each, of items with these true utilities."""
    rng, mode = np.random.default_rng(0), np.zeros(len(truth))
    each = []
    for log_variance in (*LOG_VARIANCES, 0.0):
        mode, precision = _mode(chosen_first, np.exp(log_variance), mode)
        each.append(_sampled(chosen_first, log_variance, mode, precision, rng))
    *each, known = each
    log_weight = np.array([one.log_evidence for one in each])
    log_weight -= 0.5 * (LOG_VARIANCES / PRIOR_SPREAD) ** 2  # the weak prior of every model
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    means = np.array([one.mean for one in each])
    mean = weight @ means
    covariance = np.tensordot(weight, np.array([one.covariance for one in each]), axes=1)
    covariance += (weight[:, None] * (means - mean)).T @ (means - mean)
    best = each[int(weight.argmax())]
    return ExactCoverage(
        _covered(truth, known.mean, known.covariance, deviations),
        _covered(truth, best.mean, best.covariance, deviations),
        _covered(truth, mean, covariance, deviations),
    )


def _log_likelihood(sets: IntArray, f: FloatArray) -> FloatArray:
    """(…) of utilities (…, n)."""
    u = f[..., sets]
    total: FloatArray = (u[..., 0] - np.logaddexp.reduce(u, axis=-1)).sum(axis=-1)
    return total


def _mode(sets: IntArray, variance: float, f: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The posterior's mode by Newton's method, and the precision there: diag(p) − ppᵀ a choice."""
    n = len(f)
    for _ in range(NEWTON_STEPS):
        p = np.exp(f[sets] - np.logaddexp.reduce(f[sets], axis=1)[:, None])
        slope = np.bincount(sets[:, 0], minlength=n) - np.bincount(sets.ravel(), p.ravel(), n)
        precision = np.diag(1.0 / variance + np.bincount(sets.ravel(), p.ravel(), n))
        np.add.at(precision, (sets[:, :, None], sets[:, None, :]), -p[:, :, None] * p[:, None, :])
        step = np.linalg.solve(precision, slope - f / variance)
        f = f + step
        if np.abs(step).max() < 1e-9:
            break
    return f, precision


def _sampled(
    sets: IntArray,
    log_variance: float,
    mode: FloatArray,
    precision: FloatArray,
    rng: np.random.Generator,
) -> _Moments:
    n = len(mode)
    lower = np.linalg.cholesky(precision)
    z = rng.standard_normal((N_DRAWS, n)) / np.sqrt(rng.chisquare(FREEDOM, (N_DRAWS, 1)) / FREEDOM)
    draws = mode + np.linalg.solve(lower.T, z.T).T
    # log density of the Student t, and of prior and answers
    log_q = (
        gammaln(0.5 * (FREEDOM + n)) - gammaln(0.5 * FREEDOM) - 0.5 * n * np.log(FREEDOM * np.pi)
    )
    log_q += np.log(np.diagonal(lower)).sum()
    log_q = log_q - 0.5 * (FREEDOM + n) * np.log1p((z * z).sum(axis=1) / FREEDOM)
    log_p = _log_likelihood(sets, draws) - 0.5 * (draws**2).sum(axis=1) / np.exp(log_variance)
    log_p -= 0.5 * n * (np.log(2.0 * np.pi) + log_variance)
    log_ratio = log_p - log_q
    ratio = np.exp(log_ratio - log_ratio.max())
    weight = ratio / ratio.sum()
    mean = weight @ draws
    around = draws - mean
    evidence = float(log_ratio.max() + np.log(ratio.mean()))
    return _Moments(evidence, mean, (weight[:, None] * around).T @ around)


def _covered(truth: FloatArray, mean: FloatArray, cov: FloatArray, deviations: float) -> float:
    i, j = np.triu_indices(len(truth), 1)
    var = cov[i, i] + cov[j, j] - 2.0 * cov[i, j]
    off = np.abs(truth[i] - truth[j] - mean[i] + mean[j])
    return float(np.mean(off <= deviations * np.sqrt(var)))
