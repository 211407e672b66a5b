"""Personal variation within communities: tastes as modes of a cloud, not as its only points.

A plain mixture has no room for personal taste and spends communities on it. Here everybody has a
taste of their own around that of their community, f_u = f_0 + Ψ ε_u with

    ε_u | c ~ N(μ_c, S),   μ_c ~ N(0, M),   one S for all,

along q directions Ψ. Every vote has a site, by expectation propagation about its user's own
taste, so that a user's likelihood is c + ηᵀε − ½ εᵀΛε. All else is Gaussian: with
T = (Λ + S⁻¹)⁻¹, R = Λ − ΛTΛ = (S + Λ⁻¹)⁻¹ and t = (I − ΛT) η a user's evidence is

    log Z_u(μ) = a + tᵀμ − ½ μᵀRμ,   a = c − ½ log |I + SΛ| + ½ ηᵀTη.

One community is the multi-user model; more of them are modes of taste if the evidence rises.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import gammaln, psi

from penchant.communities.division import SMALLEST, memberships_value, shares
from penchant.gp import RULES, Sites
from penchant.likelihoods import Likelihood, Outcomes
from penchant.numerics.types import FloatArray, IntArray

ROUNDS = 150
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

    def differences(self, tastes: FloatArray) -> FloatArray:
        """(V,) g, given users' tastes (U, q)."""
        own: FloatArray = np.einsum("vq,vq->v", self.loading, self.of_user(tastes))
        return self.offset + own

    def marginals(
        self, tastes: FloatArray, covariance: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(V,) means and variances of g, given users' tastes (U, q) and covariances (U, q, q)."""
        mean = self.differences(tastes)
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


class SpreadPrior(NamedTuple):
    """Of S: inverse Wishart with that many degrees of freedom and mean scale; of the μ_c: M."""

    scale: FloatArray
    means: FloatArray

    def log_density(self, S: FloatArray) -> float:
        """Relative to the mode, where S is the scale times degrees / (degrees + q + 1)."""
        q = len(S)
        degrees = q + PRIOR_USERS
        ratio = np.linalg.solve(S, degrees * self.scale) / (degrees + q + 1)
        _, log_det = np.linalg.slogdet(ratio)
        return 0.5 * (degrees + q + 1) * float(log_det - np.trace(ratio) + q)


@dataclass(frozen=True, eq=False)
class Modes:
    """Communities with personal variation.

    membership: (U, K); means, doubt: (K, q) and (K, q, q), posterior of the communities' tastes;
    spread: (q, q); sites: of the votes.
    """

    membership: FloatArray
    means: FloatArray
    doubt: FloatArray
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
        return outer + self.doubt

    def members(self, users: Reduced, sizes: FloatArray) -> FloatArray:
        """(U, K) memberships: r ∝ exp(ψ(N_c) + tᵀμ − ½ tr R E μμᵀ)."""
        log_weights = users.shift @ self.means.T
        log_weights -= 0.5 * _flat(users.precision) @ _flat(self.second).T
        return shares(log_weights + psi(np.maximum(sizes, SMALLEST)))

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
class Cloud:
    """The users' votes, the prior of the spread and λ: what modes are fitted to."""

    ballots: PersonalVotes
    prior: SpreadPrior
    concentration: float = 1.0
    learn_spread: bool = True

    def start(self, membership: FloatArray, spread: FloatArray) -> Modes:
        """Communities whose means are not known yet."""
        K, q = membership.shape[1], self.ballots.n_directions
        nothing = Sites.zeros(len(self.ballots.count))
        return Modes(membership, np.zeros((K, q)), np.zeros((K, q, q)), spread, nothing)

    def fit(self, modes: Modes, hope: float = -np.inf) -> Modes:
        """Climb: sites, means, memberships and spread in turn; steps of the spread lengthen.

        hope: an objective that makes it worth while; the climb ends where it is out of reach.
        """
        length, before = 1.0, -np.inf
        for rounds_left in reversed(range(ROUNDS)):
            here, modes = self._round(modes, length)
            gain, before = here.objective - before, here.objective
            if abs(gain) < TOLERANCE:
                break
            if gain > 0.0 and here.objective + min(rounds_left, FORESIGHT) * gain < hope:
                break
            length = min(HASTE * length, LONGEST_STEP) if gain > 0.0 else 1.0
        return here

    def _round(self, modes: Modes, length: float) -> tuple[Modes, Modes]:
        """The modes with their objective, and where to go next."""
        ballots, r = self.ballots, modes.membership
        users = ballots.reduced(modes.sites, modes.spread)
        sites, log_scale = ballots.refined(modes.sites, *ballots.marginals(*_own(users, modes)))
        M, R, t = self.prior.means, _weighted(r, users.precision), r.T @ users.shift
        inner = np.eye(len(M)) + M @ R
        doubt = np.asarray(np.linalg.solve(inner, np.broadcast_to(M, R.shape)), dtype=np.float64)
        means = np.einsum("cij,cj->ci", doubt, t)
        value = float(users.value.sum() + ballots.count @ log_scale)
        value += 0.5 * float(np.sum(means * t) - np.linalg.slogdet(inner)[1].sum())
        value += self._value_of_memberships(r) + self.prior.log_density(modes.spread)
        here = replace(modes, means=means, doubt=doubt, objective=value)
        spread = modes.spread
        if self.learn_spread:
            spread = _stretched(spread, self._wanted_spread(users, here), length)
        membership = here.members(users, r.sum(axis=0))
        kept = np.flatnonzero(membership.sum(axis=0) >= SMALLEST)
        membership = membership[:, kept] / membership[:, kept].sum(axis=1, keepdims=True)
        return here, Modes(membership, means[kept], doubt[kept], spread, sites)

    def _value_of_memberships(self, membership: FloatArray) -> float:
        """As of the plain mixture."""
        n_users, K = membership.shape
        everybody = gammaln(self.concentration) - gammaln(self.concentration + n_users)
        return float(memberships_value(membership) + K * np.log(self.concentration) + everybody)

    def _wanted_spread(self, users: Reduced, modes: Modes) -> FloatArray:
        """EM: (prior + Σ r E (ε − μ)(ε − μ)ᵀ) / (degrees + U); ε − μ = Tη − TΛ μ + N(0, T)."""
        q, r = len(modes.spread), modes.membership
        toward = modes.spread @ users.precision  # S R = T Λ
        expected = (r @ _flat(modes.second)).reshape(-1, q, q)
        crossed = users.pull.T @ np.einsum("uij,uj->ui", toward, r @ modes.means)
        total = users.covariance.sum(axis=0) + users.pull.T @ users.pull - crossed - crossed.T
        total += (toward @ expected @ np.swapaxes(toward, 1, 2)).sum(axis=0)
        degrees = q + PRIOR_USERS
        wanted: FloatArray = total + degrees * self.prior.scale
        return wanted / (len(r) + degrees + q + 1)


def _own(users: Reduced, modes: Modes) -> tuple[FloatArray, FloatArray]:
    """Means and covariances of the users' ε: E ε = Tη + (I − TΛ) μ, where TΛ = S R."""
    mean = modes.membership @ modes.means
    shrink = np.eye(len(modes.spread)) - modes.spread @ users.precision
    second = (modes.membership @ _flat(modes.second)).reshape(shrink.shape)
    between = second - np.einsum("ui,uj->uij", mean, mean)
    tastes = users.pull + np.einsum("uij,uj->ui", shrink, mean)
    return tastes, users.covariance + shrink @ between @ np.swapaxes(shrink, 1, 2)


def _flat(matrices: FloatArray) -> FloatArray:
    return matrices.reshape(len(matrices), -1)


def _weighted(r: FloatArray, matrices: FloatArray) -> FloatArray:
    """(K, q, q) sums over users, weighted by membership (U, K)."""
    return (r.T @ _flat(matrices)).reshape(-1, *matrices.shape[1:])


def _stretched(S: FloatArray, wanted: FloatArray, length: float) -> FloatArray:
    """S moved towards what EM wants, `length` times as far on the logarithmic scale."""
    root = _root(S)
    inverse = np.linalg.inv(root)
    ratio = inverse @ wanted @ inverse.T
    values, vectors = np.linalg.eigh(0.5 * (ratio + ratio.T))
    stretched = (vectors * np.maximum(values, 1e-6) ** length) @ vectors.T
    moved: FloatArray = root @ stretched @ root.T
    return 0.5 * (moved + moved.T)


def fit_one(
    ballots: PersonalVotes, scale: float, concentration: float, hope: float = -np.inf
) -> tuple[Cloud, Modes]:
    """Everybody around one taste; what is learned of the spread is the prior of all others.

    scale: variance of personal deviations a priori, along each direction; hope: see `Cloud.fit`.
    """
    q = ballots.n_directions
    weak = scale * np.eye(q)
    cloud = Cloud(ballots, SpreadPrior(weak, weak), concentration)
    # EM widens a spread that is too small far more slowly than it narrows one that is too large
    start = cloud.start(np.ones((ballots.n_users, 1)), WIDE * weak)
    first = cloud.fit(start, hope - q * q)  # a prior that fits gains about a nat an entry more
    fixed = replace(cloud, prior=SpreadPrior(first.spread, first.spread))
    return fixed, fixed.fit(first, hope)


def fit_modes(cloud: Cloud, one: Modes, membership: FloatArray) -> Modes:
    """Modes from the given communities, or from half as many, … where that is better."""
    start = replace(cloud.start(membership, WITHIN * one.spread), sites=one.sites)
    best = current = cloud.fit(start)
    while best.objective < one.objective and current.n_communities > 2:
        target = max(2, current.n_communities // 2)
        while current.n_communities > target:
            current = _joined(current)
        current = cloud.fit(current)
        best = max(best, current, key=lambda modes: modes.objective)
    return best


def prune(cloud: Cloud, modes: Modes) -> Modes:
    """Nearest modes joined, as long as the evidence does not fall."""
    while modes.n_communities > 1:
        fewer = cloud.fit(_joined(modes))
        if fewer.objective < modes.objective:
            break
        modes = fewer
    return modes


def _joined(modes: Modes) -> Modes:
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
        modes, membership=membership[:, others], means=means[others], doubt=modes.doubt[others]
    )
