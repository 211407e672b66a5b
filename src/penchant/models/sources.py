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
)
from penchant.numerics.linalg import host
from penchant.numerics.types import IntArray

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
