"""One community's posterior given weighted answers, and the state of all communities together.

All members of a community share f = Φ z with z ~ N(0, I), so its data are weights w, one a
distinct answer: a pair, or a choice out of a set, whose edges are the pairs of the set. With
g = D f, and h and k the first and the negative second derivative of the log-likelihood ℓ at the
mode, Laplace's approximation is

    log Z = w·ℓ(g) − ½ |z|² − ½ log |H|,   H = I + Φᵀ A Φ,   A = Dᵀ diag(w k) D,   V = Φ H⁻¹ Φᵀ.

Its slopes in the weights and in the hyperparameters are exact: both follow the mode as it moves.
The search uses it, because users choose their community by the slopes in the weights. Chains, and
the posteriors that are reported, use expectation propagation (`fit_community`).

With responsibilities r (U, K), sizes N_c = Σ_u r_uc and answers w_c = Pᵀ r_c the objective is

    Σ_c log Z(w_c) + K log λ + Σ_c ln Γ(N_c) − Σ r log r + ln Γ(λ) − ln Γ(λ + U),

plus the weak prior of the hyperparameters: the evidence of a Dirichlet-process mixture, with
memberships averaged and utilities integrated out. log Z and ln Γ are convex, so choosing
communities by their slopes never lowers it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import entr, gammaln, psi

from penchant import gp
from penchant.communities.bethe import MANY_ITEMS, BethePrior, BetheState
from penchant.communities.data import (
    Answers,
    LikelihoodTerms,
    SingleArray,
    responsibilities,
    soft_counts,
)
from penchant.kernels import Independent, Inputs
from penchant.numerics.linalg import FACTOR_TOLERANCE
from penchant.numerics.optimize import Move
from penchant.numerics.types import FloatArray, IntArray

NEWTON_STEPS = 30
"""Most steps of Newton's method: one or two are usual from a warm start."""
NEWTON_TOLERANCE = 0.3
"""Of a fit: squared length of the last Newton step in posterior standard deviations. log Z then
errs by hundredths of a nat, a tenth where it was worst: no more than any move must gain."""
SHORTEST_STEP = 1.0 / 64.0
"""Share of a Newton step below which it is taken as it is."""
LIKELIHOOD_STEP = 1e-4
"""Step of the central differences in a likelihood's own parameters."""
CHAIN_FACTOR_TOLERANCE = 1e-7
"""Of the prior's factor in a chain: what it drops is far below what a draw varies by."""
CHAIN_SETTINGS = gp.Settings(tolerance=1e-3)
"""Of expectation propagation within a chain: far finer than what a draw varies by."""
SMALLEST = 0.5
"""A community of fewer users than this is dropped."""
UNCHANGED = 1e-3
"""Votes: a community whose answers moved by less in all is not fitted again."""
LEARNING = gp.Limits(max_steps=8, least_gain=0.05)
"""Of learning: in nats, far below what hyperparameters are uncertain by."""
LOG_CONCENTRATIONS = (-10.0, 10.0)
"""Between which a concentration is learned."""


@dataclass(frozen=True, eq=False)
class MixtureData:
    """Whose answers about which items, and the model: all that stays the same in a fit.

    hyper: kernel and likelihood, with the parameters that learning starts from. concentration: λ
    of the Dirichlet process, or where it starts if `concentration_prior` (shape and rate of a
    Gamma) is given. max_rank bounds the rank of the prior's factor. settings, factor_tolerance:
    of expectation propagation.
    """

    answers: Answers
    items: Inputs
    hyper: gp.ItemHyper
    concentration: float = 1.0
    max_rank: int | None = None
    concentration_prior: tuple[float, float] | None = None
    settings: gp.Settings = CHAIN_SETTINGS
    factor_tolerance: float = CHAIN_FACTOR_TOLERANCE

    @cached_property
    def edges(self) -> gp.Rows:
        """The distinct answers between the items that occur in them."""
        answers = self.answers
        count = np.ones(len(answers.winner))
        return gp.Rows.between(answers.winner, answers.loser, count, answers.outcomes)

    def model(self, theta: FloatArray) -> "ComponentModel":
        """Every community's model at these hyperparameters: K is factored here, once."""
        hyper, edges = self.hyper.at(theta), self.edges
        most = min(len(edges), self.max_rank or len(edges))  # else there is less to factor
        if isinstance(hyper.kernel, Independent) and MANY_ITEMS <= len(edges.items) <= most:
            return ComponentModel(self, hyper, BethePrior.of(hyper.kernel.variance, edges))
        return ComponentModel(self, hyper, self.factored(hyper))

    def factored(self, hyper: gp.ItemHyper) -> gp.ItemPrior:
        """The prior over the items that occur, as a factor."""
        return gp.factor_prior(hyper.kernel, self.items, self.edges, self.max_rank)

    def of_voters(self) -> "MixtureData":
        """Without the users who answered nothing."""
        return replace(self, answers=self.answers.take(self.answers.voters))

    def precise(self) -> "MixtureData":
        """The same, with the tolerances of what is reported instead of those of a chain."""
        return replace(self, settings=gp.Settings(), factor_tolerance=FACTOR_TOLERANCE)

    def table(self, utilities: FloatArray, thetas: FloatArray) -> SingleArray:
        """(m, K) log probabilities of the answers, given utilities (K, n) and parameters (K, p)."""
        n_kernel = len(self.hyper.kernel.theta)
        return self.answers.table(utilities, self.hyper.likelihood, thetas[:, n_kernel:])


