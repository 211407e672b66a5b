"""One utility an item: hyperparameters, prior, gradient and EM, as the engine wants them."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from penchant.data.graph import Differences
from penchant.gp.items.edges import Edges
from penchant.gp.items.prior import ItemPrior, LowRankState, factor_prior
from penchant.gp.learn import LEARNING_FACTOR_TOLERANCE, SITE_TOLERANCE
from penchant.gp.loop import Settings
from penchant.gp.model import Schedule, Solution
from penchant.gp.posterior import Normal, Posterior
from penchant.kernels import Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import (
    FACTOR_TOLERANCE,
    add_outer,
    add_to_diagonal,
    cholesky,
    diagonal,
    gram,
    identity_like,
    inner,
    log_det_lower,
    multiply,
    multiply_sparse,
    solve_lower,
    subtract,
)
from penchant.numerics.optimize import minimize_in_box, weak_prior
from penchant.numerics.types import FloatArray, IntArray

LEARNING_EDGES = 50_000
"""With a bounded rank, most comparisons that hyperparameters are learned from: a handful of
numbers is settled long before."""
EXACT_ITEMS = 500
"""Up to this many items settling every site is quick."""
EM = Schedule(rounds=30, tolerance=1e-4)
M_STEPS = 10
"""Steps of the optimiser in one M-step."""


class ItemHyper(NamedTuple):
    """A kernel over items and a likelihood."""

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

    def at(self, theta: FloatArray) -> "ItemHyper":
        """The same kernel and likelihood with other parameters."""
        k = len(self.kernel.theta)
        return ItemHyper(self.kernel.with_theta(theta[:k]), self.likelihood.with_theta(theta[k:]))

    def log_prior(self, start: "ItemHyper") -> tuple[float, FloatArray]:
        """Weak prior of all parameters around their start, and its slope."""
        kernel, its_slope = self.kernel.log_prior(start.kernel)
        likelihood, slope = weak_prior(self.likelihood.theta, start.likelihood.theta)
        return kernel + likelihood, np.concatenate([its_slope, slope])


ItemSolution = Solution[ItemHyper, LowRankState]


@dataclass(frozen=True)
class ItemProblem:
    """Comparisons between the items of a universe, users not told apart.

    max_rank: bound on the rank of the prior's factor, for very many items.
    """

    universe: Inputs
    edges: Edges
    settings: Settings
    max_rank: int | None = None
    factor_tolerance: float = FACTOR_TOLERANCE
    schedule: ClassVar[Schedule] = EM

    @property
    def is_quick(self) -> bool:
        """Whether settling every site after each answer is no burden."""
        return len(self.universe) <= EXACT_ITEMS

    def prior(self, hyper: ItemHyper) -> ItemPrior:
        """Factor the prior over the compared items, or over the comparisons if they are fewer."""
        return factor_prior(
            hyper.kernel, self.universe, self.edges, self.max_rank, self.factor_tolerance
        )

    def posterior(self, solution: ItemSolution) -> Posterior:
        """Over all items of the universe."""
        hyper, prior, inference = solution
        return Posterior(
            kernel=hyper.kernel,
            likelihood=hyper.likelihood,
            universe=self.universe,
            target=self.universe,
            basis=prior.basis,
            coefficients=inference.state.coefficients,
            lower=inference.state.lower,
        )

    def expect(self, posterior: Posterior, rows: IntArray) -> tuple[IntArray, Normal]:
        """All of these comparisons are between known items."""
        winner, loser = self.edges.ends
        return rows, posterior.difference(winner[rows], loser[rows])

    def while_learning(self) -> "ItemProblem":
        """Coarser tolerances, and at a bounded rank some of the comparisons."""
        edges = self.edges
        if self.max_rank is not None and len(edges) > LEARNING_EDGES:
            rng = np.random.default_rng(0)
            edges = edges.take(rng.choice(len(edges), LEARNING_EDGES, replace=False))
        tolerance = max(SITE_TOLERANCE, self.settings.tolerance)
        return replace(
            self,
            edges=edges,
            settings=replace(self.settings, tolerance=tolerance),
            factor_tolerance=max(LEARNING_FACTOR_TOLERANCE, self.factor_tolerance),
        )

    def pullback(self, solution: ItemSolution, drift: FloatArray | None) -> FloatArray:
        """∂ log Z by the kernel's parameters: G = ½ (ααᵀ − R) met with ∂K."""
        hyper, prior, inference = solution
        state, edges = inference.state, self.edges
        weight, shift = edges.count * inference.sites.tau, edges.count * inference.sites.nu
        alpha = prior.design.adjoint(shift) - multiply(state.laplacian_factor, state.coefficients)
        half = solve_lower(state.lower, state.laplacian_factor.T)  # halfᵀ half = L Σ L
        outer = [(alpha, alpha)]
        if drift is not None:
            # uᵀ ∂K α is what the moving mode adds, u = (I − L Σ) Aᵀ drift
            pull = prior.design.adjoint(drift)
            u = pull - multiply(state.laplacian_factor, state.solve(pull))
            outer += [(alpha, u), (u, alpha)]
        if prior.is_bounded:
            return self._bounded_pullback(solution, half, outer)
        G = gram(half)
        del half
        for a, b in outer:
            add_outer(G, a, b)
        subtract(G, prior.design.laplacian(weight))
        G *= 0.5
        return hyper.kernel.pullback(*self._over_items(prior, G))

    def _over_items(self, prior: ItemPrior, G: FloatArray) -> tuple[Inputs, FloatArray]:
        """The items behind the points, and G carried over to them."""
        edges = self.edges
        if isinstance(prior.design, Differences):
            return self.universe.take(edges.items[prior.chosen.order]), G
        D = Differences(
            edges.winner[prior.chosen.order], edges.loser[prior.chosen.order], len(edges.items)
        ).matrix()
        return self.universe.take(edges.items), multiply_sparse(D.T, multiply_sparse(D.T, G).T)

    def _bounded_pullback(
        self,
        solution: ItemSolution,
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
            add_outer(M, a, multiply(T, b))
        M *= 0.5
        points = self.universe.take(self.edges.items[prior.chosen.order])
        pivots = self.universe.take(prior.basis.first)
        through = multiply(T, M)
        return 2.0 * hyper.kernel.pullback(points, M, pivots) - hyper.kernel.pullback(
            pivots, 0.5 * (through + through.T)
        )

    def m_step(self, solution: ItemSolution, start: ItemHyper) -> ItemHyper:
        """Maximise −½ log|K| − ½ tr K⁻¹ (Σ + μμᵀ) over the kernel's parameters (Eqs. 15, 16).

        It has the evidence's gradient at the current θ; it needs the prior's inverse, so a jitter
        of 1e-8 of the mean variance is added.
        """
        hyper, prior, inference = solution
        compared = self.universe.take(self.edges.items)
        features = prior.basis.features(hyper.kernel, self.universe, compared)
        mu = multiply(features, inference.state.coefficients)
        half = solve_lower(inference.state.lower, features.T)
        prior_rest = hyper.kernel(compared) - gram(features.T)
        second_moment = gram(half) + prior_rest
        add_outer(second_moment, mu, mu)

        def objective(theta: FloatArray) -> tuple[float, FloatArray]:
            kernel = hyper.kernel.with_theta(theta)
            K = kernel(compared)
            add_to_diagonal(K, 1e-8 * float(np.mean(diagonal(K))))
            lower = cholesky(K).lower
            inverse = gram(solve_lower(lower, identity_like(lower, len(K))))
            value = 0.5 * log_det_lower(lower) + 0.5 * inner(inverse, second_moment)
            G = 0.5 * (inverse - multiply(multiply(inverse, second_moment), inverse))
            penalty, drag = kernel.log_prior(start.kernel)
            return value - penalty, kernel.pullback(compared, G) - drag

        best = minimize_in_box(objective, hyper.kernel.theta, hyper.kernel.bounds, M_STEPS).x
        return hyper._replace(kernel=hyper.kernel.with_theta(best))

    def m_penalty(self, hyper: ItemHyper, start: ItemHyper) -> float:
        """The weak prior of the kernel's parameters."""
        return hyper.kernel.log_prior(start.kernel)[0]
