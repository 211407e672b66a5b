"""Moves between numbers of communities: of the search, uphill, and of chains, by acceptance.

*Search*: split, merge and delete, each only if the objective rises. A split is screened by the
scores of the members, s_u = Φᵀ Dᵀ (P_u h): how each would move the common utilities. In the metric
of the posterior, where H = C Cᵀ, scores of people of one taste are noise and their covariance ends
at (1 + √(r_eff / N))²; a community of two components sticks out.

*Chains*: Gibbs steps move one user at a time. Here a whole community is split, or two are merged,
and the change is accepted with the utilities integrated out (Jain and Neal, 2004). `split_or_merge`
picks two users and proposes by a *launch*: from all users concerned, blind to how they are now
divided, it finds a division in two; then every user takes a side independently with known
probability. `merge_similar_or_divide` proposes to merge two communities of like answers, or to
divide one by coin: where two communities share a taste, no launch finds their division again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.special import entr, expit, gammaln, log_softmax, logsumexp, psi, softmax

from penchant import gp
from penchant.communities.bethe import BetheState
from penchant.communities.component import (
    ComponentFit,
    MixtureData,
    VariationalState,
    allocate,
    converge,
    fit_community,
    sweep,
)
from penchant.communities.data import (
    LabelArray,
    count_pairs,
    log_likelihoods,
    responsibilities,
    soft_counts,
)
from penchant.errors import DataError
from penchant.numerics.linalg import gram, multiply, solve_lower
from penchant.numerics.types import FloatArray, IntArray

LEAST_RESPONSIBILITY = 1e-2
"""Responsibility from which on a user takes part in the split of a community."""
SPECTRUM_USERS = 10_000
"""Most members whose scores the spectrum is taken from."""
NOISE_SHARE, FLUCTUATION = 0.9, 10.0
"""A community is not split if its spectrum ends below this share of the noise edge, nor if it ends
further below the edge than so many times N^(−2/3), which is how it varies by chance."""
DIRECTIONS, FORCED_DIRECTIONS = 3, 2
"""Along which splits are tried: by themselves, or where a number of communities is asked for."""
CUTS = (0.0, 1.3, -1.3)
"""Where members are cut along a direction, in standard deviations of their scores."""
STEEPNESS = 3.0
"""Of the soft cut, in logits a standard deviation."""
SPLIT_SWEEPS = 8
"""Most sweeps between two halves: sweeps among all communities follow."""
SPLIT_TOLERANCE, SPLIT_SHARE = 0.5, 0.05
"""Nats, or share of all that a split gains, that a sweep between two halves must gain for another
one."""
SPLIT_HORIZON = 3
"""Sweeps like the last one that two halves are trusted to make: they gain less each time."""
LEAST_GAIN = 0.1
"""Nats: smaller gains are within the tolerance of fits."""
LEAST_SIMILARITY = 0.3
"""Cosine of two communities' differences, or overlap of their members, for a merge to be tried."""
DELETE_SWEEPS = 2
"""Before a deletion is judged: members find their place in two."""
DELETIONS = 3
"""Of the smallest communities whose deletion is tried each time."""
HOPELESS = 2.0
"""A deletion is not tried if members would lose more than so many times what can be gained."""
NEAR_PAYING = 0.75
"""Share of a second taste's cost that a split may fall short by, and be tried with everybody."""
SAME_ANSWERS = 0.05
"""Share of its answers that must have changed for a community to be tried again."""
SAME_THETA = 0.3
"""Or how far a (log) hyperparameter must have moved."""
LAUNCH_SCANS = 5
"""Rounds of fitting both sides and reassigning users, before sides are drawn."""
DIRECTION_USERS = 5_000
"""Users from whom the direction of a launch is learned."""
EDGE_SHARE = 0.1
"""A launch starts with at least this share of the users on each side."""
SHARPNESS = 10.0
"""How strongly alike communities are preferred: e^10 between the same answers and unrelated."""


