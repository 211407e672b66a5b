"""How reliable each rater is, by how well the other answers predict each of theirs.

With sites converged, an answer's cavity N(m₋, v₋) is the prediction of its difference by all other
answers, and the evidence's slope in a rater's level is the sum of the slopes of
log Z(m₋, v₋; level) over their answers. Those sums, as functions of the level on a grid, are the
rater's log likelihood. Its prior is a normal distribution of all levels, on the logit or log scale,
learned by EM. Intervals come from the grid: near a share of 0 or 1 no quadratic form fits.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit, logsumexp

from penchant.gp.loop import Problem, Solution, solve
from penchant.gp.posterior import Normal
from penchant.gp.rules import Sites, cavity
from penchant.likelihoods import Likelihood, Outcomes, Raters
from penchant.numerics.types import FloatArray, IntArray

GRIDS = {"lapse": np.linspace(-6.0, 5.0, 34), "noise": np.linspace(-3.0, 2.0, 41)}
"""Logits of a share of random answers; logs of a sharpness."""
START = {"lapse": (logit(0.05), 1.5), "noise": (0.0, 0.5)}
"""Mean and standard deviation of all levels at the start of EM."""
PRIOR_RATERS = 2.0
"""Pseudo-count of the start in EM, in raters."""
EM_ROUNDS = 50
ROUNDS = 4
"""Of levels and utilities in turn: the levels of a round rest on utilities that use the last."""


class RaterAnswers(NamedTuple):
    """Answers with their cavities: (k,) rater, mean, variance, outcome and count.

    personal: whether the utilities are the rater's own.
    """

    rater: IntArray
    mean: FloatArray
    var: FloatArray
    outcomes: Outcomes
    times: FloatArray
    n_raters: int
    personal: bool = False


class RaterLevels(NamedTuple):
    """Posterior of raters' levels: (K,) levels on the grid, (K, n) their probabilities.

    centre, spread: mean and sd of all raters' levels, on the grid's scale.
    """

    level: FloatArray
    prob: FloatArray
    centre: float
    spread: float

    @property
    def mean(self) -> FloatArray:
        """(n,) expected levels; the likelihood is linear in a share of random answers."""
        return self.level @ self.prob

    def quantile(self, share: float) -> FloatArray:
        """(n,) quantiles of the levels, linear between grid points."""
        below = np.cumsum(self.prob, axis=0) - 0.5 * self.prob
        return np.array([np.interp(share, column, self.level) for column in below.T])


def rater_levels(answered: RaterAnswers, likelihood: Likelihood) -> RaterLevels:
    """The posterior of every rater's level; of a likelihood without raters, of lapses."""
    rated = likelihood if isinstance(likelihood, Raters) else Raters(likelihood)
    grid = GRIDS[rated.kind]
    level = expit(grid) if rated.kind == "lapse" else np.exp(grid)
    fit = np.empty((len(grid), answered.n_raters))
    for k, value in enumerate(level):
        levels = np.full(len(answered.mean), value)
        log_z = rated.tilted_at(levels, answered.mean, answered.var, answered.outcomes).log_z
        fit[k] = np.bincount(answered.rater, answered.times * log_z, answered.n_raters)
    centre, spread = START[rated.kind]
    start = spread
    for _ in range(EM_ROUNDS):
        log_joint = fit - 0.5 * ((grid[:, None] - centre) / spread) ** 2
        prob = np.exp(log_joint - logsumexp(log_joint, axis=0))
        means, before = grid @ prob, (centre, spread)
        # the mean of log s is not identified beside the kernel's variance
        if rated.kind == "lapse":
            pseudo = PRIOR_RATERS * START["lapse"][0]
            centre = float(means.sum() + pseudo) / (len(means) + PRIOR_RATERS)
        total = float((((grid[:, None] - centre) ** 2) * prob).sum()) + PRIOR_RATERS * start**2
        spread = float(np.sqrt(total / (len(means) + PRIOR_RATERS)))
        if abs(centre - before[0]) + abs(spread - before[1]) < 1e-4:
            break
    return RaterLevels(level, prob, centre, spread)


def leave_one_out(
    problem: Problem[Any, Any], hyper: Any, sites: Sites | None, personal: bool
) -> Normal:
    """(m,) cavities: the prediction of each answer by all others.

    personal: users have utilities of their own. Then all raters get the same level, or lapses would
    no longer be penalised.
    """
    likelihood = hyper.likelihood
    if personal and isinstance(likelihood, Raters):
        alike = Raters.alike(likelihood.base, likelihood.kind, len(likelihood.levels))
        hyper = hyper._replace(likelihood=alike)
    inference = solve(problem, hyper, sites).inference
    state, power = inference.state, problem.edges.outcomes.power
    others = cavity(state.mean, state.var, inference.sites, power)
    return Normal(others.mean, others.var)


def at_typical_scale(rater: IntArray, cavities: Normal, count: FloatArray) -> Normal:
    """Scale cavities up to the median scale of differences, for raters below it.

    Personal utilities can be flat, and then random answers fit them: answers do not distinguish an
    indifferent rater from a careless one. Scaling counts both as unreliable.
    """
    answers = np.bincount(rater, count)
    second_moment = np.bincount(rater, count * (cavities.mean**2 + cavities.var))
    given = answers > 0
    own = np.ones(len(answers))
    own[given] = np.sqrt(second_moment[given] / answers[given])
    scale = np.maximum(1.0, np.median(own[given]) / own)[rater]
    return Normal(scale * cavities.mean, scale**2 * cavities.var)


def learn_raters(
    problem: Problem[Any, Any],
    solution: Solution[Any, Any],
    personal: bool,
    learn: Callable[[Any], Solution[Any, Any]] | None,
) -> Solution[Any, Any]:
    """Alternate between raters' levels and inference; once where utilities are personal.

    learn: learns the hyperparameters once more, at the levels found.
    """
    for _ in range(1 if personal else ROUNDS):
        solution = _rated(problem, solution, personal)
    return solution if learn is None else _rated(problem, learn(solution.hyper), personal)


def _rated(
    problem: Problem[Any, Any], solution: Solution[Any, Any], personal: bool
) -> Solution[Any, Any]:
    hyper, edges, before = solution.hyper, problem.edges, solution.inference
    likelihood: Raters = hyper.likelihood
    rater = np.asarray(edges.outcomes.rater)
    cavities = leave_one_out(problem, hyper, before.sites, personal)
    if personal:
        cavities = at_typical_scale(rater, cavities, edges.count)
    answered = RaterAnswers(rater, *cavities, edges.outcomes, edges.count, len(likelihood.levels))
    level = rater_levels(answered, likelihood).mean
    typical = float(level.mean()) if likelihood.kind == "lapse" else 1.0
    raters = replace(likelihood, levels=tuple(level.tolist()), typical=typical)
    after = solve(problem, hyper._replace(likelihood=raters), before.sites)
    found = before.report
    return after.with_report(optimizer=found.optimizer, n_evaluations=found.n_evaluations)
