"""One utility an item: hyperparameters, prior, gradient and EM, as the engine wants them."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from penchant.data import Differences
from penchant.gp.effects import EffectsState, WithEffects
from penchant.gp.items.edges import Edges
from penchant.gp.items.effects import marginals
from penchant.gp.items.people import People
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
from penchant.numerics.random import pair_keys
from penchant.numerics.types import FloatArray, IntArray

LEARNING_EDGES = 50_000
"""With a bounded rank, or with covariates that leave hardly two comparisons alike, most
comparisons that hyperparameters are learned from: a handful of numbers is settled long before."""
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


ItemSolution = Solution[ItemHyper, Any]


@dataclass(frozen=True)
class ItemProblem:
    """Comparisons between the items of a universe, users not told apart.

    max_rank: bound on the rank of the prior's factor, for very many items. people: who gave which
    answers, where that widens what is known.
    """

    universe: Inputs
    edges: Edges
    settings: Settings
    max_rank: int | None = None
    factor_tolerance: float = FACTOR_TOLERANCE
    people: People | None = None
    schedule: ClassVar[Schedule] = EM

    @property
    def is_quick(self) -> bool:
        """Whether settling every site after each answer is no burden."""
        return len(self.universe) <= EXACT_ITEMS

    def prior(self, hyper: ItemHyper) -> Any:
        """Factor the prior over the compared items, or over the comparisons if they are fewer."""
        edges, shown = self.edges.pairs, self.edges.shown
        prior = factor_prior(
            hyper.kernel, self.universe, edges, self.max_rank, self.factor_tolerance
        )
        return prior if shown is None else WithEffects(prior, shown, self.edges.runs)

    def posterior(self, solution: ItemSolution) -> Posterior:
        """Over all items of the universe."""
        hyper, prior, inference = solution
        state = inference.state
        if isinstance(state, EffectsState):
            coefficients, lower, effects = marginals(prior, state)
        else:
            coefficients, lower, effects = state.coefficients, state.lower, None
        posterior = Posterior(
            kernel=hyper.kernel,
            likelihood=hyper.likelihood,
            universe=self.universe,
            target=self.universe,
            basis=_of_utilities(prior).basis,
            coefficients=coefficients,
            lower=lower,
            effects=effects,
        )
        if self.people is None:
            return posterior
        pull = inference.sites.nu - inference.sites.tau * state.mean
        return replace(posterior, widening=self.people.widening(posterior, self.edges, pull))

    def expect(self, posterior: Posterior, rows: IntArray) -> tuple[IntArray, Normal]:
        """All of these comparisons are between known items."""
        winner, loser = self.edges.ends
        shown, effects = self.edges.shown, posterior.effects
        z = None
        if shown is not None and effects is not None and shown.names == effects.names:
            z = shown.z[:, rows]
        return rows, posterior.difference(winner[rows], loser[rows], z)

    def while_learning(self) -> "ItemProblem":
        """Coarser tolerances; at a bounded rank, or with covariates, some of the comparisons."""
        edges = self.edges
        is_long = self.max_rank is not None or edges.shown is not None
        if is_long and len(edges) > LEARNING_EDGES and edges.outcomes.cliques is None:
            key = pair_keys(edges.winner, edges.loser, None, edges.count, edges.outcomes.tie).answer
            chosen = np.argsort(key, kind="stable")[:LEARNING_EDGES]
            # sorted, the same pair stays in one run
            edges = edges.take(chosen if edges.shown is None else np.sort(chosen))
        tolerance = max(SITE_TOLERANCE, self.settings.tolerance)
        return replace(
            self,
            edges=edges,
            settings=replace(self.settings, tolerance=tolerance),
            factor_tolerance=max(LEARNING_FACTOR_TOLERANCE, self.factor_tolerance),
        )

    def pullback(self, solution: ItemSolution, drift: FloatArray | None) -> FloatArray:
        """∂ log Z by the kernel's parameters: G = ½ (ααᵀ − R) met with ∂K."""
        hyper, prior = solution.hyper, _of_utilities(solution.prior)
        state = _state_of_utilities(solution)
        outer = self._outer(solution, drift)
        if prior.variance is not None:
            # ∂K/∂ log σ² = K = σ²I: the trace of KG is all that counts
            pull = prior.variance * sum(float(a @ b) for a, b in outer)
            return np.array([0.5 * (pull - state.n_settled)])
        half = solve_lower(state.lower, state.laplacian_factor.T)  # halfᵀ half = L Σ L
        if prior.is_bounded:
            return self._bounded_pullback(solution, half, outer)
        G = gram(half)
        del half
        for a, b in outer:
            add_outer(G, a, b)
        weight = self.edges.count * solution.inference.sites.tau
        subtract(G, prior.design.laplacian(_by_pair(solution.prior, weight)))
        G *= 0.5
        return hyper.kernel.pullback(*self._over_items(prior, G))

    def _outer(
        self, solution: ItemSolution, drift: FloatArray | None
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Pairs (a, b) whose outer products add up to 2G + L − L Σ L, Σ if effects were zero."""
        inference, sites = solution.inference, solution.inference.sites
        design, state = _of_utilities(solution.prior).design, inference.state
        weight, shift = self.edges.count * sites.tau, self.edges.count * sites.nu
        if isinstance(state, EffectsState):
            alpha = design.adjoint(_by_pair(solution.prior, shift - weight * state.mean))
            rows = (_by_pair(solution.prior, weight * row) for row in state.spread)
            outer = [(alpha, alpha), *((v, v) for v in map(design.adjoint, rows))]
        else:
            alpha = design.adjoint(shift) - multiply(state.laplacian_factor, state.coefficients)
            outer = [(alpha, alpha)]
        if drift is None:
            return outer
        # uᵀ ∂K α is what the moving mode adds, u = (I − L Σ) Aᵀ drift
        if isinstance(state, EffectsState):
            left = _by_pair(solution.prior, drift - weight * state.respond(drift))
            u = design.adjoint(left)
        else:
            pull = design.adjoint(drift)
            u = pull - multiply(state.laplacian_factor, state.solve(pull))
        return [*outer, (alpha, u), (u, alpha)]

    def _over_items(self, prior: ItemPrior, G: FloatArray) -> tuple[Inputs, FloatArray]:
        """The items behind the points, and G carried over to them."""
        edges = self.edges.pairs
        if prior.space == "items":
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
        hyper, prior = solution.hyper, _of_utilities(solution.prior)
        lower, state = prior.basis.lower, _state_of_utilities(solution)
        T = solve_lower(lower, prior.factor.T, transposed=True)  # K_PP⁻¹ K_Pn
        M = multiply(half.T, multiply(half, T.T))
        M -= solve_lower(lower, state.laplacian_factor.T, transposed=True).T
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
        hyper, known = solution.hyper, self.posterior(solution)
        compared = self.universe.take(self.edges.items)
        features = known.basis.features(hyper.kernel, self.universe, compared)
        mu = multiply(features, known.coefficients)
        half = solve_lower(known.lower, features.T)
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


def _of_utilities(prior: ItemPrior | WithEffects[LowRankState]) -> ItemPrior:
    """The prior without effects."""
    inner: ItemPrior = prior.inner if isinstance(prior, WithEffects) else prior
    return inner


def _by_pair(prior: ItemPrior | WithEffects[LowRankState], y: FloatArray) -> FloatArray:
    """What is said of comparisons, as the prior of utilities has them."""
    return prior.sum(y) if isinstance(prior, WithEffects) else y


def _state_of_utilities(solution: ItemSolution) -> LowRankState:
    """The state of the utilities when effects are known."""
    state = solution.inference.state
    inner: LowRankState = state.inner if isinstance(state, EffectsState) else state
    return inner
