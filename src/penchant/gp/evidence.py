"""Evidence of the hyperparameters, and its gradient.

At a fixed point of the sites  ∂ log Z/∂θ = ½ αᵀ ∂K α − ½ tr(R ∂K)  with R = L − L Σ L: one matrix
G = ½ (ααᵀ − R), pulled back through the kernel. No n × n × p array exists.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from penchant.gp.converge import converge
from penchant.gp.items.edges import Edges, ItemDifferences
from penchant.gp.items.prior import LowRankState, Prior, factor_prior
from penchant.gp.loop import Inference, Settings, infer
from penchant.gp.posterior import Posterior
from penchant.gp.rules import cavity
from penchant.gp.sites import Sites
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import FACTOR_TOLERANCE, gram, multiply, solve_lower
from penchant.numerics.types import FloatArray

COARSE_TOLERANCE = 3e-4
ROUGH_TOLERANCE = 1e-3
"""Of the factor, and of the sites, when a first guess at the sites is made."""
COARSE_SHARE = 0.7
"""A coarse factor with more than this share of the full rank is not worth the detour."""


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
    inference = converge(prior, hyper.likelihood, edges, settings, sites)
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
    settings = replace(settings, tolerance=max(ROUGH_TOLERANCE, settings.tolerance))
    return infer(coarse.refresh, hyper.likelihood, edges.outcomes, edges.count, settings).sites


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
    L = prior.design.laplacian(weight)
    G -= L if isinstance(L, np.ndarray) else L.toarray()
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
