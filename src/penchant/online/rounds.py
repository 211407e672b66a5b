"""Rounds: the documents that one context offers, and what is known about them."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from penchant.numerics.types import FloatArray, IntArray
from penchant.online.rule import Real


class Round(NamedTuple):
    """The documents of one query, and their relevance labels where there are any."""

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
    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1, [ids.size]])
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
    labels = np.asarray(grades, dtype=np.float64)
    order, starts = group(qid)
    if order is not None:
        docs, labels = docs[order], labels[order]
    return [Round(docs[start:stop], labels[start:stop]) for start, stop in pairwise(starts)]
