"""One utility an item: hyperparameters, prior, gradient, EM, and the start of learning."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import expit

from penchant.errors import NumericalError
from penchant.gp.calibration import calibrate
from penchant.gp.items.cluster_robust import People
from penchant.gp.items.prior import ItemPrior, factor_prior
from penchant.gp.learn import LEARNING_FACTOR_TOLERANCE, SITE_TOLERANCE, StartingPoint
from penchant.gp.loop import Solution
from penchant.gp.posterior import EffectPosterior, Normal, Posterior
from penchant.gp.protocol import Schedule, Settings
from penchant.gp.rows import Rows
from penchant.gp.rules import RULES, Sites, propose
from penchant.kernels import Independent, Inputs, Kernel
from penchant.likelihoods import Likelihood
from penchant.numerics import linalg
from penchant.numerics.dispatch import CPU
from penchant.numerics.optimize import minimize_in_box, weak_prior
from penchant.numerics.random import pair_keys
from penchant.numerics.types import FloatArray, IntArray

LEARNING_EDGES = 50_000
"""With a bounded rank, most comparisons that hyperparameters are learned from: they determine a
handful of numbers far better than needed."""
EXACT_ITEMS = 500
"""Up to this many items all sites reconverge after each new answer."""
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
        return np.concatenate([self.kernel.bounds, self.likelihood.bounds])

    def at(self, theta: FloatArray) -> "ItemHyper":
        k = len(self.kernel.theta)
        return ItemHyper(self.kernel.with_theta(theta[:k]), self.likelihood.with_theta(theta[k:]))

    def log_prior(self, start: "ItemHyper") -> tuple[float, FloatArray]:
        kernel, its_slope = self.kernel.log_prior(start.kernel)
        likelihood, slope = weak_prior(self.likelihood.theta, start.likelihood.theta)
        return kernel + likelihood, np.concatenate([its_slope, slope])


ItemSolution = Solution[ItemHyper, Any]


@dataclass(frozen=True)
class ItemProblem:
    """Comparisons between the items of a universe, all users pooled.

    max_rank: bound on the rank of the prior's factor, for very many items. people: who gave which
    answers, where the posterior is to be cluster-robust.
    """

    universe: Inputs
    edges: Rows
    settings: Settings
    max_rank: int | None = None
    factor_tolerance: float = linalg.FACTOR_TOLERANCE
    people: People | None = None
    schedule: ClassVar[Schedule] = EM

    @property
    def is_quick(self) -> bool:
        return len(self.universe) <= EXACT_ITEMS

    def prior(self, hyper: ItemHyper) -> ItemPrior:
        """Factor the prior over the compared items, or over the comparisons if they are fewer."""
        edges, shown = self.edges.pairs, self.edges.shown
        prior = factor_prior(
            hyper.kernel, self.universe, edges, self.max_rank, self.factor_tolerance
        )
        return prior if shown is None else replace(prior, shown=shown, runs=self.edges.runs)

    def posterior(self, solution: ItemSolution) -> Posterior:
        """Over all items of the universe, with the calibration of its predictions."""
        calibration = calibrate(self.edges, solution).calibration
        return replace(self.uncalibrated(solution), calibration=calibration)

    def uncalibrated(self, solution: ItemSolution) -> Posterior:
        """The same without the calibration, which costs more than all the rest."""
        hyper, prior, inference = solution
        state = inference.state
        q, effects = prior.n_effects, None
        if prior.shown is not None:
            effects = EffectPosterior(
                names=prior.shown.names,
                sd=prior.shown.sd,
                scaled_mean=state.coefficients[:q],
                lower=linalg.to_numpy(state.lower[:q, :q]),
                coupling=linalg.to_numpy(state.lower[q:, :q]),
            )
        posterior = Posterior(
            kernel=hyper.kernel,
            likelihood=hyper.likelihood,
            universe=self.universe,
            target=self.universe,
            basis=prior.basis,
            coefficients=state.coefficients[q:],
            lower=linalg.trailing_block(state.lower, q),
            effects=effects,
        )
        if self.people is None:
            return posterior
        residual = inference.sites.nu - inference.sites.tau * state.mean
        factor = self.people.sandwich_factor(posterior, self.edges, residual)
        return replace(posterior, widening=factor)

    def predict(self, posterior: Posterior, rows: IntArray) -> tuple[IntArray, Normal]:
        """All rows, which are between known items, and the marginals of their g."""
        if self.edges.sides is not None:
            return rows, posterior.combined(self.edges.items, self.edges.sides[rows])
        winner, loser = self.edges.ends
        shown, effects = self.edges.shown, posterior.effects
        z = None
        if shown is not None and effects is not None and shown.names == effects.names:
            z = shown.z[:, rows]
        return rows, posterior.difference(winner[rows], loser[rows], z)

    def while_learning(self) -> "ItemProblem":
        """Coarser tolerances; at a bounded rank some of the comparisons, chosen by content."""
        edges = self.edges
        is_bounded = self.max_rank is not None and edges.outcomes.cliques is None
        if is_bounded and len(edges) > LEARNING_EDGES:
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

    def pullback(self, solution: ItemSolution, mean_slopes: FloatArray | None) -> FloatArray:
        """∂ log Z by the kernel's parameters, ⟨G, ∂K⟩ with G = ½ (ααᵀ − R)."""
        prior, state, sites = solution.prior, solution.inference.state, solution.inference.sites
        weight, shift = self.edges.count * sites.tau, self.edges.count * sites.nu
        alpha = prior.design.adjoint(prior.by_pair(shift))
        alpha -= linalg.multiply(state.laplacian_factor, state.coefficients)
        outer = [(alpha, alpha)]
        if mean_slopes is not None:
            # the moving mode adds uᵀ ∂K α, u = (I − L Σ) Aᵀ slopes
            u = prior.design.adjoint(prior.by_pair(mean_slopes))
            u -= linalg.multiply(state.laplacian_factor, state.weights_of(mean_slopes))
            outer += [(alpha, u), (u, alpha)]
        return self.pull_back(solution.hyper.kernel, prior, state, weight, outer)

    def pull_back(
        self,
        kernel: Kernel,
        prior: Any,
        state: Any,
        weight: FloatArray,
        outer: list[tuple[FloatArray, FloatArray]],
    ) -> FloatArray:
        """⟨G, ∂K⟩ with 2G = L Σ L − L + Σ abᵀ over the pairs (a, b) of `outer`.

        prior, state: of the items and their posterior; weight: (m,) of the edges in L.
        """
        if prior.variance is not None:
            # ∂K/∂ log σ² = K = σ²I: ⟨G, K⟩ is a trace
            quadratic = prior.variance * sum(float(a @ b) for a, b in outer)
            return np.array([0.5 * (quadratic - state.n_settled)])
        half = linalg.solve_lower(state.lower, state.laplacian_factor.T)  # halfᵀ half = L Σ L
        if prior.is_bounded:
            return self._bounded_pullback(kernel, prior, state, half, outer)
        G = linalg.gram(half)
        del half
        for a, b in outer:
            linalg.add_outer(G, a, b)
        linalg.subtract(G, prior.design.laplacian(prior.by_pair(weight)))
        G *= 0.5
        edges = self.edges.pairs
        if prior.space == "items":
            return kernel.pullback(self.universe.take(edges.items[prior.chosen.order]), G)
        # points are comparisons: G carried over to their items
        D = edges.operator(np.arange(len(edges.items))).matrix()[prior.chosen.order]
        G = linalg.multiply_sparse(D.T, linalg.multiply_sparse(D.T, G).T)
        return kernel.pullback(self.universe.take(edges.items), G)

    def _bounded_pullback(
        self,
        kernel: Kernel,
        prior: ItemPrior,
        state: Any,
        half: FloatArray,
        outer: list[tuple[FloatArray, FloatArray]],
    ) -> FloatArray:
        """Pull G back through K ≈ K_nP K_PP⁻¹ K_Pn by the derivative of each factor.

        Everything is (n, r): the n × n matrix G itself is never formed.
        """
        lower, q = prior.basis.lower, prior.n_effects
        T = linalg.solve_lower(lower, prior.factor.T, transposed=True)  # K_PP⁻¹ K_Pn
        M = linalg.multiply(half.T, linalg.multiply(half, T.T))
        M -= linalg.solve_lower(lower, state.laplacian_factor[:, q:].T, transposed=True).T
        for a, b in outer:
            linalg.add_outer(M, a, linalg.multiply(T, b))
        M *= 0.5
        points = self.universe.take(self.edges.items[prior.chosen.order])
        pivots = self.universe.take(prior.basis.first)
        through = linalg.multiply(T, M)
        within = kernel.pullback(pivots, 0.5 * (through + through.T))
        return 2.0 * kernel.pullback(points, M, pivots) - within

    def m_step(self, solution: ItemSolution, start: ItemHyper) -> ItemHyper:
        """Maximise −½ log|K| − ½ tr K⁻¹ (Σ + μμᵀ) over the kernel's parameters (Eqs. 15, 16).

        It has the evidence's gradient at the current θ; it needs the prior's inverse, so a jitter
        of 1e-8 of the mean variance is added.
        """
        hyper, known = solution.hyper, self.posterior(solution)
        compared = self.universe.take(self.edges.items)
        features = known.basis.features(hyper.kernel, self.universe, compared)
        mu = linalg.multiply(features, known.coefficients)
        second_moment = linalg.gram(linalg.solve_lower(known.lower, features.T))
        second_moment += hyper.kernel(compared) - linalg.gram(features.T)
        linalg.add_outer(second_moment, mu, mu)

        def objective(theta: FloatArray) -> tuple[float, FloatArray]:
            kernel = hyper.kernel.with_theta(theta)
            K = kernel(compared)
            linalg.add_to_diagonal(K, 1e-8 * float(np.mean(linalg.diagonal(K))))
            lower = linalg.cholesky(K).lower
            inverse = linalg.gram(linalg.solve_lower(lower, linalg.identity_like(lower, len(K))))
            value = 0.5 * linalg.log_det_lower(lower) + 0.5 * linalg.inner(inverse, second_moment)
            G = 0.5 * (inverse - linalg.multiply(linalg.multiply(inverse, second_moment), inverse))
            log_prior, prior_slope = kernel.log_prior(start.kernel)
            return value - log_prior, kernel.pullback(compared, G) - prior_slope

        best = minimize_in_box(objective, hyper.kernel.theta, hyper.kernel.bounds, M_STEPS).x
        return hyper._replace(kernel=hyper.kernel.with_theta(best))

    def m_penalty(self, hyper: ItemHyper, start: ItemHyper) -> float:
        """The weak prior of the kernel's parameters."""
        return hyper.kernel.log_prior(start.kernel)[0]