class Spectrum(NamedTuple):
    """Main directions of disagreement in a community.

    strength: (q,) eigenvalues relative to the noise edge, largest first; scores: (k, q) of the
    members along the directions, standardised; weights: (r, q) the directions, as moves of z;
    screen: strength from which on a direction may be worth a split.
    """

    strength: FloatArray
    scores: FloatArray
    weights: FloatArray
    screen: float


def disagreement(
    allocation: VariationalState, c: int, members: IntArray, n_directions: int = 2
) -> Spectrum:
    """Spectrum of the members' scores about the common utilities of community c."""
    component, prior = allocation.components[c], allocation.model.prior
    answers = allocation.mixture.answers
    weight = allocation.responsibilities[members, c]
    sample = np.arange(len(members))
    if len(members) > SPECTRUM_USERS:
        sample = np.argsort(answers.user_keys[members], kind="stable")[:SPECTRUM_USERS]
    D = _differences(prior.design)
    scores = component.terms.user_gradients(answers.counts[members[sample]]) @ D
    rows, share = scores.toarray(), weight[sample]
    n_sample = float(share.sum())
    rows -= share @ rows / n_sample
    rows *= np.sqrt(share * (float(weight.sum()) / n_sample))[:, None]
    values, weights = main_directions(rows, component.state, n_directions)
    edge = (1.0 + np.sqrt(max(component.state.n_roughly_settled, 0.0) / n_sample)) ** 2
    weights = np.asfortranarray(weights[:, ::-1])
    along = component.terms.user_gradients(answers.counts[members]) @ (D @ prior.points(weights))
    along -= np.average(along, axis=0, weights=weight)
    spread = np.sqrt(np.average(along**2, axis=0, weights=weight))
    # an eigenvector has no sign: the few who differ by much are on the positive side
    sides = np.where(np.average(along**3, axis=0, weights=weight) < 0.0, -1.0, 1.0)
    along, weights = along * sides, weights * sides
    screen = max(NOISE_SHARE, 1.0 - FLUCTUATION * n_sample ** (-2.0 / 3.0))
    return Spectrum(values[::-1] / edge, along / np.maximum(spread, 1e-12), weights, screen)


def main_directions(
    rows: FloatArray, state: gp.LowRankState | BetheState, k: int
) -> tuple[FloatArray, FloatArray]:
    """Largest k eigenvalues of the pulls' covariance in the metric of the posterior, ascending,
    and their directions (r, k): by way of people where those are fewer than weights."""
    if isinstance(state, BetheState):
        return state.main_directions(rows, k)
    half = solve_lower(state.lower, state.prior.factor.T).T  # Φ C⁻ᵀ
    rows = multiply(rows, half)
    is_wide = len(rows) < rows.shape[1]
    square = gram(rows.T) if is_wide else gram(rows)
    n = len(square)
    values, vectors = eigh(square, subset_by_index=[max(n - k, 0), n - 1])
    if is_wide:
        vectors = multiply(rows.T, vectors)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=0), 1e-12)
    return values, solve_lower(state.lower, np.asfortranarray(vectors), transposed=True)


def _differences(design: gp.Operator) -> sparse.csr_array:
    """D as a sparse matrix, in either space."""
    if isinstance(design, gp.Differences):
        return design.matrix()
    m = design.n_points
    return sparse.csr_array((np.ones(m), design.position, np.arange(m + 1)), shape=(m, m))


