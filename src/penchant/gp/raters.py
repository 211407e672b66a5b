"""How reliable each rater is: learned from how well the other answers foresee each of theirs.

With sites converged, an answer's cavity N(m₋, v₋) is what all other answers say of its difference,
and the evidence's slope in a rater's level is the sum of the slopes of log Z(m₋, v₋; level) over
their answers. Those sums, as functions of the level on a grid, stand in for the rater's likelihood;
a normal distribution of everybody's levels, on the logit or log scale, is its prior and learned by
EM. The interval is the grid's, not a curvature's: near a share of 0 or 1 no parabola fits.
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
"""Of the logit of a share of random answers; of the log of a sharpness."""
START = {"lapse": (logit(0.05), 1.5), "noise": (0.0, 0.5)}
"""Where the distribution of everybody's levels starts: its mean and standard deviation."""
PRIOR_RATERS = 2.0
"""So many raters, spread as at the start, are imagined beside those there are."""
EM_ROUNDS = 50
ROUNDS = 4
"""In which raters are judged by utilities that already take them for what they are."""


class Answered(NamedTuple):
    """Answers as raters are judged by: (k,) whose, what all others say of it, and how often.

    personal: whether a rater is held against utilities of their own.
    """

    rater: IntArray
    mean: FloatArray
    var: FloatArray
    outcomes: Outcomes
    times: FloatArray
    n_raters: int
    personal: bool = False


class Judged(NamedTuple):
    """What is known of raters' levels: (K,) levels on the grid, (K, n) their probabilities.

    centre, spread: of everybody's, on the grid's scale.
    """

    level: FloatArray
    prob: FloatArray
    centre: float
    spread: float

    @property
    def mean(self) -> FloatArray:
        """(n,) expected levels: a share of random answers acts by its mean alone."""
        mean: FloatArray = self.level @ self.prob
        return mean

    def quantile(self, share: float) -> FloatArray:
        """(n,) levels that lie above so much of the probability, linear between grid points."""
        below = np.cumsum(self.prob, axis=0) - 0.5 * self.prob
        found = [np.interp(share, column, self.level) for column in below.T]
        return np.array(found)


def judge(answered: Answered, likelihood: Likelihood) -> Judged:
    """What the answers tell about every rater; a likelihood without raters is asked for lapses."""
    rated = likelihood if isinstance(likelihood, Raters) else Raters(likelihood)
    grid = GRIDS[rated.kind]
    level = expit(grid) if rated.kind == "lapse" else np.exp(grid)
    fit = np.empty((len(grid), answered.n_raters))
    for k, value in enumerate(level):
        log_z = rated.tilted_at(
            np.full(len(answered.mean), value), answered.mean, answered.var, answered.outcomes
        ).log_z
        fit[k] = np.bincount(answered.rater, answered.times * log_z, answered.n_raters)
    centre, spread = START[rated.kind]
    start = spread
    for _ in range(EM_ROUNDS):
        log_joint = fit - 0.5 * ((grid[:, None] - centre) / spread) ** 2
        prob = np.exp(log_joint - logsumexp(log_joint, axis=0))
        means, before = grid @ prob, (centre, spread)
        if rated.kind == "lapse":  # the mean of log s is the kernel's to say
            imagined = PRIOR_RATERS * START["lapse"][0]
            centre = float(means.sum() + imagined) / (len(means) + PRIOR_RATERS)
        total = float((((grid[:, None] - centre) ** 2) * prob).sum()) + PRIOR_RATERS * start**2
        spread = float(np.sqrt(total / (len(means) + PRIOR_RATERS)))
        if abs(centre - before[0]) + abs(spread - before[1]) < 1e-4:
            break
    return Judged(level, prob, centre, spread)


def foreseen(problem: Problem[Any, Any], hyper: Any, sites: Sites | None, personal: bool) -> Normal:
    """(m,) what the other answers say of each: its cavity.

    personal: everybody has utilities of their own, and all are taken for alike; were they not,
    answers that are held for random would no longer be held against anything.
    """
    likelihood = hyper.likelihood
    if personal and isinstance(likelihood, Raters):
        alike = Raters.alike(likelihood.base, likelihood.kind, len(likelihood.levels))
        hyper = hyper._replace(likelihood=alike)
    inference = solve(problem, hyper, sites).inference
    state, power = inference.state, problem.edges.outcomes.power
    others = cavity(state.mean, state.var, inference.sites, power)
    return Normal(others.mean, others.var)


def of_usual_strength(rater: IntArray, seen: Normal, count: FloatArray) -> Normal:
    """Differences as they would be to people who care as much as people usually do.

    Utilities of one's own can be flat, and then answers at random are just what they foresee:
    nothing in the answers tells somebody indifferent from somebody careless. Both are held for
    unreliable here, by scaling up what is foreseen of people whose differences are unusually small.
    """
    answers = np.bincount(rater, count)
    second_moment = np.bincount(rater, count * (seen.mean**2 + seen.var))
    given = answers > 0
    own = np.ones(len(answers))
    own[given] = np.sqrt(second_moment[given] / answers[given])
    scale = np.maximum(1.0, np.median(own[given]) / own)[rater]
    return Normal(scale * seen.mean, scale**2 * seen.var)


def learn_raters(
    problem: Problem[Any, Any],
    solution: Solution[Any, Any],
    personal: bool,
    learn: Callable[[Any], Solution[Any, Any]] | None,
) -> Solution[Any, Any]:
    """Judge the raters and take the answers accordingly; of pooled utilities, that in turn.

    learn: how hyperparameters are learned, once more with what is known of the raters then.
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
    seen = foreseen(problem, hyper, before.sites, personal)
    if personal:
        seen = of_usual_strength(rater, seen, edges.count)
    n_raters = len(likelihood.levels)
    level = judge(Answered(rater, *seen, edges.outcomes, edges.count, n_raters), likelihood).mean
    typical = float(level.mean()) if likelihood.kind == "lapse" else 1.0
    raters = replace(likelihood, levels=tuple(level.tolist()), typical=typical)
    after = solve(problem, hyper._replace(likelihood=raters), before.sites)
    report = replace(
        after.inference.report,
        optimizer=before.report.optimizer,
        n_evaluations=before.report.n_evaluations,
    )
    return after._replace(inference=replace(after.inference, report=report))
