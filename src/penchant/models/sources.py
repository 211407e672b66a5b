"""What a prior is made of: features, relations, item effects, all measured on one scale.

The scale is the prior variance of a *random difference*, mean over pairs of items of
K_ii + K_jj − 2 K_ij: answers are about differences, and a variance that all items share says
nothing about any answer.
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
from penchant.kernels.inputs import Features, squared_norms
from penchant.numerics.types import FloatArray, IntArray

SAMPLED_ITEMS = 128
"""Items whose differences stand for all: their 8,128 pairs give the mean within a few percent."""
SAMPLED_PAIRS = 5_000
"""Links, and as many random pairs, whose features are compared."""
LEAST_WEIGHT, MOST_WEIGHT = 0.1, 30.0
"""Of a relation, in units of the features': what is nearly nothing can still be raised by answers,
and features keep a say beside the best relation."""


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
    K = kernel(items.take(spread_over(len(items), SAMPLED_ITEMS)))
    n = len(K)
    if n < 2:
        return 0.0
    # mean over i ≠ j of K_ii + K_jj − 2 K_ij
    return max(0.0, float(2.0 * (n * np.trace(K) - K.sum()) / (n * (n - 1))))


def spread_over(n: int, size: int) -> IntArray:
    """Up to `size` positions evenly over n: the same ones every time."""
    return np.unique(np.linspace(0, n - 1, min(n, size)).round().astype(np.intp))


def relation_weight(X: Features, relation: Relation) -> float:
    """How much a relation counts beside features of weight one, before any answer.

    Ten answers cannot tell a good graph from a bad one, but the features can: of t, how much more
    alike linked items are than random ones, in standard deviations of random pairs. Were these
    similarities normal, a linked pair's would speak for a link with odds of exp(t²) on average
    (one more than the χ² divergence): exp(t²) − 1 is nothing where links say nothing.
    """
    t = max(0.0, alikeness(X, relation))
    return float(np.clip(np.expm1(min(t, 10.0) ** 2), LEAST_WEIGHT, MOST_WEIGHT))


def alikeness(X: Features, relation: Relation) -> float:
    """How much more alike the features of linked items are, in standard deviations.

    The mean centred cosine of linked items, weighted as the links are, less that of random pairs,
    divided by the standard deviation of the latter. Zero where there is nothing to compare.
    """
    links = sparse.triu(relation.weights, k=1).tocoo()
    n = X.shape[0]
    if n < 3 or not links.nnz:
        return 0.0
    rng = np.random.default_rng(0)  # the same links and pairs every time
    chosen = np.arange(links.nnz)
    if links.nnz > SAMPLED_PAIRS:
        chosen = rng.choice(links.nnz, SAMPLED_PAIRS, replace=False)
    if n * (n - 1) <= 2 * SAMPLED_PAIRS:
        first, second = np.triu_indices(n, k=1)
    else:
        first = rng.integers(n, size=SAMPLED_PAIRS)
        second = (first + 1 + rng.integers(n - 1, size=SAMPLED_PAIRS)) % n
    random = _cosines(X, first, second)
    linked = _cosines(X, links.row[chosen], links.col[chosen])
    spread = float(random.std())
    if spread == 0.0:
        return 0.0
    return float((np.average(linked, weights=links.data[chosen]) - random.mean()) / spread)


def _cosines(X: Features, first: IntArray, second: IntArray) -> FloatArray:
    """Cosine of pairs of rows around the mean row; sparse rows are never centred themselves."""
    mean = np.asarray(X.mean(axis=0)).ravel()
    along = np.asarray(X @ mean).ravel()
    # (x − m)·(y − m) = x·y − x·m − y·m + m·m
    square = float(mean @ mean)
    norm = np.sqrt(np.maximum(squared_norms(X) - 2.0 * along + square, 0.0))
    left, right = X[first], X[second]
    if isinstance(left, sparse.sparray):
        product = np.asarray(left.multiply(right).sum(axis=1)).ravel()
    else:
        product = np.einsum("ij,ij->i", left, right)
    product = product - along[first] - along[second] + square
    scale = norm[first] * norm[second]
    cosines: FloatArray = np.divide(product, scale, out=np.zeros_like(scale), where=scale > 0.0)
    return cosines