class SplitSearch:
    """Tries to split communities, and remembers which ones resisted."""

    def __init__(self) -> None:
        self._refused: list[tuple[FloatArray, FloatArray]] = []

    def split(self, allocation: VariationalState, c: int) -> VariationalState | None:
        """Community c as two, the first way that raises the objective; None if none does."""
        weights, theta, ways = allocation.components[c].weights, allocation.model.hyper.theta, []
        if self._has_refused(weights, theta):
            return None
        # where λ > 1 favours another community, a split may pay without any disagreement
        screened = allocation.mixture.concentration <= 1.0
        for divided in _ways(allocation, c, screened):
            if divided.objective > allocation.objective + LEAST_GAIN:
                return divided
            ways.append((_gain_per_cost(allocation, c, divided), divided))
        gain, nearest = max(ways, key=lambda way: way[0], default=(-np.inf, allocation))
        if gain > -NEAR_PAYING and (opened := _open_to_all(allocation, nearest)) is not None:
            return opened
        self._refused.append((weights, theta))
        return None

    def _has_refused(self, weights: FloatArray, theta: FloatArray) -> bool:
        """Whether nearly the same answers resisted, under nearly the same hyperparameters."""
        least = SAME_ANSWERS * float(weights.sum())
        return any(
            np.abs(theta - then).max(initial=0.0) < SAME_THETA
            and np.abs(weights - refused).sum() < least
            for refused, then in self._refused
        )


def force_split(allocation: VariationalState) -> VariationalState:
    """One community more, the way that costs the objective least."""
    numbers = range(allocation.n_communities)
    ways = [divided for c in numbers for divided in _ways(allocation, c, screened=False)]
    if not ways:
        raise DataError(
            f"no community of {allocation.n_communities} can be divided further: "
            "ask for fewer with n_communities"
        )
    return max(ways, key=lambda divided: divided.objective)


def _ways(allocation: VariationalState, c: int, screened: bool) -> Iterator[VariationalState]:
    """Community c as two, which come last, from soft cuts along the main directions."""
    members = np.flatnonzero(allocation.responsibilities[:, c] > LEAST_RESPONSIBILITY)
    if len(members) < 2:
        return
    n_directions = DIRECTIONS if screened else FORCED_DIRECTIONS
    spectrum = disagreement(allocation, c, members, n_directions)
    for strength, scores in zip(spectrum.strength, spectrum.scores.T, strict=True):
        if screened and strength < spectrum.screen:
            return
        for cut in CUTS if strength > 1.0 else CUTS[:1]:
            start = expit(STEEPNESS * (scores - cut))
            if (divided := _two_way(allocation, c, members, start)) is not None:
                yield divided


def _gain_per_cost(allocation: VariationalState, c: int, divided: VariationalState) -> float:
    """What the objective gains, in what two components cost more than one beside their answers."""
    one, other = divided.components[-2:]
    cost = max(one.cost + other.cost - allocation.components[c].cost, LEAST_GAIN)
    return (divided.objective - allocation.objective) / cost


def _two_way(
    allocation: VariationalState, c: int, members: IntArray, start: FloatArray
) -> VariationalState | None:
    """Sweep the members between two halves; users hardly in c stay with the first."""
    model, whole = allocation.model, allocation.components[c]
    answers = allocation.mixture.answers.take(members)
    total = allocation.responsibilities[:, c]
    inside = total[members]
    outside = np.zeros((2, answers.n_answers))
    outside[0] = np.maximum(whole.weights - soft_counts(answers, inside[:, None])[0], 0.0)
    n_outside = np.array([float(total.sum() - inside.sum()), 0.0])
    before = whole.log_z + float(gammaln(max(total.sum(), 1.0)) + entr(total).sum())
    rest_entropy = float(entr(np.delete(total, members)).sum())
    halves = inside[:, None] * np.column_stack([start, 1.0 - start])
    components, previous = (whole, whole), -np.inf
    for sweeps_left in reversed(range(SPLIT_SWEEPS)):
        sizes = halves.sum(axis=0) + n_outside
        if sizes.min() < 1.0:
            return None
        weights = soft_counts(answers, halves) + outside
        one, other = map(model.refit, weights, components)
        components = (one, other)
        value = one.log_z + other.log_z + float(gammaln(sizes).sum())
        value += float(entr(halves).sum()) + rest_entropy + np.log(allocation.mixture.concentration)
        gain, fitted = value - before, halves
        step, previous = gain - previous, gain
        enough = max(SPLIT_TOLERANCE, SPLIT_SHARE * gain)
        if step < enough or gain + min(sweeps_left, SPLIT_HORIZON) * step < 0.0:
            break
        tables = np.column_stack([model.slope(one), model.slope(other)])
        halves = inside[:, None] * responsibilities(answers.counts, tables, psi(sizes))
    everybody = np.column_stack([total, np.zeros_like(total)])
    everybody[members] = fitted
    return allocation.with_in_place_of([c], everybody, components)


