"""The input of a ranker: kernel features, and the graph of preferences between rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from penchant.numerics.linalg import pivoted_cholesky, solve_lower
from penchant.numerics.types import BoolArray, FloatArray, IntArray

# Kernels as features: Φ with K = ΦΦᵀ, exact through all rows or Nyström through landmarks.
#
# Every ranker is linear in Φ, so one map serves them all, and its rank r is what they cost.

KernelFunction = Callable[[Any, Any], FloatArray]
"""k(A, B): covariances (len(A), len(B)) of two sets of rows."""

RANK_TOLERANCE = 1e-12
"""Landmarks whose variance is explained up to this share by the others are redundant."""


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """φ(x) = C⁻¹ k(landmarks, x), with CCᵀ the kernel matrix of the landmarks.

    landmarks : (r, d) rows, dense or sparse. lower : (r, r), the factor C.
    """

    landmarks: Any
    lower: FloatArray

    def dual(self, weights: FloatArray) -> FloatArray:
        """Coefficients a (r,) of the same function as k(x, landmarks) @ a."""
        return solve_lower(self.lower, weights, transposed=True)


def kernel_features(
    kernel: KernelFunction, X: Any, candidates: Any
) -> tuple[FeatureMap, FloatArray]:
    """Features Φ (n, r) of the rows X, and the map that made them.

    With `candidates` the rows X themselves, ΦΦᵀ equals the kernel matrix up to rounding;
    with a subset of them it is the Nyström approximation, linear in n.

    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0], [1.0]])
    >>> _, features = kernel_features(lambda A, B: A @ B.T + 1.0, X, X)
    >>> (features @ features.T).round(6)
    array([[1., 1., 1.], [1., 2., 2.], [1., 2., 2.]])
    """
    factor = pivoted_cholesky(kernel(candidates, candidates), RANK_TOLERANCE)
    feature_map = FeatureMap(candidates[factor.pivots], factor.lower)
    if X is candidates:
        return feature_map, factor.in_given_order()
    return feature_map, solve_lower(factor.lower, kernel(feature_map.landmarks, X)).T


# Who is compared with whom: the graph whose Laplacian every least-squares ranker shares.
#
# Least squares on differences (001 Eq. 5) is (s − f)ᵀL(s − f), with L the Laplacian of the graph
# of comparisons. Graded scores within groups give L = ⊕ (n_q I − 11ᵀ), which is a centring per
# group; explicit pairs give L = Aᵀ diag(count) A. Neither is ever formed as a dense matrix: both
# graphs offer a root R with RᵀR = L, and the target R s.

VALIDATION_REACH = 32
"""Offsets for held-out pairs: a row meets up to 64 others, and more hardly change the error."""


class OrderedPairs(NamedTuple):
    """Pairs of rows of which the first is preferred, each with a weight; arrays (m,)."""

    better: IntArray
    worse: IntArray
    weight: FloatArray


class Fold(NamedTuple):
    """Rows and comparisons to learn from; rows and ordered pairs (within them) to validate on."""

    train_rows: IntArray
    train: "PreferenceGraph"
    valid_rows: IntArray
    valid: OrderedPairs


@dataclass(frozen=True)
class Groups:
    """Graded scores, compared within groups only: the block Laplacian ⊕ (n_q I − 11ᵀ).

    group : (n,) group of each row, 0 … n_groups − 1, every one in use.
    scores : (n,) graded preference; higher is better.

    >>> graph = Groups(np.array([0, 0, 1, 1]), np.array([3.0, 1.0, 0.0, 0.0]))
    >>> graph.target
    array([ 1.41..., -1.41...,  0. ,  0. ])
    >>> graph.ordered_pairs().better, graph.ordered_pairs().worse
    (array([0]), array([1]))
    """

    group: IntArray
    scores: FloatArray

    @property
    def n_rows(self) -> int:
        return len(self.group)

    @property
    def n_groups(self) -> int:
        return len(self.sizes)

    @cached_property
    def sizes(self) -> IntArray:
        """Rows in each group (n_groups,)."""
        return np.bincount(self.group)

    @property
    def target(self) -> FloatArray:
        """R s (n,)."""
        return self.root(self.scores[:, None])[:, 0]

    def centre(self, M: FloatArray) -> FloatArray:
        """M (n, k) less its mean within each group."""
        member = sparse.csr_array((np.ones(self.n_rows), (self.group, np.arange(self.n_rows))))
        return M - ((member @ M) / self.sizes[:, None])[self.group]

    def root(self, M: FloatArray) -> FloatArray:
        """R M (n, k): the symmetric root of L is √n_q times the centring of each group."""
        centred = self.centre(M)
        centred *= np.sqrt(self.sizes[self.group])[:, None]
        return centred

    def normal_equations(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """ZᵀLZ (p, p) and ZᵀLs (p,) for features Z (n, p)."""
        rooted = self.root(Z)
        return rooted.T @ rooted, rooted.T @ self.target

    def ordered_pairs(self, reach: int | None = None) -> OrderedPairs:
        """All pairs of unequal score within groups, or an even sample of them.

        The rows of a group stand on a circle, and row i meets the rows `offset` places ahead.
        With a reach, larger groups take that many offsets, evenly spread, so that the number of
        pairs grows with n and not with n_q². Weights sum to one within each group.
        """
        order = np.argsort(self.group, kind="stable")
        size = self.sizes[self.group[order]]
        first = np.repeat(np.cumsum(self.sizes) - self.sizes, self.sizes)
        position = np.arange(self.n_rows) - first
        half = size // 2
        reach = int(half.max()) if reach is None else min(reach, int(half.max()))
        better, worse = [np.empty(0, dtype=np.intp)], [np.empty(0, dtype=np.intp)]
        for step in range(1, reach + 1):
            spread = -(-(2 * step - 1) * half // (2 * reach))  # middle of the step-th part
            offset = np.where(half > reach, spread, step)
            met_twice = (2 * offset == size) & (position >= offset)  # the circle's diameters
            keep = (step <= half) & ~met_twice
            here = order[keep]
            there = order[first[keep] + (position[keep] + offset[keep]) % size[keep]]
            gain = self.scores[here] - self.scores[there]
            better.append(np.where(gain > 0, here, there)[gain != 0])
            worse.append(np.where(gain > 0, there, here)[gain != 0])
        winners, losers = np.concatenate(better), np.concatenate(worse)
        group = self.group[winners]
        return OrderedPairs(winners, losers, 1.0 / np.bincount(group, minlength=1)[group])

    def take(self, rows: IntArray) -> "Groups":
        """The same comparisons among some of the rows."""
        _, group = np.unique(self.group[rows], return_inverse=True)
        return Groups(group.astype(np.intp), self.scores[rows])

    def blocks(self, n_folds: int) -> list[IntArray]:
        """Rows in n_folds parts: whole groups, or parts of the one group there is.

        Groups are dealt out by size and the rows of a single group by score, so that the parts
        are alike without a random draw.
        """
        if self.n_groups > 1:
            dealt, unit = np.argsort(-self.sizes, kind="stable"), self.group
        else:
            dealt, unit = np.argsort(self.scores, kind="stable"), np.arange(self.n_rows)
        part = np.empty(len(dealt), dtype=np.intp)
        part[dealt] = np.arange(len(dealt)) % n_folds
        return [np.flatnonzero(part[unit] == k) for k in range(min(n_folds, len(dealt)))]

    def folds(self, n_folds: int) -> Iterator[Fold]:
        """Hold out one of the blocks after the other."""
        for valid_rows in self.blocks(n_folds):
            train_rows = np.setdiff1d(np.arange(self.n_rows), valid_rows, assume_unique=True)
            valid = self.take(valid_rows).ordered_pairs(VALIDATION_REACH)
            yield Fold(train_rows, self.take(train_rows), valid_rows, valid)


@dataclass(frozen=True)
class Pairs:
    """Explicit comparisons between rows: the Laplacian Aᵀ diag(count) A.

    winner, loser : (m,) rows. count : (m,) how often. margin : (m,) the score difference to
    regress on: one where only the direction is known, zero in a tie.

    >>> graph = Pairs(np.array([0]), np.array([1]), np.array([2.0]), np.array([1.0]), 3)
    >>> graph.normal_equations(np.eye(3))[1]
    array([ 2., -2.,  0.])
    """

    winner: IntArray
    loser: IntArray
    count: FloatArray
    margin: FloatArray
    n_rows: int
    """Compared or not."""

    @property
    def target(self) -> FloatArray:
        """R s (m,)."""
        return np.sqrt(self.count) * self.margin

    def root(self, M: FloatArray) -> FloatArray:
        """R M (m, k): one weighted difference a pair."""
        difference = M[self.winner] - M[self.loser]
        difference *= np.sqrt(self.count)[:, None]
        return difference

    def normal_equations(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """ZᵀLZ (p, p) and ZᵀLs (p,) for features Z (n, p)."""
        m = len(self.winner)
        ends = np.tile(np.arange(m), 2), np.append(self.winner, self.loser)
        A = sparse.csr_array((np.repeat([1.0, -1.0], m), ends), shape=(m, self.n_rows))
        weighted = A.T.multiply(self.count).tocsr()
        gram = Z.T @ ((weighted @ A) @ Z)  # the n × n Laplacian, not the m differences, meets Z
        return 0.5 * (gram + gram.T), Z.T @ (weighted @ self.margin)

    def ordered_pairs(self, reach: int | None = None) -> OrderedPairs:
        """The comparisons that are no ties, weighted by their counts."""
        decided = self.margin > 0
        return OrderedPairs(self.winner[decided], self.loser[decided], self.count[decided])

    def take(self, chosen: slice | BoolArray) -> "Pairs":
        """Some of the comparisons, over the same rows."""
        winner, loser = self.winner[chosen], self.loser[chosen]
        return Pairs(winner, loser, self.count[chosen], self.margin[chosen], self.n_rows)

    def folds(self, n_folds: int) -> Iterator[Fold]:
        """Every n_folds-th comparison is held out; the rows stay."""
        part = np.arange(len(self.winner)) % n_folds
        rows = np.arange(self.n_rows)
        for k in range(min(n_folds, len(part))):
            kept = part != k
            yield Fold(rows, self.take(kept), rows, self.take(~kept).ordered_pairs())


PreferenceGraph = Groups | Pairs


# Disagreement error of many rankings at once: the criterion behind every "cv".

_CHUNK = 4_000_000
"""Predictions looked up at once: 64 MB."""


def disagreement(predictions: FloatArray, pairs: OrderedPairs) -> FloatArray:
    """Weighted count (k,) of pairs that each column of predictions (n, k) puts in wrong order.

    A tie counts a half, as in 001 Eq. 4. Divide by the sum of the weights for the error rate.

    >>> pairs = OrderedPairs(np.array([0, 0]), np.array([1, 2]), np.ones(2))
    >>> disagreement(np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 1.0]]), pairs)
    array([1. , 1.5])
    """
    total = np.zeros(predictions.shape[1])
    step = max(1, _CHUNK // max(1, predictions.shape[1]))
    for start in range(0, len(pairs.better), step):
        part = slice(start, start + step)
        lead = predictions[pairs.better[part]] - predictions[pairs.worse[part]]
        total += wrong_order(lead, pairs.weight[part])
    return total


def wrong_order(lead: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted count (k,) of negative leads (m, k); a lead of zero counts a half."""
    return 0.5 * (weight @ (lead < 0) + weight @ (lead <= 0))
