"""Personal taste: users with utilities of their own around those of their community.

A plain mixture spends communities on personal variation. Here every user has utilities of their
own around those of their community, f_u = f_0 + Ψ ε_u with

    ε_u | c ~ N(μ_c, S),   μ_c ~ N(0, M),   one S for all,

along q directions Ψ. Every vote has a site of expectation propagation, so a user's log-likelihood
is c + ηᵀε − ½ εᵀΛε. All else is Gaussian: with
T = (Λ + S⁻¹)⁻¹, R = Λ − ΛTΛ = (S + Λ⁻¹)⁻¹ and t = (I − ΛT) η a user's evidence is

    log Z_u(μ) = a + tᵀμ − ½ μᵀRμ,   a = c − ½ log |I + SΛ| + ½ ηᵀTη.

`single_population` is the case of one community: the multi-user model, which communities must beat.
`find_variation` adds communities as modes of taste while the evidence rises. `fit_personal` then
fits the multi-user model itself, which is reported.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import entr, psi, softmax

from penchant import gp
from penchant.communities.component import (
    SMALLEST,
    VariationalState,
    allocate,
    learn,
    log_prior_of_sizes,
    single_component,
)
from penchant.communities.data import (
    Answers,
    drawn_counts,
    sample_users,
    separate_pairs,
)
from penchant.communities.search import SearchResult
from penchant.communities.split_merge import LEAST_RESPONSIBILITY, disagreement
from penchant.data import Comparisons
from penchant.kernels import Constant, Inputs, Kernel, Linear
from penchant.likelihoods import Gaussian, Likelihood, Outcomes, Probit
from penchant.numerics.linalg import gram
from penchant.numerics.types import FloatArray, IntArray

FIT_ROUNDS = 150
"""Most rounds of a fit: some tens are usual."""
FIT_TOLERANCE = 0.05
"""Nats that a round must gain for another one."""
FIT_HORIZON = 20
"""Rounds like the last one that a fit can hope for: gains fall off geometrically."""
PRIOR_USERS = 2.0
"""The spread's prior weighs as much as so many users beyond its dimension."""
WIDE = 20.0
"""Spread that learning starts from, relative to the prior's."""
NARROWEST, WIDEST = 1e-9, 1e3
"""Variances between which spreads stay: at the widest every vote is certain."""
WITHIN = 0.1
"""Spread within communities that their fit starts from, as a share of everybody's."""
PLACING_ROUNDS = 8
"""Rounds of expectation propagation for users who are placed among known modes."""
STEP_GROWTH, LONGEST_STEP = 1.25, 8.0
"""Growth of the spread's steps while they succeed, and the longest, in steps of EM."""
MAX_DIRECTIONS = 8
"""Directions of disagreement: a fit costs their cube for every user."""
NOTABLE = 0.9
"""Share of the noise edge from which on a direction of disagreement is used."""
FIRST_SPREAD = 0.1
"""Prior variance of the personal deviation of a difference."""
UNUSED_WEIGHT = 1e-3
"""Votes that an answer nobody gave counts for: directions are of all answers."""
CLEAR_SCORE = 2.0
"""Standard errors from which on users' item random effects inside communities are tried."""
CLEAR_EVIDENCE = 10.0
"""Nats by which communities must beat one population with personal deviations, and that the same
without deviations."""
MAX_ITEM_SHARE = 0.45
"""Share of an answer's noise that may be one item's: both items' together are less than all."""
COMMUNAL_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)
"""Shares of taste that communities may explain, of which held-out answers choose one."""
HELD_OUT = 0.2
"""Share of the answers by which the communal share is chosen."""
MAX_COST = 1e7
"""Answers × items up to which personal="auto" considers personal taste."""
CHOICE_ANSWERS = 8_000
"""Answers of some users that decide whether people vary, where there are more."""