class ComponentPosterior(NamedTuple):
    """A community's utilities: the Gaussian at the mode, and the likelihood there.

    weights: (m,) of the answers; terms: their log-likelihoods and derivatives at the mode.
    """

    prior: gp.ItemPrior | BethePrior
    weights: FloatArray
    state: gp.LowRankState | BetheState
    terms: LikelihoodTerms
    log_z: float

    @property
    def cost(self) -> float:
        """Nats that utilities of its own cost: w·ℓ − log Z."""
        return float(self.weights @ self.terms.value) - self.log_z

    @property
    def sites(self) -> gp.Sites:
        """Of the single pairs at the mode, where expectation propagation may start."""
        tau, g = self.terms.precision, self.state.mean[: self.terms.n_pairs]
        return gp.Sites(tau, self.terms.pairs.d1 + tau * g)


@dataclass(frozen=True, eq=False)
class ComponentModel:
    """The prior of every community and the likelihood of its answers."""

    mixture: MixtureData
    hyper: gp.ItemHyper
    prior: gp.ItemPrior | BethePrior

    def fit(
        self, weights: FloatArray, start: ComponentPosterior | None = None
    ) -> ComponentPosterior:
        """The mode by Newton's method, each step halved while the log joint w·ℓ − ½ |z|² falls.

        start: another component, of another prior even. The engine's loop would go on until sites
        are fixed; the search needs one or two steps.
        """
        z, value = None, -np.inf
        if start is None:
            z, g = np.zeros(self.prior.rank), np.zeros(len(self.mixture.edges))
            terms = self._terms(g)
        else:
            g, terms = start.state.mean, start.terms
            if start.prior is self.prior:
                z = start.state.coefficients
        if z is not None:
            value = _log_joint(weights, terms, z)
        for _ in range(NEWTON_STEPS):
            wk = terms.curvature(weights)
            newton = self.prior.refresh(wk, terms.gradient(weights) + wk * g)
            size = float(wk @ (newton.mean - g) ** 2)
            least = value - 1e-9 * abs(value) if np.isfinite(value) else value
            state, share = newton, 1.0
            while True:
                terms = self._terms(state.mean)
                value = _log_joint(weights, terms, state.coefficients)
                if z is None or value >= least or share <= SHORTEST_STEP:
                    break
                share *= 0.5
                state = replace(
                    newton,
                    mean=g + share * (newton.mean - g),
                    coefficients=z + share * (newton.coefficients - z),
                )
            z, g = state.coefficients, state.mean
            if share == 1.0 and size < NEWTON_TOLERANCE:
                break
        log_z = value - 0.5 * state.log_det
        return ComponentPosterior(self.prior, weights, state, terms, log_z)

    def refit(self, weights: FloatArray, start: ComponentPosterior | None) -> ComponentPosterior:
        """The posterior given these weights; `start` itself where it has the same ones."""
        if start is None or start.prior is not self.prior:
            return self.fit(weights, start)
        is_same = float(np.abs(weights - start.weights).sum()) < UNCHANGED
        return start if is_same else self.fit(weights, start)

    def _terms(self, g: FloatArray) -> LikelihoodTerms:
        return LikelihoodTerms.at(g, self.hyper.likelihood, self.mixture.answers.outcomes)

    def slope(self, component: ComponentPosterior) -> FloatArray:
        """(m,) ∂ log Z / ∂w = ℓ − ½ V_g k + h D V q: the expected log-likelihood of an answer."""
        return component.terms.slope(component.state.var, self._mode_shift(component))

    def _log_det_gradient(self, component: ComponentPosterior) -> FloatArray:
        """q = ½ Dᵀ(w d3 V_g): the slope of −½ log |H| in the utilities."""
        along = component.terms.log_det_gradient(component.weights, component.state.var)
        return self.prior.design.adjoint(along)

    def _mode_shift(self, component: ComponentPosterior) -> FloatArray:
        """(E,) D V q: the move of the differences' mode that −½ log |H| asks for."""
        z = component.state.solve(self._log_det_gradient(component))
        return self.prior.design.forward(self.prior.points(z))

    def gradient(self, components: tuple[ComponentPosterior, ...]) -> FloatArray:
        """∂ Σ log Z / ∂theta, in the kernel's and then the likelihood's parameters."""
        of_kernel = np.sum([self._kernel_gradient(each) for each in components], axis=0)
        return np.append(of_kernel, self._likelihood_gradient(components))

    def _kernel_gradient(self, component: ComponentPosterior) -> FloatArray:
        """G = ½ (aaᵀ − R) + sym(u aᵀ) : ⟨G, ∂K⟩; a = Dᵀ(w h), u = (I − A V) q."""
        mixture, state, terms = self.mixture, component.state, component.terms
        a = self.prior.design.adjoint(terms.gradient(component.weights))
        q = self._log_det_gradient(component)
        u = q - state.pulled(state.solve(q))
        problem = gp.ItemProblem(mixture.items, mixture.edges, mixture.settings)
        weight, outer = terms.curvature(component.weights), [(a, a), (a, u), (u, a)]
        return problem.pull_back(self.hyper.kernel, self.prior, state, weight, outer)

    def _likelihood_gradient(self, components: tuple[ComponentPosterior, ...]) -> FloatArray:
        """Σ w (∂ℓ − ½ V_g ∂k + (D V q) ∂h) by central differences of the likelihood alone.

        Choices depend on none of its parameters.
        """
        likelihood, n = self.hyper.likelihood, self.mixture.answers.n_pairs
        outcomes = self.mixture.answers.outcomes._replace(cliques=None)
        slopes = np.zeros(len(likelihood.theta))
        for i in range(len(slopes)):
            shift = LIKELIHOOD_STEP * np.eye(len(slopes))[i]
            above, below = (
                likelihood.with_theta(likelihood.theta + sign * shift) for sign in (1.0, -1.0)
            )
            for component in components:
                g, var = component.state.mean[:n], component.state.var[:n]
                high, low = above.log_prob(g, outcomes), below.log_prob(g, outcomes)
                change = high.value - low.value
                change -= 0.5 * var * (np.maximum(-high.d2, 0.0) - np.maximum(-low.d2, 0.0))
                change += self._mode_shift(component)[:n] * (high.d1 - low.d1)
                slopes[i] += float(component.weights[:n] @ change) / (2.0 * LIKELIHOOD_STEP)
        return slopes

    def posterior(self, component: ComponentPosterior) -> gp.Posterior:
        """The community's utilities over all items."""
        prior, state, terms = self.prior, component.state, component.terms
        if isinstance(prior, BethePrior) or isinstance(state, BetheState):
            prior, wk = self.mixture.factored(self.hyper), terms.curvature(component.weights)
            state = prior.refresh(wk, terms.gradient(component.weights) + wk * state.mean)
        return gp.Posterior(
            kernel=self.hyper.kernel,
            likelihood=self.hyper.likelihood,
            universe=self.mixture.items,
            target=self.mixture.items,
            basis=prior.basis,
            coefficients=state.coefficients,
            lower=state.lower,
        )


