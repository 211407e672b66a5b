"""Evidence of the hyperparameters, its gradient, and the two ways to climb it.

At a fixed point of the sites  ∂ log Z/∂θ = ½ αᵀ ∂K α − ½ tr(R ∂K)  with R = L − L Σ L: one matrix
G = ½ (ααᵀ − R), pulled back through the kernel. No n × n × p array exists.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from penchant.errors import NumericalError
from penchant.inference.edges import Edges, ItemDifferences
from penchant.inference.engine import Inference, Settings, infer
from penchant.inference.gaussian import LowRankState, Prior, factor_prior
from penchant.inference.posterior import Posterior
from penchant.inference.rules import cavity
from penchant.inference.sites import Sites
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import (
    FACTOR_TOLERANCE,
    cholesky,
    gram,
    log_det_lower,
    multiply,
    solve_lower,
)
from penchant.numerics.types import FloatArray

LEARNING_SITE_TOLERANCE = 1e-3
"""Sites while climbing: the evidence is stationary in them, so its error is of the order 1e-6."""
LEARNING_FACTOR_TOLERANCE = 1e-7
COARSE_TOLERANCE = 1e-3
COARSE_SHARE = 0.7
"""A coarse factor with more than this share of the full rank is not worth the detour."""
MAX_STEPS = 60
EM_ROUNDS = 30


@dataclass(frozen=True)
class Problem:
    """Data and settings: everything but the hyperparameters."""

    universe: Inputs
    edges: Edges
    settings: Settings
    rank: int | None = None
    factor_tolerance: float = FACTOR_TOLERANCE


class Hyperparameters(NamedTuple):
    """A kernel and a likelihood, with their free parameters in one vector."""

    kernel: Kernel
    likelihood: Likelihood

    @property
    def theta(self) -> FloatArray:
        """Kernel parameters, then likelihood parameters, on their unconstrained scales."""
        return np.concatenate([self.kernel.theta, self.likelihood.theta])

    @property
    def bounds(self) -> FloatArray:
        """(p, 2) box of `theta`."""
        return np.concatenate([self.kernel.bounds, self.likelihood.bounds])

    def at(self, theta: FloatArray) -> "Hyperparameters":
        """The same kernel and likelihood with other parameters."""
        k = len(self.kernel.theta)
        return Hyperparameters(
            self.kernel.with_theta(theta[:k]), self.likelihood.with_theta(theta[k:])
        )


Best = tuple[float, FloatArray, Sites | None]
"""The highest evidence so far, where, and its sites."""


class Solution(NamedTuple):
    """Inference under one setting of the hyperparameters."""

    hyper: Hyperparameters
    prior: Prior
    inference: Inference[LowRankState]


def solve(problem: Problem, hyper: Hyperparameters, sites: Sites | None = None) -> Solution:
    """Factor the prior and run inference."""
    prior = factor_prior(
        hyper.kernel, problem.universe, problem.edges, problem.rank, problem.factor_tolerance
    )
    edges, settings = problem.edges, problem.settings
    if sites is None:
        sites = _rough_sites(problem, hyper, prior)
    inference = infer(
        prior.refresh, hyper.likelihood, edges.outcomes, edges.count, settings, sites
    )
    report = replace(
        inference.report,
        rank=prior.factor.shape[1],
        residual=prior.chosen.residual,
        space=prior.space,
    )
    return Solution(hyper, prior, replace(inference, report=report))


def _rough_sites(problem: Problem, hyper: Hyperparameters, prior: Prior) -> Sites | None:
    """Nearly the right sites at a fraction of the cost, from the factor's leading pivots."""
    coarse = prior.coarse(COARSE_TOLERANCE)
    if coarse.factor.shape[1] > COARSE_SHARE * prior.factor.shape[1]:
        return None
    edges, settings = problem.edges, problem.settings
    settings = replace(settings, tolerance=max(COARSE_TOLERANCE, settings.tolerance))
    return infer(
        coarse.refresh, hyper.likelihood, edges.outcomes, edges.count, settings
    ).sites


def posterior_of(problem: Problem, solution: Solution) -> Posterior:
    """The posterior over all items of the universe."""
    hyper, prior, inference = solution
    return Posterior(
        kernel=hyper.kernel,
        likelihood=hyper.likelihood,
        universe=problem.universe,
        target=problem.universe,
        basis=prior.basis,
        coefficients=inference.state.coefficients,
        lower=inference.state.lower,
    )


def gradient(problem: Problem, solution: Solution) -> FloatArray:
    """∂ log Z / ∂ theta at the solution's sites."""
    return np.concatenate(
        [_kernel_gradient(problem, solution), _likelihood_gradient(problem, solution)]
    )


