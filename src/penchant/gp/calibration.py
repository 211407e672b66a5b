"""Whether predictions are too bold or too timid, by predicting every answer from all others.

EP's cavity is the prediction of an answer by the others, and costs nothing more. The slope is the
factor of the means of differences at which the answers are likeliest: one where probabilities are
right, below one where they are too bold. A utility of only two levels, for example, is known better
than a Gaussian one would be, whatever its variance.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from penchant.gp.loop import Solution
from penchant.gp.posterior import Normal
from penchant.gp.rows import Rows
from penchant.gp.rules import cavity
from penchant.likelihoods import Likelihood

MOST_ANSWERS = 20_000
"""Rows that are looked at: they determine one number far better than needed."""
GRID = np.linspace(-1.0, 1.0, 25)
"""Points of a grid of logarithms of slopes, in units of its reach."""
WIDEST, REACH, LEAST_ERROR = float(np.log(20.0)), 4.0, 0.1
"""Reach of the first grid; that of the second in errors that the first one found, and the least
error that the first one can tell."""
SLOPE_SPREAD = 1.5
"""Prior standard deviation of the logarithm of a slope: a factor of 4.5 either way."""
SURE_ERRORS = 1.5
"""Standard errors of the logarithm of a slope that are not corrected. Answers that hyperparameters
were learned from are predicted a little too well: of 20 to 60 exact answers the slope was up to
twice what new answers asked for. In simulations of 10 to 400 answers without noise to mostly noise,
this spread and these errors lost the least for what they gained."""
SYSTEMATIC_ERROR = 0.1
"""What the logarithm of a slope may be off by however many the answers. Answers from which a
covariance was learned are predicted too well, and by fewer users than will predict new ones."""
CLEAR_GAIN = 3.0
"""Nats by which another model must predict or explain answers better. Fewer come by chance."""


class LeaveOneOut(NamedTuple):
    """slope: what predictions of answers take so many times the mean of; one where nothing was
    decided. log_score: nats of all answers, each predicted from the others with that slope."""

    slope: float = 1.0
    log_score: float = float("nan")


def calibrate(rows: Rows, solution: Solution[Any, Any]) -> LeaveOneOut:
    """The calibration of predictions of single pairs; choices have no cavity."""
    inference, cliques = solution.inference, rows.outcomes.cliques
    single = np.arange(len(rows) - (0 if cliques is None else cliques.n_edges))  # choices are last
    rows, sites = rows.part(single), inference.sites.part(single)
    mean, var = inference.state.mean[single], inference.state.var[single]
    left = cavity(mean, var, sites, rows.outcomes.power)
    return recalibrate(solution.hyper.likelihood, Normal(left.mean, left.var), rows)


def recalibrate(likelihood: Likelihood, others: Normal, rows: Rows) -> LeaveOneOut:
    """The slope of predictions (m,) of each answer by the others.

    It is the part of its posterior mean, in logarithms, that is beyond its error: few answers
    change nothing. One for margins, whose noise is learned, for ties alone, and for the pairs of
    choices, which predict each other.
    """
    if rows.outcomes.margin is not None or rows.are_discounted or not len(rows):
        return LeaveOneOut()
    seen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_ANSWERS)).astype(np.intp))
    mean, var, rows = others.mean[seen], others.var[seen], rows.part(seen)
    outcomes = rows.outcomes

    def log_score(log_slope: float) -> float:
        log_z = likelihood.tilted(np.exp(log_slope) * mean, var, outcomes).log_z
        return float(rows.count @ log_z)

    if outcomes.tie is not None and outcomes.tie.all():
        return LeaveOneOut(log_score=log_score(0.0))
    middle, error = _moments(log_score, 0.0, WIDEST)
    middle, error = _moments(log_score, middle, REACH * max(error, LEAST_ERROR))
    error = max(SURE_ERRORS * error, SYSTEMATIC_ERROR)
    beyond = float(np.sign(middle) * max(0.0, abs(middle) - error))
    return LeaveOneOut(float(np.exp(beyond)), log_score(beyond))


def _moments(
    log_score: Callable[[float], float], centre: float, reach: float
) -> tuple[float, float]:
    """Posterior mean and standard deviation of the logarithm of a slope, on a grid."""
    at = centre + reach * GRID
    log_posterior = np.array([log_score(each) for each in at]) - 0.5 * (at / SLOPE_SPREAD) ** 2
    weight = np.exp(log_posterior - logsumexp(log_posterior))
    middle = float(weight @ at)
    return middle, float(np.sqrt(weight @ (at - middle) ** 2))