def _log_joint(weights: FloatArray, terms: LikelihoodTerms, z: FloatArray) -> float:
    """w·ℓ − ½ |z|²."""
    return float(weights @ terms.value) - 0.5 * float(z @ z)


class ComponentFit(NamedTuple):
    """A community's utilities by expectation propagation; sites: (m,) of its answers."""

    problem: gp.ItemProblem
    solution: gp.ItemSolution
    sites: gp.Sites

    @property
    def log_evidence(self) -> float:
        """log Z_c: the probability of the community's answers, its utilities integrated out."""
        return self.solution.log_evidence

    @property
    def posterior(self) -> gp.Posterior:
        """Over all items of the universe."""
        return self.problem.uncalibrated(self.solution)


def fit_community(
    mixture: MixtureData, counts: FloatArray, theta: FloatArray, start: gp.Sites | None = None
) -> ComponentFit:
    """Infer the utilities behind answer counts (m,), from the sites (m,) of `start`.

    The counts are all that a community's votes say, so inference costs the distinct answers
    (paper 004, section 3.2). Sites are those of single pairs; choices start from nothing.
    """
    answers = mixture.answers
    given = np.flatnonzero(counts[: answers.n_pairs])
    edges = answers.edges(counts)
    problem = gp.ItemProblem(
        mixture.items, edges, mixture.settings, mixture.max_rank, mixture.factor_tolerance
    )
    if start is not None:
        only_pairs = edges.outcomes.cliques is None
        start = gp.Sites(start.tau[given], start.nu[given]) if only_pairs else None
    solution = gp.solve(problem, mixture.hyper.at(theta), start)
    sites, found = gp.Sites.zeros(answers.n_answers), solution.inference.sites
    sites.tau[given], sites.nu[given] = found.tau[: len(given)], found.nu[: len(given)]
    return ComponentFit(problem, solution, sites)


