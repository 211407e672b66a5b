"""Choices of k and rankings as cliques, beside the same answers broken into pairs.

60 items with utilities of unit variance, 150 sets of 5, answers by Plackett and Luce. Nominal 90 %
intervals of differences should cover 90 % of the true ones; new choices should be likely. Beside
best-of-5 choices stands what an exact posterior covers on the same draws.
"""

from typing import Any

import numpy as np

from penchant.data import Comparisons
from penchant.kernels import Independent
from penchant.models import PreferenceGP
from penchant.numerics.types import FloatArray, IntArray
from penchant.reproduce.answers_exact import exact_coverage

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