def _open_to_all(allocation: VariationalState, swept: VariationalState) -> VariationalState | None:
    """A division that does not pay by itself, once members of other communities may join it."""
    step = np.inf
    for sweeps_left in reversed(range(SPLIT_SWEEPS)):
        if swept.objective + min(sweeps_left, SPLIT_HORIZON) * step < allocation.objective:
            return None
        before, swept = swept.objective, sweep(swept)
        step = swept.objective - before
        if step < SPLIT_TOLERANCE:
            break
    pays = swept.objective > allocation.objective + LEAST_GAIN
    return swept if pays and swept.n_communities > allocation.n_communities else None


def merge(allocation: VariationalState) -> VariationalState | None:
    """Two communities as one, the likest pair first; None if no merge raises the objective."""
    for a, b in _similar_pairs(allocation, LEAST_SIMILARITY)[: 2 * allocation.n_communities]:
        joined = _join(allocation, a, b)
        if joined.objective > allocation.objective + LEAST_GAIN:
            return joined
    return None


def force_merge(allocation: VariationalState) -> VariationalState:
    """One community fewer, the way that costs the objective least."""
    joined = [_join(allocation, a, b) for a, b in _similar_pairs(allocation, -1.0)]
    return max(joined, key=lambda candidate: candidate.objective)


def _similar_pairs(allocation: VariationalState, least: float) -> list[tuple[int, int]]:
    """Pairs of communities with like components or the same members, the likest first."""
    differences = np.stack([component.state.mean for component in allocation.components])
    differences /= np.maximum(np.linalg.norm(differences, axis=1, keepdims=True), 1e-12)
    r = allocation.responsibilities / np.linalg.norm(allocation.responsibilities, axis=0)
    likeness = np.maximum(differences @ differences.T, r.T @ r)
    pairs = [p for p in combinations(range(allocation.n_communities), 2) if likeness[p] > least]
    return sorted(pairs, key=lambda pair: -likeness[pair])


def _join(allocation: VariationalState, a: int, b: int) -> VariationalState:
    components, sizes = allocation.components, allocation.sizes
    start = components[a if sizes[a] >= sizes[b] else b]
    joined = allocation.model.fit(components[a].weights + components[b].weights, start)
    both = allocation.responsibilities[:, [a]] + allocation.responsibilities[:, [b]]
    return allocation.with_in_place_of([a, b], both, (joined,))


def delete(allocation: VariationalState) -> VariationalState | None:
    """One of the smallest communities fewer, its members spread over the others.

    None if no deletion raises the objective.
    """
    counts, tables = allocation.mixture.answers.counts, allocation.tables
    log_weights = allocation.log_sizes + log_likelihoods(counts, tables)
    for c in np.argsort(allocation.sizes, kind="stable")[:DELETIONS]:
        component, size = allocation.components[c], max(float(allocation.sizes[c]), 1.0)
        left = np.delete(log_weights, c, axis=1)
        # to gain by giving it up: what its own taste costs, and what ψ(N) overstates of ln Γ(N)
        cost = float(component.weights @ tables[:, c]) - component.log_z
        overstated = float(size * psi(size) - gammaln(size))
        loss = logsumexp(log_weights, axis=1).sum() - logsumexp(left, axis=1).sum()
        if loss <= HOPELESS * cost + overstated:
            starts = [*allocation.components[:c], *allocation.components[c + 1 :]]
            spread = allocate(allocation.model, softmax(left, axis=1), starts)
            spread = converge(spread, sweep, DELETE_SWEEPS, LEAST_GAIN)
            if spread.objective > allocation.objective + LEAST_GAIN:
                return spread
    return None


class Group(NamedTuple):
    """One community of a chain.

    counts: (m,) of its members' answers; sites: (m,) that its next fit starts from; theta: (p,)
    its hyperparameters.
    """

    counts: FloatArray
    sites: gp.Sites
    theta: FloatArray


