"""Personal taste: users with utilities of their own around those of their community.

A plain mixture has no room for personal taste and spends communities on it. Here everybody has
utilities of their own around those of their community, f_u = f_0 + Ψ ε_u with

    ε_u | c ~ N(μ_c, S),   μ_c ~ N(0, M),   one S for all,

along q directions Ψ. Every vote has a site, by expectation propagation about its user's own
utilities, so that a user's likelihood is c + ηᵀε − ½ εᵀΛε. All else is Gaussian: with
T = (Λ + S⁻¹)⁻¹, R = Λ − ΛTΛ = (S + Λ⁻¹)⁻¹ and t = (I − ΛT) η a user's evidence is

    log Z_u(μ) = a + tᵀμ − ½ μᵀRμ,   a = c − ½ log |I + SΛ| + ½ ηᵀTη.

`single_population` is the case of one community, the multi-user model: what communities must beat.
More communities are modes of taste if the evidence rises (`variation_of`). What is reported is then
fitted by the multi-user model itself (`fit_personal`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import entr, gammaln, psi

from penchant.communities.component import (
    SMALLEST,
    VariationalState,
    allocate,
    everybody_together,
    learn,
    membership_value,
)
from penchant.communities.data import (
    Answers,
    drawn_counts,
    responsibilities,
    separate_pairs,
    some_of,
)
from penchant.communities.search import SearchResult
from penchant.communities.split_merge import MEMBER, disagreement
from penchant.data import Comparisons
from penchant.gp import (
    RULES,
    FitState,
    ItemHyper,
    Normal,
    Posterior,
    Rows,
    Settings,
    Sites,
    UserHyper,
    UserPosteriors,
    UserProblem,
    UserSolution,
    solve,
)
from penchant.kernels import Constant, Inputs, Kernel, Linear
from penchant.likelihoods import Gaussian, Likelihood, Outcomes, Probit
from penchant.numerics.linalg import gram
from penchant.numerics.types import FloatArray, IntArray

ROUNDS = 150
"""Most rounds of a fit."""
TOLERANCE = 0.05
"""Nats that a round must gain for another one."""
FORESIGHT = 20
"""Rounds like the last one that a fit is trusted to make: gains fall off geometrically."""
PRIOR_USERS = 2.0
"""The spread's prior weighs as much as so many users beyond its dimension."""
WIDE = 20.0
"""Spread that learning starts from, relative to the prior's."""
WITHIN = 0.1
"""Spread within communities that their fit starts from, as a share of everybody's."""
PLACING_ROUNDS = 8
"""Of expectation propagation, for people who are placed among known modes."""
HASTE = 1.25
LONGEST_STEP = 8.0
"""By how much steps of the spread grow while they succeed, and the longest, in steps of EM."""
MAX_DIRECTIONS = 8
"""Of disagreement: a fit costs their cube for every user."""
NOTABLE = 0.9
"""Share of the noise edge from which on a direction of disagreement is taken along."""
FIRST_SPREAD = 0.1
"""Variance of personal deviations of a difference, a priori."""
HARDLY_GIVEN = 1e-3
"""Votes that an answer counts for which nobody gave: directions are of all answers."""
CLEAR_EVIDENCE = 10.0
"""Nats by which communities must beat one taste with personal deviations, and those one taste."""
MOST_ITEM_SHARE = 0.45
"""Share of an answer's noise that may be one item's: both items' together are less than all."""
COMMUNAL_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)
"""Shares of taste that communities may explain, of which held-out answers choose one."""
HELD_OUT = 0.2
"""Share of the answers by which the communal share is chosen."""
AFFORDABLE = 1e7
"""Answers times items up to which personal taste is considered without being asked for."""
CHOICE_ANSWERS = 8_000
"""Of some users, by which is chosen whether people vary, where there are more."""