def _kernel_gradient(problem: Problem, solution: Solution) -> FloatArray:
    hyper, prior, inference = solution
    state, edges = inference.state, problem.edges
    weight, shift = edges.count * inference.sites.tau, edges.count * inference.sites.nu
    alpha = prior.design.adjoint(shift) - multiply(state.laplacian_factor, state.coefficients)
    half = solve_lower(state.lower, state.laplacian_factor.T)  # halfᵀ half = L Σ L
    outer = [(alpha, alpha)]
    if problem.settings.rule == "laplace":
        u = _laplace_drift(problem, solution)
        outer += [(alpha, u), (u, alpha)]
    if prior.is_bounded:
        return _bounded_pullback(problem, solution, half, outer)
    G = gram(half)
    for a, b in outer:
        G += np.outer(a, b)
    L = prior.design.laplacian(weight).tocoo()
    G[L.row, L.col] -= L.data
    G *= 0.5
    compared, G = _over_items(problem, prior, G)
    return hyper.kernel.pullback(compared, G)


def _over_items(problem: Problem, prior: Prior, G: FloatArray) -> tuple[Inputs, FloatArray]:
    """The items behind the points, and G carried over to them."""
    edges = problem.edges
    if isinstance(prior.design, ItemDifferences):
        return problem.universe.take(edges.items[prior.chosen.order]), G
    D = ItemDifferences(
        edges.winner[prior.chosen.order], edges.loser[prior.chosen.order], len(edges.items)
    ).matrix()
    return problem.universe.take(edges.items), D.T @ (D.T @ G).T


def _bounded_pullback(
    problem: Problem,
    solution: Solution,
    half: FloatArray,
    outer: list[tuple[FloatArray, FloatArray]],
) -> FloatArray:
    """Pull G back through K ≈ K_nP K_PP⁻¹ K_Pn, meeting the derivative of each factor.

    Everything is (n, r): the n × n matrix G itself is never formed.
    """
    hyper, prior, inference = solution
    lower = prior.basis.lower
    T = solve_lower(lower, prior.factor.T, transposed=True)  # K_PP⁻¹ K_Pn
    M = multiply(half.T, multiply(half, T.T))
    M -= solve_lower(lower, inference.state.laplacian_factor.T, transposed=True).T
    for a, b in outer:
        M += np.outer(a, multiply(T, b))
    M *= 0.5
    points = problem.universe.take(problem.edges.items[prior.chosen.order])
    pivots = problem.universe.take(prior.basis.first)
    through = multiply(T, M)
    return 2.0 * hyper.kernel.pullback(points, M, pivots) - hyper.kernel.pullback(
        pivots, 0.5 * (through + through.T)
    )


def _laplace_drift(problem: Problem, solution: Solution) -> FloatArray:
    """How the mode's move changes log|B|: u with (uᵀ ∂K α) the missing part of the gradient."""
    _, prior, inference = solution
    state, edges = inference.state, problem.edges
    third = solution.hyper.likelihood.log_prob(state.mean, edges.outcomes).d3
    pull = prior.design.adjoint(0.5 * edges.count * state.var * third)
    weights = solve_lower(
        state.lower, solve_lower(state.lower, multiply(prior.factor.T, pull)), transposed=True
    )
    return pull - multiply(state.laplacian_factor, weights)


def _likelihood_gradient(problem: Problem, solution: Solution) -> FloatArray:
    """EP's evidence is stationary in the cavities, so only the tilted normalisers count."""
    likelihood, inference = solution.hyper.likelihood, solution.inference
    if problem.settings.rule not in ("ep", "exact"):
        return np.zeros(len(likelihood.theta))
    cav = cavity(inference.state.mean, inference.state.var, inference.sites)
    slopes = likelihood.tilted_gradient(cav.mean, cav.var, problem.edges.outcomes)
    return slopes @ problem.edges.count


def maximize(
    problem: Problem,
    start: Hyperparameters,
    n_restarts: int = 0,
    rng: np.random.Generator | None = None,
) -> Solution:
    """Climb the evidence by L-BFGS with warm-started sites, from `start` and random restarts."""
    rough = _while_learning(problem)
    best: Best = (-np.inf, start.theta, None)
    n_evaluations, messages = 0, []
    for theta0 in _starts(start, n_restarts, rng):
        climb = _Climb(rough, start)
        outcome = _lbfgs(climb, theta0, start.bounds, MAX_STEPS)
        n_evaluations += climb.n_evaluations
        messages.append(str(outcome.message))
        if climb.best[0] > best[0]:
            best = climb.best
    solution = solve(problem, start.at(best[1]), best[2])
    return _annotated(solution, messages[0], n_evaluations)


