"""Moves between numbers of communities: split, merge, delete; each only if the objective rises.

A split is screened by the scores of the members, s_u = Φᵀ Dᵀ (P_u h): how each would move the
common taste. In the metric of the posterior, where H = C Cᵀ, scores of people of one taste are
noise and their covariance ends at (1 + √(r_eff / N))²; a community of two tastes sticks out.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.special import entr, expit, gammaln, psi

from penchant.communities.assignment import Answers
from penchant.communities.partition import (
    Partition,
    log_likelihoods,
    partition_of,
    refit,
    settle,
    shares,
    soft_counts,
)
from penchant.communities.taste import Taste
from penchant.numerics.linalg import gram, multiply, solve_lower
from penchant.numerics.types import FloatArray, IntArray

MEMBER = 1e-2
"""Responsibility from which on a user takes part in the split of a community."""
SAMPLE = 10_000
"""Most members whose scores the spectrum is taken from."""
SCREEN = 0.9
"""A community is not split if its spectrum ends below this share of the noise edge."""
CUTS = (0.0, 1.3, -1.3)
"""Where members are cut along a direction, in standard deviations of their scores."""
STEEPNESS = 3.0
SPLIT_SWEEPS = 8
LEAST_GAIN = 0.1
"""Nats: smaller gains are within the tolerance of fits."""
ALIKE = 0.3
"""Cosine of two communities' differences, or overlap of their members, for a merge to be tried."""
DELETE_SWEEPS = 2


class Spectrum(NamedTuple):
    """Main directions of disagreement in a community.

    strength: (2,) eigenvalues relative to the noise edge; scores: (k, 2) of the members along the
    directions, standardised.
    """

    strength: FloatArray
    scores: FloatArray


def disagreement(partition: Partition, c: int, members: IntArray) -> Spectrum:
    """Spectrum of the members' scores about the common taste of community c."""
    taste, prior = partition.tastes[c], partition.model.prior
    answers = partition.crowd.answers
    weight = partition.responsibilities[members, c]
    sample = np.unique(np.linspace(0, len(members) - 1, min(len(members), SAMPLE)).astype(np.intp))
    D = prior.design.matrix()
    half = solve_lower(taste.state.lower, prior.factor.T).T  # Φ C⁻ᵀ
    scores = _pulls(answers.take(members[sample]), taste) @ D
    whitened = multiply(scores.toarray(), half)
    share = weight[sample]
    n_sample = float(share.sum())
    whitened -= share @ whitened / n_sample
    covariance = gram(np.sqrt(share)[:, None] * whitened) * (float(weight.sum()) / n_sample)
    rank = len(covariance)
    values, vectors = eigh(covariance, subset_by_index=[max(rank - 2, 0), rank - 1])
    effective = rank - float((np.diagonal(taste.state.lower) ** -2).sum())
    edge = (1.0 + np.sqrt(max(effective, 0.0) / n_sample)) ** 2
    directions = D @ multiply(half, np.ascontiguousarray(vectors[:, ::-1]))
    along = _pulls(answers.take(members), taste) @ directions
    along -= np.average(along, axis=0, weights=weight)
    spread = np.sqrt(np.average(along**2, axis=0, weights=weight))
    return Spectrum(values[::-1] / edge, along / np.maximum(spread, 1e-12))


def _pulls(answers: Answers, taste: Taste) -> sparse.csr_array:
    """P diag(h): how each answer of each user pulls at its difference."""
    counts = answers.counts
    return sparse.csr_array(
        (counts.data * taste.local.d1[counts.indices], counts.indices, counts.indptr),
        shape=counts.shape,
    )


def split(partition: Partition, c: int, least_gain: float = LEAST_GAIN) -> Partition | None:
    """Community c as two, the first way that raises the objective; None if none does."""
    members = np.flatnonzero(partition.responsibilities[:, c] > MEMBER)
    if len(members) < 2:
        return None
    spectrum = disagreement(partition, c, members)
    for start in _starts(spectrum):
        halves = _two_way(partition, c, members, start)
        if halves is not None and halves.gain > least_gain:
            return _replaced(partition, c, halves)
    return None


def _starts(spectrum: Spectrum) -> Iterator[FloatArray]:
    """(k,) shares of the first half, from soft cuts along the main directions."""
    for strength, scores in zip(spectrum.strength, spectrum.scores.T, strict=True):
        if strength < SCREEN:
            return
        for cut in CUTS if strength > 1.0 else CUTS[:1]:
            yield expit(STEEPNESS * (scores - cut))


