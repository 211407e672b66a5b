"""Held-out comparisons, oriented so that the first item is the one truly preferred."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from penchant.errors import DataError
from penchant.metrics import check
from penchant.numerics.types import FloatArray


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
    p = check.probability(p)
    wrong = np.where(p == 0.5, 0.5, p < 0.5)
    return float(np.average(wrong, weights=check.weights(counts, p.size)))


def log_loss(p: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Mean negative log-probability of what happened; infinite if that was held impossible.

    ``p`` and ``counts`` are those of ``pair_error``.

    >>> round(log_loss([0.5, 0.25]), 4)
    1.0397
    """
    p = check.probability(p)
    weight = check.weights(counts, p.size)
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
    p = check.probability(p)
    weight = check.weights(counts, p.size)
    if n_bins < 1:
        raise DataError(f"n_bins is {n_bins}: there must be at least one bin")
    if outcome is None:
        came_true = np.concatenate([np.ones_like(p), np.zeros_like(p)])
        p, weight = np.concatenate([p, 1.0 - p]), np.tile(weight, 2)
    else:
        came_true = check.vector("outcome", outcome, p.size)
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
