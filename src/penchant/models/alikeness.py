"""How much a relation counts beside features, before any answer: who foresees features better?

Ten answers cannot tell a good graph from a bad one, but the features can, as far as they know
anything: one half of them is foreseen by links, or by the other half.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from penchant.kernels import Relation
from penchant.kernels.inputs import Features, as_dense, squared_norms
from penchant.models.sources import spread_over
from penchant.numerics.types import FloatArray, IntArray

SAMPLED_LINKS = 5_000
"""Links whose features are compared."""
SAMPLED_ITEMS, MOST_COSINES = (16, 128), 1_000_000
"""Items whose neighbours are sought, at least and at most, and how many cosines that may take."""
SPLITS = 2
"""Ways in which the features are halved; either half is foreseen by the other."""
MOST_WEIGHT = 30.0
"""Of the one source in units of the other: answers can still raise the weaker one."""
FEW_ANSWERS = 30
"""With more, answers themselves say what counts."""
ROUNDING = 1e-9
"""Cosines nearer to each other are the same."""


class Foresight(NamedTuple):
    """How much more alike than random pairs some pairs are in half of the features, in standard
    deviations of random pairs: linked ones, and as many that the other half holds to be nearest;
    and the standard error of the difference.
    """

    links: float
    features: float
    error: float


def relation_weight(X: Features, relation: Relation) -> float:
    """How much a relation counts beside features of weight one.

    These are the odds that links know at least as much about half of the features as the other
    half does, to the contrary; within limits, for to know features is not yet to know utilities.
    Where nobody knows anything of them, nobody is judged; but columns without any order have to be
    learned one by one, for which it takes about as many answers, so that very many count little.
    """
    if not relation.n_edges:
        return 1.0 / MOST_WEIGHT
    links, features, error = foresight(X, relation)
    more, less = (_evidence(t, error) for t in (links - features, features - links))
    is_chance = 1.0 / (1.0 + _evidence(max(links, features), error))
    odds = (1.0 + more) / (1.0 + less) * max(1.0, min(X.shape) / FEW_ANSWERS) ** is_chance
    return float(np.clip(odds, 1.0 / MOST_WEIGHT, MOST_WEIGHT))


def _evidence(t: float, error: float) -> float:
    """For t being positive rather than zero: the Bayes factor by Schwarz's approximation."""
    # exp(½ z²) / √m with t measured in units of one of m pairs, whose error is m^−½
    return float(np.exp(min(0.5 * (t / error) ** 2, 500.0)) * error) if t > 0.0 else 0.0


def foresight(X: Features, relation: Relation) -> Foresight:
    """What links and features know of a half of the features; the mean over some halves."""
    n, d = X.shape
    if n < 3 or not relation.n_edges:
        return Foresight(0.0, 0.0, 1.0)
    rng = np.random.default_rng(0)  # the same halves and links every time
    links = sparse.triu(relation.weights, k=1).tocoo()
    chosen = np.arange(links.nnz)
    if links.nnz > SAMPLED_LINKS:
        chosen = rng.choice(links.nnz, SAMPLED_LINKS, replace=False)
    first, second, weight = links.row[chosen], links.col[chosen], links.data[chosen]
    items = spread_over(n, int(np.clip(MOST_COSINES // n, *SAMPLED_ITEMS)))
    n_near = _mean_degree(links.data, n)
    found = []
    for _ in range(SPLITS):
        halves = [CentredRows.of(X[:, half]) for half in _halves(rng.permutation(d))]
        cosines = [half.among(items) for half in halves]
        for half, hidden, known in zip(halves, cosines, cosines[::-1], strict=True):
            random = hidden[np.isfinite(hidden)]
            linked = float(np.average(half.paired(first, second), weights=weight))
            near = _of_nearest(known, hidden, n_near)
            found.append((np.array([linked, near]) - random.mean()) / (random.std() or np.inf))
    error = np.sqrt(1.0 / len(chosen) + 1.0 / (len(items) * n_near))
    by_links, by_features = np.mean(found, axis=0)
    return Foresight(float(by_links), float(by_features), float(error))


def _halves(columns: IntArray) -> tuple[IntArray, IntArray]:
    """Of the columns; a single one is both."""
    middle = len(columns) // 2
    return columns[: max(1, middle)], columns[middle:]


def _mean_degree(weights: FloatArray, n: int) -> int:
    """Of an item, as many links counted as would weigh the same were all alike."""
    effective = float(weights.sum() ** 2 / (weights @ weights))
    return int(np.clip(round(2.0 * effective / n), 1, n - 2))


def _of_nearest(known: FloatArray, hidden: FloatArray, n_near: int) -> float:
    """Mean of what is hidden over the nearest by what is known; those as near as the last count."""
    least = -np.partition(-known, n_near - 1, axis=1)[:, n_near - 1, None]
    near = (known >= least - ROUNDING) & np.isfinite(known)
    rows: FloatArray = np.where(near, hidden, 0.0).sum(axis=1) / near.sum(axis=1)
    return float(rows.mean())


class CentredRows(NamedTuple):
    """Rows around the mean row; sparse ones are never centred themselves.

    (x − m)·(y − m) = x·y − along(x) − along(y)  with  along(x) = x·m − ½ m·m.
    """

    X: Features
    along: FloatArray
    length: FloatArray

    @classmethod
    def of(cls, X: Features) -> "CentredRows":
        """Of all items."""
        mean = np.asarray(X.mean(axis=0)).ravel()
        along = np.asarray(X @ mean).ravel() - 0.5 * float(mean @ mean)
        return cls(X, along, np.sqrt(np.maximum(squared_norms(X) - 2.0 * along, 0.0)))

    def paired(self, first: IntArray, second: IntArray) -> FloatArray:
        """Cosine (k,) of each of the first with the one in the same place of the second."""
        left, right = self.X[first], self.X[second]
        if isinstance(left, sparse.sparray):
            product = np.asarray(left.multiply(right).sum(axis=1)).ravel()
        else:
            product = np.einsum("ij,ij->i", left, right)
        product = product - self.along[first] - self.along[second]
        return _ratio(product, self.length[first] * self.length[second])

    def among(self, items: IntArray) -> FloatArray:
        """Cosines (k, n) of some with every item, minus infinity with themselves."""
        product = self.X[items] @ self.X.T
        product = as_dense(product) if isinstance(product, sparse.sparray) else product
        product -= self.along[items, None] + self.along
        cosines = _ratio(product, self.length[items, None] * self.length)
        cosines[np.arange(len(items)), items] = -np.inf
        return cosines


def _ratio(product: FloatArray, scale: FloatArray) -> FloatArray:
    ratio: FloatArray = np.divide(product, scale, out=np.zeros_like(scale), where=scale > 0.0)
    return ratio