class Halves(NamedTuple):
    """A community as two: (U, 2) responsibilities, their tastes, and what the objective gains."""

    responsibilities: FloatArray
    tastes: tuple[Taste, Taste]
    gain: float


def _two_way(partition: Partition, c: int, members: IntArray, start: FloatArray) -> Halves | None:
    """Sweep the members between two halves; users hardly in c stay with the first."""
    model, whole = partition.model, partition.tastes[c]
    answers = partition.crowd.answers.take(members)
    total = partition.responsibilities[:, c]
    inside = total[members]
    outside = np.zeros((2, answers.n_answers))
    outside[0] = np.maximum(whole.weights - soft_counts(answers, inside[:, None])[0], 0.0)
    n_outside = np.array([float(total.sum() - inside.sum()), 0.0])
    before = whole.log_z + float(gammaln(max(total.sum(), 1.0)) + entr(total).sum())
    rest_entropy = float(entr(np.delete(total, members)).sum())
    halves = inside[:, None] * np.column_stack([start, 1.0 - start])
    tastes: tuple[Taste, Taste] = (whole, whole)
    previous = -np.inf
    for _ in range(SPLIT_SWEEPS):
        sizes = halves.sum(axis=0) + n_outside
        if sizes.min() < 1.0:
            return None
        weights = soft_counts(answers, halves) + outside
        tastes = (refit(model, weights[0], tastes[0]), refit(model, weights[1], tastes[1]))
        value = sum(taste.log_z for taste in tastes) + float(gammaln(sizes).sum())
        value += float(entr(halves).sum()) + rest_entropy + np.log(partition.crowd.concentration)
        gain = value - before
        result = Halves(halves, tastes, gain)
        if gain - previous < LEAST_GAIN:
            break
        previous = gain
        tables = np.column_stack([model.slope(taste) for taste in tastes])
        halves = inside[:, None] * shares(log_likelihoods(answers, tables) + psi(sizes))
    responsibilities = np.column_stack([total, np.zeros_like(total)])
    responsibilities[members] = result.responsibilities
    return result._replace(responsibilities=responsibilities)


def _replaced(partition: Partition, c: int, halves: Halves) -> Partition:
    """The partition with the halves in place of c."""
    others = [other for other in range(partition.n_communities) if other != c]
    return Partition(
        partition.model,
        np.column_stack([partition.responsibilities[:, others], halves.responsibilities]),
        (*(partition.tastes[other] for other in others), *halves.tastes),
    )


def merge(partition: Partition, least_gain: float = LEAST_GAIN) -> Partition | None:
    """Two communities as one, the likest pair first; None if no merge raises the objective."""
    for a, b in _alike(partition):
        joined = _joined(partition, a, b)
        if joined.objective > partition.objective + least_gain:
            return joined
    return None


def _alike(partition: Partition) -> list[tuple[int, int]]:
    """Pairs of communities with like tastes or the same members, the likest first."""
    differences = np.stack([taste.state.mean for taste in partition.tastes])
    differences /= np.maximum(np.linalg.norm(differences, axis=1, keepdims=True), 1e-12)
    r = partition.responsibilities / np.linalg.norm(partition.responsibilities, axis=0)
    likeness = np.maximum(differences @ differences.T, r.T @ r)
    pairs = [p for p in combinations(range(partition.n_communities), 2) if likeness[p] > ALIKE]
    return sorted(pairs, key=lambda pair: -likeness[pair])


def _joined(partition: Partition, a: int, b: int) -> Partition:
    r, tastes = partition.responsibilities, partition.tastes
    others = [c for c in range(partition.n_communities) if c not in (a, b)]
    larger = a if partition.sizes[a] >= partition.sizes[b] else b
    joined = partition.model.fit(tastes[a].weights + tastes[b].weights, tastes[larger])
    return Partition(
        partition.model,
        np.column_stack([r[:, others], r[:, a] + r[:, b]]),
        (*(tastes[c] for c in others), joined),
    )


def delete(partition: Partition, c: int, least_gain: float = LEAST_GAIN) -> Partition | None:
    """Spread the members of c over the other communities; None unless the objective rises."""
    others = [other for other in range(partition.n_communities) if other != c]
    left = partition.within(others)
    log_weights = log_likelihoods(partition.crowd.answers, left.tables) + psi(left.sizes)
    spread = partition_of(partition.model, shares(log_weights), left.tastes)
    spread = settle(spread, DELETE_SWEEPS, LEAST_GAIN)
    return spread if spread.objective > partition.objective + least_gain else None
