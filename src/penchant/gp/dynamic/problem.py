"""The posterior of drifting utilities at any time, and the problem that gives it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from penchant.errors import DataError
from penchant.gp.dynamic.layout import Layout
from penchant.gp.dynamic.prior import PathPrior, PathState, TimeGrid
from penchant.gp.effects import Covariates
from penchant.gp.learn import SITE_TOLERANCE
from penchant.gp.loop import Solution
from penchant.gp.posterior import Basis, EffectPosterior, Normal, Posterior
from penchant.gp.protocol import Schedule, Settings
from penchant.gp.rows import Rows
from penchant.gp.rules import Sites
from penchant.kernels import Independent, Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import cholesky, gram, multiply, solve_lower
from penchant.numerics.optimize import weak_prior
from penchant.numerics.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class PathPosterior(Posterior):
    """Utilities as of one period; `when` gives them as of any other.

    constants: the kernel of what does not drift; variance, timescale: of what does. meetings,
    sites: the comparisons, from which any period follows exactly. period: its number, None for that
    of the last comparison. days: (k,) of each of k differences, None where all are of one period.
    """

    constants: Kernel = Independent()  # noqa: RUF009  # frozen
    variance: float = 1.0
    timescale: float = 1.0
    calendar: TimeGrid = TimeGrid(0.0, 1.0)  # noqa: RUF009  # frozen
    meetings: Any = None
    sites: Any = None
    period: int | None = None
    days: FloatArray | None = None

    def at(self, target: Inputs | None) -> "PathPosterior":
        """Of some items, or of new ones: at any time their constant, and a path of which
        nothing is known."""
        if target is None or target.index is not None:
            return self if target is None else replace(self, target=target)
        period = int(self.meetings.period.max() if self.period is None else self.period)
        state, n = self._state((period,), True), len(self.universe)
        mean, cov = state.at(period)
        old = slice(0, len(mean) - n)
        cross, lower = self.constants(target, self.universe), cholesky(state.prior.constants).lower
        through = solve_lower(lower, solve_lower(lower, cross.T), transposed=True).T
        # of new items with the old ones' constants, and by these with effects and utilities then
        answers = multiply(through, cov[old.stop :])
        own = self.constants(target) + self.variance * np.eye(len(cross))
        new = own - multiply(through, cross.T) + multiply(answers[:, old.stop :], through.T)
        weights = _as_weights(
            np.append(mean[old], multiply(through, mean[old.stop :])),
            np.block([[cov[old, old], answers[:, old].T], [answers[:, old], new]]),
            self.meetings.shown,
        )
        items, places = Inputs(index=np.arange(n + len(cross))), np.arange(n, n + len(cross))
        # new items have the same posterior at all times
        return replace(self, **weights, universe=items, target=items.take(places), days=None)

    def relative_to(self, others: Posterior) -> Normal:
        """Of new items, which `at` puts after the old ones, less the average old item."""
        n = len(others.universe)
        if n < len(self.universe):
            others = replace(self, target=self.universe.take(np.arange(n)))
        return super().relative_to(others)

    def when(self, days: FloatArray) -> list["PathPosterior"]:
        """As of each of these days: smoothed within the data, forecast beyond them."""
        periods = self.calendar.period(np.asarray(days, dtype=float)).tolist()
        state, shown = self._state(tuple(periods)), self.meetings.shown
        return [
            replace(self, **_as_weights(*state.at(period), shown), period=period, days=None)
            for period in periods
        ]

    def check(self, n_pairs: int) -> None:
        """Where differences have days of their own, there must be one for each pair."""
        if self.days is not None and len(self.days) != n_pairs:
            raise DataError(
                f"at has {len(self.days)} times and there are {n_pairs} pairs: give one time for "
                "all pairs, or one for each"
            )

    def difference(self, first: IntArray, second: IntArray, z: FloatArray | None = None) -> Normal:
        """Marginals of f[first] − f[second] + zᵀβ, each (k,) as of its own day; z: (q, k)."""
        at = self.target.index
        if self.days is None or at is None:
            return super().difference(first, second, z)
        self.check(len(first))
        rows, nothing = self.meetings, np.zeros(len(first))
        z = np.zeros((len(rows.shown.sd), len(first))) if z is None else z
        asked = replace(
            rows,
            winner=np.append(rows.winner, at[first]),
            loser=np.append(rows.loser, at[second]),
            period=np.append(rows.period, self.calendar.period(self.days)),
            count=np.append(rows.count, nothing),
            shown=replace(rows.shown, z=np.hstack([rows.shown.z, z])),
        )
        sites = Sites(np.append(self.sites.tau, nothing), np.append(self.sites.nu, nothing))
        state = replace(self, meetings=asked, sites=sites)._state()
        return Normal(state.mean[-len(first) :], state.var[-len(first) :])

    def _state(self, *further: Any) -> PathState:
        """With further points, see `PathProblem.prior`."""
        problem = PathProblem(self.universe, self.meetings, self.calendar, Settings())
        hyper = PathHyper(self.constants, self.variance, self.timescale, self.likelihood)
        return problem.state(hyper, self.sites, *further)


def _as_weights(mean: FloatArray, cov: FloatArray, shown: Covariates) -> dict[str, Any]:
    """N(mean, cov) over q effects and n items as `Posterior` has them: f = √s w, s a scale."""
    q, n = len(shown.sd), len(mean) - len(shown.sd)
    scale = float(np.mean(np.diagonal(cov)[q:]))
    unit = np.append(shown.sd, np.full(n, np.sqrt(scale)))
    half = solve_lower(cholesky(cov / np.outer(unit, unit)).lower, np.eye(q + n))
    joint, weights = cholesky(gram(half)).lower, mean / unit
    effects = EffectPosterior(shown.names, shown.sd, weights[:q], joint[:q, :q], joint[q:, :q])
    return {
        "kernel": Independent(scale),
        "basis": Basis(np.arange(n), None, np.sqrt(scale) * np.eye(n)),
        "coefficients": weights[q:],
        "lower": joint[q:, q:],
        "effects": effects if q else None,
    }


# The problem: hyperparameters, prior, gradient, posterior


LARGEST = 2e8
"""Numbers that still fit: points × size of the state."""
MANY_SLOTS = 200
"""From here on matrix products take most of the time, and half of it in single precision."""
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
        k = len(self.kernel.theta)
        variance, timescale = np.exp(theta[k : k + 2])
        likelihood = self.likelihood.with_theta(theta[k + 2 :])
        return PathHyper(
            self.kernel.with_theta(theta[:k]), float(variance), float(timescale), likelihood
        )

    def log_prior(self, start: "PathHyper") -> tuple[float, FloatArray]:
        value, slope = self.kernel.log_prior(start.kernel)
        k = len(self.kernel.theta)
        rest, by_rest = weak_prior(self.theta[k:], start.theta[k:])
        return value + rest, np.concatenate([slope, by_rest])


PathSolution = Solution[PathHyper, PathState]


@dataclass(frozen=True)
class PathProblem:
    """Comparisons in time between the items of a universe, users pooled."""

    universe: Inputs
    edges: Rows
    calendar: TimeGrid
    settings: Settings
    is_rough: bool = False
    schedule: ClassVar[Schedule] = EM
    max_rank: ClassVar[None] = None

    @property
    def is_quick(self) -> bool:
        """Sites always reconverge here."""
        return True

    @cached_property
    def layouts(self) -> dict[Any, Layout]:
        """Those made so far."""
        return {}

    def prior(
        self, hyper: PathHyper, whole: tuple[int, ...] = (), with_constants: bool = False
    ) -> PathPrior:
        """The paths where items met.

        whole: periods with a point for every item; with_constants: and one for its constant.
        """
        rows, n, constants = self.edges, len(self.universe), hyper.kernel(self.universe)
        shown, is_coupled = cast(Covariates, rows.shown), bool(np.count_nonzero(constants) > n)
        # a smooth kernel has no inverse: every item keeps a little of its own
        constants[np.diag_indices_from(constants)] += OWN_SHARE * np.mean(np.diagonal(constants))
        key = is_coupled, whole, with_constants
        if key not in self.layouts:
            ends, length = (rows.winner, rows.loser, rows.period), self.calendar.length
            self.layouts[key] = Layout.of(ends, shown.z, n, length, *key)
        layout = self.layouts[key]
        if len(layout.gap) * float(layout.size) > LARGEST:
            raise DataError(
                f"{n:,} items at {len(layout.gap):,} times do not fit in memory: "
                "give a longer period=, or fewer items"
            )
        dtype = np.float32 if self.is_rough and layout.size > MANY_SLOTS else np.float64
        return PathPrior(constants, hyper.variance, hyper.timescale, shown.sd, layout, dtype)

    def state(self, hyper: PathHyper, sites: Sites, *further: Any) -> PathState:
        """Given sites; further: see `prior`."""
        count = self.edges.count
        return self.prior(hyper, *further).refresh(count * sites.tau, count * sites.nu)

    def posterior(self, solution: PathSolution) -> PathPosterior:
        """As of the last period with a comparison."""
        hyper, _, inference = solution
        last = int(self.edges.period.max())
        state = self.state(hyper, inference.sites, (last,))
        return PathPosterior(
            **_as_weights(*state.at(last), cast(Covariates, self.edges.shown)),
            likelihood=hyper.likelihood,
            universe=self.universe,
            target=self.universe,
            constants=hyper.kernel,
            variance=hyper.variance,
            timescale=hyper.timescale,
            calendar=self.calendar,
            meetings=self.edges,
            sites=inference.sites,
        )

    def predict(self, posterior: PathPosterior, rows: IntArray) -> tuple[IntArray, Normal]:
        """New comparisons as if they were made last: a start, no more."""
        return rows, posterior.difference(self.edges.winner[rows], self.edges.loser[rows])

    def while_learning(self) -> "PathProblem":
        """Coarser tolerances, and single precision where matrices are large."""
        tolerance = max(SITE_TOLERANCE, self.settings.tolerance)
        settings = replace(self.settings, tolerance=tolerance)
        return replace(self, settings=settings, is_rough=True)

    def pullback(self, solution: PathSolution, mean_slopes: FloatArray | None) -> FloatArray:
        """∂ log Z, see `PathState.slopes`."""
        if mean_slopes is not None:
            raise DataError("inference='laplace' does not learn drift: use inference='ep'")
        by_constants, by_variance, by_timescale = solution.inference.state.slopes()
        by_kernel = solution.hyper.kernel.pullback(self.universe, by_constants)
        return np.concatenate([by_kernel, [by_variance, by_timescale]])

    def m_step(self, solution: PathSolution, start: PathHyper) -> PathHyper:
        """Drift is learned by the evidence's gradient alone."""
        raise DataError("optimize='em' does not learn drift: use optimize='evidence'")

    def m_penalty(self, hyper: PathHyper, start: PathHyper) -> float:
        """Of EM, which there is none."""
        return 0.0
