"""Simulated users: each looks at a presented order and returns a better one (paper 002, §4).

A user is called as `user(round, presented, rng)` and returns all documents, best first. Only
`ExpectedAlphaUser` and `ClickUser` draw from the generator.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray
from penchant.online.perceptron import present_sorted
from penchant.online.rounds import Round
from penchant.online.rule import discounts

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

    >>> discounted(np.array([1.0, 2.0]), np.array([1, 0]), k=5)
    2.63...
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
        _check_alpha(self.alpha)

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
class ExpectedAlphaUser:
    """Gives α-informative feedback in expectation only.

    Returns the best order with probability α and the presented one otherwise, so a round may
    teach nothing.
    """

    weights: FloatArray
    alpha: float = 0.5
    k: int = 5

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)

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


def _check_alpha(alpha: float) -> None:
    if not 0.0 < alpha <= 1.0:
        raise DataError(f"alpha is {alpha!r}: it must lie in (0, 1], the share of the gain (Eq. 2)")
