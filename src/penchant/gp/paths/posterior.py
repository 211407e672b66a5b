"""What is known of drifting utilities: at the last comparison, and at any other time."""

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.errors import DataError
from penchant.gp.loop import Settings
from penchant.gp.paths.meetings import Calendar
from penchant.gp.posterior import Basis, Normal, Posterior
from penchant.gp.sites import Sites
from penchant.kernels import Independent, Inputs, Kernel
from penchant.numerics.linalg import cholesky, gram, multiply, solve_lower
from penchant.numerics.types import FloatArray, IntArray

if TYPE_CHECKING:
    from penchant.gp.paths.problem import PathProblem, PathSolution


@dataclass(frozen=True, eq=False)
class PathPosterior(Posterior):
    """Utilities as of one period; `when` gives them as of any other.

    constants: the kernel of what does not drift; variance, timescale: of what does. meetings,
    sites: the comparisons, from which any period follows exactly. effect_mean, effect_var: (q,) of
    the coefficients of their covariates. period: its number, None for that of the last comparison.
    """

    constants: Kernel = Independent()  # noqa: RUF009  # frozen
    variance: float = 1.0
    timescale: float = 1.0
    calendar: Calendar = Calendar(0.0, 1.0)  # noqa: RUF009  # frozen
    meetings: Any = None
    sites: Any = None
    effect_mean: Any = None
    effect_var: Any = None
    period: int | None = field(default=None, init=False)

    @classmethod
    def of(cls, problem: "PathProblem", solution: "PathSolution") -> "PathPosterior":
        """As of the last period with a comparison."""
        hyper, _, inference = solution
        state, n = inference.state, len(problem.universe)
        mean, cov = state.at(len(state.prior.days) - 1)
        return cls(
            **_as_weights(mean, cov),
            likelihood=hyper.likelihood,
            universe=problem.universe,
            target=problem.universe,
            constants=hyper.kernel,
            variance=hyper.variance,
            timescale=hyper.timescale,
            calendar=problem.calendar,
            meetings=problem.edges,
            sites=inference.sites,
            effect_mean=state.beside[n:].copy(),
            effect_var=np.diagonal(state.border_cov)[n:].copy(),
        )

    @property
    def shown_effects(self) -> Normal:
        """(q,) coefficients of the covariates; the side shown first, where told, is the first."""
        return Normal(self.effect_mean, self.effect_var)

    def at(self, target: Inputs | None) -> "PathPosterior":
        """Of some items, or of new ones: at any time their constant, and a path of which
        nothing is known."""
        if target is None or target.index is not None:
            return self if target is None else replace(self, target=target)
        period = self.meetings.period.max() if self.period is None else self.period
        state, n = self._state(np.array([period])), len(self.universe)
        t = int(np.searchsorted(np.union1d(self.meetings.period, period), period))
        mean, cov = state.at(t)
        cross = self.constants(target, self.universe)
        through = multiply(cross, state.prior.border[0][:n, :n])
        # of new items with the old ones' constants, and by these with their utilities then
        constants = multiply(through, state.border_cov[:n, :n])
        answers = multiply(through, multiply(state.border_cov[:n], state.answer(t).T))
        own = self.constants(target) + self.variance * np.eye(len(cross))
        new = own - multiply(through, cross.T) + multiply(constants, through.T)
        weights = _as_weights(
            np.append(mean, multiply(through, state.beside[:n])),
            np.block([[cov, answers.T], [answers, new]]),
        )
        items = Inputs(index=np.arange(n + len(cross)))
        return replace(
            self, **weights, universe=items, target=items.take(np.arange(n, n + len(cross)))
        )

    def relative_to(self, others: Posterior) -> Normal:
        """Of new items, which `at` puts after the old ones, less the average old item."""
        n = len(others.universe)
        if n < len(self.universe):
            others = replace(self, target=self.universe.take(np.arange(n)))
        return super().relative_to(others)

    def difference(self, first: IntArray, second: IntArray, z: FloatArray | None = None) -> Normal:
        """Marginals of f[first] − f[second] + zᵀβ, each (k,), z: (q, k)."""
        return self._shown(super().difference(first, second), z)

    def _shown(self, difference: Normal, z: FloatArray | None) -> Normal:
        """With what zᵀβ adds."""
        if z is None or not len(z):
            return difference
        mean, var = difference
        return Normal(mean + self.effect_mean @ z, var + self.effect_var @ z**2)

    def when(self, days: FloatArray) -> list["PathPosterior"]:
        """As of each of these days: smoothed within the data, foreseen beyond them."""
        periods = self.calendar.period(np.asarray(days, dtype=float))
        state = self._state(periods)
        known = np.union1d(self.meetings.period, periods)
        found = []
        for period in periods.tolist():
            then = replace(self, **_as_weights(*state.at(int(np.searchsorted(known, period)))))
            object.__setattr__(then, "period", period)
            found.append(then)
        return found

    def each(self, days: FloatArray) -> "TimedPosterior":
        """The same, asked about k differences at k days."""
        known = {each.name: getattr(self, each.name) for each in fields(self) if each.init}
        return TimedPosterior(**known, days=days, paths=self)

    def _state(self, periods: Any) -> Any:
        from penchant.gp.paths.problem import PathHyper, PathProblem

        problem = PathProblem(self.universe, self.meetings, self.calendar, Settings())
        hyper = PathHyper(self.constants, self.variance, self.timescale, self.likelihood)
        sites: Sites = self.sites
        count = self.meetings.count
        return problem.prior(hyper, periods).refresh(count * sites.tau, count * sites.nu)


@dataclass(frozen=True, eq=False)
class TimedPosterior(PathPosterior):
    """Utilities of which every difference is asked about at a day of its own, days: (k,)."""

    days: Any = None
    paths: Any = None

    def at(self, target: Inputs | None) -> PathPosterior:
        """The same; of new items, which are alike at all times, as they are at any."""
        at: PathPosterior = self if target is None else self.paths.at(target)
        return at

    def check(self, n_pairs: int) -> None:
        """There must be a day for each pair."""
        if len(self.days) != n_pairs:
            raise DataError(
                f"at has {len(self.days)} times and there are {n_pairs} pairs: give one time for "
                "all pairs, or one for each"
            )

    def difference(self, first: IntArray, second: IntArray, z: FloatArray | None = None) -> Normal:
        """Marginals of f[first] − f[second] + zᵀβ, each (k,) as of its own day; z: (q, k)."""
        self.check(len(first))
        periods = self.calendar.period(self.days)
        state, known = self._state(periods), np.union1d(self.meetings.period, periods)
        mean, var = np.empty((2, len(first)))
        for period in np.unique(periods):
            rows = np.flatnonzero(periods == period)
            f, cov = state.at(int(np.searchsorted(known, period)))
            a, b = first[rows], second[rows]
            mean[rows], var[rows] = f[a] - f[b], cov[a, a] + cov[b, b] - 2.0 * cov[a, b]
        return self._shown(Normal(mean, np.maximum(var, 0.0)), z)


def _as_weights(mean: FloatArray, cov: FloatArray) -> dict[str, Any]:
    """N(mean, cov) over n items as weights w with f = s w, as `Posterior` has them."""
    n = len(mean)
    scale = float(np.mean(np.diagonal(cov)))
    half = solve_lower(cholesky(cov / scale).lower, np.eye(n))
    return {
        "kernel": Independent(scale),
        "basis": Basis(np.arange(n), None, np.sqrt(scale) * np.eye(n)),
        "coefficients": mean / np.sqrt(scale),
        "lower": cholesky(gram(half)).lower,
    }
