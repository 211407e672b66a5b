"""Disagreement error of many rankings at once: the criterion behind every "cv"."""

import numpy as np

from penchant.numerics.types import FloatArray
from penchant.ranking.graph import OrderedPairs

_CHUNK = 4_000_000
"""Predictions looked up at once, which bounds the memory at some 64 MB."""


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
    wrong: FloatArray = 0.5 * (weight @ (lead < 0) + weight @ (lead <= 0))
    return wrong
