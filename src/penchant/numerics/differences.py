"""Differences between points along edges: products with their Laplacian, and their variances.

A part of the seam between devices, see `numerics.seam`.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse

from penchant.numerics.linalg import lower_gram, multiply_symmetric
from penchant.numerics.seam import seam
from penchant.numerics.types import FloatArray, IntArray

difference_seam = partial(seam, module="differences")

GRAM_SHARE = 100
"""Form Σ when n² ≤ this × m: a gathered product costs 3 ns a number, a syrk 0.01–0.02 ns a flop."""


class Ends:
    """The two points of every edge: an object, so that a device can keep what it made of them."""

    def __init__(self, winner: IntArray, loser: IntArray) -> None:
        self.winner, self.loser = winner, loser


@difference_seam()
def multiply_laplacian(
    rows: FloatArray,
    ends: Ends,
    weight: FloatArray,
    laplacian: Callable[[FloatArray], sparse.csr_array | FloatArray],
) -> FloatArray:
    """L @ rows in C order, L = Aᵀ diag(weight) A of edges between n points, for rows (n, r).

    laplacian: makes L on the host, where a device does not itself.
    """
    return multiply_symmetric(laplacian(weight), rows)


@difference_seam()
def edge_variances(half: FloatArray, ends: Ends) -> FloatArray:
    """(m,) variances |half_w − half_l|² of differences under Σ = halfᵀ half, half (r, n)."""
    winner, loser = ends.winner, ends.loser
    m, n = len(winner), half.shape[1]
    if n * n <= GRAM_SHARE * m:
        return difference_variances(lower_gram(half), winner, loser)
    rows = np.ascontiguousarray(half.T)
    var: FloatArray = np.empty(m)
    block = max(1, 2**18 // max(rows.shape[1], 1))
    for start in range(0, m, block):
        part = slice(start, start + block)
        difference = rows[winner[part]] - rows[loser[part]]
        var[part] = np.einsum("ij,ij->i", difference, difference)
    return var


def difference_variances(cov: FloatArray, winner: IntArray, loser: IntArray) -> FloatArray:
    """(m,) variances of differences, from the lower triangle of a covariance (n, n)."""
    d = np.diagonal(cov)
    high, low = np.maximum(winner, loser), np.minimum(winner, loser)
    var: FloatArray = d[high] + d[low] - 2.0 * cov[high, low]
    return var