class Population(NamedTuple):
    """The mean utility over people at large, Σ s_c f_c, of communities with shares s_c.

    Both are uncertain, the shares because the people who answered are a sample of U: with m_c the
    means and m = Σ s_c m_c, Cov = Σ s_c² Cov(f_c) + Σ s_c (m_c − m)(m_c − m)ᵀ / (U + 1).
    With personal taste what people share has one posterior, which knows how many they are.

    parts, weights: posteriors whose weighted sum it is, (k,). apart: (C, n) √s_c (m_c − m), of
    which the squares add up to the variance between communities. n_people: U.
    """

    parts: tuple[Posterior, ...]
    weights: FloatArray
    apart: FloatArray
    n_people: float

    @classmethod
    def of_communities(cls, posteriors: tuple[Posterior, ...], sizes: FloatArray) -> "Population":
        """Everybody has the taste of their community."""
        shares, tastes = sizes / sizes.sum(), np.stack([p.mean for p in posteriors])
        return cls(posteriors, shares, _apart(shares, tastes), float(sizes.sum()))

    @classmethod
    def of_users(cls, posterior: UserPosteriors, sizes: FloatArray) -> "Population":
        """Everybody deviates from the taste of their community; memberships are their features."""
        kernel, members = posterior.user_kernel, Inputs(np.eye(len(sizes)))
        phi = posterior.user_basis.features(kernel, posterior.users, members)
        apart = _apart(sizes / sizes.sum(), posterior.shared_utilities(phi))
        return cls((posterior.population(),), np.ones(1), apart, float(sizes.sum()))

    @property
    def mean(self) -> FloatArray:
        """(n,)."""
        return np.asarray(self.weights @ np.stack([part.mean for part in self.parts]))

    def relative_to(self, others: "Population") -> Normal:
        """Means and variances (n,), less the average of other items."""
        each = [
            part.relative_to(known) for part, known in zip(self.parts, others.parts, strict=True)
        ]
        mean, var = np.stack([part.mean for part in each]), np.stack([part.var for part in each])
        apart = self.apart - others.apart.mean(axis=1, keepdims=True)
        between = np.sum(apart**2, axis=0) / (self.n_people + 1.0)
        return Normal(self.weights @ mean, self.weights**2 @ var + between)

    @property
    def covariance(self) -> FloatArray:
        """(n, n)."""
        total = gram(self.apart) / (self.n_people + 1.0)
        for weight, part in zip(self.weights, self.parts, strict=True):
            total += weight**2 * part.covariance()
        return total

    @property
    def spread(self) -> FloatArray:
        """(n,) standard deviation between communities, relative to the average item."""
        spread: FloatArray = np.linalg.norm(
            self.apart - self.apart.mean(axis=1, keepdims=True), axis=0
        )
        return spread


def _apart(shares: FloatArray, tastes: FloatArray) -> FloatArray:
    return np.sqrt(shares)[:, None] * (tastes - shares @ tastes)


