"""How good predictions, rankings, groupings and rounds of questions are: functions of arrays.

Where scores are tied, no metric depends on the order of the rows: each says how it treats the tie.
Metrics that are averaged over groups, such as queries, leave out groups without a preference.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from penchant.errors import DataError
from penchant.numerics.types import FloatArray

__all__ = [
    "Calibration",
    "adjusted_rand",
    "auc",
    "calibration",
    "dcg",
    "disagreement_error",
    "kendall_tau",
    "log_loss",
    "mean_average_precision",
    "ndcg",
    "pair_error",
    "regret",
]

Gain = Literal["linear", "exponential"]


# Predicted probabilities of comparisons


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
    p = _probabilities(p)
    wrong = np.where(p == 0.5, 0.5, p < 0.5)
    return float(np.average(wrong, weights=_weights(counts, p.size)))


def log_loss(p: ArrayLike, counts: ArrayLike | None = None) -> float:
    """Mean negative log-probability of the outcomes; infinite if one had probability zero.

    ``p`` and ``counts`` are those of ``pair_error``.

    >>> round(log_loss([0.5, 0.25]), 4)
    1.0397
    """
    p = _probabilities(p)
    weight = _weights(counts, p.size)
    seen = weight > 0.0
    with np.errstate(divide="ignore"):
        return float(np.average(-np.log(p[seen]), weights=weight[seen]))


@dataclass(frozen=True)
class Calibration:
    """Predicted and observed frequencies, bin by bin; NaN in the bins that are empty.

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
    outcome : (m,) the outcomes, 1 or 0. None: every pair is oriented, so that its first item won.
        Both orientations are then used, p that happened and 1 − p that did not, so that the
        result does not depend on which item is named first. A pair is counted in both bins.
    counts : (m,) how often each row was observed.

    >>> result = calibration([0.7, 0.7, 0.7, 0.3], n_bins=5)
    >>> result.observed, result.count
    (array([ nan, 0.25,  nan, 0.75,  nan]), array([0., 4., 0., 4., 0.]))
    >>> round(result.error, 4)
    0.05
    """
    p = _probabilities(p)
    weight = _weights(counts, p.size)
    if n_bins < 1:
        raise DataError(f"n_bins is {n_bins}: there must be at least one bin")
    if outcome is None:
        came_true = np.concatenate([np.ones_like(p), np.zeros_like(p)])
        p, weight = np.concatenate([p, 1.0 - p]), np.tile(weight, 2)
    else:
        came_true = _vector("outcome", outcome, p.size)
    # By the larger of p and 1 − p, so that the bins are symmetric to the last bit.
    outer = np.minimum(np.floor(np.maximum(p, 1.0 - p) * n_bins), n_bins - 1)
    member = np.where(p >= 0.5, outer, n_bins - 1 - outer).astype(np.intp)
    count, total, hits = (
        np.bincount(member, w, n_bins).astype(np.float64)
        for w in (weight, weight * p, weight * came_true)
    )
    with np.errstate(invalid="ignore"):
        predicted, observed = total / count, hits / count
    return Calibration((np.arange(n_bins) + 0.5) / n_bins, predicted, observed, count)


# Scores against true grades


def auc(scores: ArrayLike, relevant: ArrayLike, counts: ArrayLike | None = None) -> float:
    """P(a relevant item scores above an irrelevant one); a tied score counts half.

    ``scores`` (n,), ``relevant`` (n,) true or false, ``counts`` (n,) optional weights.

    >>> auc([0.9, 0.4, 0.4, 0.1], [True, True, False, False])
    0.875
    """
    scores = _vector("scores", scores)
    positive = _vector("relevant", relevant, scores.size) > 0.0
    if positive.all() or not positive.any():
        raise DataError(
            f"relevant is {bool(positive[0])} in every row: the area under the curve compares "
            "relevant with irrelevant items and needs both"
        )
    from sklearn.metrics import roc_auc_score  # slow to import, as are the others here

    return float(roc_auc_score(positive, scores, sample_weight=_weights(counts, scores.size)))


def disagreement_error(
    y_true: ArrayLike, y_score: ArrayLike, qid: ArrayLike | None = None
) -> float:
    """Share of the true preferences that the scores reverse (001, Eq. 4, normalised).

    A preference is a pair of rows of one group (``qid``, (n,)) whose ``y_true`` differ; equal
    scores count as half an error, and true ties are no preferences. The error is computed per
    group and averaged over the groups that have a preference.

    >>> disagreement_error([3, 2, 1, 1], [0.9, 0.1, 0.5, 0.1])
    0.3
    """
    return _group_mean(_disagreement, y_true, y_score, qid)


def _disagreement(y: FloatArray, score: FloatArray) -> float:
    preferences, distinct = _different_pairs(y), _different_pairs(score)
    if preferences == 0:
        return np.nan
    if distinct == 0:
        return 0.5
    from scipy.stats import kendalltau

    # Kendall's tau-b counts agreeing minus reversed pairs in O(n log n).
    tau = kendalltau(y, score).statistic
    surplus = np.rint(tau * np.sqrt(float(preferences) * float(distinct)))
    return float(0.5 * (1.0 - surplus / preferences))


def _different_pairs(values: FloatArray) -> int:
    """The number of pairs whose values differ."""
    sizes = np.unique(values, return_counts=True)[1].tolist()
    return int(values.size**2 - sum(size**2 for size in sizes)) // 2


def dcg(relevance_in_order: ArrayLike, k: int | None = None, gain: Gain = "linear") -> float:
    """Discounted cumulative gain Σ gain(r_i)/log2(i + 1) of the first k, best position first.

    The gain of a grade r is r itself or, if "exponential", 2^r − 1.

    >>> round(dcg([3, 2, 0, 1], k=3), 4)
    4.2619
    """
    return _discounted(_gains(_vector("relevance_in_order", relevance_in_order), gain), k)


def ndcg(
    y_true: ArrayLike,
    y_score: ArrayLike,
    k: int | None = None,
    qid: ArrayLike | None = None,
    gain: Gain = "linear",
) -> float:
    """DCG of the order by score, divided by that of the best order; averaged over groups.

    ``y_true`` (n,) holds non-negative grades. Items with equal scores share the mean of their
    gains, which is the expectation over all ways to break the tie. Groups whose grades are all
    zero are left out.

    >>> round(ndcg([3, 2, 0, 1], [0.4, 0.9, 0.1, 0.3]), 4)
    0.9225
    """
    if np.min(_vector("y_true", y_true)) < 0.0:
        raise DataError("y_true has negative grades: shift them, so that the worst grade is zero")

    def of_group(y: FloatArray, score: FloatArray) -> float:
        gains = _gains(y, gain)
        ideal = _discounted(np.sort(gains)[::-1], k)
        if ideal == 0:
            return np.nan
        _, member, size = np.unique(-score, return_inverse=True, return_counts=True)
        by_score = np.repeat(np.bincount(member, gains) / size, size)
        return _discounted(by_score, k) / ideal

    return _group_mean(of_group, y_true, y_score, qid)


def _gains(grades: FloatArray, gain: Gain) -> FloatArray:
    if gain not in ("linear", "exponential"):
        raise DataError(f"gain is {gain!r}: it must be 'linear' or 'exponential'")
    return grades if gain == "linear" else np.exp2(grades) - 1.0


def _discounted(gains: FloatArray, k: int | None) -> float:
    if k is not None and k < 1:
        raise DataError(f"k is {k}: it must be at least 1, or None for the whole list")
    top = gains[:k]
    return float(top @ (1.0 / np.log2(np.arange(2.0, top.size + 2.0))))


def mean_average_precision(
    y_true: ArrayLike, y_score: ArrayLike, qid: ArrayLike | None = None
) -> float:
    """Average precision of each group, averaged over those with a relevant row (y_true > 0).

    Precision is taken where the score drops, so that tied rows are retrieved together.

    >>> round(mean_average_precision([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0]), 4)
    0.8333
    """
    from sklearn.metrics import average_precision_score

    def of_group(y: FloatArray, score: FloatArray) -> float:
        return float(average_precision_score(y > 0, score)) if np.any(y > 0) else np.nan

    return _group_mean(of_group, y_true, y_score, qid)


def _group_mean(
    metric: Callable[[FloatArray, FloatArray], float],
    y_true: ArrayLike,
    y_score: ArrayLike,
    qid: ArrayLike | None,
) -> float:
    """Mean of the metric over groups; NaN marks a group in which it has no meaning."""
    y = _vector("y_true", y_true)
    score = _vector("y_score", y_score, y.size)
    labels = np.zeros(y.size) if qid is None else np.asarray(qid)
    if labels.shape != y.shape:
        raise DataError(f"qid has shape {labels.shape}: it must name the group of each of {y.size}")
    _, member, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    groups = np.split(np.argsort(member, kind="stable"), np.cumsum(sizes)[:-1])
    values = np.array([metric(y[rows], score[rows]) for rows in groups])
    usable = values[~np.isnan(values)]
    if usable.size == 0:
        raise DataError(
            "y_true is the same in every row of each group: there is nothing to rank; check that "
            "qid puts rows to be compared into one group"
        )
    return float(usable.mean())


# Agreement and regret


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Kendall's tau-b of two columns of scores (n,): 1 same order, −1 reversed; ties corrected.

    NaN where either column is constant: it has no order to agree with.

    >>> round(kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]), 4)
    0.6667
    """
    from scipy.stats import kendalltau

    a = _vector("a", a)
    return float(kendalltau(a, _vector("b", b, a.size)).statistic)


