"""What an estimator chooses when the user does not: scaling and kernels."""

from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
from scipy import sparse

from penchant.gp import Start, UserHyper
from penchant.kernels import (
    RBF,
    Constant,
    FreeCovariance,
    GraphKernel,
    Independent,
    Inputs,
    Kernel,
    LowRankCovariance,
    RegularizedLaplacian,
)
from penchant.kernels.inputs import Features, squared_norms
from penchant.models.alikeness import relation_weight
from penchant.models.sources import difference_variance, typical_variance
from penchant.numerics.types import FloatArray, IntArray

ARD_FEATURES = 20
"""Up to this many features each gets its own lengthscale; more would outrun the comparisons."""
RELEVANCE_FEATURES = 100
"""Up to this many each does where utilities are of everybody: shrunk towards a common value."""
SMOOTH_START = 5.0
"""First lengthscale, in units of the root mean squared distance of an item from the mean."""
ARBITRATED_START = 2.0
"""The same where the variance of a difference is set: the kernel's variance is then a few times
that of a difference, and a feature that explains little data can not make it much larger."""
OWN_EFFECT = 0.3
"""First variance of what features do not tell of an item, in units of an answer's noise: the
smallest of .1, .2, .3 and 1 at which intervals of simulated studies cover as they should."""
FEW_TWINS = 0.05
"""Share of items that may have the features of another before features say so little that an
item's own effect starts at variance one."""
FREE_ITEMS, LOW_RANK_ITEMS = 60, (20, 400)
"""Most items whose covariance is learned entry by entry; how many it takes, and how many there may
be, for few directions of taste."""
DIRECTIONS = 4
GRAPH_REACH = 50.0
"""First ι² of a graph kernel, in units of the inverse mean degree."""
DIFFERENCE = 2.0
"""First variance of a random difference, in units of an answer's noise: that of independent items
of variance one, and what each source brings where there are features or relations."""


