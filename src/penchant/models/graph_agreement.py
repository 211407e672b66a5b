"""How much a relation between items counts beside their features, before any answer.

A relation that says nothing about the features at hand may still say something about utilities, but
at full weight it doubled the error of good features. So its weight follows from how well links
predict one half of the features, held against how well the other half does.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from penchant.kernels import Relation
from penchant.kernels.inputs import Features, as_dense
from penchant.models.features import evenly_spaced
from penchant.numerics.linalg import row_squares
from penchant.numerics.types import FloatArray, IntArray

SAMPLED_LINKS = 5_000
"""Links whose features are compared."""
COMPARED_ITEMS, MOST_COSINES = (16, 128), 1_000_000
"""Fewest and most items whose neighbours are searched, and the most cosines to compute for it."""
SPLITS = 2
"""How many times the features are halved; each half predicts the other."""
MOST_WEIGHT = 30.0
"""Of one source in units of the other: answers can still raise the weaker one."""
FEW_ANSWERS = 30
"""Answers that are typically there; with more, they decide the weights themselves."""
ROUNDING = 1e-9
"""Cosines nearer to each other are the same."""


class Agreement(NamedTuple):
    """Mean similarity in half of the features, in standard deviations above random pairs.

    links: of linked pairs. features: of as many pairs that are nearest in the other half.
    error: standard error of their difference.
    """

    links: float
    features: float
    error: float


def relation_weight(X: Features, relation: Relation) -> float:
    """The weight of a relation beside features of weight one.

    It is the odds that links predict one half of the features at least as well as the other half
    does. The odds are bounded, since what predicts features need not predict utilities. Where
    neither predicts the features, neither is preferred, except that very many unrelated columns
    count little: each takes about one answer to learn.
    """
    if not relation.n_edges:
        return 1.0 / MOST_WEIGHT
    links, features, error = graph_feature_agreement(X, relation)
    more, less = (_evidence(t, error) for t in (links - features, features - links))
    is_chance = 1.0 / (1.0 + _evidence(max(links, features), error))
    odds = (1.0 + more) / (1.0 + less) * max(1.0, min(X.shape) / FEW_ANSWERS) ** is_chance
    return float(np.clip(odds, 1.0 / MOST_WEIGHT, MOST_WEIGHT))


def _evidence(t: float, error: float) -> float:
    """Bayes factor of t > 0 against t = 0, by Schwarz's approximation."""
    # exp(½ z²) / √m with t measured in units of one of m pairs, whose error is m^−½
    return float(np.exp(min(0.5 * (t / error) ** 2, 500.0)) * error) if t > 0.0 else 0.0


def graph_feature_agreement(X: Features, relation: Relation) -> Agreement:
    """How well links and features predict a half of the features; the mean over some splits."""
    n, d = X.shape
    if n < 3 or not relation.n_edges:
        return Agreement(0.0, 0.0, 1.0)
    rng = np.random.default_rng(0)  # the same halves and links every time
    links = sparse.triu(relation.weights, k=1).tocoo()
    chosen = np.arange(links.nnz)
    if links.nnz > SAMPLED_LINKS:
        chosen = rng.choice(links.nnz, SAMPLED_LINKS, replace=False)
    first, second, weight = links.row[chosen], links.col[chosen], links.data[chosen]
    items = evenly_spaced(n, int(np.clip(MOST_COSINES // n, *COMPARED_ITEMS)))
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
    return Agreement(float(by_links), float(by_features), float(error))


def _halves(columns: IntArray) -> tuple[IntArray, IntArray]:
    """Two halves of the columns; a single column is both."""
    middle = len(columns) // 2
    return columns[: max(1, middle)], columns[middle:]


def _mean_degree(weights: FloatArray, n: int) -> int:
    """Mean number of links of an item, unequal weights counted by their effective number."""
    effective = float(weights.sum() ** 2 / (weights @ weights))
    return int(np.clip(round(2.0 * effective / n), 1, n - 2))


def _of_nearest(known: FloatArray, hidden: FloatArray, n_near: int) -> float:
    """Mean hidden cosine over the nearest by known cosine; ties with the last one count."""
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
        """The rows X (n, d) of all items."""
        mean = np.asarray(X.mean(axis=0)).ravel()
        along = np.asarray(X @ mean).ravel() - 0.5 * float(mean @ mean)
        return cls(X, along, np.sqrt(np.maximum(row_squares(X) - 2.0 * along, 0.0)))

    def paired(self, first: IntArray, second: IntArray) -> FloatArray:
        """Cosines (k,) of first[i] and second[i]."""
        left, right = self.X[first], self.X[second]
        if isinstance(left, sparse.sparray):
            product = np.asarray(left.multiply(right).sum(axis=1)).ravel()
        else:
            product = np.einsum("ij,ij->i", left, right)
        product = product - self.along[first] - self.along[second]
        return _ratio(product, self.length[first] * self.length[second])

    def among(self, items: IntArray) -> FloatArray:
        """Cosines (k, n) of some items with every item, minus infinity with themselves."""
        product = self.X[items] @ self.X.T
        product = as_dense(product) if isinstance(product, sparse.sparray) else product
        product -= self.along[items, None] + self.along
        cosines = _ratio(product, self.length[items, None] * self.length)
        cosines[np.arange(len(items)), items] = -np.inf
        return cosines


def _ratio(product: FloatArray, scale: FloatArray) -> FloatArray:
    return np.divide(product, scale, out=np.zeros_like(scale), where=scale > 0.0)