@dataclass(frozen=True, eq=False)
class Partition:
    """The users of a chain in communities; assignment: (U,) the community of each user.

    Moves leave the posterior over partitions invariant, given the shared hyperparameters `theta`
    and λ.
    """

    mixture: MixtureData
    theta: FloatArray
    concentration: float
    assignment: LabelArray
    groups: tuple[Group, ...]

    @property
    def sizes(self) -> IntArray:
        """(K,) users of each community."""
        return np.bincount(self.assignment, minlength=len(self.groups))

    def regrouped(self, assignment: LabelArray, changed: dict[int, Group]) -> "Partition":
        """Reassign users, replace or append the `changed` communities, drop the empty ones."""
        groups = dict(enumerate(self.groups)) | changed
        n_members = np.bincount(assignment, minlength=len(groups))
        position = (np.cumsum(n_members > 0) - 1).astype(np.int32)
        occupied = tuple(groups[int(c)] for c in np.flatnonzero(n_members))
        return replace(self, assignment=position[assignment], groups=occupied)

    def fit(self, counts: FloatArray, sites: gp.Sites) -> ComponentFit:
        """Utilities of a group of users with these answers, from sites to start with."""
        return fit_community(self.mixture, counts, self.theta, sites)

    def fit_sides(
        self, rows: sparse.csr_array, side: LabelArray, starts: Sequence[gp.Sites]
    ) -> tuple[list[ComponentFit], list[Group]]:
        """Fits of users with these rows of answers who are on either of two sides."""
        counts = count_pairs(rows, side, 2)
        fits = list(map(self.fit, counts, starts))
        groups = zip(counts, (fit.sites for fit in fits), strict=True)
        return fits, [Group(*each, self.theta) for each in groups]

    def log_gain(self, whole: ComponentFit, parts: list[ComponentFit], sizes: IntArray) -> float:
        """Log joint probability of two communities of these sizes, less that of one."""
        evidence = parts[0].log_evidence + parts[1].log_evidence - whole.log_evidence
        prior = np.log(self.concentration) + gammaln(sizes).sum() - gammaln(sizes.sum())
        return float(evidence + prior)

    def merge(
        self, pair: IntArray, start: gp.Sites | None = None
    ) -> tuple["Partition", ComponentFit, float]:
        """A pair of communities as one, in the place of the first; its fit, and what it loses.

        start: sites that the fit starts from, by default those of the first community's fit.
        """
        one, other = (self.groups[c] for c in pair)
        parts = [self.fit(*each[:2]) for each in (one, other)]
        counts = one.counts + other.counts
        whole = self.fit(counts, parts[0].sites if start is None else start)
        assignment = self.assignment.copy()
        assignment[assignment == pair[1]] = pair[0]
        merged = {int(pair[0]): Group(counts, whole.sites, self.theta)}
        loss = self.log_gain(whole, parts, self.sizes[pair])
        return self.regrouped(assignment, merged), whole, loss

    def divide(
        self, members: IntArray, side: LabelArray, whole: ComponentFit, starts: Sequence[gp.Sites]
    ) -> tuple["Partition", float]:
        """The community of the members as two, the second as the last one; and its log gain."""
        parts, groups = self.fit_sides(self.mixture.answers.counts[members], side, starts)
        labels = np.array([self.assignment[members[0]], len(self.groups)], np.int32)
        assignment = self.assignment.copy()
        assignment[members] = labels[side]
        divided = self.regrouped(assignment, dict(zip(labels.tolist(), groups, strict=True)))
        return divided, self.log_gain(whole, parts, np.bincount(side))


class Transition(NamedTuple):
    """The partition after a move, whether it was a split, and whether it was accepted."""

    partition: Partition
    is_split: bool
    is_accepted: bool


