"""How far two rankings, or two ways to group the same people, agree."""

from numpy.typing import ArrayLike
from scipy.stats import kendalltau
from sklearn.metrics import adjusted_rand_score

from penchant.metrics import check


def kendall_tau(a: ArrayLike, b: ArrayLike) -> float:
    """Kendall's tau-b of two columns of scores (n,): 1 same order, −1 reversed; ties corrected.

    NaN where either column is constant: it has no order to agree with.

    >>> round(kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]), 4)
    0.6667
    """
    a = check.vector("a", a)
    return float(kendalltau(a, check.vector("b", b, a.size)).statistic)


def adjusted_rand(a: ArrayLike, b: ArrayLike) -> float:
    """Agreement of two groupings (n,), by labels of any kind: 1 the same, near 0 by chance.

    >>> adjusted_rand([0, 0, 1, 1], ["x", "x", "y", "y"])
    1.0
    """
    return float(adjusted_rand_score(a, b))
