"""What a perceptron is made of: the rule that it learns by and the state that it keeps.

Both are named tuples because compiled code takes those as they are.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray

Real = NDArray[np.floating[Any]]

LINEAR, PERCEPTRON, HINGE, LOGISTIC = range(4)
LOSSES = {"linear": LINEAR, "perceptron": PERCEPTRON, "hinge": HINGE, "logistic": LOGISTIC}

ADDITIVE, ADAPTIVE, EXPONENTIATED = range(3)
UPDATES = {"additive": ADDITIVE, "adaptive": ADAPTIVE, "exponentiated": EXPONENTIATED}


class UpdateRule(NamedTuple):
    """How one round changes the weights.

    The difference Δ = φ(x, ȳ) − φ(x, y) pulls the weights by `rate` times −ℓ'(wᵀΔ), where the
    loss ℓ is linear (always 1: the paper's algorithm), perceptron (1 when wᵀΔ ≤ 0), hinge
    (1 when wᵀΔ < 1) or logistic (between 0 and 1).
    """

    discount: FloatArray
    """(k,) weight of each place in the ranking."""
    loss: int
    update: int
    rate: float
    average: bool


class State(NamedTuple):
    """Everything that the next round needs; d features."""

    weights: Real
    """(d,) in the precision of the model."""
    log_weights: FloatArray
    """(d,) used by the exponentiated update, whose weights are their softmax."""
    squares: FloatArray
    """(d,) sums of squared gradients, used by the adaptive update."""
    total: FloatArray
    """(d,) sum of the weights after each round, used by averaging."""
    rounds: IntArray
    """(1,) the number of rounds learned."""


@cache
def discounts(k: int) -> FloatArray:
    """Return 1/log2(i + 1) for the places i = 1…k (Eq. 5), read-only.

    >>> discounts(3).round(3).tolist()
    [1.0, 0.631, 0.5]
    """
    discount: FloatArray = 1.0 / np.log2(np.arange(2.0, k + 2.0))
    discount.flags.writeable = False
    return discount


def new_state(rule: UpdateRule, n_features: int, dtype: DTypeLike) -> State:
    """Return the state before the first round: w = 0, or the uniform combination.

    Sums over all rounds are kept in double precision whatever the weights are in: a million
    small terms would be lost in single.
    """
    start = 1.0 / n_features if rule.update == EXPONENTIATED else 0.0
    return State(
        weights=np.full(n_features, start, dtype),
        log_weights=np.zeros(n_features),
        squares=np.zeros(n_features),
        total=np.zeros(n_features),
        rounds=np.zeros(1, dtype=np.intp),
    )


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
        raise DataError(
            f"documents have shape {block.shape}: they must be (n, d), one row a document"
            + (", or (T, n, d) for T rounds" if 3 in ndims else "")
            + ". Reshape your data: one document is X.reshape(1, -1)"
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
