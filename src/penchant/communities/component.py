"""One community's utilities given weighted answers, by Laplace: fast, and smooth in everything.

All members of a community share f = Φ z with z ~ N(0, I), so that its answers are weights w, one
a distinct answer: a pair, or a choice out of a set, whose edges are the pairs of the set (see
`local`). With g = D f, and h and k the first and the negative second derivative of the
log-likelihood ℓ at the mode:

    log Z = w·ℓ(g) − ½ |z|² − ½ log |H|,   H = I + Φᵀ A Φ,   A = Dᵀ diag(w k) D,   V = Φ H⁻¹ Φᵀ.

Its slopes are exact, in the weights (by which users choose their community) and in the
hyperparameters: both follow the mode when it moves.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import entr, gammaln, psi

from penchant.communities.bethe import MANY_ITEMS, ManyItems, SparseState
from penchant.communities.data import Answers, Local, SingleArray
from penchant.data import Differences
from penchant.errors import DataError
from penchant.gp import (
    Edges,
    ItemHyper,
    ItemPrior,
    ItemProblem,
    ItemSolution,
    Limits,
    LowRankState,
    Posterior,
    Settings,
    Sites,
    climb,
    factor_prior,
    solve,
)
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Likelihood
from penchant.numerics.linalg import FACTOR_TOLERANCE, gram, multiply, solve_lower
from penchant.numerics.optimize import Move
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


SMALLEST = 0.5
"""A community of fewer users than this is dropped."""
UNCHANGED = 1e-3
"""Votes: a community whose answers moved by less in all is not fitted again."""
LEARNING = Limits(max_steps=8, least_gain=0.05)
"""Of learning: in nats, far below what hyperparameters are uncertain by."""
LOG_CONCENTRATIONS = (-10.0, 10.0)
"""Between which a concentration is learned."""


@dataclass(frozen=True, eq=False)
class Division:
    """Who belongs where, and what each community prefers; responsibilities: (U, K)."""

    model: TasteModel
    responsibilities: FloatArray
    tastes: tuple[Taste, ...]

    @property
    def crowd(self) -> Crowd:
        """Whose answers."""
        return self.model.crowd

    @property
    def n_communities(self) -> int:
        """K."""
        return len(self.tastes)

    @cached_property
    def sizes(self) -> FloatArray:
        """(K,) expected numbers of members."""
        return np.asarray(self.responsibilities.sum(axis=0))

    @cached_property
    def objective(self) -> float:
        """Log evidence, up to what mean-field memberships and Laplace leave out."""
        parameters, _ = self.model.hyper.log_prior(self.crowd.hyper)
        return float(
            sum(taste.log_z for taste in self.tastes)
            + self.value_of_concentration(self.crowd.concentration)
            + memberships_value(self.responsibilities)
            + parameters
        )

    def value_of_concentration(self, concentration: float) -> float:
        """K log λ + ln Γ(λ) − ln Γ(λ + U), and the log density of log λ where it has a prior."""
        value = self.n_communities * np.log(concentration) + gammaln(concentration)
        value -= gammaln(concentration + len(self.responsibilities))
        if self.crowd.concentration_prior is not None:
            shape, rate = self.crowd.concentration_prior
            value += shape * np.log(rate * concentration) - rate * concentration - gammaln(shape)
        return float(value)

    @cached_property
    def tables(self) -> FloatArray:
        """(m, K) what each answer says for each community."""
        return np.column_stack([self.model.slope(taste) for taste in self.tastes])

    def within(self, columns: Sequence[int]) -> "Division":
        """Some of the communities, as if they were all."""
        return Division(
            self.model, self.responsibilities[:, columns], tuple(self.tastes[c] for c in columns)
        )


def memberships_value(responsibilities: FloatArray) -> float:
    """Σ ln Γ(N_c) − Σ r log r; a community of less than one user counts as one."""
    sizes = np.maximum(responsibilities.sum(axis=0), 1.0)
    return float(gammaln(sizes).sum() + entr(responsibilities).sum())


def soft_counts(answers: Answers, responsibilities: FloatArray) -> FloatArray:
    """(K, m): Pᵀ r, how often each answer was given in each community."""
    counts = np.zeros((answers.n_answers, responsibilities.shape[1]))
    single = responsibilities.astype(np.float32, order="C")  # as the counts: else they are copied
    for part, shard in answers.shards():
        counts += shard.T @ single[part]
    return np.ascontiguousarray(counts.T)


def everybody_together(crowd: Crowd, theta: FloatArray) -> Division:
    """One community of all users."""
    return allocate(crowd.model(theta), np.ones((crowd.answers.n_users, 1)))


def allocate(
    model: TasteModel, responsibilities: FloatArray, starts: Sequence[Taste | None] | None = None
) -> Division:
    """Fit every community to its answers; one that starts from the same answers is kept."""
    weights = soft_counts(model.crowd.answers, responsibilities)
    given = starts or [None] * len(weights)
    tastes = tuple(refit(model, w, start) for w, start in zip(weights, given, strict=True))
    return Division(model, responsibilities, tastes)


def refit(model: TasteModel, weights: FloatArray, start: Taste | None) -> Taste:
    """The taste behind these answers, unless it is known already."""
    if start is not None and start.prior is model.prior:
        changed = float(np.abs(weights - start.weights).sum())
        if changed < UNCHANGED:
            return start
    return model.fit(weights, start)


def expected_log_likelihoods(answers: Answers, tables: FloatArray) -> FloatArray:
    """(U, K): P @ tables, in the digits of the counts.

    Communities are on the leading axis in memory, where reductions over the few of them are fast.
    """
    values, single = np.empty((tables.shape[1], answers.n_users)), tables.astype(np.float32)
    for part, shard in answers.shards():
        values[:, part] = (shard @ single).T
    return values.T


def shares(log_weights: FloatArray) -> FloatArray:
    """Rows exp(x) that sum to one; works in place."""
    log_weights -= log_weights.max(axis=1, keepdims=True)
    np.exp(log_weights, out=log_weights)
    log_weights /= log_weights.sum(axis=1, keepdims=True)
    return log_weights


def sweep(allocation: Division, keep_all: bool = False) -> Division:
    """Let every user choose among the communities, then fit them: r ∝ exp(ψ(N_c) + P slope)."""
    log_weights = expected_log_likelihoods(allocation.crowd.answers, allocation.tables)
    log_weights += psi(np.maximum(allocation.sizes, SMALLEST))
    responsibilities = shares(log_weights)
    kept = np.flatnonzero(responsibilities.sum(axis=0) >= (0.0 if keep_all else SMALLEST))
    if len(kept) < allocation.n_communities:
        responsibilities = responsibilities[:, kept]
        responsibilities /= responsibilities.sum(axis=1, keepdims=True)
    starts = [allocation.tastes[c] for c in kept]
    return allocate(allocation.model, responsibilities, starts)


def settle(
    allocation: Division, max_sweeps: int, tolerance: float, keep_all: bool = False
) -> Division:
    """Sweep until the objective gains less than the tolerance; never to a lower one."""
    for _ in range(max_sweeps if allocation.n_communities > 1 else 0):
        swept = sweep(allocation, keep_all)
        gain = swept.objective - allocation.objective
        if gain > 0.0 or swept.n_communities < allocation.n_communities:
            allocation = swept
        if gain < tolerance and swept.n_communities == allocation.n_communities:
            break
    return allocation


def learn_concentration(allocation: Division) -> Division:
    """λ where it is likeliest, given the number of communities and its Gamma prior."""
    crowd = allocation.crowd
    if crowd.concentration_prior is None:
        return allocation
    found = minimize_scalar(
        lambda log: -allocation.value_of_concentration(float(np.exp(log))),
        bounds=LOG_CONCENTRATIONS,
        method="bounded",
    )
    known = replace(crowd, concentration=float(np.exp(found.x)))
    return replace(allocation, model=replace(allocation.model, crowd=known))


def learn(allocation: Division, limits: Limits = LEARNING) -> tuple[Division, tuple[Move, ...]]:
    """A few steps up Σ log Z + weak prior over the hyperparameters, memberships held.

    Also the moves, by which the next time goes on where this one ended.
    """
    crowd, last = allocation.crowd, allocation
    theta = allocation.model.hyper.theta
    if not len(theta):
        return allocation, ()

    def evaluate(candidate: FloatArray) -> tuple[float, FloatArray, Division]:
        nonlocal last
        model = last.model
        if not np.array_equal(candidate, model.hyper.theta):
            model = crowd.model(candidate)
        tastes = tuple(refit(model, taste.weights, taste) for taste in last.tastes)
        slope = model.gradient(tastes)
        penalty, drag = model.hyper.log_prior(crowd.hyper)
        last = replace(last, model=model, tastes=tastes)
        return sum(taste.log_z for taste in tastes) + penalty, slope + drag, last

    if allocation.model.prior.variance is not None and len(theta) == 1:
        # −log Z bends by ½ in log σ² for every utility that is settled, of any community
        settled = sum(taste.state.n_settled for taste in allocation.tastes)
        limits = limits._replace(curvature=0.5 * float(settled))
    summit = climb(evaluate, theta, crowd.hyper.bounds, limits)
    return (allocation if summit.kept is None else summit.kept), summit.moves


CHAIN_FACTOR_TOLERANCE = 1e-7
"""Of the prior's factor in a chain: what it drops is far below what a draw varies by."""
CHAIN_SETTINGS = Settings(tolerance=1e-3)
"""Of expectation propagation within a chain: far finer than what a draw varies by."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """The data and the model of every community: all that stays the same along a chain.

    hyper: kernel and likelihood; their parameters are where learning starts.
    """

    answers: Answers
    items: Inputs
    hyper: ItemHyper
    settings: Settings = CHAIN_SETTINGS
    factor_tolerance: float = CHAIN_FACTOR_TOLERANCE
    max_rank: int | None = None

    def __post_init__(self) -> None:
        if self.answers.outcomes.cliques is not None:
            raise DataError(
                "chains sample from answers about pairs, and these hold choices out of several "
                "items: break them into pairs with data.as_pairs(), or search for communities "
                "with inference='variational'"
            )

    def precise(self) -> "Mixture":
        """The same, with the tolerances of what is reported instead of those of a chain."""
        return replace(self, settings=Settings(), factor_tolerance=FACTOR_TOLERANCE)

    def table(self, utilities: FloatArray, thetas: FloatArray) -> SingleArray:
        """(m, K) log probabilities of the answers, given utilities (K, n) and parameters (K, p)."""
        return self.answers.table(utilities, self.likelihoods(thetas))

    def likelihoods(self, thetas: Iterable[FloatArray]) -> list[Likelihood]:
        """One for each vector of hyperparameters."""
        n_kernel = len(self.hyper.kernel.theta)
        return [self.hyper.likelihood.with_theta(theta[n_kernel:]) for theta in thetas]


class Fit(NamedTuple):
    """One community's utilities given its answers; tau, nu: (m,) sites of all distinct answers."""

    problem: ItemProblem
    solution: ItemSolution
    tau: FloatArray
    nu: FloatArray

    @property
    def log_evidence(self) -> float:
        """log Z_c: the probability of the community's answers, its utilities integrated out."""
        return self.solution.log_evidence

    @property
    def posterior(self) -> Posterior:
        """Over all items of the universe."""
        return self.problem.posterior(self.solution)


def fit_community(
    mixture: Mixture,
    pair_counts: FloatArray,
    theta: FloatArray,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> Fit:
    """Infer the utilities behind answer counts (m,), from the sites (tau, nu) of `start`."""
    answers = mixture.answers
    given = np.flatnonzero(pair_counts)
    edges = Edges.between(
        answers.winner[given],
        answers.loser[given],
        pair_counts[given],
        answers.outcomes.part(given),
    )
    problem = ItemProblem(
        mixture.items, edges, mixture.settings, mixture.max_rank, mixture.factor_tolerance
    )
    sites = None if start is None else Sites(start[0][given], start[1][given])
    solution = solve(problem, mixture.hyper.at(theta), sites)
    tau, nu = np.zeros((2, answers.n_answers))
    tau[given], nu[given] = solution.inference.sites.tau, solution.inference.sites.nu
    return Fit(problem, solution, tau, nu)
