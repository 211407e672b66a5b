"""`numerics.entries` on torch's matrices, and how they come there: functions of the same names.

Vectors come and go as NumPy's. Sums run in a fixed order, so the same numbers come out each time.
"""

import warnings
from typing import Any

import numpy as np
import torch
from scipy import sparse

from penchant.numerics.types import FloatArray, IntArray

Tensor = Any
"""torch's; it is not installed where types are checked."""

CUDA_SPEED = 3000.0
"""Flops that a card does while the host does one."""
CHUNK = 2**27
"""Most numbers of a temporary: one gigabyte."""

with warnings.catch_warnings():
    # torch says once that its CSR matrices are in beta; products with them are cuSPARSE's
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1))


def up(array: Any, device: Any) -> Tensor:
    """The array on the device, in its own memory order."""
    if isinstance(array, torch.Tensor):
        return array
    if not array.flags.writeable:  # torch has no tensors that are only read
        array = array.copy(order="K")
    if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous:
        return torch.from_numpy(np.ascontiguousarray(array.T)).to(device).T
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def host(A: Tensor) -> Any:
    """A copy as NumPy's."""
    return A.detach().cpu().numpy()


def relative_flops(A: Tensor, flops: float) -> float:
    """What they cost, in flops of the host."""
    return flops / CUDA_SPEED if A.is_cuda else flops


def multiply_sparse(S: Any, A: Tensor) -> Tensor:
    """S @ A, for a SciPy sparse matrix or a dense one of the host."""
    if isinstance(S, np.ndarray):
        return up(S, A.device) @ A
    csr = sparse.csr_array(S)
    width = np.int32 if csr.nnz < 2**31 else np.int64
    parts = (csr.indptr.astype(width), csr.indices.astype(width), csr.data)
    on_device = torch.sparse_csr_tensor(
        *(up(part, A.device) for part in parts), size=csr.shape, check_invariants=False
    )
    return on_device @ A.contiguous()


def diagonal(A: Tensor) -> FloatArray:
    """(n,) a copy."""
    return np.asarray(host(torch.diagonal(A)))


def add_to_diagonal(A: Tensor, value: float) -> None:
    """In place."""
    A.diagonal().add_(value)


def fill_diagonal(A: Tensor, value: float) -> None:
    """In place."""
    A.diagonal().fill_(value)


def add_outer(A: Tensor, a: FloatArray, b: FloatArray) -> None:
    """A += a bᵀ."""
    A.addr_(up(a, A.device), up(b, A.device))


def subtract(A: Tensor, S: Any) -> None:
    """A −= S, for a sparse or dense S of the host."""
    if isinstance(S, np.ndarray):
        A -= up(S, A.device)
        return
    coo = S.tocoo()
    place = tuple(up(index.astype(np.int64), A.device) for index in (coo.row, coo.col))
    A.index_put_(place, up(-coo.data, A.device), accumulate=True)


def row_products(A: Tensor, B: Tensor) -> FloatArray:
    """(n,) Σ_j A_ij B_ij."""
    return np.asarray(host(torch.linalg.vecdot(A, B, dim=1)))


def row_squares(A: Tensor) -> FloatArray:
    """(n,) Σ_j A_ij²."""
    return np.asarray(host(squares(A.T)))


def column_squares(A: Tensor) -> FloatArray:
    """(n,) Σ_i A_ij²."""
    return np.asarray(host(squares(A)))


def row_sums(A: Tensor) -> FloatArray:
    """(n,) Σ_j A_ij."""
    return np.asarray(host(A.sum(dim=1)))


def column_sums(A: Tensor) -> FloatArray:
    """(n,) Σ_i A_ij."""
    return np.asarray(host(A.sum(dim=0)))


def inner(A: Tensor, B: Tensor) -> float:
    """Σ_ij A_ij B_ij, a few rows at a time."""
    step = max(1, CHUNK // max(1, A.shape[1]))
    parts = [(A[i : i + step] * B[i : i + step]).sum() for i in range(0, len(A), step)]
    return float(sum(parts))


def leading_columns(A: Tensor, k: int) -> Tensor:
    """A[:, :k], its own memory."""
    return A[:, :k].clone(memory_format=torch.contiguous_format)


def stack_rows(A: Tensor, B: Tensor) -> Tensor:
    """A above B."""
    return torch.cat([A, B])


def take_columns(A: Tensor, columns: IntArray) -> Tensor:
    """A[:, columns]."""
    return A.T[up(columns, A.device)].T


def identity_like(A: Tensor, n: int) -> Tensor:
    """(n, n)."""
    return torch.eye(n, dtype=A.dtype, device=A.device)


def zeros_like(A: Tensor) -> Tensor:
    """Zeros in the shape of A."""
    return torch.zeros(A.shape, dtype=A.dtype, device=A.device)


def squares(A: Tensor) -> Tensor:
    return torch.linalg.vector_norm(A, dim=0).square_()
