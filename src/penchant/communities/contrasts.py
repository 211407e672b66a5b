"""What sets communities apart: their items, the items' attributes, and who their members are."""

import numpy as np

from penchant.numerics.types import FloatArray, IntArray

RIDGE = 1e-3
"""Keeps slopes finite where attributes repeat each other; relative to one unit of variance."""


def directions(utilities: FloatArray, k: int) -> tuple[FloatArray, FloatArray]:
    """Principal directions of people's utilities (U, n), fewer than k where there are no more.

    Returns their shares of all variance of taste (k,), the widest first, and the items' loadings
    (k, n). Of each direction the item that divides people most is on the positive side.

    >>> people = np.array([[1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]])
    >>> directions(people, 2)[0]
    array([1.])
    """
    apart = utilities - utilities.mean(axis=1, keepdims=True)
    apart -= apart.mean(axis=0)
    _, size, right = np.linalg.svd(apart, full_matrices=False)
    k = min(k, int(np.count_nonzero(size > 1e-6 * max(float(np.abs(utilities).max()), 1e-300))))
    sides = np.sign(right[np.arange(k), np.abs(right[:k]).argmax(axis=1)])
    share = size[:k] ** 2 / max(float(size @ size), np.finfo(np.float64).tiny)
    return share, right[:k] * sides[:, None]


def standardise(utilities: FloatArray) -> FloatArray:
    """(C, n) utilities with mean 0 and deviation 1 in each community: scales differ, taste counts.

    >>> standardise(np.array([[1.0, 3.0]]))
    array([[-1., 1.]])
    """
    centred = utilities - utilities.mean(axis=1, keepdims=True)
    scale = centred.std(axis=1, keepdims=True)
    return centred / np.where(scale > 0.0, scale, 1.0)


def item_agreement(utilities: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n,) how much communities like each item on average, and how far they differ.

    utilities: (C, n); weight: (C,) summing to one.

    >>> utilities = np.array([[2.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    >>> item_agreement(utilities, np.array([0.5, 0.5]))[1].round(2)
    array([0. , 0.61, 0.61])
    """
    liking = standardise(utilities)
    mean = weight @ liking
    return mean, np.sqrt(weight @ (liking - mean) ** 2)


def distinctiveness(utilities: FloatArray, weight: FloatArray) -> FloatArray:
    """(C, n): how much more each community likes an item than the others do on average."""
    return _against_others(standardise(utilities), weight)


def attribute_slopes(utilities: FloatArray, X: FloatArray, weight: FloatArray) -> FloatArray:
    """(C, d): how much more each attribute draws a community than it draws the others.

    Slopes of the standardised utilities on the standardised attributes (n, d), all at once.
    """
    Z = X - X.mean(axis=0)
    scale = Z.std(axis=0)
    Z /= np.where(scale > 0.0, scale, 1.0)
    gram = Z.T @ Z / len(Z) + RIDGE * np.eye(Z.shape[1])
    slopes = np.linalg.solve(gram, Z.T @ standardise(utilities).T / len(Z)).T
    return _against_others(slopes, weight)


def feature_contrasts(membership: FloatArray, features: FloatArray) -> FloatArray:
    """(C, q): how unusual a community's mean user feature is, in standard errors.

    membership (U, C) weighs the users; the comparison is with the users outside.
    """
    inside, tiny = membership.sum(axis=0), np.finfo(np.float64).tiny
    outside = len(membership) - inside
    own = membership.T @ features
    gap = own / np.maximum(inside, tiny)[:, None]
    gap -= (features.sum(axis=0) - own) / np.maximum(outside, tiny)[:, None]
    variance = features.var(axis=0)
    inverse_sizes = 1.0 / np.maximum(inside, 1.0) + 1.0 / np.maximum(outside, 1.0)
    return gap / np.sqrt(np.maximum(inverse_sizes[:, None] * variance, tiny))


def value_win_rates(
    pair_counts: FloatArray, winner: IntArray, loser: IntArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How often items with each value of one attribute win, by community (paper 004, Table 2).

    pair_counts: (C, m) answers by community; values: (n,) the attribute of each item. Only
    answers between items that differ in it count. Returns the values (v,) and rates (C, v).
    """
    levels, level_of = np.unique(values, return_inverse=True)
    won, lost = level_of[winner], level_of[loser]
    differ = won != lost
    wins, losses = (
        np.stack([np.bincount(level[differ], c[differ], len(levels)) for c in pair_counts])
        for level in (won, lost)
    )
    return levels, wins / np.maximum(wins + losses, 1.0)


def _against_others(values: FloatArray, weight: FloatArray) -> FloatArray:
    """(C, k) values less the weighted mean of the other communities' values."""
    if len(values) == 1:
        return np.zeros_like(values)
    others = (weight @ values - weight[:, None] * values) / (1.0 - weight)[:, None]
    return values - others
