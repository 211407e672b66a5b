"""A Gaussian over weights that one more site changes: O(r²) by rank-one algebra."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penchant.numerics.dispatch import dispatched
from penchant.numerics.linalg import solve_lower
from penchant.numerics.types import FloatArray

BLOCK = 32
"""Columns worked on together: they stay in cache, where whole matrices would not."""


class Growth(NamedTuple):
    """The Cholesky factor M of I + z zᵀ, known in closed form; B + (Lz)(Lz)ᵀ = (LM)(LM)ᵀ.

    With t_k = 1 + Σ_{i≤k} z_i²: M_kk = √(t_k/t_{k−1}) and M_ik = z_i z_k/√(t_k t_{k−1}), i > k.
    Products and solves with it are cumulative sums, so nothing loops in Python.

    >>> L = np.array([[2.0, 0.0], [1.0, 1.0]])
    >>> d = np.array([1.0, 3.0])
    >>> grown = Growth.by(np.linalg.solve(L, d)).lower(L)
    >>> np.allclose(grown @ grown.T, L @ L.T + np.outer(d, d))
    True
    """

    z: FloatArray
    before: FloatArray
    after: FloatArray

    @classmethod
    def by(cls, z: FloatArray) -> "Growth":
        """From z = L⁻¹ d for the change d dᵀ."""
        after = 1.0 + np.cumsum(z * z)
        return cls(z, np.append(1.0, after[:-1]), after)

    def lower(self, lower: FloatArray) -> FloatArray:
        """L M."""
        return grown_lower(lower, self.z, *self._stretch_and_share())

    def half(self, half: FloatArray) -> FloatArray:
        """M⁻¹ half, for half (r, n)."""
        return shrunk_half(half, self.z, *self._stretch_and_share())

    def _stretch_and_share(self) -> tuple[FloatArray, FloatArray]:
        """(r,) M_kk, and z_k/√(t_k t_{k−1})."""
        return np.sqrt(self.after / self.before), self.z / np.sqrt(self.after * self.before)


@dispatched()
def grown_lower(
    lower: FloatArray, z: FloatArray, stretch: FloatArray, share: FloatArray
) -> FloatArray:
    """L M."""
    r = len(lower)
    grown = np.zeros((r, r), order="F")
    for start in range(0, r, BLOCK):
        rows = slice(start, start + BLOCK)
        k = min(start + BLOCK, r)  # what lies right of the diagonal is zero
        part = lower[rows, :k].T
        later = np.cumsum((part * z[:k, None])[::-1], axis=0)[::-1]
        block = part * stretch[:k, None]
        block[:-1] += share[: k - 1, None] * later[1:]
        grown[rows, :k] = block.T
    return grown


@dispatched()
def shrunk_half(
    half: FloatArray, z: FloatArray, stretch: FloatArray, share: FloatArray
) -> FloatArray:
    """M⁻¹ half."""
    shrunk = np.empty(half.shape, order="F")
    for start in range(0, half.shape[1], BLOCK):
        part = half[:, start : start + BLOCK]
        earlier = np.cumsum(part * z[:, None], axis=0)
        block = part / stretch[:, None]
        block[1:] -= share[1:, None] * earlier[:-1]
        shrunk[:, start : start + BLOCK] = block
    return shrunk


@dataclass(frozen=True)
class Weights:
    """Weights w ~ N(mean, (lower lowerᵀ)⁻¹); half: (r, n) lower⁻¹ Φᵀ where it is at hand."""

    mean: FloatArray
    lower: FloatArray
    half: FloatArray | None = None

    def along(self, direction: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """z = lower⁻¹ d, and mean and variance, each (1,), of dᵀ w."""
        z = solve_lower(self.lower, direction)
        return z, np.array([direction @ self.mean]), np.array([z @ z])

    def with_site(self, z: FloatArray, tau: float, pull: float) -> "Weights":
        """After a site of precision `tau` along d that pulls by ν − τ dᵀ mean."""
        growth = Growth.by(np.sqrt(tau) * z)
        gain = pull / (1.0 + tau * float(z @ z))
        return Weights(
            self.mean + gain * solve_lower(self.lower, z, transposed=True),
            growth.lower(self.lower),
            None if self.half is None else growth.half(self.half),
        )
