"""Entries, sums and copies of matrices: what would be NumPy's words if all matrices were NumPy's.

A part of the seam between devices (see `numerics.seam`): vectors are always NumPy's.
"""

from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from penchant.numerics.seam import seam
from penchant.numerics.types import FloatArray, IntArray

entry_seam = partial(seam, module="entries")


@entry_seam()
def host(A: FloatArray) -> FloatArray:
    """A as NumPy's; one that is so already passes through."""
    return A


@entry_seam()
def relative_flops(A: FloatArray, flops: float) -> float:
    """What so many flops on A's device cost, in flops of the host."""
    return flops


@entry_seam(1)
def multiply_sparse(S: sparse.csr_array, A: FloatArray) -> FloatArray:
    """S @ A for a sparse S of the host."""
    product: FloatArray = S @ A
    return product


@entry_seam()
def diagonal(A: FloatArray) -> FloatArray:
    """(n,) the diagonal, to be read."""
    return np.diagonal(A)


@entry_seam()
def add_to_diagonal(A: FloatArray, value: float) -> None:
    """A += value · I."""
    A[np.diag_indices_from(A)] += value


@entry_seam()
def fill_diagonal(A: FloatArray, value: float) -> None:
    """Set the diagonal."""
    np.fill_diagonal(A, value)


@entry_seam()
def add_outer(A: FloatArray, a: FloatArray, b: FloatArray) -> None:
    """A += a bᵀ."""
    A += np.outer(a, b)


@entry_seam()
def subtract(A: FloatArray, S: Any) -> None:
    """A −= S, for a sparse or dense S of the host."""
    A -= S if isinstance(S, np.ndarray) else S.toarray()


@entry_seam()
def row_products(A: FloatArray, B: FloatArray) -> FloatArray:
    """(n,) Σ_j A_ij B_ij."""
    products: FloatArray = np.einsum("ij,ij->i", A, B)
    return products


@entry_seam()
def row_squares(A: FloatArray) -> FloatArray:
    """(n,) Σ_j A_ij²."""
    squares: FloatArray = np.einsum("ij,ij->i", A, A)
    return squares


@entry_seam()
def column_squares(A: FloatArray) -> FloatArray:
    """(n,) Σ_i A_ij²."""
    squares: FloatArray = np.einsum("ij,ij->j", A, A)
    return squares


@entry_seam()
def row_sums(A: FloatArray) -> FloatArray:
    """(n,) Σ_j A_ij."""
    sums: FloatArray = A.sum(axis=1)
    return sums


@entry_seam()
def column_sums(A: FloatArray) -> FloatArray:
    """(n,) Σ_i A_ij."""
    sums: FloatArray = A.sum(axis=0)
    return sums


@entry_seam()
def inner(A: FloatArray, B: FloatArray) -> float:
    """Σ_ij A_ij B_ij."""
    return float(np.vdot(A, B))


@entry_seam()
def leading_columns(A: FloatArray, k: int) -> FloatArray:
    """A[:, :k] in C order."""
    return np.ascontiguousarray(A[:, :k])


@entry_seam()
def stack_rows(A: FloatArray, B: FloatArray) -> FloatArray:
    """A above B, in C order."""
    return np.concatenate([A, B])


@entry_seam()
def take_columns(A: FloatArray, columns: IntArray) -> FloatArray:
    """A[:, columns] in Fortran order."""
    return np.asfortranarray(A[:, columns])


@entry_seam()
def identity_like(A: FloatArray, n: int) -> FloatArray:
    """The (n, n) identity where A lives."""
    return np.eye(n)


@entry_seam()
def zeros_like(A: FloatArray) -> FloatArray:
    """Zeros in the shape of A, where it lives."""
    return np.zeros(A.shape)