@dataclass(frozen=True, eq=False)
class PersonalVotes:
    """Votes as g = offset + loading · ε of their user; rows sorted by user, starts: (U + 1,).

    offset, count: (V,); loading: (V, q); outcomes: of the V votes.
    """

    starts: IntArray
    count: FloatArray
    offset: FloatArray
    loading: FloatArray
    outcomes: Outcomes
    likelihood: Likelihood

    @property
    def n_users(self) -> int:
        """U."""
        return len(self.starts) - 1

    @property
    def n_directions(self) -> int:
        """q."""
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
        total: FloatArray = picker @ rows
        return total

    def of_user(self, rows: FloatArray) -> FloatArray:
        """(V, …) rows of users (U, …), for each of their votes."""
        return np.repeat(rows, np.diff(self.starts), axis=0)

    def reduced(self, sites: Sites, spread: FloatArray) -> "Reduced":
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
        return Reduced(
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

    def marginals(
        self, effects: FloatArray, covariance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(V,) means and variances of g, given users' effects (U, q) and covariances (U, q, q)."""
        mean = self.differences(effects)
        flat = covariance.reshape(self.n_users, -1)
        var = np.einsum("vq,vq->v", self._products, self.of_user(flat))
        return mean, np.maximum(var, 1e-10)

    def refined(self, sites: Sites, mean: FloatArray, var: FloatArray) -> tuple[Sites, FloatArray]:
        """The sites that expectation propagation wants next, and the present ones' log scales."""
        wanted = RULES["ep"].propose(mean, var, sites, self.likelihood, self.outcomes)
        valid = wanted.tau >= 0.0 if wanted.valid is None else wanted.valid & (wanted.tau >= 0.0)
        tau, nu = np.where(valid, wanted.tau, sites.tau), np.where(valid, wanted.nu, sites.nu)
        return Sites(tau, nu), wanted.log_scale


class Reduced(NamedTuple):
    """Users with their own taste integrated out: T (U, q, q), Tη, R, t and a."""

    covariance: FloatArray
    pull: FloatArray
    precision: FloatArray
    shift: FloatArray
    value: FloatArray


def _root(S: FloatArray) -> FloatArray:
    """L with L Lᵀ = S, however small its eigenvalues."""
    values, vectors = np.linalg.eigh(S)
    root: FloatArray = vectors * np.sqrt(np.maximum(values, 1e-12 * max(values[-1], 1e-12)))
    return root


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
    sites: Sites
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

    def members(self, users: Reduced, sizes: FloatArray) -> FloatArray:
        """(U, K) memberships: r ∝ exp(ψ(N_c) + tᵀμ − ½ tr R E μμᵀ)."""
        log_weights = users.shift @ self.means.T
        log_weights -= 0.5 * _flat(users.precision) @ _flat(self.second).T
        return responsibilities(log_weights + psi(np.maximum(sizes, SMALLEST)))

    def place(self, ballots: PersonalVotes) -> FloatArray:
        """(U, K) memberships of other people by their votes, the modes staying what they are."""
        sizes = self.membership.sum(axis=0)
        shared = np.tile(sizes / sizes.sum(), (ballots.n_users, 1))
        placed = replace(self, membership=shared, sites=Sites.zeros(len(ballots.count)))
        for _ in range(PLACING_ROUNDS):
            users = ballots.reduced(placed.sites, self.spread)
            sites, _ = ballots.refined(placed.sites, *ballots.marginals(*_own(users, placed)))
            placed = replace(placed, membership=self.members(users, sizes), sites=sites)
        return placed.membership


@dataclass(frozen=True, eq=False)
class UserEffectMixture:
    """The users' votes, the priors and λ: what modes are fitted to.

    scale: (q, q) of the inverse Wishart prior of the spread S, whose weight is `PRIOR_USERS`;
    mean_covariance: (q, q) M of the modes' means.
    """

    ballots: PersonalVotes
    scale: FloatArray
    mean_covariance: FloatArray
    concentration: float = 1.0
    learn_spread: bool = True

    def start(self, membership: FloatArray, spread: FloatArray) -> Modes:
        """Communities whose means are not known yet."""
        K, q = membership.shape[1], self.ballots.n_directions
        nothing = Sites.zeros(len(self.ballots.count))
        return Modes(membership, np.zeros((K, q)), np.zeros((K, q, q)), spread, nothing)

    def fit(self, modes: Modes, threshold: float = -np.inf) -> Modes:
        """Climb: sites, means, memberships and spread in turn; steps of the spread lengthen.

        threshold: an objective that makes it worth while; the climb ends where it is out of reach.
        That takes 27 ms instead of 63 to refuse personal taste where three communities of 240
        users explain all, after a search of 28 ms.
        """
        length, before = 1.0, -np.inf
        for rounds_left in reversed(range(ROUNDS)):
            here, modes = self._round(modes, length)
            gain, before = here.objective - before, here.objective
            if abs(gain) < TOLERANCE:
                break
            if gain > 0.0 and here.objective + min(rounds_left, FORESIGHT) * gain < threshold:
                break
            length = min(HASTE * length, LONGEST_STEP) if gain > 0.0 else 1.0
        return here

    def _round(self, modes: Modes, length: float) -> tuple[Modes, Modes]:
        """The modes with their objective, and where to go next."""
        ballots, r = self.ballots, modes.membership
        users = ballots.reduced(modes.sites, modes.spread)
        sites, log_scale = ballots.refined(modes.sites, *ballots.marginals(*_own(users, modes)))
        M, R, t = self.mean_covariance, _weighted(r, users.precision), r.T @ users.shift
        inner = np.eye(len(M)) + M @ R
        covariance = np.asarray(
            np.linalg.solve(inner, np.broadcast_to(M, R.shape)), dtype=np.float64
        )
        means = np.einsum("cij,cj->ci", covariance, t)
        value = float(users.value.sum() + ballots.count @ log_scale)
        value += 0.5 * float(np.sum(means * t) - np.linalg.slogdet(inner)[1].sum())
        value += self._value_of_memberships(r) + self.log_prior(modes.spread)
        here = replace(modes, means=means, covariance=covariance, objective=value)
        spread = modes.spread
        if self.learn_spread:
            spread = stretched(spread, self._wanted_spread(users, here), length)
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

    def _value_of_memberships(self, membership: FloatArray) -> float:
        """As of the plain mixture."""
        n_users, K = membership.shape
        value = membership_value(membership.sum(axis=0), float(entr(membership).sum()))
        everybody = gammaln(self.concentration) - gammaln(self.concentration + n_users)
        return float(value + K * np.log(self.concentration) + everybody)

    def _wanted_spread(self, users: Reduced, modes: Modes) -> FloatArray:
        """EM: (prior + Σ r E (ε − μ)(ε − μ)ᵀ) / (degrees + U); ε − μ = Tη − TΛ μ + N(0, T)."""
        q, r = len(modes.spread), modes.membership
        toward = modes.spread @ users.precision  # S R = T Λ
        expected = (r @ _flat(modes.second)).reshape(-1, q, q)
        crossed = users.pull.T @ np.einsum("uij,uj->ui", toward, r @ modes.means)
        total = users.covariance.sum(axis=0) + users.pull.T @ users.pull - crossed - crossed.T
        total += (toward @ expected @ np.swapaxes(toward, 1, 2)).sum(axis=0)
        degrees = q + PRIOR_USERS
        wanted: FloatArray = total + degrees * self.scale
        return wanted / (len(r) + degrees + q + 1)


def _own(users: Reduced, modes: Modes) -> tuple[FloatArray, FloatArray]:
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


def stretched(S: FloatArray, wanted: FloatArray, length: float) -> FloatArray:
    """S moved towards what EM wants, `length` times as far on the logarithmic scale."""
    root = _root(S)
    inverse = np.linalg.inv(root)
    ratio = inverse @ wanted @ inverse.T
    values, vectors = np.linalg.eigh(0.5 * (ratio + ratio.T))
    stretched = (vectors * np.maximum(values, 1e-6) ** length) @ vectors.T
    moved: FloatArray = root @ stretched @ root.T
    return 0.5 * (moved + moved.T)


def fit_one(
    ballots: PersonalVotes, scale: float, concentration: float, threshold: float = -np.inf
) -> tuple[UserEffectMixture, Modes]:
    """Everybody around one taste; what is learned of the spread is the prior of all others.

    scale: variance of personal deviations a priori, along each direction; threshold: see `fit`.
    """
    q = ballots.n_directions
    weak = scale * np.eye(q)
    cloud = UserEffectMixture(ballots, weak, weak, concentration)
    # EM widens a spread that is too small far more slowly than it narrows one that is too large
    start = cloud.start(np.ones((ballots.n_users, 1)), WIDE * weak)
    first = cloud.fit(start, threshold - q * q)  # a prior that fits gains about a nat an entry more
    fixed = replace(cloud, scale=first.spread, mean_covariance=first.spread)
    return fixed, fixed.fit(first, threshold)


def fit_modes(cloud: UserEffectMixture, one: Modes, membership: FloatArray) -> Modes:
    """Modes from the given communities, or from half as many, … where that is better."""
    start = replace(cloud.start(membership, WITHIN * one.spread), sites=one.sites)
    best = current = cloud.fit(start)
    while best.objective < one.objective and current.n_communities > 2:
        target = max(2, current.n_communities // 2)
        while current.n_communities > target:
            current = join_nearest(current)
        current = cloud.fit(current)
        best = max(best, current, key=lambda modes: modes.objective)
    return best


def prune(cloud: UserEffectMixture, modes: Modes) -> Modes:
    """Nearest modes joined, as long as the evidence does not fall."""
    while modes.n_communities > 1:
        fewer = cloud.fit(join_nearest(modes))
        if fewer.objective < modes.objective:
            break
        modes = fewer
    return modes


def join_nearest(modes: Modes) -> Modes:
    """The two communities whose means are nearest, in units of the spread, as one."""
    white = np.linalg.solve(_root(modes.spread), modes.means.T).T
    distance = np.linalg.norm(white[:, None] - white, axis=2)
    distance[np.tril_indices(len(distance))] = np.inf
    a, b = map(int, np.unravel_index(int(distance.argmin()), distance.shape))
    sizes = modes.membership.sum(axis=0)
    means, membership = modes.means.copy(), modes.membership.copy()
    others = [c for c in range(modes.n_communities) if c != b]
    means[a] = (sizes[a] * means[a] + sizes[b] * means[b]) / (sizes[a] + sizes[b])
    membership[:, a] += membership[:, b]
    return replace(
        modes,
        membership=membership[:, others],
        means=means[others],
        covariance=modes.covariance[others],
    )


class SinglePopulation(NamedTuple):
    """One taste from which people deviate personally: what communities must beat.

    The covariance of deviations is free along the main directions of disagreement, so this is the
    multi-user model where it matters, at the price of a search.

    one: everybody in one community; loading: (m, q) how the distinct answers depend on the
    directions; ballots: the votes along them; cloud, modes: the model of these and its fit;
    evidence: of all together.
    """

    one: VariationalState
    loading: FloatArray
    ballots: PersonalVotes
    cloud: UserEffectMixture
    modes: Modes
    evidence: float

    @property
    def personal(self) -> float:
        """Nats for personal deviations, against one taste for all."""
        return self.evidence - self.one.objective

    @property
    def price(self) -> float:
        """Nats that the directions cost, which were learned from the same votes.

        q directions among d that the votes settle have q (d − q) degrees of freedom. Direction k
        is a taste g ~ N(0, c K) that people have more or less of; s is what a person's votes tell
        of how much, as signal to noise, and s / (1 + s) the share of everybody's votes that tells
        of g. With the best c its price is ½ (d + log |I + c s / (1 + s) K A|); a direction that
        brings less than it costs, U/2 (s − log(1 + s)), might have been left out.
        """
        component, n_users = self.one.components[0], self.ballots.n_users
        state, design = component.state, self.one.model.prior.design
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
        """Communities with personal deviations of their members, and nats for them."""
        best = fit_modes(self.cloud, self.modes, result.allocation.responsibilities)
        # one community may have stopped short of its best spread: all of theirs is another start
        total = best.spread + np.cov(best.means.T, aweights=best.membership.sum(axis=0), bias=True)
        start = replace(self.modes, spread=total)
        single = max(self.modes.objective, self.cloud.fit(start).objective)
        return best, best.objective - single


def single_population(result: SearchResult, threshold: float = -np.inf) -> SinglePopulation:
    """ComponentFit one taste with personal deviations along the main directions of disagreement.

    threshold: an evidence that makes it worth while; the fit stays coarse where it is out of reach.
    """
    mixture = result.allocation.mixture
    one, _ = learn(everybody_together(mixture, mixture.hyper.theta))
    component, loading = one.components[0], _directions(one, result)
    ballots = ballots_of(one, loading, mixture.answers)
    # the votes are in both; what the common taste itself costs is not in the cloud
    beside = one.objective - component.log_z - component.price
    cloud, modes = fit_one(ballots, FIRST_SPREAD, mixture.concentration, threshold - beside)
    evidence = modes.objective + beside
    return SinglePopulation(one, loading, ballots, cloud, modes, evidence)


def ballots_of(one: VariationalState, loading: FloatArray, answers: Answers) -> PersonalVotes:
    """Answers as votes along the directions, about the common taste."""
    counts = answers.counts
    return PersonalVotes(
        counts.indptr.astype(np.intp),
        counts.data.astype(np.float64),
        one.components[0].state.mean[counts.indices],
        loading[counts.indices],
        answers.outcomes.part(counts.indices),
        one.model.hyper.likelihood,
    )


def _directions(one: VariationalState, result: SearchResult) -> FloatArray:
    """(m, q) loadings of the answers: main disagreements, and the communities' differences.

    They are orthogonal and of unit size over the votes.
    """
    prior = one.model.prior
    weight = np.sqrt(np.maximum(one.components[0].weights, HARDLY_GIVEN))
    everybody = np.arange(one.mixture.answers.n_users)
    spectrum = disagreement(one, 0, everybody, MAX_DIRECTIONS)
    n_notable = max(1, int(np.count_nonzero(spectrum.strength > NOTABLE)))
    main = prior.design.forward(prior.points(spectrum.weights[:, :n_notable]))
    means = np.column_stack([each.state.mean for each in result.allocation.components])
    contrasts = (means - one.components[0].state.mean[:, None]) * np.sqrt(result.allocation.sizes)
    if result.n_communities == 1:
        contrasts = contrasts[:, :0]
    basis = np.zeros((len(weight), 0))
    for part in (main, contrasts):
        whole = weight[:, None] * part
        left, size, _ = np.linalg.svd(whole - basis @ (basis.T @ whole), full_matrices=False)
        rounding = 1e-6 * np.linalg.norm(whole)
        kept = np.flatnonzero(size > max(0.1 * size.max(initial=0.0), rounding))[:MAX_DIRECTIONS]
        if not len(kept) and not basis.size:  # nobody disagrees: any direction says so
            kept = np.arange(1)
        basis = np.column_stack([basis, left[:, kept]])
    loading: FloatArray = basis / weight[:, None] * np.sqrt(np.sum(weight**2))
    return loading


def item_effect_share(around: SinglePopulation) -> float:
    """Item random effects: s², the share of an answer's noise that returns with an item.

    Ratings turned into pairs are the plain case: whatever moved somebody to rate a film low moves
    all pairs with it, in either half of the votes. Such an effect e_ui ~ N(0, s²) falls into no
    groups, yet it is there again in both halves. Two votes v, w of a person that share an item
    pull, at the common utilities, with

        E ±h_v h_w = k_v k_w (s² ± ℓ_vᵀ S ℓ_w),

    S the spread along the common directions and the sign minus where the item won one of them
    alone: summed over all that share, that gives s².
    """
    answers, ballots, terms = (
        around.one.mixture.answers,
        around.ballots,
        around.one.components[0].terms,
    )
    counts, n_items = answers.counts, len(around.one.mixture.items)
    at, times = counts.indices, ballots.count
    h, k = times * terms.pairs.d1[at], times * terms.precision[at]
    user = np.repeat(np.arange(answers.n_users) * n_items, np.diff(counts.indptr))
    cells, place = np.unique(
        np.concatenate([user + answers.winner[at], user + answers.loser[at]]), return_inverse=True
    )

    def of_others(pulls: FloatArray, single: FloatArray, sign: float) -> float:
        """Σ over cells of products of different votes, from sums over all."""
        total = np.bincount(place.ravel(), np.concatenate([pulls, sign * pulls]), len(cells))
        return float(total @ total) - 2.0 * float(single @ single)

    root = np.sqrt(times)
    smooth = (ballots.loading * k[:, None]) @ _root(around.modes.spread)
    common = sum(of_others(column, column / root, -1.0) for column in smooth.T)
    shared = of_others(h, h / root, -1.0) - common
    most = of_others(k, k / root, 1.0)
    noise = noise_of(around.one.model.hyper.likelihood)
    return float(np.clip(shared / (most * noise), 0.0, MOST_ITEM_SHARE)) if most > 0.0 else 0.0


def noise_of(likelihood: Likelihood) -> float:
    """Variance of the noise in an answer, that of the probit being one."""
    if isinstance(likelihood, Gaussian):
        return likelihood.noise
    scale = likelihood.choice_scale
    return 1.0 if scale is None else (Probit().choice_scale / scale) ** 2


def with_item_effects(
    around: SinglePopulation, g: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Differences (V,) that everybody's own view of items moves, the noise in all being as before.

    With a share ρ of items, e has the variance ρ / (1 − 2ρ) of the noise, and g is as much wider.
    """
    share = item_effect_share(around)
    answers = around.one.mixture.answers
    at = answers.counts.indices
    own = rng.standard_normal((answers.n_users, len(around.one.mixture.items)))
    user = np.repeat(np.arange(answers.n_users), np.diff(answers.counts.indptr))
    apart = own[user, answers.winner[at]] - own[user, answers.loser[at]]
    noise = noise_of(around.one.model.hyper.likelihood)
    moved: FloatArray = (g + np.sqrt(share * noise) * apart) / np.sqrt(1.0 - 2.0 * share)
    return moved


class Varied(NamedTuple):
    """Communities whose members vary: (U, K) memberships of those who voted, largest first.

    hyper: of the communities' utilities; evidence: log evidence, with what is gained by the users
    that were looked at.
    """

    membership: FloatArray
    hyper: ItemHyper
    evidence: float


def variation_of(result: SearchResult, *, required: bool, fixed: bool) -> Varied | None:
    """Communities with personal variation, their number chosen again by evidence.

    required: personal variation is wanted; else None where the evidence does not clearly speak
    for it, or where it would cost too much. fixed: the number of communities is given.
    """
    mixture, plain = result.allocation.mixture, result.allocation.responsibilities
    answers, K = mixture.answers, result.n_communities
    if not required and answers.counts.nnz * len(mixture.items) > AFFORDABLE:
        return None
    if K == 1 and required:
        return Varied(plain, result.hyper, result.objective)
    seen = required or _sticks_out(result)
    if K == 1 and not seen:
        return None
    some = _sample(result)
    # where nobody sticks out, only an evidence above that of the communities would matter
    around = single_population(some, -np.inf if seen else some.objective)
    evidence, modes = around.evidence - around.price, None
    # communities inside which nobody sticks out, and which beat one taste, leave nothing to explain
    if K > 1 and (seen or evidence > some.objective):
        modes, gain = around.modes_of(some)
        if fixed:
            gain = max(gain, 0.0)
        elif gain > CLEAR_EVIDENCE:
            fewer = prune(around.cloud, modes)
            gain, modes = gain + fewer.objective - modes.objective, fewer
        else:
            gain, modes = 0.0, None
        evidence += gain
    if not required and evidence <= some.objective + CLEAR_EVIDENCE:
        return None
    evidence += result.objective - some.objective
    if modes is None:
        return Varied(np.ones((answers.n_users, 1)), around.one.model.hyper, evidence)
    members = plain if fixed else _members(around, modes, answers)
    return Varied(members, result.hyper, evidence)


def _sticks_out(result: SearchResult) -> bool:
    """Whether members of any community differ along some direction by more than noise."""
    allocation = result.allocation
    for c in range(allocation.n_communities):
        members = np.flatnonzero(allocation.responsibilities[:, c] > MEMBER)
        if len(members) > 1 and disagreement(allocation, c, members, 1).strength[0] > 1.0:
            return True
    return False


def _sample(result: SearchResult) -> SearchResult:
    """The same communities, by some of the users where there are very many answers."""
    allocation = result.allocation
    mixture, n_answers = allocation.mixture, allocation.mixture.answers.counts.nnz
    if n_answers <= CHOICE_ANSWERS:
        return result
    chosen = some_of(mixture.answers, max(1, mixture.answers.n_users * CHOICE_ANSWERS // n_answers))
    few = replace(allocation.model, mixture=replace(mixture, answers=mixture.answers.take(chosen)))
    members = allocation.responsibilities[chosen]
    return SearchResult(allocate(few, members, allocation.components), members, result.trace)


def _members(around: SinglePopulation, modes: Modes, answers: Answers) -> FloatArray:
    """(U, K) of all who voted, the largest mode first."""
    if len(modes.membership) == answers.n_users:
        membership = modes.membership
    else:
        size = max(1, CHOICE_ANSWERS * answers.n_users // answers.counts.nnz)
        membership = np.concatenate(
            [
                modes.place(ballots_of(around.one, around.loading, replace(answers, counts=rows)))
                for _, rows in answers.shards(size)
            ]
        )
    order = np.argsort(-membership.sum(axis=0), kind="stable")
    return np.ascontiguousarray(membership[:, order])


def as_features(membership: FloatArray) -> Inputs:
    """Users whose features are their memberships; a plain dict of relations can be copied."""
    return Inputs(membership, {}, np.arange(len(membership)))


def user_problem(
    items: Inputs, membership: FloatArray, votes: Rows, settings: Settings | None = None
) -> UserProblem:
    """Users with their memberships for features."""
    return UserProblem.of(items, as_features(membership), votes, settings or Settings())


def fit_personal(
    data: Comparisons,
    membership: FloatArray,
    members: Callable[[Answers], FloatArray],
    items: Inputs,
    start: UserHyper,
    *,
    learn: Callable[[UserProblem, UserHyper], UserSolution] = solve,
    unites: bool = False,
) -> tuple[FitState[UserProblem], float, FloatArray]:
    """Personal taste inside communities, f_u = mean + f_community + r_u.

    The multi-user model with memberships M for features is this: its prior over users is
    K_u = ρ₀ 11ᵀ + (1 − ρ₀) [s M Mᵀ + (1 − s) I], so that S = (1 − ρ₀)(1 − s) K_x is the covariance
    of everybody's deviations. With s = 0, or one community, everybody deviates from one population:
    that is MultiUserGP, exactly. With s near 1 all taste is communal. ρ₀ and the item covariance
    are learned by evidence at s = 0. The communal share s cannot be: memberships were learned from
    the same answers, and evidence would count them twice. Held-out answers choose it.

    membership: (U, K); members: memberships given other answers. learn: how hyperparameters are
    learned from the start, by default not at all. unites: communities that explain nothing of the
    held-out answers become one.

    Returns all users' utilities, the communal share and (U, K) memberships, the users' features.
    """
    problem = user_problem(items, membership, Rows.by_user(data))
    population = learn(problem, start)
    if membership.shape[1] == 1:
        return FitState.of(data, problem, population), 0.0, membership
    # a user with one ranking could not be placed if that whole ranking were held out
    pairs = separate_pairs(data)
    drawn = drawn_counts(pairs, HELD_OUT)
    kept, held_out = pairs._with_count(pairs.count - drawn), pairs._with_count(drawn)
    partial = user_problem(items, members(Answers.of(kept)), Rows.by_user(kept))
    losses = [
        _losses(partial, with_communal_share(population.hyper, s), held_out)
        for s in COMMUNAL_SHARES
    ]
    best = COMMUNAL_SHARES[_first_as_good_as_the_best(np.stack(losses))]
    if best > 0.0:
        population = solve(problem, with_communal_share(population.hyper, best))
    elif unites:
        membership = np.ones((data.n_users, 1))
        problem = user_problem(items, membership, Rows.by_user(data))
    return FitState.of(data, problem, population), best, membership


def with_communal_share(population: UserHyper, s: float) -> UserHyper:
    """The prior at communal share s, written as sharing · user_kernel + (1 − sharing) · I."""
    rho = population.sharing
    sharing = rho + (1.0 - rho) * s
    kernel: Kernel = Constant(rho / sharing)
    if s > 0.0:
        kernel = kernel + Linear((1.0 - rho) * s / sharing)
    return population._replace(user_kernel=kernel, sharing=sharing)


def _losses(problem: UserProblem, hyper: UserHyper, held_out: Comparisons) -> FloatArray:
    """(h,) log losses of the held-out answers, ties left out."""
    votes = Rows.by_user(held_out, problem.edges.shown)
    if votes.outcomes.tie is not None:
        votes = votes.part(np.flatnonzero(~votes.outcomes.tie))
    posterior = problem.posterior(solve(problem, hyper))
    difference = posterior.differences(votes.user, votes.winner, votes.loser)
    if votes.shown is not None:
        difference = beside_effects(posterior, difference, votes.shown.z)
    prob = hyper.likelihood.prob(*difference)
    losses = -np.log(np.maximum(prob, np.finfo(float).tiny))
    return np.repeat(losses, votes.count.astype(np.intp))


def beside_effects(posterior: UserPosteriors, difference: Normal, z: FloatArray | None) -> Normal:
    """Differences (k,) of users' own utilities, and zᵀβ of z (q, k) more."""
    if z is None or posterior.effects is None:
        return difference
    shift = posterior.effects.shift(z, posterior.shared_lower)
    return Normal(difference.mean + shift.mean, difference.var + shift.var)


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
