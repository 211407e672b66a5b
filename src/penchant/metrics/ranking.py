"""Scores against true grades within groups such as queries; agreement of rankings; regret.

Where scores are tied, nothing depends on the order of the rows: each metric says how it treats
the tie. Groups in which nothing can be ranked are left out of the average.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import kendalltau
from sklearn.metrics import adjusted_rand_score, average_precision_score, roc_auc_score

from penchant.errors import DataError
from penchant.metrics.pairs import as_vector, as_weights, rows_of_groups
from penchant.numerics.types import FloatArray

Gain = Literal["linear", "exponential"]


def auc(scores: ArrayLike, relevant: ArrayLike, counts: ArrayLike | None = None) -> float:
    """P(a relevant item scores above an irrelevant one); a tied score counts half.

    ``scores`` (n,), ``relevant`` (n,) true or false, ``counts`` (n,) optional weights.

    >>> auc([0.9, 0.4, 0.4, 0.1], [True, True, False, False])
    0.875
    """
    scores = as_vector("scores", scores)
    positive = as_vector("relevant", relevant, scores.size) > 0.0
    if positive.all() or not positive.any():
        raise DataError(
            f"relevant is {bool(positive[0])} in every row: the area under the curve compares "
            "relevant with irrelevant items and needs both"
        )
    return float(roc_auc_score(positive, scores, sample_weight=as_weights(counts, scores.size)))


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
    preferences = _different_pairs(y)
    if preferences == 0:
        return np.nan
    distinct = _different_pairs(score)
    if distinct == 0:
        return 0.5
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
    gains = _gains(as_vector("relevance_in_order", relevance_in_order), gain)
    return _discounted(gains, _depth(k, gains.size))


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
    if np.min(as_vector("y_true", y_true)) < 0.0:
        raise DataError("y_true has negative grades: shift them, so that the worst grade is zero")

    def of_group(y: FloatArray, score: FloatArray) -> float:
        gains, depth = _gains(y, gain), _depth(k, y.size)
        ideal = _discounted(np.sort(gains)[::-1], depth)
        return _discounted(_gains_by_score(gains, score), depth) / ideal if ideal > 0 else np.nan

    return _group_mean(of_group, y_true, y_score, qid)


def mean_average_precision(
    y_true: ArrayLike, y_score: ArrayLike, qid: ArrayLike | None = None
) -> float:
    """Average precision of each group, averaged over those with a relevant row (y_true > 0).

    Precision is taken where the score drops, so that tied rows are retrieved together.

    >>> round(mean_average_precision([1, 0, 1, 0], [4.0, 3.0, 2.0, 1.0]), 4)
    0.8333
    """

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
    y = as_vector("y_true", y_true)
    score = as_vector("y_score", y_score, y.size)
    values = np.array([metric(y[rows], score[rows]) for rows in rows_of_groups(qid, y.size)])
    usable = values[~np.isnan(values)]
    if usable.size == 0:
        raise DataError(
            "y_true is the same in every row of each group: there is nothing to rank; check that "
            "qid puts rows to be compared into one group"
        )
    return float(usable.mean())


def _gains(grades: FloatArray, gain: Gain) -> FloatArray:
    if gain not in ("linear", "exponential"):
        raise DataError(f"gain is {gain!r}: it must be 'linear' or 'exponential'")
    return grades if gain == "linear" else np.exp2(grades) - 1.0


def _depth(k: int | None, size: int) -> int:
    if k is not None and k < 1:
        raise DataError(f"k is {k}: it must be at least 1, or None for the whole list")
    return size if k is None else min(k, size)


def _discounted(gains: FloatArray, depth: int) -> float:
    return float(gains[:depth] @ (1.0 / np.log2(np.arange(2.0, depth + 2.0))))


def _gains_by_score(gains: FloatArray, score: FloatArray) -> FloatArray:
    """Gains in the order of falling scores, tied ones replaced by their mean."""
    _, member, size = np.unique(-score, return_inverse=True, return_counts=True)
    return np.repeat(np.bincount(member, gains) / size, size)


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Kendall's tau-b of two columns of scores (n,): 1 same order, −1 reversed; ties corrected.

    NaN where either column is constant: it has no order to agree with.

    >>> round(kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]), 4)
    0.6667
    """
    a = as_vector("a", a)
    return float(kendalltau(a, as_vector("b", b, a.size)).statistic)


def adjusted_rand(a: ArrayLike, b: ArrayLike) -> float:
    """Agreement of two groupings (n,), by labels of any kind: 1 the same, near 0 by chance.

    >>> adjusted_rand([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    return float(adjusted_rand_score(a, b))


def regret(best: ArrayLike, achieved: ArrayLike) -> FloatArray:
    """Mean regret after each round (002, Eq. 1): the running mean of best − achieved.

    ``best`` and ``achieved`` (n_rounds,) are utilities (or DCG values) of the best possible and
    of the presented object.

    >>> regret([1.0, 1.0, 1.0], [0.0, 0.5, 1.0])
    array([1.  , 0.75, 0.5 ])
    """
    best = as_vector("best", best)
    loss = best - as_vector("achieved", achieved, best.size)
    return np.cumsum(loss) / np.arange(1.0, best.size + 1.0)
