"""How `PreferenceGP` learns: from comparisons of everybody together to what is known of items."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from penchant.data import Comparisons
from penchant.errors import ConvergenceWarning, DataError, warn
from penchant.gp import (
    Calendar,
    Edges,
    ItemHyper,
    ItemProblem,
    Learned,
    PathProblem,
    PathSolution,
    People,
    Settings,
    Shown,
    check_time,
    expectation_maximize,
    first_guess,
    learn_raters,
    maximize,
    solve,
)
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood, Raters, get
from penchant.models.defaults import arbitrated_kernel
from penchant.models.learning import Learning
from penchant.models.rater_table import check_named
from penchant.models.relevance import with_relevance
from penchant.models.tie_meaning import with_ties_understood
from penchant.models.time import faded, faded_counts, path_problem, path_start
from penchant.numerics.dispatch import HOST, device_called
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for


@dataclass(frozen=True, eq=False)
class ItemLearning(Learning):
    """By the parameters of `PreferenceGP`, where they are explained."""

    kernel: Kernel | None
    likelihood: str | Likelihood
    inference: str
    optimize: str | None
    max_rank: int | None
    clustered: bool
    raters: str | None
    drift: str | None
    period: float | None
    half_life: float | None
    device: str | None
    n_restarts: int
    random_state: RandomState

    def learned(self, items: Inputs, data: Comparisons) -> Learned[Any]:
        """Everything, hyperparameters included."""
        if self.drift is not None:
            return self._drifting(items, data)
        likelihood = get(self.likelihood, data.margin, data.count)
        if self.raters is not None:
            check_named(data, f"raters={self.raters!r}")
            likelihood = Raters.alike(likelihood, self.raters, data.n_users)
        edges = self._edges(data, likelihood)
        if edges.shown is not None:
            self._check_on_host("the order shown and covariates are")
        problem = ItemProblem(items, edges, Settings(self.inference), self.max_rank)
        problem = replace(problem, people=self._people(data, edges))
        likelihood.check(problem.edges.outcomes)
        start = ItemHyper(self.item_kernel(items), likelihood)
        with threads_for(len(problem.edges.items)):
            if self.kernel is None and self.optimize == "evidence":
                start, solution = with_relevance(problem, start, self._solve)
            else:
                solution = self._solve(problem, start)
            is_plain = self.raters is None and self.optimize == "evidence"
            if self.likelihood == "ties" and is_plain:
                start, solution = with_ties_understood(problem, start, solution, self._solve)
            if self.raters is not None:
                learn = None if self.optimize is None else partial(self._solve, problem)
                solution = learn_raters(problem, solution, False, learn)
            learned = Learned.of(data, problem, solution)
        return self._warned(learned)

    def item_kernel(self, items: Inputs) -> Kernel:
        """The kernel given, or what is known of items before any answer."""
        if self.kernel is None:
            return arbitrated_kernel(items, self.max_rank)
        return self.kernel.at_scale_of(items)

    def resettled(self, learned: Learned[Any], data: Comparisons) -> Learned[Any]:
        """After other answers, under the hyperparameters that were learned."""
        return learned.settle(data, self.problem_after(learned, data))

    def problem_after(self, learned: Learned[Any], data: Comparisons) -> ItemProblem | PathProblem:
        """The problem of other answers, or of the same: a file does not keep what they count."""
        known: ItemProblem | PathProblem = learned.problem
        if isinstance(known, PathProblem):
            return path_problem(known.universe, data, known.settings, known.calendar)
        edges = self._edges(data, learned.hyper.likelihood, known.edges.shown)
        return replace(known, edges=edges, people=self._people(data, edges))

    def _drifting(self, items: Inputs, data: Comparisons) -> Learned[PathProblem]:
        self._check_on_host("drift is")
        others = ("raters", "half_life", "max_rank")
        if given := [name for name in others if getattr(self, name) is not None]:
            raise DataError(f"drift= does not go together with {', '.join(given)}: leave one out")
        calendar = Calendar.of(check_time(data), self.period)
        problem = path_problem(items, data, Settings(self.inference), calendar)
        likelihood = get(self.likelihood, data.margin, data.count)
        likelihood.check(problem.edges.outcomes)
        start = path_start(self.item_kernel(items), data, likelihood)
        with threads_for(len(items)):
            solution: PathSolution = self._solve(problem, start)
            return self._warned(Learned.of(data, problem, solution))

    def _check_on_host(self, what: str) -> None:
        if device_called(self.device) is not HOST:
            raise DataError(
                f"{what} worked on by the CPU alone, got device={self.device!r}: leave it at None, "
                "or drop them with data.bare()"
            )

    def _warned(self, learned: Learned[Any]) -> Learned[Any]:
        if not learned.report.converged:
            warn(learned.report.advice(), ConvergenceWarning)
        return learned

    def _solve(self, problem: Any, start: Any) -> Any:
        if self.optimize is None:
            return solve(problem, start)
        if self.optimize == "em":
            return expectation_maximize(problem, start)
        begin = first_guess(problem, start) if isinstance(problem, ItemProblem) else None
        return maximize(problem, start, self.n_restarts, as_rng(self.random_state), begin)

    def _people(self, data: Comparisons, edges: Edges) -> People | None:
        if not self.clustered:
            return None
        if self.half_life is None:
            return People.of(data, edges)
        pairs = data.as_pairs()
        return People.of(pairs, edges, faded_counts(pairs, self.half_life) / pairs.count)

    def _edges(
        self, data: Comparisons, likelihood: Likelihood, known: Shown | None = None
    ) -> Edges:
        if self.half_life is None:
            return Edges.of(data, known, likelihood.by_rater)
        pairs = data.as_pairs()
        return faded(Edges.of(pairs, known, likelihood.by_rater), pairs, self.half_life)
