"""Learning hyperparameters: climbing the evidence, or the paper's EM."""

from dataclasses import replace

import numpy as np

from penchant.errors import NumericalError
from penchant.gp.evidence import Hyperparameters, Problem, Solution, gradient, solve
from penchant.gp.sites import Sites
from penchant.numerics.linalg import cholesky, gram, log_det_lower, multiply, solve_lower
from penchant.numerics.optimize import minimize_in_box
from penchant.numerics.types import FloatArray

SITE_TOLERANCE = 1e-3
"""Of sites while climbing: the evidence is stationary in them, so it errs by the order of 1e-6."""
LEARNING_FACTOR_TOLERANCE = 1e-7
LEARNING_EDGES = 50_000
"""With a bounded rank, most comparisons that hyperparameters are learned from: a handful of
numbers is settled long before."""
MAX_STEPS = 60
EM_ROUNDS = 30
PRIOR_SPREAD = 1.7
"""Standard deviation of a log-parameter a priori: a factor of 5.5 either way."""

Best = tuple[float, FloatArray, Sites | None]
"""The highest evidence so far, where, and its sites."""


def maximize(
    problem: Problem,
    start: Hyperparameters,
    n_restarts: int = 0,
    rng: np.random.Generator | None = None,
    begin: FloatArray | None = None,
) -> Solution:
    """Climb the evidence by L-BFGS with warm-started sites, from `start` and random restarts.

    begin: theta to climb from, where it is not that of `start`, around which the prior stays.
    """
    rough = while_learning(problem)
    best: Best = (-np.inf, start.theta, None)
    n_evaluations, messages = 0, []
    begin = start.theta if begin is None else begin
    for theta0 in _starts(begin, start.bounds, n_restarts, rng):
        climb = _Climb(rough, start)
        outcome = minimize_in_box(climb, theta0, start.bounds, MAX_STEPS)
        n_evaluations += climb.n_evaluations
        messages.append(str(outcome.message))
        if climb.best[0] > best[0]:
            best = climb.best
    sites = best[2] if rough.edges is problem.edges else None
    solution = solve(problem, start.at(best[1]), sites)
    return annotated(solution, messages[0], n_evaluations)


def annotated(solution: Solution, optimizer: str, n_evaluations: int) -> Solution:
    """The solution with a word in its report on how its hyperparameters were found."""
    inference = solution.inference
    report = replace(inference.report, optimizer=optimizer, n_evaluations=n_evaluations)
    return solution._replace(inference=replace(inference, report=report))


def while_learning(problem: Problem) -> Problem:
    """The problem with tolerances, and at a bounded rank a size, that suffice for climbing."""
    settings, edges = problem.settings, problem.edges
    if problem.rank is not None and len(edges) > LEARNING_EDGES:
        rng = np.random.default_rng(0)
        edges = edges.take(rng.choice(len(edges), LEARNING_EDGES, replace=False))
    return replace(
        problem,
        edges=edges,
        settings=replace(settings, tolerance=max(SITE_TOLERANCE, settings.tolerance)),
        factor_tolerance=max(LEARNING_FACTOR_TOLERANCE, problem.factor_tolerance),
    )


def _starts(
    begin: FloatArray, bounds: FloatArray, n_restarts: int, rng: np.random.Generator | None
) -> list[FloatArray]:
    """The given start, then draws around it (sd e^1.5 per parameter) inside the bounds."""
    if n_restarts == 0 or rng is None:
        return [begin]
    low, high = bounds.T
    draws = begin + 1.5 * rng.standard_normal((n_restarts, len(begin)))
    return [begin, *np.clip(draws, low, high)]


class _Climb:
    """Negative log evidence and gradient for the optimiser, remembering sites and the best."""

    def __init__(self, problem: Problem, start: Hyperparameters) -> None:
        self.problem, self.start = problem, start
        self.sites: Sites | None = None
        self.best: Best = (-np.inf, start.theta, None)
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
        penalty, drag = weak_prior(theta, self.start.theta)
        value = solution.inference.log_evidence + penalty
        if value > self.best[0]:
            self.best = (value, theta.copy(), self.sites)
        return -value, -(slope + drag)


def weak_prior(
    theta: FloatArray, centre: FloatArray, spread: float = PRIOR_SPREAD
) -> tuple[float, FloatArray]:
    """Weak normal prior of the log-parameters around their start, and its slope.

    A handful of consistent answers leaves the evidence flat (it rises for ever, ever less, with
    the kernel's variance): what the data do not settle stays near where it began.
    """
    z = (theta - centre) / spread
    return -0.5 * float(z @ z), -z / spread


def expectation_maximize(problem: Problem, start: Hyperparameters) -> Solution:
    """The paper's EM (000 section 4.3): EP for q, then maximise E_q[log p(f|θ)] over θ (Eq. 15).

    Its M-step has the evidence's gradient at the current θ; it needs the prior's inverse, so a
    jitter of 1e-8 of the mean variance is added there.
    """
    rough = while_learning(problem)
    hyper, sites, previous = start, None, -1e25
    rounds, gain = 0, np.inf
    while rounds < EM_ROUNDS and gain > 1e-4 * max(1.0, abs(previous)):
        solution = solve(rough, hyper, sites)
        sites, value = solution.inference.sites, solution.inference.log_evidence
        gain, previous = value - previous, value
        rounds += 1
        hyper = _m_step(rough, solution, start.kernel.theta)
    final = solve(problem, hyper, sites if rough.edges is problem.edges else None)
    return annotated(final, f"EM: {rounds} rounds", rounds)


def _m_step(problem: Problem, solution: Solution, centre: FloatArray) -> Hyperparameters:
    """Maximise −½ log|K| − ½ tr K⁻¹ (Σ + μμᵀ) over the kernel's parameters (Eq. 15, 16)."""
    hyper, prior, inference = solution
    compared = problem.universe.take(problem.edges.items)
    features = prior.basis.features(hyper.kernel, problem.universe, compared)
    mu = multiply(features, inference.state.coefficients)
    half = solve_lower(inference.state.lower, features.T)
    prior_rest = hyper.kernel(compared) - gram(features.T)
    second_moment = gram(half) + np.outer(mu, mu) + prior_rest

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        kernel = hyper.kernel.with_theta(theta)
        K = kernel(compared)
        K[np.diag_indices_from(K)] += 1e-8 * np.mean(np.diagonal(K))
        lower = cholesky(K).lower
        inverse_half = solve_lower(lower, np.eye(len(K)))
        inverse = gram(inverse_half)
        value = 0.5 * log_det_lower(lower) + 0.5 * float(np.sum(inverse * second_moment))
        G = 0.5 * (inverse - multiply(multiply(inverse, second_moment), inverse))
        penalty, drag = weak_prior(theta, centre)
        return value - penalty, kernel.pullback(compared, G) - drag

    outcome = minimize_in_box(objective, hyper.kernel.theta, hyper.kernel.bounds, 10)
    return hyper.at(np.concatenate([outcome.x, hyper.likelihood.theta]))
