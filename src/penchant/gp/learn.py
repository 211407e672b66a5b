"""Learning hyperparameters: climbing the evidence, or EM."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from penchant.errors import NumericalError
from penchant.gp.loop import Hyper, Problem, Solution, State, gradient, solve
from penchant.gp.sites import Sites
from penchant.numerics.optimize import VALUE_TOLERANCE, Move, minimize_in_box
from penchant.numerics.types import FloatArray

SITE_TOLERANCE, FIRST_TOLERANCE = 1e-3, 1e-2
"""Of sites while climbing: the evidence is stationary in them, so it errs by the order of 1e-6.
The second where a single slope is wanted, and the sites are better than they look: one sweep on,
what is left of a move is a twentieth."""
LEARNING_FACTOR_TOLERANCE = 1e-7
"""Of the prior's factor while climbing."""
MAX_STEPS = 100
LEFT = 0.1
"""What a Newton step may leave of a gain, its curvature being known to a third."""
RESTART_SPREAD = 1.5
"""Standard deviation of a restart's log-parameters around the first start."""

Watch = Callable[[int, float], None]
"""Told after each evaluation: how many there were, and the best value so far."""
Evaluate = Callable[[FloatArray], tuple[float, FloatArray, Any]]
"""θ → what to raise, its slope, and what to remember of the place."""


class Limits(NamedTuple):
    """Of a climb: how many steps, and what is known of the way; see `minimize_in_box`."""

    max_steps: int
    curvature: float | Sequence[Move] | None = None
    least_gain: float = 0.0


class StartingPoint(NamedTuple):
    """Where to begin a climb: parameters, sites, and the objective's curvature, where known."""

    theta: FloatArray
    sites: Sites | None = None
    curvature: float | None = None


class Optimum(NamedTuple):
    """The highest place that a climb saw, what was remembered of it, and how the climb ended.

    moves: its last ones, see `minimize_in_box`.
    """

    value: float
    theta: FloatArray
    kept: Any
    n_evaluations: int
    message: str
    moves: tuple[Move, ...] = ()


def climb(
    evaluate: Evaluate,
    start: FloatArray,
    bounds: FloatArray,
    limits: Limits,
    watch: Watch | None = None,
) -> Optimum:
    """A few steps upwards from `start` inside the box, by L-BFGS.

    Where the numbers break down is a wall that the line search backs away from.
    """
    best_value, best_theta, kept, n_evaluations = -np.inf, start, None, 0

    def descend(theta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best_value, best_theta, kept, n_evaluations
        n_evaluations += 1
        try:
            value, slope, remembered = evaluate(theta)
        except NumericalError:
            return 1e25, np.zeros_like(theta)
        if value > best_value:
            best_value, best_theta, kept = value, theta.copy(), remembered
        if watch is not None:
            watch(n_evaluations, best_value)
        return -value, -slope

    end = minimize_in_box(descend, start, bounds, *limits)
    return Optimum(best_value, best_theta, kept, n_evaluations, end.message, end.moves)


def maximize(
    problem: Problem[Hyper, State],
    start: Hyper,
    n_restarts: int = 0,
    rng: np.random.Generator | None = None,
    begin: StartingPoint | None = None,
    watch: Watch | None = None,
) -> Solution[Hyper, State]:
    """Climb the evidence times a weak prior, from `start` and random restarts.

    begin: where to climb from, where it is not `start`, around which the prior stays.
    """
    rough = problem.while_learning()
    centre, sites, curvature = begin or StartingPoint(start.theta)
    summits = []
    for theta in _starts(centre, start.bounds, n_restarts, rng):
        evidence = _Evidence(rough, start, sites)
        near = None if curvature is None else _one_step(evidence, theta, start.bounds, curvature)
        limits = Limits(MAX_STEPS, curvature)
        summits.append(near or climb(evidence, theta, start.bounds, limits, watch))
    best = max(summits, key=lambda summit: summit.value)
    kept = best.kept if rough.edges is problem.edges else None
    solution = solve(problem, start.at(best.theta), kept)
    n_evaluations = sum(summit.n_evaluations for summit in summits)
    return _annotated(solution, summits[0].message, n_evaluations)


def _one_step(
    evidence: "_Evidence", theta: FloatArray, bounds: FloatArray, curvature: float
) -> Optimum | None:
    """The place one Newton step away, where so little is left to gain that it need not be seen."""
    value, slope, sites = evidence(theta, FIRST_TOLERANCE)
    if LEFT * 0.5 * float(slope @ slope) / curvature > VALUE_TOLERANCE * abs(value):
        return None
    there = np.clip(theta + slope / curvature, *bounds.T)
    return Optimum(value, there, sites, 1, "converged after 1 step: the gain vanished")


class _Evidence:
    """Penalised log evidence and its slope, sites warm-started from the last evaluation.

    Given sites to begin with, it goes on from what the rule wants next: a sweep less each time.
    """

    def __init__(self, problem: Problem[Any, Any], start: Any, sites: Sites | None) -> None:
        self.problem, self.start, self.sites = problem, start, sites
        self.is_ahead = sites is not None

    def __call__(
        self, theta: FloatArray, tolerance: float = 0.0
    ) -> tuple[float, FloatArray, Sites]:
        solution = solve(self.problem, self.start.at(theta), self.sites, tolerance)
        slope = gradient(self.problem, solution)
        inference = solution.inference
        self.sites = inference.wanted if self.is_ahead and inference.wanted else inference.sites
        penalty, pull = solution.hyper.log_prior(self.start)
        return solution.log_evidence + penalty, slope + pull, self.sites


def _starts(
    begin: FloatArray, bounds: FloatArray, n_restarts: int, rng: np.random.Generator | None
) -> list[FloatArray]:
    """The given start, then draws around it inside the bounds."""
    if rng is None:
        return [begin]
    low, high = bounds.T
    draws = begin + RESTART_SPREAD * rng.standard_normal((n_restarts, len(begin)))
    return [begin, *np.clip(draws, low, high)]


def expectation_maximize(
    problem: Problem[Hyper, State], start: Hyper, watch: Watch | None = None
) -> Solution[Hyper, State]:
    """EM (paper 000 section 4.3): inference for q, then the problem's M-step, until it settles."""
    rough, limits = problem.while_learning(), problem.schedule
    hyper, sites, previous = start, None, -np.inf
    for rounds in range(1, limits.rounds + 1):
        solution = solve(rough, hyper, sites)
        sites = solution.inference.sites
        value = solution.log_evidence + rough.m_penalty(hyper, start)
        if watch is not None:
            watch(rounds, value)
        hyper = rough.m_step(solution, start)
        if value - previous <= limits.tolerance * max(1.0, abs(value)):
            outcome = f"EM: settled after {rounds} rounds"
            break
        previous = value
    else:
        outcome = f"EM: still climbing after {rounds} rounds; optimize='evidence' is faster"
    final = solve(problem, hyper, sites if rough.edges is problem.edges else None)
    return _annotated(final, outcome, rounds)


def _annotated(
    solution: Solution[Hyper, State], optimizer: str, n_evaluations: int
) -> Solution[Hyper, State]:
    """The solution with a word in its report on how its hyperparameters were found."""
    inference = solution.inference
    report = replace(inference.report, optimizer=optimizer, n_evaluations=n_evaluations)
    return solution._replace(inference=replace(inference, report=report))
