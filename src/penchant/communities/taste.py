"""One community's utilities given weighted answers, by Laplace: fast, and smooth in everything.

All members of a community share f = Φ z with z ~ N(0, I), so that its answers are weights w, one
a distinct answer: a pair, or a choice out of a set, whose edges are the pairs of the set (see
`local`). With g = D f, and h and k the first and the negative second derivative of the
log-likelihood ℓ at the mode:

    log Z = w·ℓ(g) − ½ |z|² − ½ log |H|,   H = I + Φᵀ A Φ,   A = Dᵀ diag(w k) D,   V = Φ H⁻¹ Φᵀ.

Its slopes are exact, in the weights (by which users choose their community) and in the
hyperparameters: both follow the mode when it moves.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from penchant.communities.assignment import Answers
from penchant.communities.local import Local
from penchant.communities.many_items import MANY_ITEMS, ManyItems, SparseState
from penchant.data import Differences
from penchant.gp import Edges, ItemHyper, ItemPrior, LowRankState, Posterior, factor_prior
from penchant.kernels import Independent, Inputs
from penchant.numerics.linalg import gram, multiply, solve_lower
from penchant.numerics.types import FloatArray

MAX_STEPS = 30
TOLERANCE = 0.3
"""Of a fit: squared length of the last Newton step in posterior standard deviations. log Z then
errs by hundredths of a nat, a tenth where it was worst: no more than any move must gain."""
SHORTEST_STEP = 1.0 / 64.0
DIFFERENCE = 1e-4
"""Step of the central differences in a likelihood's own parameters."""


@dataclass(frozen=True, eq=False)
class Crowd:
    """Whose answers about which items, and the model: all that stays the same in a search.

    hyper: kernel and likelihood, with the parameters that learning starts from.
    concentration: λ of the Dirichlet process, or where it starts if `concentration_prior`, shape
    and rate of a Gamma, has it learned; max_rank bounds the rank of the prior's factor.
    """

    answers: Answers
    items: Inputs
    hyper: ItemHyper
    concentration: float = 1.0
    max_rank: int | None = None
    concentration_prior: tuple[float, float] | None = None

    @cached_property
    def edges(self) -> Edges:
        """The distinct answers between the items that occur in them."""
        answers = self.answers
        count = np.ones(len(answers.winner))
        return Edges.between(answers.winner, answers.loser, count, answers.outcomes)

    def model(self, theta: FloatArray) -> "TasteModel":
        """Every community's model at these hyperparameters: K is factored here, once."""
        hyper, edges = self.hyper.at(theta), self.edges
        most = min(len(edges), self.max_rank or len(edges))  # else there is less to factor
        if isinstance(hyper.kernel, Independent) and MANY_ITEMS <= len(edges.items) <= most:
            return TasteModel(self, hyper, ManyItems.of(hyper.kernel.variance, edges))
        return TasteModel(self, hyper, self.factored(hyper))

    def factored(self, hyper: ItemHyper) -> ItemPrior:
        """The prior over the items that occur, as a factor."""
        return factor_prior(hyper.kernel, self.items, self.edges, self.max_rank)


class Taste(NamedTuple):
    """A community's utilities: the Gaussian at the mode, and the likelihood there.

    weights: (m,) of the answers; local: what they say at the mode.
    """

    prior: ItemPrior | ManyItems
    weights: FloatArray
    state: LowRankState | SparseState
    local: Local
    log_z: float

    @property
    def price(self) -> float:
        """Nats that a taste of its own costs: w·ℓ − log Z."""
        return float(self.weights @ self.local.value) - self.log_z

    @property
    def sites(self) -> tuple[FloatArray, FloatArray]:
        """(m,) tau and nu of single pairs at the mode, where expectation propagation may start."""
        tau, g = self.local.precision, self.state.mean[: self.local.n_pairs]
        return tau, self.local.pairs.d1 + tau * g