class Population(NamedTuple):
    """The mean utility over people at large, Σ s_c f_c, of communities with shares s_c.

    Both are uncertain, the shares because the people who answered are a sample of U: with m_c the
    means and m = Σ s_c m_c, Cov = Σ s_c² Cov(f_c) + Σ s_c (m_c − m)(m_c − m)ᵀ / (U + 1).
    With personal taste what people share has one posterior, which knows how many they are.

    parts, weights: posteriors whose weighted sum it is, (k,). apart: (C, n) √s_c (m_c − m), of
    which the squares add up to the variance between communities. n_people: U.
    """

    parts: tuple[gp.Posterior, ...]
    weights: FloatArray
    apart: FloatArray
    n_people: float

    @classmethod
    def of_communities(
        cls, posteriors: tuple[gp.Posterior, ...], sizes: FloatArray
    ) -> "Population":
        """Everybody has the taste of their community."""
        shares, tastes = sizes / sizes.sum(), np.stack([p.mean for p in posteriors])
        return cls(posteriors, shares, cls._between(sizes, tastes), float(sizes.sum()))

    @classmethod
    def of_users(cls, posterior: gp.UserPosteriors, sizes: FloatArray) -> "Population":
        """Everybody deviates from the taste of their community; memberships are their features."""
        kernel, members = posterior.user_kernel, Inputs(np.eye(len(sizes)))
        phi = posterior.user_basis.features(kernel, posterior.users, members)
        apart = cls._between(sizes, posterior.shared_utilities(phi))
        return cls((posterior.population(),), np.ones(1), apart, float(sizes.sum()))

    @property
    def mean(self) -> FloatArray:
        return np.asarray(self.weights @ np.stack([part.mean for part in self.parts]))

    def relative_to(self, others: "Population") -> gp.Normal:
        """Means and variances (n,), less the average of other items."""
        each = [
            part.relative_to(known) for part, known in zip(self.parts, others.parts, strict=True)
        ]
        mean, var = np.stack([part.mean for part in each]), np.stack([part.var for part in each])
        apart = self.apart - others.apart.mean(axis=1, keepdims=True)
        between = np.sum(apart**2, axis=0) / (self.n_people + 1.0)
        return gp.Normal(self.weights @ mean, self.weights**2 @ var + between)

    @property
    def covariance(self) -> FloatArray:
        total = gram(self.apart) / (self.n_people + 1.0)
        for weight, part in zip(self.weights, self.parts, strict=True):
            total += weight**2 * part.covariance()
        return total

    @property
    def spread(self) -> FloatArray:
        """(n,) standard deviation between communities, relative to the average item."""
        return np.linalg.norm(self.apart - self.apart.mean(axis=1, keepdims=True), axis=0)

    @staticmethod
    def _between(sizes: FloatArray, tastes: FloatArray) -> FloatArray:
        """`apart`, of communities with these sizes and tastes."""
        shares = sizes / sizes.sum()
        return np.sqrt(shares)[:, None] * (tastes - shares @ tastes)


@dataclass(frozen=True, eq=False)
class PersonalVotes:
    """Votes on g = offset + loading · ε of their user.

    Rows are sorted by user, whose first rows are starts (U + 1,). offset, count: (V,); loading:
    (V, q); outcomes: of the V votes.
    """

    starts: IntArray
    count: FloatArray
    offset: FloatArray
    loading: FloatArray
    outcomes: Outcomes
    likelihood: Likelihood

    @classmethod
    def of(
        cls, answers: Answers, offset: FloatArray, loading: FloatArray, likelihood: Likelihood
    ) -> "PersonalVotes":
        """From everybody's answers: offset (m,) and loading (m, q) of the distinct ones."""
        counts, at = answers.counts, answers.counts.indices
        given = counts.indptr.astype(np.intp), counts.data.astype(np.float64)
        return cls(*given, offset[at], loading[at], answers.outcomes.part(at), likelihood)

    @property
    def n_users(self) -> int:
        return len(self.starts) - 1

    @property
    def n_directions(self) -> int:
        return int(self.loading.shape[1])

    @cached_property
    def _products(self) -> FloatArray:
        """(V, q²) outer products of the loadings."""
        products: FloatArray = np.einsum("vi,vj->vij", self.loading, self.loading)
        return products.reshape(len(self.count), -1)

    def _sum(self, weight: FloatArray, rows: FloatArray) -> FloatArray:
        """(U, …) weighted sums of rows over each user's votes."""
        column = np.arange(len(weight))
        picker = sparse.csr_array((weight, column, self.starts), shape=(self.n_users, len(weight)))
        return picker @ rows

    def of_user(self, rows: FloatArray) -> FloatArray:
        """(V, …) rows of users (U, …), for each of their votes."""
        return np.repeat(rows, np.diff(self.starts), axis=0)

    def integrate_out(self, sites: gp.Sites, spread: FloatArray) -> "UserTerms":
        """Integrate every user's ε ~ N(μ, S) out, as a function of μ. S may be nearly singular."""
        q, count, o = self.n_directions, self.count, self.offset
        precision = self._sum(count * sites.tau, self._products).reshape(-1, q, q)
        shift = self._sum(count * (sites.nu - sites.tau * o), self.loading)
        constant = (sites.nu - 0.5 * sites.tau * o) * o
        lower = _root(spread)
        inner = np.eye(q) + lower.T @ precision @ lower
        log_det = np.linalg.slogdet(inner)[1]
        covariance = lower @ np.linalg.solve(inner, np.broadcast_to(lower.T, inner.shape))
        pull = np.einsum("uij,uj->ui", covariance, shift)
        value = self._sum(count, constant[:, None])[:, 0] - 0.5 * log_det
        return UserTerms(
            covariance,
            pull,
            precision - precision @ covariance @ precision,
            shift - np.einsum("uij,uj->ui", precision, pull),
            value + 0.5 * np.einsum("ui,ui->u", shift, pull),
        )

    def differences(self, effects: FloatArray) -> FloatArray:
        """(V,) g, given users' effects ε (U, q)."""
        own: FloatArray = np.einsum("vq,vq->v", self.loading, self.of_user(effects))
        return self.offset + own

    def propose(
        self, sites: gp.Sites, effects: FloatArray, covariance: FloatArray
    ) -> tuple[gp.Sites, FloatArray]:
        """New sites by expectation propagation, and the log scales of the present ones.

        effects: (U, q) means of the users' ε; covariance: (U, q, q).
        """
        of_user = self.of_user(covariance.reshape(self.n_users, -1))
        var = np.maximum(np.einsum("vq,vq->v", self._products, of_user), 1e-10)
        mean = self.differences(effects)
        proposal = gp.RULES["ep"].propose(mean, var, sites, self.likelihood, self.outcomes)
        valid = proposal.tau >= 0.0
        if proposal.valid is not None:
            valid &= proposal.valid
        tau, nu = np.where(valid, proposal.tau, sites.tau), np.where(valid, proposal.nu, sites.nu)
        return gp.Sites(tau, nu), proposal.log_scale


