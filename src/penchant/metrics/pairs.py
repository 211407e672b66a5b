"""Held-out comparisons, oriented so that the first item is the one truly preferred.

Every metric checks its columns here: `as_vector`, `as_probabilities`, `as_weights`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray


def pair_error(p: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Share of the pairs that are predicted the wrong way round.

    Parameters
    ----------
    p : (m,) predicted P(first preferred to second), where the first truly is. Exactly 0.5 is a
        guess and counts half.
    counts : (m,) how often each pair was observed; once each by default.

    >>> pair_error([0.9, 0.2, 0.5, 0.6])
    0.375
    """
    p = as_probabilities(p)
    wrong = np.where(p == 0.5, 0.5, p < 0.5)
    return float(np.average(wrong, weights=as_weights(counts, p.size)))


def log_loss(p: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Mean negative log-probability of what happened; infinite if that was held impossible.

    ``p`` and ``counts`` are those of ``pair_error``.

    >>> round(log_loss([0.5, 0.25]), 4)
    1.0397
    """
    p = as_probabilities(p)
    weight = as_weights(counts, p.size)
    seen = weight > 0.0
    with np.errstate(divide="ignore"):
        return float(np.average(-np.log(p[seen]), weights=weight[seen]))


@dataclass(frozen=True)
class Calibration:
    """What was predicted and what happened, bin by bin; NaN in the bins that are empty.

    >>> round(calibration([0.7, 0.7, 0.7, 0.3], n_bins=5).error, 3)
    0.05
    """

    centre: FloatArray  # (n_bins,) middle of each bin of predicted probability
    predicted: FloatArray  # mean prediction in the bin
    observed: FloatArray  # share of the bin that came true
    count: FloatArray  # predictions in the bin

    @property
    def error(self) -> float:
        """Expected calibration error: mean distance of predicted and observed, by count."""
        full = self.count > 0
        gap = np.abs(self.predicted[full] - self.observed[full])
        return float(np.average(gap, weights=self.count[full]))


def calibration(
    p: ArrayLike,
    outcome: ArrayLike | None = None,
    *,
    n_bins: int = 10,
    counts: ArrayLike | None = None,
) -> Calibration:
    """Compare predicted probabilities with frequencies, in bins of equal width.

    Parameters
    ----------
    p : (m,) predicted probabilities.
    outcome : (m,) what happened, 1 or 0. None: the pairs are oriented and each came true; both
        orientations are then used, p that happened and 1 − p that did not, so that the result
        does not depend on who is named first. A pair is counted in both bins.
    counts : (m,) how often each row was observed.

    >>> result = calibration([0.7, 0.7, 0.7, 0.3], n_bins=5)
    >>> result.observed, result.count
    (array([ nan, 0.25,  nan, 0.75,  nan]), array([0., 4., 0., 4., 0.]))
    >>> round(result.error, 4)
    0.05
    """
    p = as_probabilities(p)
    weight = as_weights(counts, p.size)
    if n_bins < 1:
        raise DataError(f"n_bins is {n_bins}: there must be at least one bin")
    if outcome is None:
        came_true = np.concatenate([np.ones_like(p), np.zeros_like(p)])
        p, weight = np.concatenate([p, 1.0 - p]), np.tile(weight, 2)
    else:
        came_true = as_vector("outcome", outcome, p.size)
    # Found from the larger of p and 1 − p, so that the bins are symmetric to the last bit.
    outer = np.minimum(np.floor(np.maximum(p, 1.0 - p) * n_bins), n_bins - 1)
    member = np.where(p >= 0.5, outer, n_bins - 1 - outer).astype(np.intp)
    count, total, hits = (
        np.bincount(member, w, n_bins).astype(np.float64)
        for w in (weight, weight * p, weight * came_true)
    )
    with np.errstate(invalid="ignore"):
        predicted, observed = total / count, hits / count
    return Calibration((np.arange(n_bins) + 0.5) / n_bins, predicted, observed, count)


def as_vector(name: str, values: ArrayLike, size: int | None = None) -> FloatArray:
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


def as_probabilities(p: ArrayLike) -> FloatArray:
    """A column of probabilities."""
    array = as_vector("p", p)
    if array.min() < 0.0 or array.max() > 1.0:
        row = int(np.flatnonzero((array < 0.0) | (array > 1.0))[0])
        raise DataError(
            f"p of row {row} is {array[row]}: probabilities lie within 0 and 1; pass score "
            "differences through the likelihood first"
        )
    return array


def as_weights(counts: ArrayLike | None, size: int) -> FloatArray:
    """How often each row was observed: ones by default, else non-negative numbers."""
    if counts is None:
        return np.ones(size)
    array = as_vector("counts", counts, size)
    if array.min() < 0.0 or array.sum() == 0.0:
        raise DataError("counts must not be negative, and not all zero")
    return array


def rows_of_groups(qid: ArrayLike | None, size: int) -> Iterator[IntArray]:
    """The rows of each group; one group of all where qid is None."""
    if qid is None:
        return iter([np.arange(size)])
    labels = np.asarray(qid)
    if labels.shape != (size,):
        raise DataError(f"qid has shape {labels.shape}: it must name the group of each of {size}")
    _, member = np.unique(labels, return_inverse=True)
    ends = np.cumsum(np.bincount(member))
    return iter(np.split(np.argsort(member, kind="stable"), ends[:-1]))