@dataclass(frozen=True, eq=False)
class MixtureState:
    """What each community prefers, and how many users belong to it.

    sizes: (K,) expected numbers of members; entropy: −Σ r log r of all users' responsibilities r.
    """

    model: ComponentModel
    components: tuple[ComponentPosterior, ...]
    sizes: FloatArray
    entropy: float

    @property
    def mixture(self) -> MixtureData:
        return self.model.mixture

    @property
    def n_communities(self) -> int:
        return len(self.components)

    @cached_property
    def objective(self) -> float:
        """Log evidence, up to what mean-field memberships and Laplace leave out."""
        parameters, _ = self.model.hyper.log_prior(self.mixture.hyper)
        evidence = sum(each.log_z for each in self.components)
        prior = self.log_prior(self.mixture.concentration)
        return float(evidence + prior + self.entropy + parameters)

    def log_prior(self, concentration: float) -> float:
        """Log prior of the sizes given λ, and that of log λ where it is learned."""
        value = log_prior_of_sizes(self.sizes, concentration)
        if self.mixture.concentration_prior is not None:
            shape, rate = self.mixture.concentration_prior
            value += shape * np.log(rate * concentration) - rate * concentration - gammaln(shape)
        return float(value)

    @cached_property
    def tables(self) -> FloatArray:
        """(m, K) expected log-likelihood of each answer in each community."""
        return np.column_stack([self.model.slope(each) for each in self.components])

    @property
    def log_sizes(self) -> FloatArray:
        """(K,) ψ(N_c)."""
        return psi(np.maximum(self.sizes, SMALLEST))


@dataclass(frozen=True, eq=False)
class VariationalState(MixtureState):
    """A mixture with the responsibilities (U, K) of its users."""

    responsibilities: FloatArray

    @classmethod
    def of(
        cls,
        model: ComponentModel,
        responsibilities: FloatArray,
        components: tuple[ComponentPosterior, ...],
    ) -> "VariationalState":
        """From users' responsibilities (U, K) for K components."""
        sizes, entropy = responsibilities.sum(axis=0), float(entr(responsibilities).sum())
        return cls(model, components, sizes, entropy, responsibilities)

    def within(self, columns: Sequence[int]) -> "VariationalState":
        """Some of the communities, as if they were all."""
        kept = tuple(self.components[c] for c in columns)
        return VariationalState.of(self.model, self.responsibilities[:, columns], kept)

    def with_in_place_of(
        self,
        dropped: list[int],
        responsibilities: FloatArray,
        components: tuple[ComponentPosterior, ...],
    ) -> "VariationalState":
        """Other communities, (U, j) and their posteriors, in place of some: they come last."""
        others = self.within([c for c in range(self.n_communities) if c not in dropped])
        return VariationalState.of(
            self.model,
            np.column_stack([others.responsibilities, responsibilities]),
            (*others.components, *components),
        )


