"""What an estimator chooses when the user does not: scaling and kernels."""

from dataclasses import dataclass

import numpy as np

from penchant.gp import UserHyper
from penchant.gp.users.choice import Start
from penchant.kernels import (
    RBF,
    Constant,
    FreeCovariance,
    Independent,
    Inputs,
    Kernel,
    LowRankCovariance,
    RegularizedLaplacian,
)
from penchant.numerics.types import FloatArray

ARD_FEATURES = 20
"""Up to this many features each gets its own lengthscale; more would outrun the comparisons."""
SMOOTH_START = 5.0
"""First lengthscale, in units of the root mean squared distance of an item from the mean."""
FEW_TWINS = 0.05
"""Share of items that may have the features of another before each gets an effect of its own."""
FREE_ITEMS, LOW_RANK_ITEMS = 60, (20, 400)
"""Most items whose covariance is learned entry by entry; how many it takes, and how many there may
be, for few directions of taste."""
DIRECTIONS = 4
GRAPH_REACH = 50.0
"""First ι² of a graph kernel, in units of the inverse mean degree."""


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
    def of(cls, X: FloatArray) -> "Scaling":
        """Mean and standard deviation per column; a constant column is only centred."""
        low, high = X.min(axis=0), X.max(axis=0)
        two_valued = ((low == X) | (high == X)).all(axis=0)
        spread = np.where(two_valued, 0.5 * (high - low), X.std(axis=0))
        return cls(X.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def apply(self, X: FloatArray) -> FloatArray:
        """Standardised features."""
        return (X - self.center) / self.scale


def utility_kernel(items: Inputs, max_rank: int | None) -> Kernel:
    """The default kernel, with an effect of each item's own where many share all features.

    Items with the same features need not be liked the same. Not so with a bound on the rank,
    which effects of single items would use up, or with relations, which tell items apart.
    """
    kernel = default_kernel(items)
    if items.X is None or items.relations or max_rank is not None or not _has_twins(items.X):
        return kernel
    return kernel + Independent()


def default_kernel(items: Inputs) -> Kernel:
    """An RBF on features plus a graph kernel per relation; independent items without either.

    These are also the values that the evidence falls back on where comparisons are few.
    Lengthscales start beyond the typical distance between items, where the utility is a smooth,
    nearly linear function of the features and leaves room for the relations.
    """
    parts: list[Kernel] = []
    if items.X is not None:
        d = items.X.shape[1]
        start = SMOOTH_START * float(np.sqrt(items.X.var(axis=0).sum())) or 1.0
        parts.append(RBF((start,) * d if d <= ARD_FEATURES else start))
    parts += [_default_graph_kernel(name, items) for name in items.relations]
    if not parts:
        return Independent()
    kernel = parts[0]
    for part in parts[1:]:
        kernel = kernel + part
    return kernel


def taste_kernel(items: Inputs) -> Kernel:
    """How tastes for items go together: learned entry by entry where nothing is known of items."""
    if items.X is not None or items.relations:
        return default_kernel(items) + Independent()
    return FreeCovariance.of(np.eye(len(items))) if len(items) <= FREE_ITEMS else Independent()


def free_start(known: UserHyper, n_items: int) -> UserHyper:
    """A free covariance, begun at the variance and the sharing that independent items learned."""
    variance = _variance(known)
    return known._replace(kernel=FreeCovariance.of(variance * np.eye(n_items)))


def learned_covariances(n_items: int) -> dict[str, Start]:
    """Candidates for a covariance that users teach, as far as the number of items allows."""
    found: dict[str, Start] = {}
    fewest, most = LOW_RANK_ITEMS
    if fewest < n_items <= most:
        found["low rank"] = lambda known: known._replace(
            kernel=LowRankCovariance.begin(n_items, DIRECTIONS, _variance(known))
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


def _has_twins(X: FloatArray) -> bool:
    """Whether many items have the same features as another."""
    return len({row.tobytes() for row in X}) < (1.0 - FEW_TWINS) * len(X)


def _default_graph_kernel(name: str, items: Inputs) -> Kernel:
    """A regularised Laplacian that reaches a few links far, with unit variance on average."""
    laplacian = items.relations[name].laplacian
    n = laplacian.shape[0]
    degree = float(laplacian.diagonal().mean())
    iota = float(np.sqrt(GRAPH_REACH / degree)) if degree > 0 else 1.0
    sample = np.unique(np.linspace(0, n - 1, min(n, 64)).astype(np.intp))
    unscaled = RegularizedLaplacian(name, 1.0, iota)
    return RegularizedLaplacian(name, float(unscaled.diag(items.take(sample)).mean()), iota)
