"""Whether predictions are too bold or too timid, by predicting every answer from all others.

EP's cavity is the prediction of an answer by the others, and costs nothing more. Its recalibration
slope is one where probabilities are right, and below one where they are too bold. Where variances
of another size predict the answers clearly better, predictions of answers take that size: a utility
of only two levels, for example, is known better than a Gaussian one would be.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import log_expit, logit

from penchant.gp.loop import Solution
from penchant.gp.rows import Rows
from penchant.gp.rules import cavity

MOST_ANSWERS = 20_000
"""Rows that are looked at: they determine two numbers far better than needed."""
GRID = np.linspace(np.log(0.05), np.log(20.0), 25)
"""Logarithms of the slopes and of the factors of variances that are tried."""
CLEAR_GAIN = 3.0
"""Nats that another size of the variances must gain. Fewer come by chance, and the answers that
hyperparameters were learned from are predicted a little too well."""


class LeaveOneOut(NamedTuple):
    """slope: of recalibration; one where nothing was decided. tempering: a factor of variances;
    log_score: nats of all answers, each predicted from the others by so tempered variances."""

    slope: float = 1.0
    tempering: float = 1.0
    log_score: float = float("nan")


def calibrate(rows: Rows, solution: Solution[Any, Any]) -> LeaveOneOut:
    """The calibration of predictions of single pairs.

    Scores of pairs have a noise that is learned, and choices have no cavity.
    """
    likelihood, inference = solution.hyper.likelihood, solution.inference
    mean, var, sites = inference.state.mean, inference.state.var, inference.sites
    outcomes, cliques = rows.outcomes, rows.outcomes.cliques
    n = len(rows) - (0 if cliques is None else cliques.n_edges)
    if outcomes.margin is not None or not n:
        return LeaveOneOut()
    seen = np.unique(np.linspace(0, n - 1, min(n, MOST_ANSWERS)).astype(np.intp))
    some, count = outcomes.part(seen), rows.count[seen]
    left = cavity(mean[seen], var[seen], sites.part(seen), some.power)
    m, v = left.mean, left.var

    def log_score(log_factor: float) -> float:
        return float(count @ likelihood.tilted(m, np.exp(log_factor) * v, some).log_z)

    size, best = _peak(log_score)
    plain = log_score(0.0)
    if best - plain <= CLEAR_GAIN:
        size, best = 0.0, plain
    decided = np.ones(len(seen), dtype=bool) if some.tie is None else ~some.tie
    if not decided.any():
        return LeaveOneOut(log_score=plain)
    sure = 1e-12  # of a probability that rounds to 0 or 1 the log-odds would be infinite
    log_odds = logit(np.clip(likelihood.prob(m[decided], v[decided]), sure, 1.0 - sure))
    slope, _ = _peak(lambda b: float(count[decided] @ log_expit(np.exp(b) * log_odds)))
    return LeaveOneOut(float(np.exp(slope)), float(np.exp(size)), best)


def _peak(log_score: Callable[[float], float]) -> tuple[float, float]:
    """Where a function of a logarithm peaks under a standard normal prior, and its height there.

    A parabola through the best point of the grid and its neighbours.
    """
    values = np.array([log_score(at) for at in GRID]) - 0.5 * GRID**2
    k = int(np.clip(np.argmax(values), 1, len(GRID) - 2))
    before, here, after = values[k - 1 : k + 2]
    bend = before - 2.0 * here + after
    step = 0.5 * (before - after) / bend if bend < 0.0 else 0.0
    step = float(np.clip(step, -1.0, 1.0))
    height = here + 0.5 * step * (after - before) + 0.5 * step**2 * bend
    return float(GRID[k] + step * (GRID[1] - GRID[0])), float(height)