class UserTerms(NamedTuple):
    """Users with their effects integrated out: T (U, q, q), Tη, R, t and a."""

    covariance: FloatArray
    pull: FloatArray
    precision: FloatArray
    shift: FloatArray
    value: FloatArray


def _root(S: FloatArray) -> FloatArray:
    """L with L Lᵀ = S, however small its eigenvalues."""
    values, vectors = np.linalg.eigh(S)
    return vectors * np.sqrt(np.maximum(values, 1e-12 * max(values[-1], 1e-12)))


@dataclass(frozen=True, eq=False)
class Modes:
    """Communities with personal variation.

    membership: (U, K); means, covariance: (K, q) and (K, q, q), posterior of their means;
    spread: (q, q); sites: of the votes.
    """

    membership: FloatArray
    means: FloatArray
    covariance: FloatArray
    spread: FloatArray
    sites: gp.Sites
    objective: float = -np.inf

    @property
    def n_communities(self) -> int:
        """K."""
        return len(self.means)

    @property
    def second(self) -> FloatArray:
        """(K, q, q) E μμᵀ."""
        outer: FloatArray = np.einsum("ci,cj->cij", self.means, self.means)
        return outer + self.covariance

    def members(self, users: UserTerms, sizes: FloatArray) -> FloatArray:
        """(U, K) memberships: r ∝ exp(ψ(N_c) + tᵀμ − ½ tr R E μμᵀ)."""
        log_weights = users.shift @ self.means.T
        log_weights -= 0.5 * _flat(users.precision) @ _flat(self.second).T
        r: FloatArray = softmax(log_weights + psi(np.maximum(sizes, SMALLEST)), axis=1)
        return r

    def predict_membership(self, votes: PersonalVotes) -> FloatArray:
        """(U, K) memberships of other users by their votes; the modes stay as they are."""
        sizes = self.membership.sum(axis=0)
        shared = np.tile(sizes / sizes.sum(), (votes.n_users, 1))
        placed = replace(self, membership=shared, sites=gp.Sites.zeros(len(votes.count)))
        for _ in range(PLACING_ROUNDS):
            users = votes.integrate_out(placed.sites, self.spread)
            sites, _ = votes.propose(placed.sites, *_user_posteriors(users, placed))
            placed = replace(placed, membership=self.members(users, sizes), sites=sites)
        return placed.membership


