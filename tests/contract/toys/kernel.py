"""A kernel in one file: items are alike if their first feature has the same sign."""

from dataclasses import dataclass

import numpy as np

from penchant.kernels import Leaf, positive


@dataclass(frozen=True)
class SameSign(Leaf):
    variance: float = positive(1.0, 1e-3, 1e3)

    def _matrix(self, A, B):
        signs = [np.sign(items.features()[:, 0]) for items in (A, A if B is None else B)]
        return self.variance * (signs[0][:, None] == signs[1]).astype(float)

    def _diag(self, A):
        return np.full(len(A), self.variance)

    def _pullback(self, A, G, B):
        return np.array([np.sum(G * self._matrix(A, B))])