# The start of learning where comparisons of independent items are very many.
#
# With hundreds of answers an item, the mode of a logistic model is near the posterior mean: a few
# Newton steps on the table of wins cost no more than a sweep over the comparisons, and give the
# scale of utilities and sites that converge within two sweeps. The fixed point and the optimum are
# the same as from any other start.


MANY = 100_000
"""Distinct comparisons from which on the start saves time: see `benchmarks/paths.py`."""
DENSE = 10
"""Most entries of the table of wins, a comparison."""
NEWTON_STEPS, LONGEST, SHORT = 10, 2.0, 0.2
"""Most Newton steps; the longest change of a utility in one; and that of the last, after which the
error is below that of the logistic model itself. Utilities have unit prior variance."""


def start_at_mode(problem: ItemProblem, start: ItemHyper) -> StartingPoint | None:
    """Parameters and sites at the mode of a logistic model, or None where that saves nothing."""
    edges, scale = problem.edges, start.likelihood.choice_scale
    is_plain = edges.shown is None and edges.outcomes.cliques is None and problem.max_rank is None
    is_large = len(edges) >= MANY and len(edges.items) ** 2 <= DENSE * len(edges)
    is_known = isinstance(start.kernel, Independent) and problem.universe.device is CPU
    if not (is_plain and is_large and is_known) or scale is None:
        return None
    try:
        f, var = _mode(_wins(edges), scale)
    except NumericalError:
        return None
    marginals = f[edges.winner] - f[edges.loser], var[edges.winner] + var[edges.loser]
    rule, zeros = RULES[problem.settings.rule], Sites.zeros(len(edges))
    proposal = propose(rule, marginals, zeros, start.likelihood, edges.outcomes)
    sites = Sites(proposal.tau, proposal.nu)
    # a start near the optimum in one parameter alone makes the first step worse
    if len(start.theta) > 1:
        return StartingPoint(start.theta, sites)
    theta = np.clip(np.log([np.mean(f * f) + np.mean(var)]), *start.bounds.T)
    # −∂²/∂(log σ²)² of −½ Σ f²/σ² − ½ n log σ² at its maximum, every f being known
    return StartingPoint(theta, sites, curvature=0.5 * len(f))


