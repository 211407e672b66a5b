"""Whether predictions are too bold or too timid, by predicting every answer from all others.

EP's cavity is the prediction of an answer by the others, and costs nothing more. The slope
multiplies the means of differences: answers are likeliest at one where probabilities are right,
below one where they are too bold. A utility of only two levels, for example, is known better than a
Gaussian one would be, whatever its variance.

Either predictions are right as they are, up to an error that all answers share, or their slope is
unknown: log s ~ N(0, SLOPE_SPREAD²). Both are as likely to begin with. Where the answers make the
second more likely, predictions are the average over what they leave of both; else nothing changes.
So few answers change nothing, and one answer that contradicts the others costs less than under a
single best slope.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp

from penchant.gp.loop import Solution
from penchant.gp.posterior import AS_IT_IS, Normal, Recalibration
from penchant.gp.rows import Rows
from penchant.gp.rules import cavity
from penchant.likelihoods import Likelihood
from penchant.numerics.types import FloatArray

MOST_ANSWERS = 5_000
"""Rows that are looked at: they determine one number far better than needed."""
SLOPE_SPREAD = 1.5
"""Prior standard deviation of the logarithm of a slope: a factor of 4.5 either way."""
SYSTEMATIC_ERROR = 0.1
"""What the logarithm of a slope may be off by however many the answers. Answers from which a
covariance was learned are predicted too well, and by fewer users than will predict new ones."""
POWER = 0.5
"""Of the likelihood of the answers: they predict each other, and hyperparameters were learned from
them. In 400 simulations, of 12 to 300 answers without noise to mostly noise, new answers gained
.009 nats and lost .06 at worst; with the whole likelihood .012 and .2."""
GRID = np.linspace(-1.0, 1.0, 25)
"""Points of a grid of logarithms of slopes, in units of its reach."""
REACH, LEAST_ERROR = 4.0, 0.1
"""Reach of the second grid in errors that the first one found, and the least error that the first
one, which reaches two prior standard deviations, can tell."""
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(5)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()
"""Standard deviations from the mean at which a normal distribution is averaged over."""
CLEAR_GAIN = 3.0
"""Nats by which another model must predict or explain answers better. Fewer come by chance."""


class LeaveOneOut(NamedTuple):
    """calibration: of predictions of answers. log_score: nats of all answers, each predicted from
    the others so."""

    calibration: Recalibration = AS_IT_IS
    log_score: float = float("nan")


def calibrate(rows: Rows, solution: Solution[Any, Any]) -> LeaveOneOut:
    """The calibration of predictions of single pairs; choices have no cavity."""
    inference, cliques = solution.inference, rows.outcomes.cliques
    single = np.arange(len(rows) - (0 if cliques is None else cliques.n_edges))  # choices are last
    rows, sites = rows.part(single), inference.sites.part(single)
    mean, var = inference.state.mean[single], inference.state.var[single]
    left = cavity(mean, var, sites, rows.outcomes.power)
    return recalibrate(solution.hyper.likelihood, Normal(left.mean, left.var), rows)


def predicts_left_out(rows: Rows) -> bool:
    """Whether an answer left out says something. None does where noise is learned from margins, nor
    do choices or the pairs of choices, which predict each other."""
    cliques = rows.outcomes.cliques
    n_single = len(rows) - (0 if cliques is None else cliques.n_edges)
    return n_single > 0 and rows.outcomes.margin is None and not rows.are_discounted


def recalibrate(likelihood: Likelihood, others: Normal, rows: Rows) -> LeaveOneOut:
    """The calibration of predictions (m,) of each answer by the others; none for ties alone."""
    if not predicts_left_out(rows):
        return LeaveOneOut()
    seen = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), MOST_ANSWERS)).astype(np.intp))
    others, rows = Normal(others.mean[seen], others.var[seen]), rows.part(seen)
    outcomes = rows.outcomes
    calibration = AS_IT_IS
    if outcomes.tie is None or not outcomes.tie.all():

        def log_power(log_slopes: FloatArray) -> FloatArray:
            slopes = np.exp(log_slopes)[:, None]
            at = (slopes * others.mean).ravel(), (np.sqrt(slopes) * others.var).ravel()
            every = outcomes.part(np.tile(np.arange(len(rows)), len(slopes)))
            log_z = likelihood.tilted(*at, every).log_z.reshape(len(slopes), -1)
            return np.asarray(POWER * (log_z @ rows.count))

        calibration = _average(log_power)
    density = log_density(likelihood, calibration, others, rows)
    return LeaveOneOut(calibration, float(rows.count @ density))


def log_density(
    likelihood: Likelihood, calibration: Recalibration, others: Normal, rows: Rows
) -> FloatArray:
    """(m,) log density of each answer."""
    each = [
        likelihood.tilted(*difference, rows.outcomes).log_z
        for _, difference in calibration.differences(others)
    ]
    return np.asarray(logsumexp(each, axis=0, b=np.array(calibration.weights)[:, None]))


LogPower = Callable[[FloatArray], FloatArray]
"""Of the answers left out, at logarithms of slopes."""


def _average(log_power: LogPower) -> Recalibration:
    """Over the posterior of the logarithm of the slope."""
    middle, error, _ = _moments(log_power, 0.0, 2.0 * SLOPE_SPREAD)
    middle, error, free = _moments(log_power, middle, REACH * max(error, LEAST_ERROR))
    right = logsumexp(log_power(SYSTEMATIC_ERROR * NODES), b=NODE_WEIGHTS)
    weight = float(expit(free - right))
    if weight <= 0.5:
        return AS_IT_IS
    middle = float(np.sign(middle) * max(0.0, abs(middle) - SYSTEMATIC_ERROR))
    weights, slopes = weight * NODE_WEIGHTS, np.exp(middle + error * NODES)
    return Recalibration((1.0, *slopes.tolist()), (1.0 - weight, *weights.tolist()))


def _moments(log_power: LogPower, centre: float, reach: float) -> tuple[float, float, float]:
    """Posterior mean and standard deviation of the logarithm of a slope, and the logarithm of its
    evidence, on a grid."""
    at = centre + reach * GRID
    prior = -0.5 * (at / SLOPE_SPREAD) ** 2 - np.log(SLOPE_SPREAD * np.sqrt(2.0 * np.pi))
    log_joint = log_power(at) + prior
    total = logsumexp(log_joint)
    weight = np.exp(log_joint - total)
    middle = float(weight @ at)
    error = float(np.sqrt(weight @ (at - middle) ** 2))
    return middle, error, float(total + np.log(reach * (GRID[1] - GRID[0])))
