"""The preference perceptron (paper 002, Figure 1): how it learns and what it presents."""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray
from penchant.online.rule import Real, State, UpdateRule

FeatureMap = Callable[[Any, IntArray], Real]
"""φ(docs, order) → (d,): the joint features of documents placed in an order."""
Rounds = Literal["differences", "logged", "graded", "pairs"]
"""The kinds of rounds that `learn` takes; `compiled` has one loop for each."""


def learn(kind: Rounds, rule: UpdateRule, state: State, *rounds: Any) -> State:
    """Return the state after some rounds, whose arrays are those of the loop in `compiled`.

    The loop runs on a copy, over all rounds or none: an interrupt loses the call, never half a
    round.
    """
    from penchant.online import compiled  # imports numba, which only the loops need

    after = State._make(array.copy() for array in state)
    n_learned, n_rounds = compiled.LOOPS[kind](rule, after, *rounds)
    if n_learned < n_rounds:
        raise DataError(
            f"round {n_learned} of {n_rounds} (from 0) has no finite utility: its documents hold "
            "missing, infinite or enormous values; fill, drop or scale them. Nothing was learned "
            "from this call"
        )
    return after


# Presenting


@cache
def discounts(k: int) -> FloatArray:
    """Return 1/log2(i + 1) for the places i = 1…k (Eq. 5), read-only.

    >>> discounts(3).round(3).tolist()
    [1.0, 0.631, 0.5]
    """
    discount: FloatArray = 1.0 / np.log2(np.arange(2.0, k + 2.0))
    discount.flags.writeable = False
    return discount


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


# Checks of what users give


def check_docs(docs: Any, dtype: str, ndims: tuple[int, ...] = (2,)) -> Real:
    """Return documents as a contiguous array with one of the numbers of axes.

    That the numbers are finite shows in the scores, without a pass over them here.
    """
    if sparse.issparse(docs):
        raise DataError("documents are a sparse matrix: call .toarray() on it, queries are small")
    if np.iscomplexobj(docs):
        raise DataError("Complex data not supported: documents must be real numbers")
    try:
        block: Real = np.ascontiguousarray(docs, dtype=dtype)
    except ValueError as error:
        raise DataError(
            f"documents are not an array of numbers ({error}): encode text as numbers"
        ) from None
    if block.ndim not in ndims or len(block) == 0:
        several = ", or (T, n, d) for T rounds" if 3 in ndims else ""
        raise DataError(
            f"documents have shape {block.shape}: they must be (n, d), one row a document"
            f"{several}. Reshape your data: one document is X.reshape(1, -1)"
        )
    if block.shape[-1] == 0:
        raise DataError(
            f"documents have 0 feature(s) (shape={block.shape}) while a minimum of 1 is required."
        )
    return block


def check_scores(scores: Real) -> Real:
    """Return the scores if every document has a finite one."""
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise DataError(
            f"document {bad[0]} has no finite score: it holds missing, infinite or enormous "
            "values; fill, drop or scale them"
        )
    return scores


def check_grades(y: ArrayLike, n: int) -> FloatArray:
    """Return one finite label for each of n documents."""
    grades: FloatArray = np.asarray(y, dtype=np.float64)
    if grades.shape != (n,) or not np.isfinite(grades).all():
        raise DataError(
            f"y has shape {grades.shape}: it must hold one finite label for each of the {n} "
            "documents"
        )
    return grades


def check_queries(qid: ArrayLike | None, n: int) -> Any:
    """Return one query id for each of n documents; None puts all in one query."""
    queries = np.zeros(n) if qid is None else np.asarray(qid)
    if queries.shape != (n,):
        raise DataError(
            f"qid has shape {queries.shape} and there are {n} documents: give one query id a "
            "document"
        )
    return queries


def check_rows(rows: ArrayLike, n: int, name: str) -> IntArray:
    """Return row numbers below n."""
    index = np.asarray(rows)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise DataError(
            f"{name} has shape {index.shape} and type {index.dtype}: it must be a list of row "
            "numbers of X"
        )
    if index.size and (index.min() < 0 or index.max() >= n):
        raise DataError(
            f"{name} runs from {index.min()} to {index.max()} and X has {n} rows: count from 0"
        )
    return index.astype(np.intp, copy=False)


def check_order(order: ArrayLike, shape: tuple[int, ...], k: int, name: str) -> IntArray:
    """Return the first places, (…, min(k, n)), of orders of (…, n) documents."""
    *rounds, n = shape
    top = min(k, n)
    index = np.asarray(order)
    if index.dtype.kind not in "iu" or index.ndim != len(shape) or index.shape[-1] < top:
        raise DataError(
            f"{name} has shape {index.shape} and type {index.dtype}: it must be document "
            f"numbers, best first, at least {top} for each round"
        )
    if list(index.shape[:-1]) != rounds:
        raise DataError(f"{name} holds {len(index)} rounds and docs {rounds[0]}: give as many")
    first = index[..., :top]
    by_number = np.sort(first, axis=-1)
    lowest, highest = by_number[..., 0].min(), by_number[..., -1].max()
    if lowest < 0 or highest >= n or (by_number[..., 1:] == by_number[..., :-1]).any():
        raise DataError(
            f"{name} runs from {lowest} to {highest} in its first {top} places: it must name "
            f"different documents of 0…{n - 1}"
        )
    return np.ascontiguousarray(first, dtype=np.intp)