def _wins(edges: Rows) -> FloatArray:
    """(n, n) wins of the row's item over the column's; a tie is half a win for each."""
    n, count, tie = len(edges.items), edges.count, edges.outcomes.tie
    pair = edges.winner * n + edges.loser
    wins = np.bincount(pair, count, n * n).reshape(n, n)
    if tie is not None:
        tied = 0.5 * np.bincount(pair[tie], count[tie], n * n).reshape(n, n)
        wins += tied.T - tied
    return np.asarray(wins, dtype=np.float64)


def _mode(wins: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """Mode of utilities with unit prior variance, P(i wins) = expit(κ (fᵢ − fⱼ)), and variances.

    In single precision but for the solves: a start needs no more.
    """
    n, won = len(wins), wins.sum(axis=1)
    met = (wins + wins.T).astype(np.float32)
    shares = 1.0 / np.maximum(met, 1.0, dtype=np.float32)
    f = np.zeros(n)
    for _ in range(NEWTON_STEPS):
        g = np.float32(scale) * f.astype(np.float32)
        expected = expit(g[:, None] - g) * met
        weight = expected * expected.T  # m p · m (1 − p), m the meetings
        weight *= np.float32(scale**2) * shares
        H = np.asarray(-weight, dtype=np.float64)
        H[np.diag_indices(n)] = 1.0 - H.sum(axis=1)
        slope = scale * (won - expected.sum(axis=1)) - f
        lower = linalg.cholesky(H.T, overwrite=True).lower
        step = linalg.solve_lower(lower, linalg.solve_lower(lower, slope), transposed=True)
        f += np.clip(step, -LONGEST, LONGEST)
        if np.abs(step).max() < SHORT:
            break
    diagonal = 1.0 + weight.sum(axis=1, dtype=np.float64)
    return f, 1.0 / diagonal
