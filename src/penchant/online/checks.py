"""Checks of what a learner is given; compiled loops check no bounds, so everything passes here."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray
from penchant.online.rule import Real


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
