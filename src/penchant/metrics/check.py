"""The one checker of what metrics are given, and how rows fall into groups."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray


def vector(name: str, values: ArrayLike, size: int | None = None) -> FloatArray:
    """A finite, non-empty one-dimensional array, of the given size where there is one."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise DataError(f"{name} has shape {array.shape}: it must be one non-empty column")
    if size is not None and array.size != size:
        raise DataError(f"{name} has {array.size} entries: it must have {size}, one for each row")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise DataError(f"{name} of row {row} is {array[row]}: every entry must be finite")
    return array


def probability(p: ArrayLike) -> FloatArray:
    """A column of probabilities."""
    array = vector("p", p)
    if array.min() < 0.0 or array.max() > 1.0:
        row = int(np.flatnonzero((array < 0.0) | (array > 1.0))[0])
        raise DataError(
            f"p of row {row} is {array[row]}: probabilities lie within 0 and 1; pass score "
            "differences through the likelihood first"
        )
    return array


def weights(counts: ArrayLike | None, size: int) -> FloatArray:
    """How often each row was observed: ones where nobody said, else non-negative."""
    if counts is None:
        return np.ones(size)
    array = vector("counts", counts, size)
    if array.min() < 0.0 or array.sum() == 0.0:
        raise DataError("counts must not be negative, and not all zero")
    return array


def groups(qid: ArrayLike | None, size: int) -> Iterator[IntArray]:
    """The rows of each group; one group of all where qid is None."""
    if qid is None:
        return iter([np.arange(size)])
    labels = np.asarray(qid)
    if labels.shape != (size,):
        raise DataError(f"qid has shape {labels.shape}: it must name the group of each of {size}")
    _, member = np.unique(labels, return_inverse=True)
    ends = np.cumsum(np.bincount(member))
    return iter(np.split(np.argsort(member, kind="stable"), ends[:-1]))
