"""What an estimator chooses when the user does not: scaling and kernels."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penchant.kernels import RBF, Independent, Kernel, RegularizedLaplacian, Relation
from penchant.numerics.types import FloatArray

ARD_FEATURES = 20
"""Up to this many features each gets its own lengthscale; more would outrun the comparisons."""


@dataclass(frozen=True)
class Scaling:
    """Centre and scale of each feature, so that one default lengthscale suits all.

    >>> Scaling.of(np.array([[0.0], [2.0]])).apply(np.array([[2.0]]))
    array([[1.]])
    """

    center: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, X: FloatArray) -> "Scaling":
        """Mean and standard deviation per column; a constant column is only centred."""
        spread = X.std(axis=0)
        return cls(X.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def apply(self, X: FloatArray) -> FloatArray:
        """Standardised features."""
        return (X - self.center) / self.scale


def default_kernel(X: FloatArray | None, relations: Mapping[str, Relation]) -> Kernel:
    """An RBF on features plus a graph kernel per relation; independent items without either.

    Standardised features put typical items √(2d) apart, hence lengthscales that start at √d.
    """
    parts: list[Kernel] = []
    if X is not None:
        d = X.shape[1]
        start = float(np.sqrt(d))
        parts.append(RBF((start,) * d if d <= ARD_FEATURES else start))
    parts += [RegularizedLaplacian(name) for name in relations]
    if not parts:
        return Independent()
    kernel = parts[0]
    for part in parts[1:]:
        kernel = kernel + part
    return kernel