def adjusted_rand(a: ArrayLike, b: ArrayLike) -> float:
    """Agreement of two groupings (n,), by labels of any kind: 1 the same, near 0 by chance.

    >>> adjusted_rand([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(a, b))


def regret(best: ArrayLike, achieved: ArrayLike) -> FloatArray:
    """Mean regret after each round (002, Eq. 1): the running mean of best − achieved.

    ``best`` and ``achieved`` (n_rounds,) are utilities (or DCG values) of the best possible and
    of the presented object.

    >>> regret([1.0, 1.0, 1.0], [0.0, 0.5, 1.0])
    array([1.  , 0.75, 0.5 ])
    """
    best = _vector("best", best)
    loss = best - _vector("achieved", achieved, best.size)
    return np.cumsum(loss) / np.arange(1.0, best.size + 1.0)


# Checks of columns


def _vector(name: str, values: ArrayLike, size: int | None = None) -> FloatArray:
    """A finite, non-empty one-dimensional array, of the given size if there is one."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0:
        raise DataError(f"{name} has shape {array.shape}: it must be one non-empty column")
    if size is not None and array.size != size:
        raise DataError(f"{name} has {array.size} entries: it must have {size}, one for each row")
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array))[0])
        raise DataError(f"{name} of row {row} is {array[row]}: every entry must be finite")
    return array


def _probabilities(p: ArrayLike) -> FloatArray:
    array = _vector("p", p)
    if array.min() < 0.0 or array.max() > 1.0:
        row = int(np.flatnonzero((array < 0.0) | (array > 1.0))[0])
        raise DataError(
            f"p of row {row} is {array[row]}: probabilities lie within 0 and 1; pass score "
            "differences through the likelihood first"
        )
    return array


def _weights(counts: ArrayLike | None, size: int) -> FloatArray:
    """How often each row was observed: once each by default."""
    if counts is None:
        return np.ones(size)
    array = _vector("counts", counts, size)
    if array.min() < 0.0 or array.sum() == 0.0:
        raise DataError("counts must not be negative, and not all zero")
    return array