@dataclass(frozen=True, eq=False)
class TasteModel:
    """The prior of every community and the likelihood of its answers."""

    crowd: Crowd
    hyper: ItemHyper
    prior: ItemPrior | ManyItems

    def fit(self, weights: FloatArray, start: Taste | None = None) -> Taste:
        """The mode by Newton's method, from that of another taste (of another prior even)."""
        z, value = None, -np.inf
        if start is None:
            z, g = np.zeros(self.prior.rank), np.zeros(len(self.crowd.edges))
            local = self._local(g)
        else:
            g, local = start.state.mean, start.local
            if start.prior is self.prior:
                z = start.state.coefficients
        if z is not None:
            value = _log_joint(weights, local, z)
        for _ in range(MAX_STEPS):
            wk = local.curvature(weights)
            newton = self.prior.refresh(wk, local.force(weights) + wk * g)
            move = newton.mean - g
            size = float(wk @ (move * move))
            state, local, value = self._damped(weights, newton, (z, g, value))
            is_full = state is newton
            z, g = state.coefficients, state.mean
            if is_full and size < TOLERANCE:
                break
        return Taste(self.prior, weights, state, local, value - 0.5 * state.log_det)

    def _damped(
        self,
        weights: FloatArray,
        newton: LowRankState | SparseState,
        start: tuple[FloatArray | None, FloatArray, float],
    ) -> tuple[LowRankState | SparseState, Local, float]:
        """The Newton step, halved while the log joint falls."""
        z, g, value = start
        state, share = newton, 1.0
        while True:
            local = self._local(state.mean)
            reached = _log_joint(weights, local, state.coefficients)
            slack = 1e-9 * abs(value) if np.isfinite(value) else 0.0
            if z is None or reached >= value - slack or share <= SHORTEST_STEP:
                return state, local, reached
            share *= 0.5
            state = replace(
                newton,
                mean=g + share * (newton.mean - g),
                coefficients=z + share * (newton.coefficients - z),
            )

    def _local(self, g: FloatArray) -> Local:
        return Local.at(g, self.hyper.likelihood, self.crowd.answers.outcomes)

    def slope(self, taste: Taste) -> FloatArray:
        """(m,) ∂ log Z / ∂w = ℓ − ½ V_g k + h D V q: what an answer says for the community."""
        drift = self.prior.design.forward(self.prior.points(self._weights_of_drift(taste)))
        return taste.local.slope(taste.state.var, drift)

    def _weights_of_drift(self, taste: Taste) -> FloatArray:
        """H⁻¹ Φᵀ q with q = ½ Dᵀ(w d3 V_g): how the mode's move changes −½ log |H|."""
        return taste.state.solve(self._drift(taste))

    def _drift(self, taste: Taste) -> FloatArray:
        return self.prior.design.adjoint(taste.local.drift(taste.weights, taste.state.var))

    def gradient(self, tastes: tuple[Taste, ...]) -> FloatArray:
        """∂ Σ log Z / ∂theta, in the kernel's and then the likelihood's parameters."""
        return np.append(self._kernel_gradient(tastes), self._likelihood_gradient(tastes))

    def _kernel_gradient(self, tastes: tuple[Taste, ...]) -> FloatArray:
        """G = ½ (aaᵀ − R) + sym(u aᵀ), summed over communities and pulled back once."""
        kernel, prior, items = self.hyper.kernel, self.prior, self.crowd.items
        if isinstance(prior, ManyItems) or prior.variance is not None:
            # K = σ²I: the trace of KG is all that counts
            return np.array([sum(self._trace_of_pull(taste) for taste in tastes)])
        edges, order = self.crowd.edges, prior.chosen.order
        if prior.is_bounded:
            through = solve_lower(prior.basis.lower, prior.factor.T, transposed=True)
            M = self._sum_of_pulls(tastes, through)
            pivots, inner = items.take(prior.basis.first), multiply(through, M)
            across = kernel.pullback(items.take(edges.items[order]), M, pivots)
            return 2.0 * across - kernel.pullback(pivots, 0.5 * (inner + inner.T))
        G = self._sum_of_pulls(tastes, None)
        if isinstance(prior.design, Differences):
            return kernel.pullback(items.take(edges.items[order]), G)
        D = Differences(edges.winner[order], edges.loser[order], len(edges.items)).matrix()
        return kernel.pullback(items.take(edges.items), D.T @ (D.T @ G).T)

    def _sum_of_pulls(self, tastes: tuple[Taste, ...], through: FloatArray | None) -> FloatArray:
        total = self._pull(tastes[0], through)
        for taste in tastes[1:]:
            total += self._pull(taste, through)
        return total

    def _pull(self, taste: Taste, through: FloatArray | None) -> FloatArray:
        """A community's G (n, n), or G T (n, r) with T = Φ lower⁻¹ where the rank is bounded."""
        state, design = cast(LowRankState, taste.state), self.prior.design
        a = design.adjoint(taste.local.force(taste.weights))
        drift = self._drift(taste)
        u = drift - state.pulled(state.solve(drift))
        half = solve_lower(state.lower, state.laplacian_factor.T)  # halfᵀ half = A V A
        if through is not None:
            M = multiply(half.T, multiply(half, through.T))
            lower = state.prior.basis.lower
            M -= solve_lower(lower, state.laplacian_factor.T, transposed=True).T
            for left, right in ((a, a), (a, u), (u, a)):
                M += np.outer(left, multiply(through, right))
            return 0.5 * M
        A = design.laplacian(taste.local.curvature(taste.weights))
        G = gram(half) - (A if isinstance(A, np.ndarray) else A.toarray())
        G += np.outer(a + u, a) + np.outer(a, u)
        return 0.5 * G

    def _trace_of_pull(self, taste: Taste) -> float:
        """tr K G of a community whose items are independent."""
        state, variance = taste.state, self.prior.variance or 0.0
        a = self.prior.design.adjoint(taste.local.force(taste.weights))
        drift = self._drift(taste)
        u = drift - state.pulled(state.solve(drift))
        return 0.5 * (variance * float(a @ a + 2.0 * (a @ u)) - state.n_settled)

    def _likelihood_gradient(self, tastes: tuple[Taste, ...]) -> FloatArray:
        """Σ w (∂ℓ − ½ V_g ∂k + (D V q) ∂h) by central differences of the likelihood alone.

        Choices depend on none of its parameters.
        """
        likelihood, n = self.hyper.likelihood, self.crowd.answers.n_pairs
        outcomes = self.crowd.answers.outcomes._replace(cliques=None)
        slopes = np.zeros(len(likelihood.theta))
        for i in range(len(slopes)):
            shift = DIFFERENCE * np.eye(len(slopes))[i]
            above, below = (
                likelihood.with_theta(likelihood.theta + sign * shift) for sign in (1.0, -1.0)
            )
            for taste in tastes:
                g, var = taste.state.mean[:n], taste.state.var[:n]
                high, low = above.log_prob(g, outcomes), below.log_prob(g, outcomes)
                weights = self._weights_of_drift(taste)
                drift = self.prior.design.forward(self.prior.points(weights))[:n]
                change = high.value - low.value
                change -= 0.5 * var * (np.maximum(-high.d2, 0.0) - np.maximum(-low.d2, 0.0))
                change += drift * (high.d1 - low.d1)
                slopes[i] += float(taste.weights[:n] @ change) / (2.0 * DIFFERENCE)
        return slopes

    def posterior(self, taste: Taste) -> Posterior:
        """The community's utilities over all items."""
        prior, state = self.prior, taste.state
        if isinstance(prior, ManyItems) or isinstance(state, SparseState):
            prior, wk = self.crowd.factored(self.hyper), taste.local.curvature(taste.weights)
            state = prior.refresh(wk, taste.local.force(taste.weights) + wk * taste.state.mean)
        return Posterior(
            kernel=self.hyper.kernel,
            likelihood=self.hyper.likelihood,
            universe=self.crowd.items,
            target=self.crowd.items,
            basis=prior.basis,
            coefficients=state.coefficients,
            lower=state.lower,
        )


def _log_joint(weights: FloatArray, local: Local, z: FloatArray) -> float:
    """w·ℓ − ½ |z|²."""
    return float(weights @ local.value) - 0.5 * float(z @ z)
