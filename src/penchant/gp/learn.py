"""Learning hyperparameters, by the gradient of the evidence or by EM; and fits on other answers.

A `FitState` is a finished fit. `FitState.reconverge` starts from its sites and sweeps until they
converge on other answers, more or fewer: equal to inference from scratch, in fewer sweeps. Between
two such, `gp.update` can add answers one by one and leave the other sites as they are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from penchant.data import Comparisons
from penchant.errors import NumericalError
from penchant.gp.loop import Problem, Solution, gradient, solve
from penchant.gp.protocol import Callback, Hyper, Report, State
from penchant.gp.rows import match
from penchant.gp.rules import RULES, Sites, propose
from penchant.numerics.optimize import VALUE_TOLERANCE, Move, minimize_in_box
from penchant.numerics.types import FloatArray

SITE_TOLERANCE = 1e-3
"""Of sites while learning: the evidence is stationary in them, so that it errs by about 1e-6."""
FIRST_TOLERANCE = 1e-2
"""Of sites where a single slope is needed: the proposed sites, a sweep on, are 20 times closer."""
LEARNING_FACTOR_TOLERANCE = 1e-7
"""Of the prior's factor while learning."""
MAX_STEPS = 100
"""Most steps of L-BFGS: a bound on time, not a tolerance."""
LEFT = 0.1
"""Share of the gain that a Newton step leaves, its curvature being known to a third."""
RESTART_SPREAD = 1.5
"""Standard deviation of a restart's log-parameters around the first start."""
RECONVERGE_SHARE = 0.02
"""Where reconverging takes long, it waits until this share of all answers is new."""
MOST_UPDATES = 50
"""More answers than this are cheaper to reconverge together than to add one by one."""

Evaluate = Callable[[FloatArray], tuple[float, FloatArray, Any]]
"""θ → the objective, its slope, and what to keep of this evaluation."""
P = TypeVar("P", bound=Problem[Any, Any])


class Limits(NamedTuple):
    """Of a maximisation: how many steps, and the curvature where known; see `minimize_in_box`."""

    max_steps: int
    curvature: float | Sequence[Move] | None = None
    least_gain: float = 0.0


class StartingPoint(NamedTuple):
    """Where to begin: parameters, sites, and the objective's curvature, where known."""

    theta: FloatArray
    sites: Sites | None = None
    curvature: float | None = None


class Optimum(NamedTuple):
    """The best evaluation: its value, θ and what was kept of it; and how the maximisation ended.

    moves: the last ones, see `minimize_in_box`.
    """

    value: float
    theta: FloatArray
    kept: Any
    n_evaluations: int
    message: str
    moves: tuple[Move, ...] = ()


