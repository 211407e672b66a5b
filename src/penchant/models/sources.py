"""How much a relation counts beside features, before any answer: who foresees features better?

Ten answers cannot tell a good graph from a bad one, but the features can, as far as they know
anything: one half of them is foreseen by links, or by the other half.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import sparse

from penchant.gp import Report
from penchant.kernels import (
    RBF,
    FreeCovariance,
    GraphKernel,
    Independent,
    Inputs,
    Kernel,
    Linear,
    LowRankCovariance,
    Matern,
    Product,
    Relation,
)
from penchant.kernels.inputs import Features, as_dense, squared_norms
from penchant.numerics.linalg import host
from penchant.numerics.types import FloatArray, IntArray

SAMPLED_ITEMS = 128
"""Items whose differences stand for all: their 8,128 pairs give the mean within a few percent."""


class SourceShare(NamedTuple):
    """Of the prior variance of a random difference: where it began, and after the answers."""

    prior: float
    posterior: float


@dataclass(frozen=True)
class SourcesReport(Report):
    """How inference went, and what each source counts in the prior, see `shares`."""

    shares: Mapping[str, SourceShare] = field(default_factory=dict)


def shares(start: Kernel, learned: Kernel, items: Inputs) -> dict[str, SourceShare]:
    """The share of each source, before and after the answers; each column adds up to one.

    A source that only the answers called for has a prior share of zero.

    >>> from penchant.kernels import RBF
    >>> items = Inputs(np.arange(4.0)[:, None], index=np.arange(4))
    >>> found = shares(RBF(), RBF() + Independent(), items)
    >>> found["features"].prior, found["item effects"].prior
    (1.0, 0.0)
    """
    before, after = _by_source(start, items), _by_source(learned, items)
    names = dict.fromkeys([*before, *after])
    return {name: SourceShare(before.get(name, 0.0), after.get(name, 0.0)) for name in names}


def _by_source(kernel: Kernel, items: Inputs) -> dict[str, float]:
    variance = np.array([difference_variance(part, items) for part in kernel.parts])
    total = float(variance.sum()) or 1.0
    told: Counter[str] = Counter()
    found: dict[str, float] = {}
    for part, share in zip(kernel.parts, (variance / total).tolist(), strict=True):
        name = source_name(part)
        told[name] += 1
        found[name if told[name] == 1 else f"{name} {told[name]}"] = share
    return found


def source_name(kernel: Kernel) -> str:
    """What a part of a prior looks at.

    >>> source_name(Independent()), source_name(Linear() * Independent())
    ('item effects', 'features × item effects')
    """
    if isinstance(kernel, Product):
        return " × ".join(map(source_name, kernel.kernels))
    if isinstance(kernel, GraphKernel):
        return kernel.relation
    if isinstance(kernel, Independent):
        return "item effects"
    if isinstance(kernel, RBF | Matern | Linear):
        return "features"
    if isinstance(kernel, FreeCovariance | LowRankCovariance):
        return "learned covariance"
    return type(kernel).__name__


def difference_variance(kernel: Kernel, items: Inputs) -> float:
    """Prior variance of the difference between two random items; linear in their number.

    >>> difference_variance(Independent(3.0), Inputs(index=np.arange(5)))
    6.0
    """
    K = host(kernel(items.take(spread_over(len(items), SAMPLED_ITEMS))))
    n = len(K)
    if n < 2:
        return 0.0
    # mean over i ≠ j of K_ii + K_jj − 2 K_ij
    return max(0.0, float(2.0 * (n * np.trace(K) - K.sum()) / (n * (n - 1))))


def typical_variance(kernel: Kernel, items: Inputs) -> float:
    """The median instead of the mean: few items that stand alone in a graph differ most from all.

    >>> typical_variance(Independent(3.0), Inputs(index=np.arange(5)))
    6.0
    """
    K = host(kernel(items.take(spread_over(len(items), SAMPLED_ITEMS))))
    first, second = np.triu_indices(len(K), k=1)
    if not len(first):
        return 0.0
    own = np.diagonal(K)
    return float(np.median(own[first] + own[second] - 2.0 * K[first, second]))


def spread_over(n: int, size: int) -> IntArray:
    """Up to `size` positions evenly over n: the same ones every time."""
    return np.unique(np.linspace(0, n - 1, min(n, size)).round().astype(np.intp))


SAMPLED_LINKS = 5_000
"""Links whose features are compared."""
COMPARED_ITEMS, MOST_COSINES = (16, 128), 1_000_000
"""Items whose neighbours are sought, at least and at most, and how many cosines that may take."""
SPLITS = 2
"""Ways in which the features are halved; either half is foreseen by the other."""
MOST_WEIGHT = 30.0
"""Of the one source in units of the other: answers can still raise the weaker one."""
FEW_ANSWERS = 30
"""With more, answers themselves say what counts."""
ROUNDING = 1e-9
"""Cosines nearer to each other are the same."""


class Agreement(NamedTuple):
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
    links, features, error = graph_feature_agreement(X, relation)
    more, less = (_evidence(t, error) for t in (links - features, features - links))
    is_chance = 1.0 / (1.0 + _evidence(max(links, features), error))
    odds = (1.0 + more) / (1.0 + less) * max(1.0, min(X.shape) / FEW_ANSWERS) ** is_chance
    return float(np.clip(odds, 1.0 / MOST_WEIGHT, MOST_WEIGHT))


def _evidence(t: float, error: float) -> float:
    """For t being positive rather than zero: the Bayes factor by Schwarz's approximation."""
    # exp(½ z²) / √m with t measured in units of one of m pairs, whose error is m^−½
    return float(np.exp(min(0.5 * (t / error) ** 2, 500.0)) * error) if t > 0.0 else 0.0


def graph_feature_agreement(X: Features, relation: Relation) -> Agreement:
    """What links and features know of a half of the features; the mean over some halves."""
    n, d = X.shape
    if n < 3 or not relation.n_edges:
        return Agreement(0.0, 0.0, 1.0)
    rng = np.random.default_rng(0)  # the same halves and links every time
    links = sparse.triu(relation.weights, k=1).tocoo()
    chosen = np.arange(links.nnz)
    if links.nnz > SAMPLED_LINKS:
        chosen = rng.choice(links.nnz, SAMPLED_LINKS, replace=False)
    first, second, weight = links.row[chosen], links.col[chosen], links.data[chosen]
    items = spread_over(n, int(np.clip(MOST_COSINES // n, *COMPARED_ITEMS)))
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
