"""Kernels without a shape: linear in the features, and no sharing between items at all."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from penchant.kernels.base import Inputs, Leaf, NotGiven, positive
from penchant.kernels.inputs import as_dense, squared_norms
from penchant.kernels.stationary import typical_distance
from penchant.numerics.linalg import diagonal, inner
from penchant.numerics.types import FloatArray


@dataclass(frozen=True)
class Linear(Leaf):
    """Utilities linear in the features: variance · xᵀx'.

    variance: not given, it is 1 outside a fit, and in a fit it starts (or stays, with
    optimize=None) where the difference between two typical items has a variance of two.

    >>> Linear(variance=2.0)(np.array([[1.0, 2.0]]))
    array([[10.]])
    """

    variance: float = positive(NotGiven(1.0), 1e-5, 1e5)

    def at_scale_of(self, items: Inputs) -> "Linear":
        """With a variance that was not given at the scale of the features."""
        if not isinstance(self.variance, NotGiven):
            return self
        return replace(self, variance=2.0 / typical_distance(items.features()) ** 2)

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        X = A.device.matrix(A.features())
        K = (self.variance * X) @ (X if B is None else B.device.matrix(B.features())).T
        return as_dense(K)

    def _diag(self, A: Inputs) -> FloatArray:
        return self.variance * squared_norms(A.features())

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        X = A.device.matrix(A.features())
        if isinstance(X, sparse.sparray):  # one row a word would be dense in G X
            return np.array([np.vdot(G, self._matrix(A, B))])
        met = G @ (X if B is None else B.device.matrix(B.features()))
        return np.array([self.variance * inner(X, met)])


@dataclass(frozen=True)
class Independent(Leaf):
    """What each item has of its own: variance where it is the same item, zero elsewhere.

    Two inputs hold the same item where their positions in the universe agree. Items without a
    position are known by their row only: K(A) is variance · I, and K(A, B) is zero.

    >>> Independent(variance=2.0)(np.ones((2, 1)))
    array([[2., 0.], [0., 2.]])
    """

    variance: float = positive(1.0, 1e-5, 1e5)

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        if B is None and A.index is None:
            rows = np.arange(len(A))
            return A.device.where_equal(rows, rows, self.variance)
        B = A if B is None else B
        if A.index is None or B.index is None:
            return A.device.full((len(A), len(B)), 0.0)
        return A.device.where_equal(A.index, B.index, self.variance)

    def _diag(self, A: Inputs) -> FloatArray:
        return np.full(len(A), self.variance)

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        if A.index is None and B is None:
            return np.array([self.variance * diagonal(G).sum()])
        return np.array([inner(G, self._matrix(A, B))])
