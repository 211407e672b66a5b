"""Split and merge moves: what lets a chain that grew from one community find the others.

Gibbs steps move one user at a time, and a community that should be two stays one for a long
time. Here a whole community is split, or two are merged, and the change is accepted by
Metropolis and Hastings' rule with the utilities integrated out (Jain and Neal, 2004). Two users
are picked: in one community it is to be split with them on different sides, otherwise their two
communities are to be merged. The proposal is a *launch*: starting from all users concerned,
blind to how they are now divided, it finds a division in two, and then every user takes a side
independently with known probability.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import gammaln, log_softmax

from penchant.communities.assignment import LabelArray, count_pairs, log_likelihoods
from penchant.communities.utility import Fit, Mixture, fit_community
from penchant.numerics.types import FloatArray, IntArray

LAUNCH_SCANS = 5
"""Rounds of fitting both sides and reassigning users, before sides are drawn."""
DIRECTION_USERS = 5_000
"""Users from whom the direction of a launch is learned."""
EDGE_SHARE = 0.1
"""A launch starts with at least this share of the users on each side."""


@dataclass(frozen=True, eq=False)
class Partition:
    """Users in K communities, each with what it knows of itself.

    assignment: (U,); pair_counts: (K, m) answers of each community; tau, nu: (K, m) sites to
    start from; thetas: (K, p) hyperparameters.
    """

    assignment: LabelArray
    pair_counts: FloatArray
    tau: FloatArray
    nu: FloatArray
    thetas: FloatArray

    @property
    def sizes(self) -> IntArray:
        """(K,) users of each community."""
        return np.bincount(self.assignment, minlength=len(self.pair_counts))

    def put(
        self,
        assignment: LabelArray,
        labels: IntArray,
        pair_counts: FloatArray,
        fits: list[Fit],
        theta: FloatArray,
    ) -> "Partition":
        """Reassign users, and replace (or append) the communities `labels` by new ones."""
        thetas = np.tile(theta, (len(labels), 1))
        return Partition(
            assignment,
            _put(self.pair_counts, labels, pair_counts),
            _put(self.tau, labels, np.stack([fit.tau for fit in fits])),
            _put(self.nu, labels, np.stack([fit.nu for fit in fits])),
            _put(self.thetas, labels, thetas),
        )

    def occupied(self) -> "Partition":
        """Without the communities that nobody belongs to."""
        kept = np.flatnonzero(self.sizes)
        position = np.full(len(self.pair_counts), -1, dtype=np.int32)
        position[kept] = np.arange(len(kept), dtype=np.int32)
        return Partition(
            position[self.assignment],
            self.pair_counts[kept],
            self.tau[kept],
            self.nu[kept],
            self.thetas[kept],
        )


def _put(values: FloatArray, labels: IntArray, rows: FloatArray) -> FloatArray:
    """A copy of `values` with some rows replaced; labels beyond the end append."""
    n_new = max(0, int(labels.max()) + 1 - len(values))
    grown = np.concatenate([values, np.zeros((n_new, values.shape[1]))])
    grown[labels] = rows
    return grown


class Target(NamedTuple):
    """What the moves leave invariant: evidence under `theta`, and λ."""

    mixture: Mixture
    theta: FloatArray
    concentration: float

    def fit(self, pair_counts: FloatArray, start: tuple[FloatArray, FloatArray]) -> Fit:
        """Utilities of a group of users, its sites (tau, nu) starting from `start`."""
        return fit_community(self.mixture, pair_counts, self.theta, start)

    def log_gain(self, whole: Fit, parts: list[Fit], sizes: IntArray) -> float:
        """Log joint probability of two communities of these sizes, less that of one."""
        evidence = parts[0].log_evidence + parts[1].log_evidence - whole.log_evidence
        prior = np.log(self.concentration) + gammaln(sizes).sum() - gammaln(sizes.sum())
        return float(evidence + prior)


class Move(NamedTuple):
    """What a move led to: the partition after it, whether it was a split, whether it was made."""

    partition: Partition
    is_split: bool
    is_made: bool


def log_prior_of_sizes(sizes: IntArray, concentration: float) -> float:
    """Log probability of a partition with these sizes under the Dirichlet process."""
    constant = gammaln(concentration) - gammaln(concentration + sizes.sum())
    return float(len(sizes) * np.log(concentration) + gammaln(sizes).sum() + constant)


def split_merge(
    target: Target, partition: Partition, users: IntArray, rng: np.random.Generator
) -> Move:
    """Try to part the two `users` if they are in one community, else to unite theirs."""
    first, second = partition.assignment[users]
    if first == second:
        return _split(target, partition, users, rng)
    return _merge(target, partition, users, rng)


def _split(target: Target, partition: Partition, users: IntArray, rng: np.random.Generator) -> Move:
    c = int(partition.assignment[users[0]])
    members = np.flatnonzero(partition.assignment == c)
    whole = target.fit(partition.pair_counts[c], (partition.tau[c], partition.nu[c]))
    launch = Launch.of(target, members, users, whole, rng)
    side = launch.draw(rng)
    counts = count_pairs(launch.rows, side, 2)
    parts = [target.fit(*given) for given in zip(counts, launch.sites, strict=True)]
    log_gain = target.log_gain(whole, parts, np.bincount(side))
    if np.log(rng.random()) >= log_gain - launch.log_prob(side):
        return Move(partition, True, False)
    labels = np.array([c, len(partition.pair_counts)])
    assignment = partition.assignment.copy()
    assignment[members] = labels[side]
    return Move(partition.put(assignment, labels, counts, parts, target.theta), True, True)


def _merge(target: Target, partition: Partition, users: IntArray, rng: np.random.Generator) -> Move:
    pair = partition.assignment[users].astype(np.intp)
    sites = list(zip(partition.tau[pair], partition.nu[pair], strict=True))
    counts = partition.pair_counts[pair]
    parts = [target.fit(*given) for given in zip(counts, sites, strict=True)]
    total = counts.sum(axis=0, keepdims=True)
    whole = target.fit(total[0], sites[0])
    log_gain = target.log_gain(whole, parts, partition.sizes[pair])
    log_uniform = np.log(rng.random())
    if log_uniform >= -log_gain:  # a proposal's probability is at most one: no need to launch
        return Move(partition, False, False)
    members = np.flatnonzero(np.isin(partition.assignment, pair))
    side = (partition.assignment[members] == pair[1]).astype(np.int32)
    launch = Launch.of(target, members, users, whole, rng)
    if log_uniform >= launch.log_prob(side) - log_gain:
        return Move(partition, False, False)
    assignment = partition.assignment.copy()
    assignment[members] = pair[0]
    merged = partition.put(assignment, pair[:1], total, [whole], target.theta)
    return Move(merged.occupied(), False, True)


@dataclass(frozen=True, eq=False)
class Launch:
    """A way to divide some users in two, found without looking at any present division.

    rows: (k, m) their answers; log_side: (2, k) log probability of each side for each user;
    anchors: (2,) the users who are on side 0 and side 1 for certain; sites: of each side.
    """

    rows: sparse.csr_array
    log_side: FloatArray
    anchors: IntArray
    sites: tuple[tuple[FloatArray, FloatArray], ...]

    @classmethod
    def of(
        cls,
        target: Target,
        members: IntArray,
        users: IntArray,
        whole: Fit,
        rng: np.random.Generator,
    ) -> "Launch":
        """Divide `members` along a direction of disagreement, then refit and reassign in turn.

        users: (2,) the anchors; whole: the fit of all members together.
        """
        mixture = target.mixture
        rows = mixture.answers.counts[members]
        anchors = np.searchsorted(members, users)
        thetas = np.stack([target.theta] * 2)
        side = _first_division(mixture, rows, whole, anchors, rng)
        sites: tuple[tuple[FloatArray, FloatArray], ...] = ((whole.tau, whole.nu),) * 2
        for _ in range(LAUNCH_SCANS):
            side[anchors] = [0, 1]
            counts = count_pairs(rows, side, 2)
            fits = [target.fit(*given) for given in zip(counts, sites, strict=True)]
            sites = tuple((fit.tau, fit.nu) for fit in fits)
            table = mixture.table(np.stack([fit.posterior.mean for fit in fits]), thetas)
            score = log_likelihoods(rows, table).astype(np.float64)
            score += np.log(np.bincount(side))[:, None]
            side = (score[1] > score[0]).astype(np.int32)
        return cls(rows, log_softmax(score, axis=0), anchors, sites)

    def draw(self, rng: np.random.Generator) -> LabelArray:
        """(k,) a side for each user, independently."""
        log_uniform = np.log(rng.random(self.log_side.shape[1]))
        side: LabelArray = (log_uniform >= self.log_side[0]).astype(np.int32)
        side[self.anchors] = [0, 1]
        return side

    def log_prob(self, side: LabelArray) -> float:
        """Log probability that `draw` gives these sides."""
        chosen = np.where(side == 0, self.log_side[0], self.log_side[1])
        chosen[self.anchors] = 0.0
        return float(chosen.sum())


def _first_division(
    mixture: Mixture,
    rows: sparse.csr_array,
    whole: Fit,
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
    below: LabelArray = (along < cut).astype(np.int32)
    return below