def _annotated(solution: Solution, optimizer: str, n_evaluations: int) -> Solution:
    """The solution with a word in its report on how its hyperparameters were found."""
    inference = solution.inference
    report = replace(inference.report, optimizer=optimizer, n_evaluations=n_evaluations)
    return solution._replace(inference=replace(inference, report=report))


def _while_learning(problem: Problem) -> Problem:
    settings = problem.settings
    return replace(
        problem,
        settings=replace(settings, tolerance=max(LEARNING_SITE_TOLERANCE, settings.tolerance)),
        factor_tolerance=max(LEARNING_FACTOR_TOLERANCE, problem.factor_tolerance),
    )


def _starts(
    start: Hyperparameters, n_restarts: int, rng: np.random.Generator | None
) -> list[FloatArray]:
    """The given start, then draws around it (sd e^1.5 per parameter) inside the bounds."""
    if n_restarts == 0 or rng is None:
        return [start.theta]
    low, high = start.bounds.T
    draws = start.theta + 1.5 * rng.standard_normal((n_restarts, len(start.theta)))
    return [start.theta, *np.clip(draws, low, high)]


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
        value = solution.inference.log_evidence
        if value > self.best[0]:
            self.best = (value, theta.copy(), self.sites)
        return -value, -slope


def _lbfgs(
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    theta0: FloatArray,
    bounds: FloatArray,
    max_steps: int,
) -> OptimizeResult:
    """Minimise within the box; the first step is at most one unit of log-parameter long.

    L-BFGS-B's first step is the raw gradient, which for thousands of comparisons leaps to a
    corner of the box: hence the objective is divided by the length of its first gradient.
    """
    scale = 0.0

    def scaled(theta: FloatArray) -> tuple[float, FloatArray]:
        nonlocal scale
        value, slope = objective(theta)
        scale = scale or max(1.0, float(np.linalg.norm(slope)))
        return value / scale, slope / scale

    return minimize(
        scaled,
        np.clip(theta0, bounds[:, 0], bounds[:, 1]),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_steps, "ftol": 1e-6, "gtol": 1e-5},
    )


def expectation_maximize(problem: Problem, start: Hyperparameters) -> Solution:
    """The paper's EM (000 section 4.3): EP for q, then maximise E_q[log p(f|θ)] over θ (Eq. 15).

    Its M-step has the evidence's gradient at the current θ; it needs the prior's inverse, so a
    jitter of 1e-8 of the mean variance is added there.
    """
    rough = _while_learning(problem)
    hyper, sites, previous = start, None, -np.inf
    for rounds in range(1, EM_ROUNDS + 1):
        solution = solve(rough, hyper, sites)
        sites, value = solution.inference.sites, solution.inference.log_evidence
        if value - previous < 1e-4 * max(1.0, abs(value)):
            break
        previous = value
        hyper = _m_step(rough, solution)
    final = solve(problem, hyper, sites)
    return _annotated(final, f"EM: {rounds} rounds", rounds)


def _m_step(problem: Problem, solution: Solution) -> Hyperparameters:
    """Maximise −½ log|K| − ½ tr K⁻¹ (Σ + μμᵀ) over the kernel's parameters (Eq. 15, 16)."""
    hyper, prior, inference = solution
    compared = problem.universe.take(problem.edges.items)
    features = prior.basis.features(hyper.kernel, problem.universe, compared)
    mu = features @ inference.state.coefficients
    half = solve_lower(inference.state.lower, features.T)
    prior_rest = hyper.kernel(compared) - features @ features.T
    second_moment = half.T @ half + np.outer(mu, mu) + prior_rest

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        kernel = hyper.kernel.with_theta(theta)
        K = kernel(compared)
        K[np.diag_indices_from(K)] += 1e-8 * np.mean(np.diagonal(K))
        lower = cholesky(K).lower
        inverse_half = solve_lower(lower, np.eye(len(K)))
        inverse = inverse_half.T @ inverse_half
        value = 0.5 * log_det_lower(lower) + 0.5 * float(np.sum(inverse * second_moment))
        G = 0.5 * (inverse - inverse @ second_moment @ inverse)
        return value, kernel.pullback(compared, G)

    outcome = _lbfgs(objective, hyper.kernel.theta, hyper.kernel.bounds, 10)
    return hyper.at(np.concatenate([outcome.x, hyper.likelihood.theta]))
