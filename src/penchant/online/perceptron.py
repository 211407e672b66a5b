"""The preference perceptron (paper 002, Figure 1) as functions from state to state.

Every `learn_*` function copies the state once, runs its compiled loop on the copy, and returns
it. The state that went in stays as it was: an interrupt loses the call, never half a round.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray
from penchant.online.rule import Real, State, UpdateRule

FeatureMap = Callable[[Any, IntArray], Real]
"""φ(docs, order) → (d,): the joint features of documents placed in an order."""


def present_sorted(scores: Real) -> IntArray:
    """Return the documents by falling score; equal scores stay in the given order.

    This is argmax_y wᵀφ(x, y) for the map of Eq. 5, whose discounts fall.

    >>> present_sorted(np.array([0.0, 2.0, 0.0])).tolist()
    [1, 0, 2]
    """
    return np.argsort(-scores, kind="stable")


def present_greedily(feature_map: FeatureMap, docs: Any, weights: Real, k: int) -> IntArray:
    """Return an order for any feature map: k places filled one by one, the best addition first.

    Exact for k = 1, where the objects are the documents themselves; for k > 1 it is exact when
    the map adds up place by place with falling weights, and a heuristic otherwise. The rest
    follows by what each would have added in the last of these places.

    >>> first_counts = lambda docs, order: docs[order[0]]
    >>> present_greedily(first_counts, np.eye(3), np.array([0.0, 1.0, 2.0]), k=1).tolist()
    [2, 1, 0]
    """
    chosen: list[int] = []
    rest = list(range(len(docs)))
    for _ in range(min(k, len(docs))):
        utility = np.array([weights @ feature_map(docs, np.array([*chosen, j])) for j in rest])
        by_utility = [rest[place] for place in present_sorted(utility)]
        chosen.append(by_utility[0])
        rest.remove(by_utility[0])
    return np.array([*chosen, *by_utility[1:]], dtype=np.intp)


def swap_neighbours(order: IntArray, probability: float, rng: np.random.Generator) -> IntArray:
    """Return the order with places 1–2, 3–4, … each exchanged with the given probability.

    >>> swap_neighbours(np.arange(5), 1.0, np.random.default_rng(0)).tolist()
    [1, 0, 3, 2, 4]
    """
    swapped = order.copy()
    upper = 2 * np.flatnonzero(rng.random(order.size // 2) < probability)
    swapped[upper], swapped[upper + 1] = order[upper + 1], order[upper]
    return swapped


def learn_differences(rule: UpdateRule, state: State, deltas: Real) -> State:
    """Learn rounds from their feature differences Δ = φ(x, ȳ) − φ(x, y), (T, d), any φ."""
    return _learn("learn_differences", len(deltas), rule, state, deltas)


def learn_logged(
    rule: UpdateRule, state: State, docs: Real, presented: IntArray, feedback: IntArray
) -> State:
    """Learn T rounds of n documents, (T, n, d), whose orders, (T, ≥ min(k, n)), are known."""
    return _learn("learn_logged", len(docs), rule, state, docs, presented, feedback)


def learn_graded(
    rule: UpdateRule, state: State, docs: Real, starts: IntArray, grades: FloatArray, depth: int
) -> State:
    """Learn from graded documents, (N, d), one round per block between `starts`.

    Each block is presented with the weights of that moment; the feedback brings the k
    best-graded of the first `depth` presented documents to the top, equal grades in presented
    order.
    """
    return _learn("learn_graded", starts.size - 1, rule, state, docs, starts, grades, depth)


def learn_pairs(
    rule: UpdateRule, state: State, docs: Real, winner: IntArray, loser: IntArray
) -> State:
    """Learn rounds of two documents, given as row numbers: Δ = x_winner − x_loser."""
    return _learn("learn_pairs", winner.size, rule, state, docs, winner, loser)


def _learn(loop: str, n_rounds: int, rule: UpdateRule, state: State, *rounds: Any) -> State:
    """Run a compiled loop on a copy of the state, over all rounds or none."""
    from penchant.online import compiled  # brings numba, which only the loops need

    after = State._make(array.copy() for array in state)
    n_learned = getattr(compiled, loop)(rule, after, *rounds)
    if n_learned < n_rounds:
        raise DataError(
            f"round {n_learned} of {n_rounds} (from 0) has no finite utility: its documents hold "
            "missing, infinite or enormous values; fill, drop or scale them. Nothing was learned "
            "from this call"
        )
    return after
