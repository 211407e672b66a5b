"""Rounds: the documents that one context offers, and what is known about them."""

from collections.abc import Iterator
from itertools import pairwise
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from penchant.io import iter_svmrank
from penchant.numerics.types import FloatArray, IntArray
from penchant.online.rule import Real

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

    >>> first, second = rounds_of(np.eye(3), [2, 0, 1], ["a", "a", "b"])
    >>> first.grades, second.docs
    (array([2., 0.]), array([[0., 0., 1.]]))
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