AnyState = TypeVar("AnyState", bound=MixtureState)


def log_prior_of_sizes(sizes: FloatArray | IntArray, concentration: float) -> float:
    """K log λ + Σ ln Γ(N_c) + ln Γ(λ) − ln Γ(λ + U): a partition under the Dirichlet process.

    A community of less than one user counts as one.
    """
    value = len(sizes) * np.log(concentration) + gammaln(np.maximum(sizes, 1.0)).sum()
    return float(value + gammaln(concentration) - gammaln(concentration + sizes.sum()))


def single_component(mixture: MixtureData, theta: FloatArray) -> VariationalState:
    """One community of all users."""
    return allocate(mixture.model(theta), np.ones((mixture.answers.n_users, 1)))


def allocate(
    model: ComponentModel,
    responsibilities: FloatArray,
    starts: Sequence[ComponentPosterior | None] | None = None,
) -> VariationalState:
    """Fit every community to its answers; one that starts from the same answers is kept."""
    weights = soft_counts(model.mixture.answers, responsibilities)
    given = starts or [None] * len(weights)
    components = tuple(model.refit(w, start) for w, start in zip(weights, given, strict=True))
    return VariationalState.of(model, responsibilities, components)


def sweep(allocation: VariationalState, keep_all: bool = False) -> VariationalState:
    """Let every user choose among the communities, then fit them: r ∝ exp(ψ(N_c) + P slope)."""
    r = responsibilities(allocation.mixture.answers.counts, allocation.tables, allocation.log_sizes)
    kept = np.flatnonzero(r.sum(axis=0) >= (0.0 if keep_all else SMALLEST))
    if len(kept) < allocation.n_communities:
        r = r[:, kept] / r[:, kept].sum(axis=1, keepdims=True)
    return allocate(allocation.model, r, [allocation.components[c] for c in kept])


def converge(
    state: AnyState, sweep: Callable[[AnyState], AnyState], max_sweeps: int, tolerance: float
) -> AnyState:
    """Sweep until the objective gains less than the tolerance; never to a lower one."""
    for _ in range(max_sweeps if state.n_communities > 1 else 0):
        swept = sweep(state)
        gain = swept.objective - state.objective
        if gain > 0.0 or swept.n_communities < state.n_communities:
            state = swept
        if gain < tolerance:
            break
    return state


def learn_concentration(allocation: VariationalState) -> VariationalState:
    """λ where it is likeliest, given the number of communities and its Gamma prior."""
    mixture = allocation.mixture
    if mixture.concentration_prior is None:
        return allocation
    from scipy.optimize import minimize_scalar  # slow to import

    found = minimize_scalar(
        lambda log: -allocation.log_prior(float(np.exp(log))),
        bounds=LOG_CONCENTRATIONS,
        method="bounded",
    )
    known = replace(mixture, concentration=float(np.exp(found.x)))
    return replace(allocation, model=replace(allocation.model, mixture=known))


def learn(
    allocation: VariationalState, limits: gp.Limits = LEARNING
) -> tuple[VariationalState, tuple[Move, ...]]:
    """A few steps up Σ log Z + weak prior over the hyperparameters, memberships held.

    Also the moves, by which the next time goes on where this one ended.
    """
    mixture, last = allocation.mixture, allocation
    theta = allocation.model.hyper.theta
    if not len(theta):
        return allocation, ()

    def evaluate(candidate: FloatArray) -> tuple[float, FloatArray, VariationalState]:
        nonlocal last
        model = last.model
        if not np.array_equal(candidate, model.hyper.theta):
            model = mixture.model(candidate)
        components = tuple(model.refit(each.weights, each) for each in last.components)
        slope = model.gradient(components)
        penalty, drag = model.hyper.log_prior(mixture.hyper)
        last = replace(last, model=model, components=components)
        return sum(each.log_z for each in components) + penalty, slope + drag, last

    if allocation.model.prior.variance is not None and len(theta) == 1:
        # −log Z bends by ½ in log σ² for every utility that is settled, of any community
        settled = sum(each.state.n_settled for each in allocation.components)
        limits = limits._replace(curvature=0.5 * float(settled))
    summit = gp.maximize(evaluate, theta, mixture.hyper.bounds, limits)
    return (allocation if summit.kept is None else summit.kept), summit.moves
