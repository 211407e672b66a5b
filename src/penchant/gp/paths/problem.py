"""Drifting utilities as the engine wants them: hyperparameters, prior, gradient, posterior."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from penchant.errors import DataError
from penchant.gp.learn import SITE_TOLERANCE
from penchant.gp.loop import Settings
from penchant.gp.model import Schedule, Solution
from penchant.gp.paths.meetings import Calendar, Meetings
from penchant.gp.paths.posterior import PathPosterior
from penchant.gp.paths.prior import PathPrior, PathState
from penchant.gp.posterior import Normal
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import multiply
from penchant.numerics.optimize import weak_prior
from penchant.numerics.types import FloatArray, IntArray

LARGEST = 2e8
"""Items² × periods that still fit."""
OWN_SHARE = 1e-6
"""Of the constants' variance, added so that their covariance can be inverted."""
EM = Schedule(rounds=1, tolerance=1.0)


class PathHyper(NamedTuple):
    """A kernel over the constants, a path's variance and timescale in days, and a likelihood."""

    kernel: Kernel
    variance: float
    timescale: float
    likelihood: Likelihood

    @property
    def theta(self) -> FloatArray:
        """Kernel, log variance, log timescale, likelihood."""
        drift = np.log([self.variance, self.timescale])
        return np.concatenate([self.kernel.theta, drift, self.likelihood.theta])

    @property
    def bounds(self) -> FloatArray:
        """(p, 2) box of `theta`: timescales within a factor of 1,000 of where they start."""
        here = np.log(self.timescale)
        drift = [[np.log(1e-5), np.log(1e3)], [here - 7.0, here + 7.0]]
        return np.concatenate([self.kernel.bounds, drift, self.likelihood.bounds])

    def at(self, theta: FloatArray) -> "PathHyper":
        """The same with other parameters."""
        k = len(self.kernel.theta)
        variance, timescale = np.exp(theta[k : k + 2])
        likelihood = self.likelihood.with_theta(theta[k + 2 :])
        return PathHyper(
            self.kernel.with_theta(theta[:k]), float(variance), float(timescale), likelihood
        )

    def log_prior(self, start: "PathHyper") -> tuple[float, FloatArray]:
        """Weak prior of all parameters around their start, and its slope."""
        value, slope = self.kernel.log_prior(start.kernel)
        k = len(self.kernel.theta)
        rest, by_rest = weak_prior(self.theta[k:], start.theta[k:])
        return value + rest, np.concatenate([slope, by_rest])


PathSolution = Solution[PathHyper, PathState]


@dataclass(frozen=True)
class PathProblem:
    """Comparisons in time between the items of a universe, users not told apart."""

    universe: Inputs
    edges: Meetings
    calendar: Calendar
    settings: Settings
    schedule: ClassVar[Schedule] = EM
    max_rank: ClassVar[None] = None

    @property
    def is_quick(self) -> bool:
        """Answers are always settled: there is no other way here."""
        return True

    def prior(self, hyper: PathHyper, extra: IntArray | None = None) -> PathPrior:
        """The paths in all periods with comparisons, and in `extra` ones."""
        periods = np.union1d(self.edges.period, np.zeros(0, int) if extra is None else extra)
        if len(periods) * float(len(self.universe)) ** 2 > LARGEST:
            raise DataError(
                f"{len(self.universe):,} items in {len(periods):,} periods do not fit in memory: "
                "give a longer period=, or fewer items"
            )
        constants = hyper.kernel(self.universe)
        # a smooth kernel has no inverse: every item keeps a little of its own
        constants[np.diag_indices_from(constants)] += OWN_SHARE * np.mean(np.diagonal(constants))
        return PathPrior(
            constants,
            self.calendar.origin + self.calendar.length * periods,
            hyper.variance,
            hyper.timescale,
            self.edges,
            np.searchsorted(periods, self.edges.period),
        )

    def posterior(self, solution: PathSolution) -> PathPosterior:
        """As of the last period with a comparison."""
        return PathPosterior.of(self, solution)

    def expect(self, posterior: PathPosterior, rows: IntArray) -> tuple[IntArray, Normal]:
        """New comparisons as if they were made last: a start, no more."""
        return rows, posterior.difference(self.edges.winner[rows], self.edges.loser[rows])

    def while_learning(self) -> "PathProblem":
        """Coarser tolerances."""
        tolerance = max(SITE_TOLERANCE, self.settings.tolerance)
        return replace(self, settings=replace(self.settings, tolerance=tolerance))

    def pullback(self, solution: PathSolution, drift: FloatArray | None) -> FloatArray:
        """∂ log Z = E[∂ log p(paths, constants)], which needs neighbouring periods alone.

        With r = E(x' − ρx)², a step's part is −½ n log q − ½ r/q, q = σ² (1 − ρ²), ρ = e^{−Δ/ℓ}.
        """
        if drift is not None:
            raise DataError("inference='laplace' does not learn drift: use inference='ep'")
        hyper, prior, inference = solution
        state = inference.state
        n = len(self.universe)
        precision = prior.border[0][:n, :n]
        constants = state.beside[:n]
        second = state.border_cov[:n, :n] + np.outer(constants, constants)
        G = 0.5 * (multiply(multiply(precision, second), precision) - precision)
        by_kernel = hyper.kernel.pullback(self.universe, G)
        square, lagged = state.moments()
        keep, new = prior.keep, prior.renewed
        rest = square[1:] - 2.0 * keep * lagged + keep**2 * square[:-1]
        by_variance = 0.5 * (square[0] / hyper.variance - n) + 0.5 * (rest / new - n).sum()
        by_new = 0.5 * (rest / new - n) / new
        by_keep = -2.0 * hyper.variance * keep * by_new + (lagged - keep * square[:-1]) / new
        by_timescale = (by_keep * keep * np.diff(prior.days) / hyper.timescale).sum()
        return np.concatenate([by_kernel, [by_variance, by_timescale]])

    def m_step(self, solution: PathSolution, start: PathHyper) -> PathHyper:
        """Drift is learned by the evidence's gradient alone."""
        raise DataError("optimize='em' does not learn drift: use optimize='evidence'")

    def m_penalty(self, hyper: PathHyper, start: PathHyper) -> float:
        """Of EM, which there is none."""
        return 0.0