@dataclass(frozen=True, eq=False)
class UserEffectMixture:
    """The model of the users' effects: their votes, the priors and λ.

    scale: (q, q) of the inverse Wishart prior of the spread S, whose weight is `PRIOR_USERS`;
    mean_covariance: (q, q) M of the modes' means.
    """

    votes: PersonalVotes
    scale: FloatArray
    mean_covariance: FloatArray
    concentration: float = 1.0
    learn_spread: bool = True

    def start(self, membership: FloatArray, spread: FloatArray) -> Modes:
        """Communities whose means are yet to be fitted."""
        K, q = membership.shape[1], self.votes.n_directions
        nothing = gp.Sites.zeros(len(self.votes.count))
        return Modes(membership, np.zeros((K, q)), np.zeros((K, q, q)), spread, nothing)

    def fit(self, modes: Modes, threshold: float = -np.inf) -> Modes:
        """Update sites, means, memberships and spread in turn, with longer and longer steps.

        threshold: the fit ends early where this objective is out of reach.
        """
        length, before = 1.0, -np.inf
        for rounds_left in reversed(range(FIT_ROUNDS)):
            here, modes = self._round(modes, length)
            gain, before = here.objective - before, here.objective
            if abs(gain) < FIT_TOLERANCE:
                break
            if gain > 0.0 and here.objective + min(rounds_left, FIT_HORIZON) * gain < threshold:
                break
            length = min(STEP_GROWTH * length, LONGEST_STEP) if gain > 0.0 else 1.0
        return here

    def _round(self, modes: Modes, length: float) -> tuple[Modes, Modes]:
        """The modes with their objective, and the modes of the next round."""
        votes, r = self.votes, modes.membership
        users = votes.integrate_out(modes.sites, modes.spread)
        sites, log_scale = votes.propose(modes.sites, *_user_posteriors(users, modes))
        M, R, t = self.mean_covariance, _weighted(r, users.precision), r.T @ users.shift
        inner = np.eye(len(M)) + M @ R
        covariance = np.asarray(np.linalg.solve(inner, np.broadcast_to(M, R.shape)), np.float64)
        means = np.einsum("cij,cj->ci", covariance, t)
        value = float(users.value.sum() + votes.count @ log_scale)
        value += 0.5 * float(np.sum(means * t) - np.linalg.slogdet(inner)[1].sum())
        value += log_prior_of_sizes(r.sum(axis=0), self.concentration) + float(entr(r).sum())
        value += self.log_prior(modes.spread)
        here = replace(modes, means=means, covariance=covariance, objective=value)
        spread = modes.spread
        if self.learn_spread:
            spread = extrapolate(spread, self._em_spread(users, here), length)
        membership = here.members(users, r.sum(axis=0))
        kept = np.flatnonzero(membership.sum(axis=0) >= SMALLEST)
        membership = membership[:, kept] / membership[:, kept].sum(axis=1, keepdims=True)
        return here, Modes(membership, means[kept], covariance[kept], spread, sites)

    def log_prior(self, S: FloatArray) -> float:
        """Of the spread, relative to the mode: the scale times degrees / (degrees + q + 1)."""
        q = len(S)
        degrees = q + PRIOR_USERS
        ratio = np.linalg.solve(S, degrees * self.scale) / (degrees + q + 1)
        _, log_det = np.linalg.slogdet(ratio)
        return 0.5 * (degrees + q + 1) * float(log_det - np.trace(ratio) + q)

    def _em_spread(self, users: UserTerms, modes: Modes) -> FloatArray:
        """EM: (prior + Σ r E (ε − μ)(ε − μ)ᵀ) / (degrees + U); ε − μ = Tη − TΛ μ + N(0, T)."""
        q, r = len(modes.spread), modes.membership
        toward = modes.spread @ users.precision  # S R = T Λ
        expected = (r @ _flat(modes.second)).reshape(-1, q, q)
        crossed = users.pull.T @ np.einsum("uij,uj->ui", toward, r @ modes.means)
        total = users.covariance.sum(axis=0) + users.pull.T @ users.pull - crossed - crossed.T
        total += (toward @ expected @ np.swapaxes(toward, 1, 2)).sum(axis=0)
        degrees = q + PRIOR_USERS
        total = total + degrees * self.scale
        return np.asarray(total / (len(r) + degrees + q + 1))


def _user_posteriors(users: UserTerms, modes: Modes) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of the users' ε: E ε = Tη + (I − TΛ) μ, where TΛ = S R."""
    mean = modes.membership @ modes.means
    shrink = np.eye(len(modes.spread)) - modes.spread @ users.precision
    second = (modes.membership @ _flat(modes.second)).reshape(shrink.shape)
    between = second - np.einsum("ui,uj->uij", mean, mean)
    effects = users.pull + np.einsum("uij,uj->ui", shrink, mean)
    return effects, users.covariance + shrink @ between @ np.swapaxes(shrink, 1, 2)


def _flat(matrices: FloatArray) -> FloatArray:
    return matrices.reshape(len(matrices), -1)


def _weighted(r: FloatArray, matrices: FloatArray) -> FloatArray:
    """(K, q, q) sums over users, weighted by membership (U, K)."""
    return (r.T @ _flat(matrices)).reshape(-1, *matrices.shape[1:])


def extrapolate(S: FloatArray, after: FloatArray, length: float) -> FloatArray:
    """S moved towards the result of EM, `length` times as far on the logarithmic scale."""
    root = _root(S)
    inverse = np.linalg.inv(root)
    ratio = inverse @ after @ inverse.T
    values, vectors = np.linalg.eigh(0.5 * (ratio + ratio.T))
    stretched = (vectors * np.maximum(values, 1e-6) ** length) @ vectors.T
    values, vectors = np.linalg.eigh(root @ stretched @ root.T)
    return np.asarray((vectors * np.clip(values, NARROWEST, WIDEST)) @ vectors.T)


def fit_single_mode(
    votes: PersonalVotes, concentration: float, threshold: float = -np.inf
) -> tuple[UserEffectMixture, Modes]:
    """All users around one mean; the learned spread becomes the prior of several modes."""
    q = votes.n_directions
    weak = FIRST_SPREAD * np.eye(q)
    effects = UserEffectMixture(votes, weak, weak, concentration)
    # EM widens a spread that is too small far more slowly than it narrows one that is too large
    start = effects.start(np.ones((votes.n_users, 1)), WIDE * weak)
    # a prior that fits gains about a nat an entry more
    first = effects.fit(start, threshold - q * q)
    fixed = replace(effects, scale=first.spread, mean_covariance=first.spread)
    return fixed, fixed.fit(first, threshold)