def maximize(
    evaluate: Evaluate,
    start: FloatArray,
    bounds: FloatArray,
    limits: Limits,
    callback: Callback | None = None,
) -> Optimum:
    """Maximise from `start` inside the box, by L-BFGS.

    Where an evaluation raises NumericalError the line search backs away.
    """
    best_value, best_theta, kept, n_evaluations = -np.inf, start, None, 0

    def negative(theta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best_value, best_theta, kept, n_evaluations
        n_evaluations += 1
        try:
            value, slope, result = evaluate(theta)
        except NumericalError:
            return 1e25, np.zeros_like(theta)
        if value > best_value:
            best_value, best_theta, kept = value, theta.copy(), result
        if callback is not None:
            callback(n_evaluations, best_value)
        return -value, -slope

    end = minimize_in_box(negative, start, bounds, *limits)
    return Optimum(best_value, best_theta, kept, n_evaluations, end.message, end.moves)


def maximize_evidence(
    problem: Problem[Hyper, State],
    start: Hyper,
    n_restarts: int = 0,
    rng: np.random.Generator | None = None,
    begin: StartingPoint | None = None,
    callback: Callback | None = None,
    limits: Limits | None = None,
) -> Solution[Hyper, State]:
    """Maximise the evidence times a weak prior around `start`.

    n_restarts: from draws around the first point, by `rng`. begin: the first point, where it is not
    `start`.
    """
    rough = problem.while_learning()
    centre, sites, curvature = begin or StartingPoint(start.theta)
    starts, optima = [centre], []
    if rng is not None:
        draws = centre + RESTART_SPREAD * rng.standard_normal((n_restarts, len(centre)))
        starts += [*np.clip(draws, *start.bounds.T)]
    for theta in starts:
        evidence = _Evidence(rough, start, sites)
        near = None if curvature is None else _one_step(evidence, theta, start.bounds, curvature)
        limits = (limits or Limits(MAX_STEPS))._replace(curvature=curvature)
        optima.append(near or maximize(evidence, theta, start.bounds, limits, callback))
    best = max(optima, key=lambda optimum: optimum.value)
    kept = best.kept if rough.edges is problem.edges else None
    n_evaluations = sum(optimum.n_evaluations for optimum in optima)
    solution = solve(problem, start.at(best.theta), kept)
    return solution.with_report(optimizer=optima[0].message, n_evaluations=n_evaluations)


def _one_step(
    evidence: "_Evidence", theta: FloatArray, bounds: FloatArray, curvature: float
) -> Optimum | None:
    """The point one Newton step away, where the gain left there is below the tolerance."""
    value, slope, sites = evidence(theta, FIRST_TOLERANCE)
    if LEFT * 0.5 * float(slope @ slope) / curvature > VALUE_TOLERANCE * abs(value):
        return None
    there = np.clip(theta + slope / curvature, *bounds.T)
    return Optimum(value, there, sites, 1, "converged after 1 step: the gain vanished")


class _Evidence:
    """Penalised log evidence and its slope, sites warm-started from the last evaluation.

    Given sites to begin with, each evaluation starts from the sites proposed last: a sweep less.
    """

    def __init__(self, problem: Problem[Any, Any], start: Any, sites: Sites | None) -> None:
        self.problem, self.start, self.sites = problem, start, sites
        self.is_ahead = sites is not None

    def __call__(
        self, theta: FloatArray, tolerance: float = 0.0
    ) -> tuple[float, FloatArray, Sites]:
        solution = solve(self.problem, self.start.at(theta), self.sites, tolerance)
        slope, inference = gradient(self.problem, solution), solution.inference
        ahead = inference.proposed if self.is_ahead else None
        self.sites = inference.sites if ahead is None else ahead
        penalty, penalty_slope = solution.hyper.log_prior(self.start)
        return solution.log_evidence + penalty, slope + penalty_slope, self.sites


def expectation_maximize(
    problem: Problem[Hyper, State], start: Hyper, callback: Callback | None = None
) -> Solution[Hyper, State]:
    """EM (paper 000 section 4.3): inference for q, then the M-step, until it converges."""
    rough, limits = problem.while_learning(), problem.schedule
    hyper, sites, previous = start, None, -np.inf
    for rounds in range(1, limits.rounds + 1):
        solution = solve(rough, hyper, sites)
        sites = solution.inference.sites
        value = solution.log_evidence + rough.m_penalty(hyper, start)
        if callback is not None:
            callback(rounds, value)
        hyper = rough.m_step(solution, start)
        if value - previous <= limits.tolerance * max(1.0, abs(value)):
            outcome = f"EM: settled after {rounds} rounds"
            break
        previous = value
    else:
        outcome = f"EM: still climbing after {rounds} rounds; optimize='evidence' is faster"
    final = solve(problem, hyper, sites if rough.edges is problem.edges else None)
    return final.with_report(optimizer=outcome, n_evaluations=rounds)


@dataclass(frozen=True, eq=False)
class FitState(Generic[P]):
    """A fit: the answers so far, hyperparameters, sites and the posterior that they give.

    sites: of all distinct comparisons, in the problem's order; None where some were dropped.
    n_pending_sites: how many answers were added since the sites last converged together.
    n_elsewhere: how many comparisons of other users, not among `data`, the posterior rests on.
    """

    data: Comparisons
    problem: P
    hyper: Any
    posterior: Any
    sites: Sites | None
    log_evidence: float
    report: Report
    n_pending_sites: int = 0
    n_elsewhere: int = 0

    @classmethod
    def of(cls, data: Comparisons, problem: P, solution: Solution[Any, Any]) -> "FitState[P]":
        """From converged inference."""
        inference = solution.inference
        return cls(
            data,
            problem,
            solution.hyper,
            problem.posterior(solution),
            inference.sites,
            inference.log_evidence,
            inference.report,
        )

    def takes_rank_one_updates(self, n_more: int, reconverge: bool | None) -> bool:
        """Whether to add so many answers one by one; reconverge: what the caller asked for."""
        if n_more > MOST_UPDATES or self.sites is None:
            return False
        if reconverge is not None:
            return not reconverge
        pending = self.n_pending_sites + n_more
        return not self.problem.is_quick and pending <= RECONVERGE_SHARE * self.data.n_comparisons

    def reconverge(self, data: Comparisons, problem: P) -> "FitState[P]":
        """Fit other answers at the same hyperparameters."""
        return FitState.of(data, problem, solve(problem, self.hyper, self.carried_sites(problem)))

    def carried_sites(self, problem: P) -> Sites | None:
        """The sites of known comparisons; for new ones the rule's proposals at their marginals."""
        if self.sites is None:
            return None
        before, rows = self.problem.edges, problem.edges
        if len(before.keys) != len(rows.keys):  # the first answers with an order or covariates
            return None
        place = match(before, rows)
        known = place >= 0
        tau, nu = (np.where(known, site[place], 0.0) for site in (self.sites.tau, self.sites.nu))
        cliques, rule = rows.outcomes.cliques, RULES[problem.settings.rule]
        n = len(rows) - (0 if cliques is None else cliques.n_edges)
        new, marginals = problem.predict(self.posterior, np.flatnonzero(~known[:n]))
        if len(new):
            zeros, outcomes = Sites.zeros(len(new)), rows.outcomes.part(new)
            proposal = propose(rule, marginals, zeros, self.hyper.likelihood, outcomes)
            tau[new], nu[new] = proposal.tau, proposal.nu
        if cliques is not None:
            # an edge sums over all choices that share it, so that all follow from the means again
            every = np.arange(n, len(rows))
            covered, marginals = problem.predict(self.posterior, every)
            if len(covered) == len(every):
                scale = self.hyper.likelihood.choice_scale or 1.0
                tau[n:], nu[n:], _ = cliques.sites(marginals.mean, scale)
        return Sites(tau, nu)
