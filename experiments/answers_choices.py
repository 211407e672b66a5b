"""Choices of k and rankings as cliques, beside the same answers broken into pairs.

60 items with utilities of unit variance, 150 sets of 5, answers by Plackett and Luce. Nominal 90 %
intervals of differences should cover 90 % of the true ones; new choices should be likely. Beside
best-of-5 choices stands what an exact posterior covers on the same draws.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from experiments import FloatArray, IntArray
from penchant.data import Comparisons
from penchant.kernels import Independent
from penchant.models import PreferenceGP

# How much intervals cover that approximate nothing: best-of-k choices by importance sampling.
#
# The same model and draws as below, utilities N(0, s²) and a softmax. Draws from a Student t
# around the mode are weighted by the posterior. They give its moments and the evidence of s² as
# exactly as one likes. Coverage that is still missing is no fault of the cliques.

PRIOR_SPREAD = 1.7
"""Standard deviation of a log-parameter a priori, as in every model of the package."""

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


N_ITEMS, N_SETS, SET_SIZE = 60, 150, 5
N_NEW = 400
Z_90 = 1.6448536269514722


def choices_beside_pairs(n_draws: int = 8, seed: int = 0) -> list[dict[str, Any]]:
    """One row for each kind of answer and way to take it, means over draws with standard errors.

    coverage: of nominal 90 % intervals of all differences. log_likelihood: of a new choice.
    prior: whether the utilities' variance was known or learned from the answers; intervals say
    nothing of how uncertain a learned one is. Rows taken as "exact" are of `answers_exact`, which
    can also integrate over the variance.
    """
    seen: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for draw in range(n_draws):
        rng = np.random.default_rng([seed, draw])
        f = rng.standard_normal(N_ITEMS)
        orders = _orders(f, N_SETS, rng)
        new = _best_of(_orders(f, N_NEW, rng))
        for prior, covered in exact_coverage(orders, f, Z_90)._asdict().items():
            key = (f"best of {SET_SIZE}", "exact", prior)
            seen.setdefault(key, []).append((covered, float("nan")))
        for kind, data in (
            (f"best of {SET_SIZE}", _best_of(orders)),
            (f"rankings of {SET_SIZE}", Comparisons.from_rankings(orders, items=range(N_ITEMS))),
        ):
            for way, answers in (("cliques", data), ("pairs", data.as_pairs())):
                for prior, optimize in (("known", None), ("learned", "evidence")):
                    judged = _judged(answers, f, new, optimize)
                    seen.setdefault((kind, way, prior), []).append(judged)
    rows = []
    for (kind, way, prior), values in seen.items():
        mean = np.mean(values, axis=0)
        error = np.std(values, axis=0, ddof=1) / np.sqrt(n_draws)
        rows.append(
            {
                "answers": kind,
                "taken as": way,
                "prior": prior,
                "coverage": float(mean[0]),
                "coverage_se": float(error[0]),
                "log_likelihood": float(mean[1]),
                "log_likelihood_se": float(error[1]),
            }
        )
    return rows


def _orders(f: FloatArray, n_sets: int, rng: np.random.Generator) -> IntArray:
    """(n_sets, k) random sets, each best first under utilities with Gumbel noise."""
    sets = np.array([rng.choice(N_ITEMS, SET_SIZE, replace=False) for _ in range(n_sets)])
    noisy = f[sets] + rng.gumbel(size=sets.shape)
    return np.take_along_axis(sets, np.argsort(-noisy, axis=1), axis=1)


def _best_of(orders: IntArray) -> Comparisons:
    return Comparisons.from_choices(orders[:, 0], orders.tolist(), items=range(N_ITEMS))


def _judged(
    data: Comparisons, f: FloatArray, new: Comparisons, optimize: str | None
) -> tuple[float, float]:
    """Coverage of the differences, and the log-likelihood of new choices."""
    model = PreferenceGP(Independent(), likelihood="logit", optimize=optimize).fit(None, data)
    i, j = np.triu_indices(N_ITEMS, 1)
    mean, var = model.posterior_.difference(i, j)
    covered = np.abs(f[i] - f[j] - mean) <= Z_90 * np.sqrt(var)
    return float(covered.mean()), model.score(new)