def split_or_merge(partition: Partition, users: IntArray, rng: np.random.Generator) -> Transition:
    """Propose to split the community of the two `users`, or to merge their two communities."""
    pair = partition.assignment[users].astype(np.intp)
    if pair[0] == pair[1]:
        members = np.flatnonzero(partition.assignment == pair[0])
        whole = partition.fit(*partition.groups[pair[0]][:2])
        launch = Launch.of(partition, members, users, whole, rng)
        side = launch.draw(rng)
        divided, log_gain = partition.divide(members, side, whole, launch.sites)
        return _decide(partition, divided, True, log_gain - launch.log_prob(side), rng)
    merged, whole, log_loss = partition.merge(pair, partition.groups[pair[0]].sites)
    log_uniform = np.log(rng.random())
    if log_uniform >= -log_loss:  # a proposal's probability is at most one: no need to launch
        return Transition(partition, False, False)
    members = np.flatnonzero(np.isin(partition.assignment, pair))
    side = (partition.assignment[members] == pair[1]).astype(np.int32)
    launch = Launch.of(partition, members, users, whole, rng)
    if log_uniform >= launch.log_prob(side) - log_loss:
        return Transition(partition, False, False)
    return Transition(merged, False, True)


def merge_similar(partition: Partition, rng: np.random.Generator) -> Transition:
    """Propose to merge two communities, most likely two whose members answered alike."""
    n_communities = len(partition.groups)
    if n_communities == 1:
        return Transition(partition, False, False)
    log_chosen = _log_pair_probabilities(partition)
    number = rng.choice(len(log_chosen), p=np.exp(log_chosen))
    pair = np.stack(np.triu_indices(n_communities, 1))[:, number]
    merged, _, log_loss = partition.merge(pair)
    log_back = _log_division(partition.sizes[pair]) - np.log(n_communities - 1)
    return _decide(partition, merged, False, log_back - log_chosen[number] - log_loss, rng)


def divide_by_coin(partition: Partition, rng: np.random.Generator) -> Transition:
    """Propose to divide a community by a coin of unknown bias for every member."""
    n_communities = len(partition.groups)
    c = int(rng.integers(n_communities))
    members = np.flatnonzero(partition.assignment == c)
    side = (rng.random(len(members)) < rng.random()).astype(np.int32)
    sizes = np.bincount(side, minlength=2)
    if not sizes.all():
        return Transition(partition, True, False)
    whole = partition.fit(*partition.groups[c][:2])
    divided, log_gain = partition.divide(members, side, whole, (whole.sites,) * 2)
    # the pair (c, K) among the K + 1 communities after the division
    chosen = np.stack(np.triu_indices(n_communities + 1, 1)) == [[c], [n_communities]]
    log_back = _log_pair_probabilities(divided)[chosen.all(axis=0)][0]
    log_forth = _log_division(sizes) - np.log(n_communities)
    return _decide(partition, divided, True, log_gain + log_back - log_forth, rng)


def merge_similar_or_divide(partition: Partition, rng: np.random.Generator) -> Transition:
    """Propose to merge two similar communities or, as often, to divide one by coin."""
    propose = divide_by_coin if rng.random() < 0.5 else merge_similar
    return propose(partition, rng)


def _decide(
    before: Partition, after: Partition, is_split: bool, log_ratio: float, rng: np.random.Generator
) -> Transition:
    """Metropolis and Hastings' rule."""
    is_accepted = bool(np.log(rng.random()) < log_ratio)
    return Transition(after if is_accepted else before, is_split, is_accepted)