@dataclass(frozen=True)
class Scaling:
    """Centre and scale of each feature, so that one default lengthscale suits all.

    A two-valued column is scaled as if both values were equally frequent: dividing a rare flag
    by its standard deviation would make a giant of it.

    >>> Scaling.of(np.array([[0.0], [2.0]])).apply(np.array([[2.0]]))
    array([[1.]])
    """

    center: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, X: Features) -> "Scaling":
        """Mean and standard deviation per column; a constant column is only centred.

        Sparse features are only scaled: centred they would be dense, and kernels of distances
        do not see a centre.
        """
        if isinstance(X, sparse.sparray):
            return cls(np.zeros(X.shape[1]), _sparse_scale(X))
        low, high = X.min(axis=0), X.max(axis=0)
        two_valued = ((low == X) | (high == X)).all(axis=0)
        spread = np.where(two_valued, 0.5 * (high - low), X.std(axis=0))
        return cls(X.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def apply(self, X: Features) -> Features:
        """Standardised features."""
        if not isinstance(X, sparse.sparray):
            scaled: FloatArray = (X - self.center) / self.scale
            return scaled
        if self.center.any():  # the fit saw dense features, so the same rows must be dense here
            return self.apply(X.toarray())
        return sparse.csr_array(X @ sparse.diags_array(1.0 / self.scale))


def _sparse_scale(X: sparse.csr_array) -> FloatArray:
    """As of dense columns, from the stored values and the number of zeros alone."""
    n, columns = X.shape[0], X.tocsc()
    columns.eliminate_zeros()
    stored = np.diff(columns.indptr)
    low = columns.min(axis=0).toarray().ravel()
    high = columns.max(axis=0).toarray().ravel()
    column = np.repeat(np.arange(X.shape[1]), stored)
    between = (columns.data != low[column]) & (columns.data != high[column])
    inside = np.bincount(column, between, minlength=X.shape[1]) > 0
    inside |= (stored < n) & (low < 0.0) & (high > 0.0)
    mean = np.asarray(columns.mean(axis=0)).ravel()
    square = np.asarray(columns.multiply(columns).mean(axis=0)).ravel()
    spread = np.where(inside, np.sqrt(np.maximum(square - mean**2, 0.0)), 0.5 * (high - low))
    return np.where(spread > 0, spread, 1.0)


def utility_kernel(items: Inputs, max_rank: int | None) -> Kernel:
    """The default kernel, with an effect of each item's own beside features."""
    return _with_effects(default_kernel(items), items, max_rank)


def arbitrated_kernel(items: Inputs, max_rank: int | None) -> Kernel:
    """The same on one scale: each source brings one variance of a difference.

    What features and relations bring is divided between them by who knows features better.
    """
    parts = list(default_kernel(items, ARBITRATED_START, RELEVANCE_FEATURES).parts)
    if items.X is not None or items.relations:
        weight = np.array([_weight(part, items) for part in parts])
        variances = DIFFERENCE * weight / weight.mean()
        parts = [_at_variance(*each, items) for each in zip(parts, variances, strict=True)]
    return _with_effects(reduce(add, parts), items, max_rank)


def _with_effects(kernel: Kernel, items: Inputs, max_rank: int | None) -> Kernel:
    """Add an effect of each item's own: features do not tell all, and intervals must allow for it.

    Its variance is learned under the weak prior around this start. With a bound on the rank there
    is no such effect, since it would use up the rank; with relations the graph kernels have it.
    """
    if items.X is None or items.relations or max_rank is not None:
        return kernel
    return kernel + Independent(1.0 if _has_twins(items.X) else OWN_EFFECT)


def _weight(part: Kernel, items: Inputs) -> float:
    """How much a source counts before any answer, in units of the features'."""
    if items.X is None or not isinstance(part, RegularizedLaplacian):
        return 1.0
    return relation_weight(items.X, items.relations[part.relation])


def _at_variance(part: Kernel, variance: float, items: Inputs) -> Kernel:
    """The same part with another variance of a random difference, if it has any at all."""
    measure = typical_variance if isinstance(part, GraphKernel) else difference_variance
    now = measure(part, items)
    factor = variance / now if now > 0.0 else 1.0
    if isinstance(part, RBF):
        return replace(part, variance=factor * part.variance)
    if isinstance(part, RegularizedLaplacian):
        return replace(part, beta=part.beta / factor)
    return part


def default_kernel(
    items: Inputs, smooth: float = SMOOTH_START, most_lengthscales: int = ARD_FEATURES
) -> Kernel:
    """An RBF on features plus a graph kernel per relation; independent items without either.

    These are also the values that the evidence falls back on where comparisons are few.
    Lengthscales start beyond the typical distance between items, where the utility is a smooth,
    nearly linear function of the features and leaves room for the relations.
    """
    parts: list[Kernel] = []
    if items.X is not None:
        d, each = items.X.shape[1], not isinstance(items.X, sparse.sparray)
        start = smooth * float(np.sqrt(_total_variance(items.X))) or 1.0
        parts.append(RBF((start,) * d if each and d <= most_lengthscales else start))
    parts += [_default_graph_kernel(name, items) for name in items.relations]
    if not parts:
        return Independent()
    return reduce(add, parts)


def taste_kernel(items: Inputs) -> Kernel:
    """How tastes for items go together: learned entry by entry where nothing is known of items."""
    if items.X is not None or items.relations:
        return default_kernel(items) + Independent()
    return FreeCovariance.of(np.eye(len(items))) if len(items) <= FREE_ITEMS else Independent()


def free_start(known: UserHyper, n_items: int) -> UserHyper:
    """A free covariance, begun at the variance and the sharing that independent items learned."""
    kernel = FreeCovariance.of(_variance(known) * np.eye(n_items))
    return known._replace(kernel=kernel.around(kernel))


def learned_covariances(place: IntArray) -> dict[str, Start]:
    """Candidates for a covariance that users teach, as far as the number of items allows.

    place: (n_items,) of each item in an order that does not depend on names.
    """
    found: dict[str, Start] = {}
    n_items = len(place)
    fewest, most = LOW_RANK_ITEMS
    if fewest < n_items <= most:
        found["low rank"] = lambda known: known._replace(
            kernel=LowRankCovariance.begin(place, DIRECTIONS, _variance(known))
        )
    if n_items <= FREE_ITEMS:
        found["free"] = lambda known: free_start(known, n_items)
    return found


def _variance(known: UserHyper) -> float:
    return float(known.kernel.diag(Inputs(index=np.zeros(1, dtype=np.intp)))[0])


def sharing_kernel(users: Inputs) -> Kernel:
    """What users share: a population mean, and what their features and relations say."""
    if users.X is None and not users.relations:
        return Constant(1.0)
    return 1.0 + default_kernel(users)


def _total_variance(X: Features) -> float:
    """Mean squared distance of a row from the mean row."""
    if not isinstance(X, sparse.sparray):
        return float(X.var(axis=0).sum())
    mean = np.asarray(X.mean(axis=0)).ravel()
    return float(squared_norms(X).mean() - mean @ mean)


def _has_twins(X: Features) -> bool:
    """Whether many items have the same features as another."""
    n = int(X.shape[0])
    if isinstance(X, sparse.sparray):
        rows = X.sorted_indices()
        ends = zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
        different = {rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in ends}
    else:
        different = {row.tobytes() for row in X}
    return len(different) < (1.0 - FEW_TWINS) * n


def _default_graph_kernel(name: str, items: Inputs) -> Kernel:
    """A regularised Laplacian that reaches a few links far, with unit variance on average."""
    laplacian = items.relations[name].laplacian
    n = laplacian.shape[0]
    degree = float(laplacian.diagonal().mean())
    iota = float(np.sqrt(GRAPH_REACH / degree)) if degree > 0 else 1.0
    sample = np.unique(np.linspace(0, n - 1, min(n, 64)).astype(np.intp))
    unscaled = RegularizedLaplacian(name, 1.0, iota)
    return RegularizedLaplacian(name, float(unscaled.diag(items.take(sample)).mean()), iota)