def fit_modes(effects: UserEffectMixture, one: Modes, membership: FloatArray) -> Modes:
    """Modes from the given communities, or from half as many, and so on, where that is better."""
    start = replace(effects.start(membership, WITHIN * one.spread), sites=one.sites)
    best = current = effects.fit(start)
    while best.objective < one.objective and current.n_communities > 2:
        target = max(2, current.n_communities // 2)
        while current.n_communities > target:
            current = join_nearest(current)
        current = effects.fit(current)
        best = max(best, current, key=lambda modes: modes.objective)
    return best


def prune(effects: UserEffectMixture, modes: Modes) -> Modes:
    """Join the nearest modes as long as the evidence does not fall."""
    while modes.n_communities > 1:
        fewer = effects.fit(join_nearest(modes))
        if fewer.objective < modes.objective:
            break
        modes = fewer
    return modes


def join_nearest(modes: Modes) -> Modes:
    """Join the two communities whose means are nearest, in units of the spread."""
    white = np.linalg.solve(_root(modes.spread), modes.means.T).T
    distance = np.linalg.norm(white[:, None] - white, axis=2)
    distance[np.tril_indices(len(distance))] = np.inf
    a, b = map(int, np.unravel_index(int(distance.argmin()), distance.shape))
    means, membership = modes.means.copy(), modes.membership.copy()
    means[a] = np.average(means[[a, b]], axis=0, weights=membership[:, [a, b]].sum(axis=0))
    membership[:, a] += membership[:, b]
    left = [c for c in range(modes.n_communities) if c != b]
    joined = replace(modes, means=means[left], covariance=modes.covariance[left])
    return replace(joined, membership=membership[:, left])


class SinglePopulation(NamedTuple):
    """One population whose users deviate along the main directions of disagreement.

    It is the multi-user model where that matters, and the model that communities must beat.
    allocation: everybody in one community; loading: (m, q) of the distinct answers along the
    directions; effects, modes: the model of the users' effects, and its fit; evidence: of all.
    """

    allocation: VariationalState
    loading: FloatArray
    effects: UserEffectMixture
    modes: Modes
    evidence: float

    @property
    def personal(self) -> float:
        """Nats for personal deviations, against one taste for all."""
        return self.evidence - self.allocation.objective

    @property
    def cost(self) -> float:
        """Nats that the directions cost, which were learned from the same votes.

        q directions among d that the votes settle have q (d − q) degrees of freedom. Direction k
        is a taste g ~ N(0, c K) that people have more or less of; s is what a person's votes tell
        of how much, as signal to noise, and s / (1 + s) the share of everybody's votes that tells
        of g. With the best c its cost is ½ (d + log |I + c s / (1 + s) K A|); a direction that
        brings less than it costs, U/2 (s − log(1 + s)), might have been left out.
        """
        component, n_users = self.allocation.components[0], self.effects.votes.n_users
        state, design = component.state, self.allocation.model.prior.design
        d = state.n_settled
        variance, axes = np.linalg.eigh(self.modes.spread)
        directions = self.loading @ axes * np.sqrt(variance)
        curvature = component.terms.curvature(component.weights)
        s = curvature @ directions**2 / n_users
        z = np.stack([state.solve(design.adjoint(curvature * g)) for g in directions.T])
        ratio = s / (1.0 + s) * np.sum(z**2, axis=1) / d  # c s / (1 + s)
        known = np.maximum(d + state.log_det + d * np.log(ratio), 0.0)
        cost = 0.5 * max(1.0 - len(s) / d, 0.0) * known
        return float(np.minimum(cost, 0.5 * n_users * (s - np.log1p(s))).sum())

    def modes_of(self, result: SearchResult) -> tuple[Modes, float]:
        """Communities whose members deviate, and how many nats they gain."""
        best = fit_modes(self.effects, self.modes, result.allocation.responsibilities)
        # the fit of one mode may have stopped short: the total spread is another start
        total = best.spread + np.cov(best.means.T, aweights=best.membership.sum(axis=0), bias=True)
        start = replace(self.modes, spread=total)
        return best, best.objective - max(self.modes.objective, self.effects.fit(start).objective)


def single_population(result: SearchResult, threshold: float = -np.inf) -> SinglePopulation:
    """Fit one population; threshold: the fit stays coarse where this evidence is out of reach."""
    mixture = result.allocation.mixture
    allocation, _ = learn(single_component(mixture, mixture.hyper.theta))
    component, loading = allocation.components[0], _directions(allocation, result)
    likelihood = allocation.model.hyper.likelihood
    votes = PersonalVotes.of(mixture.answers, component.state.mean, loading, likelihood)
    # both models contain the votes; the cost of the common utilities is not in the effects' model
    rest = allocation.objective - component.log_z - component.cost
    effects, modes = fit_single_mode(votes, mixture.concentration, threshold - rest)
    return SinglePopulation(allocation, loading, effects, modes, modes.objective + rest)


def _directions(allocation: VariationalState, result: SearchResult) -> FloatArray:
    """(m, q) main disagreements and communities' differences, orthonormal over the votes."""
    prior = allocation.model.prior
    weight = np.sqrt(np.maximum(allocation.components[0].weights, UNUSED_WEIGHT))
    everybody = np.arange(allocation.mixture.answers.n_users)
    spectrum = disagreement(allocation, 0, everybody, MAX_DIRECTIONS)
    n_notable = max(1, int(np.count_nonzero(spectrum.strength > NOTABLE)))
    main = prior.design.forward(prior.points(spectrum.weights[:, :n_notable]))
    found, common = result.allocation, allocation.components[0].state.mean
    means = np.column_stack([each.state.mean for each in found.components])
    contrasts = (means - common[:, None]) * np.sqrt(found.sizes)
    basis = np.zeros((len(weight), 0))
    for part in (main, contrasts) if result.n_communities > 1 else (main,):
        whole = weight[:, None] * part
        left, size, _ = np.linalg.svd(whole - basis @ (basis.T @ whole), full_matrices=False)
        rounding = 1e-6 * np.linalg.norm(whole)
        kept = np.flatnonzero(size > max(0.1 * size.max(initial=0.0), rounding))[:MAX_DIRECTIONS]
        if not len(kept) and not basis.size:  # no disagreement: any direction will do
            kept = np.arange(1)
        basis = np.column_stack([basis, left[:, kept]])
    return basis / weight[:, None] * np.sqrt(np.sum(weight**2))


def item_effect_share(single: SinglePopulation) -> float:
    """The share s² of an answer's noise that is a random effect of the user and the item.

    Ratings turned into pairs are the plain case: a user's low opinion of a film moves all of their
    pairs with it. Such an effect e_ui ~ N(0, s²) falls into no groups, yet both halves of the votes
    share it. Two votes v, w of a user that share an item have slopes of the log-likelihood, at the
    common utilities, with

        E ±h_v h_w = k_v k_w (s² ± ℓ_vᵀ S ℓ_w),

    S the spread along the common directions and the sign minus where the item won one of them
    alone. The sum over all such votes gives s².
    """
    allocation, votes = single.allocation, single.effects.votes
    terms, at = allocation.components[0].terms, allocation.mixture.answers.counts.indices
    smooth = (votes.loading * terms.precision[at][:, None]) @ _root(single.modes.spread)
    common = sum(_of_others(allocation, column).sum() for column in smooth.T)
    shared = _of_others(allocation, terms.pairs.d1[at]).sum() - common
    most = _of_others(allocation, terms.precision[at], 1.0).sum()
    noise = noise_of(allocation.model.hyper.likelihood)
    return float(np.clip(shared / (most * noise), 0.0, MAX_ITEM_SHARE)) if most > 0.0 else 0.0


def _of_others(allocation: VariationalState, pull: FloatArray, sign: float = -1.0) -> FloatArray:
    """(U,) sums of products of a user's different votes that share an item, of (V,) one a vote;
    sign: of the loser's."""
    answers, n_items = allocation.mixture.answers, len(allocation.mixture.items)
    at, user, total = answers.counts.indices, answers.user, answers.counts.data * pull
    ends = np.tile(user, 2), np.append(answers.winner[at], answers.loser[at])
    values, shape = np.append(total, sign * total), (answers.n_users, n_items)
    all_votes = sparse.csr_array((values, ends), shape=shape).power(2).sum(axis=1)
    return np.asarray(all_votes - 2.0 * np.bincount(user, total * pull, answers.n_users))


def design_effect(single: SinglePopulation) -> float:
    """How often dependent answers count: the cluster-robust variance of the slopes at the common
    utilities, over that of independent answers; clusters are a user's votes about one item."""
    counts = single.allocation.mixture.answers.counts
    slope = single.allocation.components[0].terms.pairs.d1[counts.indices]
    total = float(_of_others(single.allocation, slope).sum())
    return 1.0 + max(total, 0.0) / (2.0 * float(counts.data @ slope**2))


def _has_item_effects(result: SearchResult) -> bool:
    """Whether a user's votes about one item go together inside communities, by a score test."""
    allocation, answers = result.allocation, result.allocation.mixture.answers
    r, at = allocation.responsibilities[answers.user], answers.counts.indices
    slopes = np.stack([each.terms.pairs.d1[at] for each in allocation.components], axis=1)
    products = _of_others(allocation, np.sum(r * slopes, axis=1))
    return bool(products.sum() > CLEAR_SCORE * np.linalg.norm(products))


def noise_of(likelihood: Likelihood) -> float:
    """Variance of the noise in an answer; the probit's is one."""
    if isinstance(likelihood, Gaussian):
        return likelihood.noise
    scale = likelihood.choice_scale
    return 1.0 if scale is None else (Probit().choice_scale / scale) ** 2


def with_item_effects(
    single: SinglePopulation, g: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Differences (V,) with item random effects, scaled so that the total noise stays the same.

    With a share ρ of items, e has the variance ρ / (1 − 2ρ) of the noise, and g is as much wider.
    """
    share = item_effect_share(single)
    mixture, answers = single.allocation.mixture, single.allocation.mixture.answers
    user, at = answers.user, answers.counts.indices
    own = rng.standard_normal((answers.n_users, len(mixture.items)))
    apart = own[user, answers.winner[at]] - own[user, answers.loser[at]]
    noise = noise_of(single.allocation.model.hyper.likelihood)
    return (g + np.sqrt(share * noise) * apart) / np.sqrt(1.0 - 2.0 * share)


class Variation(NamedTuple):
    """Communities whose members vary: (U, K) memberships of the voters, largest first.

    hyper: of the communities' utilities; evidence: log evidence of all users. is_clear: whether
    evidence speaks for variation; else held-out answers decide between it and communities alone.
    """

    membership: FloatArray
    hyper: gp.ItemHyper
    evidence: float
    is_clear: bool = True


def find_variation(
    result: SearchResult, *, required: bool, fixed: bool, has_effects: bool = False
) -> Variation | None:
    """Communities with personal variation, their number chosen again by evidence.

    required: personal variation is asked for; else None where nothing speaks for it, or where it
    would cost too much. fixed: the number of communities is given. has_effects: of order or
    covariates, which the evidence here leaves out.
    """
    mixture, plain = result.allocation.mixture, result.allocation.responsibilities
    answers, K = mixture.answers, result.n_communities
    if not required and answers.counts.nnz * len(mixture.items) > MAX_COST:
        return None
    if K == 1 and required:
        return Variation(plain, result.hyper, result.objective)
    doubtful = Variation(plain, result.hyper, result.objective, False)
    if has_effects and not required:
        return doubtful
    seen, some = required or _has_disagreement(result), _sample(result)
    if K == 1 and not seen:
        return doubtful if _has_item_effects(some) else None
    # without disagreement, only an evidence above that of the communities would matter
    single = single_population(some, -np.inf if seen else some.objective)
    evidence, modes = single.evidence - single.cost, None
    # communities without disagreement inside that beat one population leave nothing to explain
    if K > 1 and (seen or evidence > some.objective):
        modes, gain = single.modes_of(some)
        if fixed:
            gain = max(gain, 0.0)
        elif gain > CLEAR_EVIDENCE:
            fewer = prune(single.effects, modes)
            gain, modes = gain + fewer.objective - modes.objective, fewer
        else:
            gain, modes = 0.0, None
        evidence += gain
    is_broken = not required and answers.are_broken_choices  # which flatters all evidence
    if not required and (is_broken or evidence <= some.objective + CLEAR_EVIDENCE):
        # evidence may prefer communities by 130 nats where people's own taste predicts better
        return doubtful if is_broken or _has_item_effects(some) else None
    evidence += result.objective - some.objective
    if modes is None:
        return Variation(np.ones((answers.n_users, 1)), single.allocation.model.hyper, evidence)
    members = plain if fixed else _members(single, modes, answers)
    return Variation(members, result.hyper, evidence)


def _has_disagreement(result: SearchResult) -> bool:
    """Whether members of any community differ along some direction by more than noise."""
    allocation = result.allocation
    for c in range(allocation.n_communities):
        members = np.flatnonzero(allocation.responsibilities[:, c] > LEAST_RESPONSIBILITY)
        if len(members) > 1 and disagreement(allocation, c, members, 1).strength[0] > 1.0:
            return True
    return False


def _sample(result: SearchResult) -> SearchResult:
    """The same communities of some of the users, where there are very many answers."""
    allocation = result.allocation
    mixture, answers = allocation.mixture, allocation.mixture.answers
    if answers.counts.nnz <= CHOICE_ANSWERS:
        return result
    chosen = sample_users(answers, max(1, answers.n_users * CHOICE_ANSWERS // answers.counts.nnz))
    few = replace(allocation.model, mixture=replace(mixture, answers=answers.take(chosen)))
    members = allocation.responsibilities[chosen]
    return SearchResult(allocate(few, members, allocation.components), members, result.trace)


def _members(single: SinglePopulation, modes: Modes, answers: Answers) -> FloatArray:
    """(U, K) memberships of all voters, the largest mode first."""
    membership = modes.membership
    if len(membership) < answers.n_users:
        size = max(1, CHOICE_ANSWERS * answers.n_users // answers.counts.nnz)
        some = (replace(answers, counts=rows) for _, rows in answers.shards(size))
        mean, likelihood = (
            single.allocation.components[0].state.mean,
            single.effects.votes.likelihood,
        )
        votes = (PersonalVotes.of(each, mean, single.loading, likelihood) for each in some)
        membership = np.concatenate([modes.predict_membership(each) for each in votes])
    order = np.argsort(-membership.sum(axis=0), kind="stable")
    return np.ascontiguousarray(membership[:, order])


def as_features(membership: FloatArray) -> Inputs:
    """Users whose features are their memberships; a plain dict of relations can be copied."""
    return Inputs(membership, {}, np.arange(len(membership)))


def user_problem(
    items: Inputs, membership: FloatArray, votes: gp.Rows, settings: gp.Settings | None = None
) -> gp.UserProblem:
    """Users with their memberships for features."""
    return gp.UserProblem.of(items, as_features(membership), votes, settings or gp.Settings())


Rival = Callable[[Comparisons], Sequence[tuple[FloatArray, Callable[[gp.Rows], FloatArray]]]]
"""Fits communities alone, then one, to some answers: memberships, P(winner preferred) of votes."""


def fit_personal(
    data: Comparisons,
    membership: FloatArray,
    members: Callable[[Answers], FloatArray],
    items: Inputs,
    start: gp.UserHyper,
    *,
    learn: Callable[[gp.UserProblem, gp.UserHyper], gp.UserSolution] = gp.solve,
    unites: bool = False,
    rival: Rival | None = None,
) -> tuple[gp.FitState[gp.UserProblem] | None, float, FloatArray]:
    """Personal taste inside communities, f_u = mean + f_community + r_u.

    This is the multi-user model with memberships M for features and the prior over users
    K_u = ρ₀ 11ᵀ + (1 − ρ₀) [s M Mᵀ + (1 − s) I]; with s = 0, or one community, it is MultiUserGP,
    exactly. ρ₀ and the item covariance are learned by evidence at s = 0. Held-out answers choose
    the communal share s: memberships were learned from the same answers, which evidence would
    count twice.

    membership: (U, K); members: memberships given other answers. learn: how hyperparameters are
    learned from the start, by default not at all. unites: communities that explain nothing of the
    held-out answers become one. rival: communities alone, where held-out answers decide.
    Returns all users' utilities, the communal share and (U, K) memberships, the users' features;
    None and 1 where communities alone predict better, or one taste for all.
    """
    problem = user_problem(items, membership, gp.Rows.by_user(data))
    population = learn(problem, start)
    if membership.shape[1] == 1 and rival is None:
        return gp.FitState.of(data, problem, population), 0.0, membership
    # a user with one ranking could not be placed if that whole ranking were held out
    pairs = separate_pairs(data)
    drawn = drawn_counts(pairs, HELD_OUT)
    kept, held_out = pairs._with_count(pairs.count - drawn), pairs._with_count(drawn)
    alone = () if rival is None else rival(kept)
    known = alone[0][0] if alone else members(Answers.of(kept))
    partial = user_problem(items, known, gp.Rows.by_user(kept))
    votes = gp.Rows.by_user(held_out, partial.edges.shown)
    if votes.outcomes.tie is not None:
        votes = votes.part(np.flatnonzero(~votes.outcomes.tie))
    shares = COMMUNAL_SHARES if known.shape[1] > 1 else COMMUNAL_SHARES[:1]
    hypers = (with_communal_share(population.hyper, s) for s in shares)
    losses = np.stack([_losses(_own_chances(partial, hyper, votes), votes) for hyper in hypers])
    best = shares[_first_as_good_as_the_best(losses)]
    if alone:  # communities that did not see the held-out answers are not flattered
        rivals = np.stack([_losses(chances(votes), votes) for _, chances in alone])
        own, other = (int(each.sum(axis=1).argmin()) for each in (losses, rivals))
        gain = rivals[other] - losses[own]  # the covariance was learned with these in sight
        if gain.sum() <= np.linalg.norm(gain):  # a standard error
            return None, 1.0, np.ones((data.n_users, 1)) if other else membership
        best = shares[own]
    if best > 0.0:
        population = gp.solve(problem, with_communal_share(population.hyper, best))
    elif unites:
        membership = np.ones((data.n_users, 1))
        problem = user_problem(items, membership, gp.Rows.by_user(data))
    return gp.FitState.of(data, problem, population), best, membership


def with_communal_share(population: gp.UserHyper, s: float) -> gp.UserHyper:
    """The prior at communal share s, written as sharing · user_kernel + (1 − sharing) · I."""
    rho = population.sharing
    sharing = rho + (1.0 - rho) * s
    kernel: Kernel = Constant(rho / sharing)
    if s > 0.0:
        kernel = kernel + Linear((1.0 - rho) * s / sharing)
    return population._replace(user_kernel=kernel, sharing=sharing)


def _own_chances(problem: gp.UserProblem, hyper: gp.UserHyper, votes: gp.Rows) -> FloatArray:
    """P(winner preferred) of each vote, by personal taste."""
    posterior = problem.posterior(gp.solve(problem, hyper))
    z = None if votes.shown is None else votes.shown.z
    differences = posterior.differences(votes.user, votes.winner, votes.loser, z)
    return hyper.likelihood.prob(*differences)


def _losses(prob: FloatArray, votes: gp.Rows) -> FloatArray:
    """(h,) log losses of held-out answers; those that count less are weighted."""
    losses, copies = -np.log(np.maximum(prob, np.finfo(float).tiny)), np.ceil(votes.count)
    return np.repeat(losses * votes.count / copies, copies.astype(np.intp))


def _first_as_good_as_the_best(losses: FloatArray) -> int:
    """The first row whose mean is within one standard error of the best row's, pairwise; the
    first of all where nothing was held out but ties.

    Communities were found with the held-out answers in sight, which flatters large shares.
    """
    if not losses.shape[1]:
        return 0
    excess = losses - losses[int(np.argmin(losses.mean(axis=1)))]
    error = excess.std(axis=1) / np.sqrt(excess.shape[1])
    return int(np.flatnonzero(excess.mean(axis=1) <= error)[0])