class Launch(NamedTuple):
    """A way to divide some users in two, found without looking at their present division.

    log_side: (k, 2) log probability of each side for each user; anchors: (2,) the users who are
    on side 0 and side 1 for certain; sites: of each side.
    """

    log_side: FloatArray
    anchors: IntArray
    sites: Sequence[gp.Sites]

    @classmethod
    def of(
        cls,
        partition: Partition,
        members: IntArray,
        users: IntArray,
        whole: ComponentFit,
        rng: np.random.Generator,
    ) -> "Launch":
        """Divide `members` along a direction of disagreement, then refit and reassign in turn.

        users: (2,) the anchors; whole: the fit of all members together.
        """
        mixture = partition.mixture
        rows = mixture.answers.counts[members]
        anchors = np.searchsorted(members, users)
        side = _first_division(mixture, rows, whole, anchors, rng)
        sites = [whole.sites] * 2
        for _ in range(LAUNCH_SCANS):
            side[anchors] = [0, 1]
            fits, groups = partition.fit_sides(rows, side, sites)
            sites = [group.sites for group in groups]
            utilities = np.stack([fit.posterior.mean for fit in fits])
            table = mixture.table(utilities, np.stack([partition.theta] * 2))
            score = log_likelihoods(rows, table) + np.log(np.bincount(side))
            side = (score[:, 1] > score[:, 0]).astype(np.int32)
        return cls(log_softmax(score, axis=1), anchors, sites)

    def draw(self, rng: np.random.Generator) -> LabelArray:
        """(k,) a side for each user, independently."""
        log_uniform = np.log(rng.random(len(self.log_side)))
        side: LabelArray = (log_uniform >= self.log_side[:, 0]).astype(np.int32)
        side[self.anchors] = [0, 1]
        return side

    def log_prob(self, side: LabelArray) -> float:
        """Log probability that `draw` gives these sides."""
        chosen = self.log_side[np.arange(len(side)), side]
        chosen[self.anchors] = 0.0
        return float(chosen.sum())


def _first_division(
    mixture: MixtureData,
    rows: sparse.csr_array,
    whole: ComponentFit,
    anchors: IntArray,
    rng: np.random.Generator,
) -> LabelArray:
    """(k,) sides by a cut along a random direction in which the users disagree.

    A user's score is the slope of their log-likelihood in the community's utilities: where the
    community is mixed, scores spread along what its parts disagree about. Two rounds of power
    iteration pull a random direction towards the widest spread.
    """
    answers, posterior = mixture.answers, whole.posterior
    f = posterior.mean
    slope = posterior.likelihood.log_prob(f[answers.winner] - f[answers.loser], answers.outcomes).d1
    pull = answers.differences(len(f)).matrix(slope)
    some = rng.choice(rows.shape[0], min(rows.shape[0], DIRECTION_USERS), replace=False)
    scores = (rows[some] @ pull) @ posterior.features
    scores -= scores.mean(axis=0)
    direction = rng.standard_normal(scores.shape[1])
    for _ in range(2):
        direction = scores.T @ (scores @ direction)
        direction /= np.linalg.norm(direction) or 1.0  # zero when all users agree
    along = rows @ (pull @ (posterior.features @ direction))
    if along[anchors[0]] < along[anchors[1]]:
        along = -along
    cut = np.quantile(along, rng.uniform(EDGE_SHARE, 1.0 - EDGE_SHARE))
    return (along < cut).astype(np.int32)


def _log_pair_probabilities(partition: Partition) -> FloatArray:
    """(K (K − 1) / 2,) log probability of picking each pair of communities, above the diagonal.

    Two communities are similar where their members' wins less losses, item by item, point the
    same way.
    """
    answers, n_items = partition.mixture.answers, len(partition.mixture.items)
    counts = np.stack([group.counts for group in partition.groups])
    net_wins = counts @ answers.differences(n_items).matrix()
    length = np.linalg.norm(net_wins, axis=1, keepdims=True)
    direction = net_wins / np.where(length > 0.0, length, 1.0)
    cosine = (direction @ direction.T)[np.triu_indices(len(direction), 1)]
    return log_softmax(SHARPNESS * cosine)


def _log_division(sizes: IntArray) -> float:
    """Log probability of a division, whichever side is called the first.

    One coin of uniform bias for all users: ∫ p^a (1 − p)^b dp = a! b! / (a + b + 1)!.

    >>> round(float(np.exp(_log_division(np.array([1, 1])))), 3)  # apart: 1/3, else together
    0.333
    """
    return float(np.log(2.0) + gammaln(sizes + 1.0).sum() - gammaln(sizes.sum() + 2.0))
