"""Rounds of documents, and simulated users who improve what they are shown."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from penchant.errors import DataError
from penchant.io import iter_svmrank
from penchant.numerics.types import FloatArray, IntArray
from penchant.online.perceptron import discounts, present_sorted
from penchant.online.rule import Real

# Rounds: the documents that one context offers, and what is known about them.

_CHUNK = 1000
"""Queries read from a file at once: parsing one by one costs ten times as much."""


class Round(NamedTuple):
    """The documents of one query, and their relevance labels where there are any.

    >>> Round(np.eye(2), np.array([0.0, 1.0])).grades.tolist()
    [0.0, 1.0]
    """

    docs: Real
    """(n, d) features."""
    grades: FloatArray | None = None
    """(n,) higher is better."""


def group(qid: ArrayLike) -> tuple[IntArray | None, IntArray]:
    """Return the reordering that makes queries contiguous (None: they are) and their starts.

    Queries come in the order of first appearance, because time runs that way; `starts` has
    one entry more than there are queries.

    >>> group([7, 7, 3])
    (None, array([0, 2, 3]))
    >>> group([7, 3, 7])
    (array([0, 2, 1]), array([0, 2, 3]))
    """
    ids = np.asarray(qid)
    starts = _run_starts(ids)
    if np.unique(ids[starts[:-1]]).size == starts.size - 1:
        return None, starts
    _, first, query, size = np.unique(
        ids, return_index=True, return_inverse=True, return_counts=True
    )
    by_time = np.argsort(first)
    order = np.argsort(np.argsort(by_time)[query], kind="stable")
    return order, np.concatenate([[0], np.cumsum(size[by_time])])


def rounds_of(docs: Real, grades: ArrayLike, qid: ArrayLike) -> list[Round]:
    """Cut graded documents into one round per query, in the order of first appearance.

    >>> first, second = rounds_of(np.eye(3), [2, 0, 1], ["b", "a", "b"])
    >>> first.grades, second.docs
    (array([2., 1.]), array([[0., 1., 0.]]))
    """
    labels: FloatArray = np.asarray(grades, dtype=np.float64)
    order, starts = group(qid)
    if order is not None:
        docs, labels = docs[order], labels[order]
    return list(_cut(docs, labels, starts))


def read_rounds(path: str | PathLike[str], *, n_features: int | None = None) -> Iterator[Round]:
    """Stream the queries of an SVM-rank file, one round each; memory stays the same.

    Give `n_features` where the first queries may lack the last features.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "queries.txt")
    ...     _ = file.write_text("2 qid:7 1:0.5\\n0 qid:7 1:4\\n1 qid:8 1:3\\n")
    ...     [round_.docs.tolist() for round_ in read_rounds(file)]
    [[[0.5], [4.0]], [[3.0]]]
    """
    for part in iter_svmrank(path, _CHUNK, n_features=n_features):
        yield from _cut(np.asarray(part.X), part.y, _run_starts(part.qid))


def _run_starts(ids: IntArray) -> IntArray:
    return np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1, [ids.size]])


def _cut(docs: Real, grades: FloatArray, starts: IntArray) -> Iterator[Round]:
    for start, stop in pairwise(starts):
        yield Round(docs[start:stop], grades[start:stop])


# Simulated users: each looks at a presented order and returns a better one (paper 002, §4).
#
# A user is called as `user(round, presented, rng)` and returns all documents, best first. Only
# `ExpectedAlphaUser` and `ClickUser` draw from the generator.

User = Callable[[Round, IntArray, np.random.Generator], IntArray]


def bring_up(presented: IntArray, chosen: IntArray) -> IntArray:
    """Return the chosen documents first, the others after them as presented, all n in all.

    >>> bring_up(np.array([0, 1, 2, 3]), np.array([3, 2])).tolist()
    [3, 2, 0, 1]
    """
    stays = np.ones(presented.size, dtype=bool)
    stays[chosen] = False
    return np.concatenate([chosen, presented[stays[presented]]])


def discounted(values: FloatArray, order: IntArray, k: int) -> float:
    """Return Σ_{i≤k} values[order_i] / log2(i + 1): Eq. 5's utility, or DCG@k of labels.

    >>> discounted(np.array([3.0, 1.0, 2.0]), np.array([2, 0, 1]), k=2)
    3.89...
    """
    top = order[:k]
    return float(discounts(top.size) @ values[top])


def best_of(values: FloatArray, presented: IntArray, k: int) -> IntArray:
    """Return the k presented documents of highest value, equal ones in presented order."""
    return presented[present_sorted(values[presented])[:k]]


@dataclass(frozen=True, eq=False)
class AlphaUser:
    """Gives strictly α-informative feedback (Eq. 2 with ξ = 0) and no more than is needed.

    Goes down the list, and stops at the first depth whose k best documents, placed on top in
    the order of their utility wᵀx, gain at least α of what could be gained.

    >>> user = AlphaUser(np.array([1.0]), alpha=0.5, k=1)
    >>> docs = np.array([[0.0], [3.0], [4.0]])
    >>> user(Round(docs), np.arange(3), np.random.default_rng(0)).tolist()
    [1, 0, 2]
    """

    weights: FloatArray
    alpha: float = 1.0
    k: int = 5

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha <= 1.0:
            raise DataError(
                f"alpha is {self.alpha!r}: it must lie in (0, 1], the share of the gain (Eq. 2)"
            )

    def __call__(self, round_: Round, presented: IntArray, rng: np.random.Generator) -> IntArray:
        utility = round_.docs @ self.weights
        shown = discounted(utility, presented, self.k)

        def gain(depth: int) -> float:
            return discounted(utility, best_of(utility, presented[:depth], self.k), self.k) - shown

        # Seeing more never lowers the gain, so the first sufficient depth is a binary search.
        depths = range(min(self.k, presented.size), presented.size + 1)
        enough = bisect_left(depths, self.alpha * gain(presented.size), key=gain)
        return bring_up(presented, best_of(utility, presented[: depths[enough]], self.k))


@dataclass(frozen=True, eq=False)
class ExpectedAlphaUser(AlphaUser):
    """Gives α-informative feedback in expectation only.

    Returns the best order with probability α and the presented one otherwise, so a round may
    teach nothing.

    >>> user = ExpectedAlphaUser(np.array([1.0]), alpha=1.0, k=1)
    >>> user(Round(np.array([[0.0], [3.0]])), np.arange(2), np.random.default_rng(0)).tolist()
    [1, 0]
    """

    alpha: float = 0.5

    def __call__(self, round_: Round, presented: IntArray, rng: np.random.Generator) -> IntArray:
        if rng.random() >= self.alpha:
            return presented
        return bring_up(presented, best_of(round_.docs @ self.weights, presented, self.k))


@dataclass(frozen=True)
class LabelUser:
    """Brings up the k documents with the highest labels among the first `depth`.

    >>> docs = Round(np.zeros((4, 1)), grades=np.array([0.0, 1.0, 2.0, 3.0]))
    >>> LabelUser(k=1, depth=3)(docs, np.arange(4), np.random.default_rng(0)).tolist()
    [2, 0, 1, 3]
    """

    k: int = 5
    depth: int = 25

    def __call__(self, round_: Round, presented: IntArray, rng: np.random.Generator) -> IntArray:
        seen = presented[: self.depth]
        return bring_up(presented, best_of(grades_of(round_), seen, self.k))


@dataclass(frozen=True)
class ClickUser:
    """Clicks, and the clicked documents move to the top in the order in which they stood.

    Place i is looked at with probability i^(−bias). A document that is looked at is clicked with
    a probability that rises linearly in its label from `noise` at 0 to 1 − `noise` at
    `best_grade`.

    >>> docs = Round(np.zeros((4, 1)), grades=np.array([0.0, 0.0, 4.0, 4.0]))
    >>> ClickUser(bias=0.0, noise=0.0)(docs, np.arange(4), np.random.default_rng(0)).tolist()
    [2, 3, 0, 1]
    """

    bias: float = 1.0
    noise: float = 0.1
    best_grade: float = 4.0

    def __post_init__(self) -> None:
        if not (self.bias >= 0 and 0 <= self.noise <= 0.5 and self.best_grade > 0):
            raise DataError(
                f"{self!r}: bias must be ≥ 0, noise between 0 and 0.5, and best_grade the "
                "highest label, above 0"
            )

    def __call__(self, round_: Round, presented: IntArray, rng: np.random.Generator) -> IntArray:
        looked_at = np.arange(1, presented.size + 1) ** -self.bias
        appeal = np.clip(grades_of(round_)[presented] / self.best_grade, 0.0, 1.0)
        clicked = rng.random(presented.size) < looked_at * (
            self.noise + (1.0 - 2.0 * self.noise) * appeal
        )
        return np.concatenate([presented[clicked], presented[~clicked]])


def grades_of(round_: Round) -> FloatArray:
    """Return the labels, or say that this needs them."""
    if round_.grades is None:
        raise DataError(
            "the round has no grades: this user goes by relevance labels; give "
            "Round(docs, grades), or use AlphaUser with a weight vector"
        )
    return round_.grades
