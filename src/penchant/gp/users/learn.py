"""Learning the hyperparameters of many users: the gradient's way and EM's."""

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np

from penchant.errors import DataError, NumericalError
from penchant.gp import Sites
from penchant.gp.learn import weak_prior
from penchant.gp.users.gradient import item_slopes, outer_vectors
from penchant.gp.users.model import Hyperparameters, Problem, Solution, gradient, solve
from penchant.kernels.free import FreeCovariance
from penchant.numerics.optimize import minimize_in_box
from penchant.numerics.types import FloatArray

LEARNING_SITE_TOLERANCE = 1e-3
"""Sites while climbing: the evidence is stationary in them, so its error is of the order 1e-6."""
LEARNING_FACTOR_TOLERANCE = 1e-7
MAX_STEPS = 100
EM_ROUNDS = 300
EM_TOLERANCE = 1e-5

Watch = Callable[[int, float], None]
"""Told after each evaluation: how many there were, and the best log evidence so far."""


def maximize(problem: Problem, start: Hyperparameters, watch: Watch | None = None) -> Solution:
    """Climb the evidence times a weak prior by L-BFGS, sites warm-started."""
    climb = _Climb(_while_learning(problem), start, watch)
    outcome = minimize_in_box(climb, start.theta, start.bounds, MAX_STEPS)
    solution = solve(problem, start.at(climb.best_theta), climb.sites)
    return _annotated(solution, str(outcome.message), climb.n_evaluations)


class _Climb:
    """Negative penalised log evidence and gradient, remembering sites and the best."""

    def __init__(self, problem: Problem, start: Hyperparameters, watch: Watch | None) -> None:
        self.problem, self.start, self.watch = problem, start, watch
        self.sites: Sites | None = None
        self.best_value, self.best_theta = -np.inf, start.theta
        self.n_evaluations = 0

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        self.n_evaluations += 1
        try:
            solution = solve(self.problem, self.start.at(theta), self.sites)
            slope = gradient(self.problem, solution)
        except NumericalError:
            # a wall that the line search backs away from
            return 1e25, np.zeros_like(theta)
        self.sites = solution.inference.sites
        penalty, pull = _log_prior(solution.hyper, self.start)
        value = solution.inference.log_evidence + penalty
        if value > self.best_value:
            self.best_value, self.best_theta = value, theta.copy()
        if self.watch is not None:
            self.watch(self.n_evaluations, self.best_value)
        return -value, -(slope + pull)


def _log_prior(hyper: Hyperparameters, start: Hyperparameters) -> tuple[float, FloatArray]:
    """Weak prior of all hyperparameters around their start, and its slope in theta.

    The entries of a free covariance have one of their own; it is blind to their scale, which is
    held near that of the start: a few answers that agree would drive it up without end, a few
    that contradict each other down to nothing.
    """
    theta, centre = hyper.theta, start.theta
    if not isinstance(hyper.item_kernel, FreeCovariance):
        return weak_prior(theta, centre)
    n_free = len(hyper.item_kernel.theta)
    rest, drag = weak_prior(theta[n_free:], centre[n_free:])
    entries, pull = hyper.item_kernel.log_prior()
    log_scale, by_theta = hyper.item_kernel.log_scale()
    first_scale = cast(FreeCovariance, start.item_kernel).log_scale()[0]
    scale, by_scale = weak_prior(np.array([log_scale]), np.array([first_scale]))
    return rest + entries + scale, np.concatenate([pull + by_scale * by_theta, drag])


def expectation_maximize(
    problem: Problem, start: Hyperparameters, watch: Watch | None = None
) -> Solution:
    """EM for a free item covariance and the sharing; user kernel and likelihood stay as given.

    Each round is one EP and one closed-form M-step; many rounds are needed where users answer
    consistently, because the scale of their utilities then grows slowly.
    """
    if not isinstance(start.item_kernel, FreeCovariance):
        raise DataError(
            f"optimize='em' with item kernel {start.item_kernel!r}: EM has a closed form for a "
            "free covariance only; use optimize='evidence', or item_kernel='free'"
        )
    rough = _while_learning(problem)
    hyper, sites, previous = start, None, -np.inf
    for rounds in range(1, EM_ROUNDS + 1):
        solution = solve(rough, hyper, sites)
        sites = solution.inference.sites
        value = (
            solution.inference.log_evidence + cast(FreeCovariance, hyper.item_kernel).log_prior()[0]
        )
        if watch is not None:
            watch(rounds, value)
        if value - previous < EM_TOLERANCE * max(1.0, abs(value)):
            outcome = f"EM: settled after {rounds} rounds"
            break
        previous = value
        hyper = _m_step(rough, solution)
    else:
        outcome = f"EM: still climbing after {rounds} rounds; optimize='evidence' is faster"
    return _annotated(solve(problem, hyper, sites), outcome, rounds)


def _m_step(problem: Problem, solution: Solution) -> Hyperparameters:
    """The covariance at the current sharing, then both scales at the new covariance.

    Both increase the same expected log prior of the deviations (one draw from (1−ρ) K a user)
    and of the shared utilities (one draw from ρ K a user feature).
    """
    hyper, state = solution.hyper, solution.inference.state
    rho, kernel = hyper.sharing, cast(FreeCovariance, hyper.item_kernel)
    slopes = item_slopes(state, outer_vectors(state))
    n_users = sum(len(block.users) for block in problem.blocks)
    n_shared = state.prior.user_factor.shape[1]
    G = rho * slopes.shared + (1.0 - rho) * slopes.personal
    new = kernel.updated(G, n_users + n_shared)
    shared = rho * kernel.fitted_scale(new, rho * slopes.shared, n_shared)
    personal = (1.0 - rho) * kernel.fitted_scale(new, (1.0 - rho) * slopes.personal, n_users)
    total = shared + personal
    return hyper._replace(item_kernel=new.scaled(total), sharing=shared / total)


def _while_learning(problem: Problem) -> Problem:
    settings = problem.settings
    return replace(
        problem,
        settings=replace(settings, tolerance=max(LEARNING_SITE_TOLERANCE, settings.tolerance)),
        factor_tolerance=max(LEARNING_FACTOR_TOLERANCE, problem.factor_tolerance),
    )


def _annotated(solution: Solution, optimizer: str, n_evaluations: int) -> Solution:
    inference = solution.inference
    report = replace(inference.report, optimizer=optimizer, n_evaluations=n_evaluations)
    return solution._replace(inference=replace(inference, report=report))
