"""`numerics.linalg` on torch's matrices, in double precision: functions of the same names.

Besides twins of `kernels.stationary` and `gp.rank_one`, which are algebra, too.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy.linalg import lapack

from penchant.errors import NumericalError
from penchant.numerics.torch_entries import CHUNK, Tensor, diagonal, host, multiply_sparse, up
from penchant.numerics.types import FloatArray, IntArray

PIVOT_BLOCK = 256
"""Pivots looked for together: the host factors so small a block while the card waits."""
PIVOT_SHARE = 0.5
"""A pivot need not be the best of all: at least this share of the best outside its block."""
LEAST_BLOCK = 512
"""Rows of a blocked product: fewer would leave a card idle."""
LARGE_RANK = 4_000
"""Of a factor that is worth a first guess from its leading columns."""
NARROW = 16
"""Up to so many features are differenced one by one, which is exact."""


def pivoted_cholesky(
    K: Tensor, tolerance: float, max_rank: int | None = None, overwrite: bool = False
) -> tuple[Tensor, IntArray, float]:
    """Rank-revealing factor; pivots are found a block at a time.

    The candidates of a block are the points with the largest variances left; the host factors
    their small matrix with pivoting. Whatever stays above the largest variance outside the block
    is what a search one by one would choose next, and down to half of that nearly so.
    """
    n = len(K)
    left = torch.diagonal(K).clone()
    largest = float(left.max())
    if not np.isfinite(largest) or largest <= 0.0:
        raise NumericalError(
            f"the prior covariance has a largest variance of {largest}: it must be positive and "
            "finite; check the kernel's parameters and the features"
        )
    least, most = tolerance * largest, n if max_rank is None else min(n, max_rank)
    if most == n < LARGE_RANK:
        # no order of pivots is better than another where all are needed, and none costs least
        lower, failed = torch.linalg.cholesky_ex(K)
        if not failed and float(torch.diagonal(lower).min()) ** 2 > least:
            return lower, np.arange(n), 0.0
    # ties are broken by chance: neighbours in the given order are often alike
    spread = up(np.random.default_rng(0).permutation(n), K.device)
    factor, pivots, rank = K.new_empty((n, most)), [], 0
    while rank < most and float(left.max()) > least:
        top = torch.topk(left[spread], min(PIVOT_BLOCK, n - rank))
        candidates = spread[top.indices]
        among = K[candidates][:, candidates]
        known = factor[candidates, :rank]
        among -= known @ known.T
        floor = max(least, PIVOT_SHARE * float(top.values[-1]))
        lower, order, found = _small_pivoted(host(among), floor)
        found = min(found, most - rank)
        new = candidates[up(order[:found], K.device)]
        columns = K[:, new]
        columns -= factor[:, :rank] @ factor[new, :rank].T
        small = up(lower[:found, :found], K.device)
        columns = torch.linalg.solve_triangular(small.T, columns, upper=True, left=False)
        factor[:, rank : rank + found] = columns
        left -= columns.square().sum(dim=1)
        left[new] = -torch.inf
        pivots.append(new)
        rank += found
    chosen = torch.cat(pivots)
    others = torch.ones(n, dtype=torch.bool, device=K.device)
    others[chosen] = False
    order = torch.cat([chosen, torch.nonzero(others)[:, 0]])
    residual = float(left[others].clamp(min=0.0).max()) if rank < n else 0.0
    rows = factor[order, :rank]
    rows[:rank].tril_()
    return rows, host(order), residual


def _small_pivoted(A: FloatArray, floor: float) -> tuple[FloatArray, IntArray, int]:
    """Pivoted factor of a small matrix on the host: at least one pivot."""
    lower, order, rank, _ = lapack.dpstrf(A, tol=floor, lower=1)
    return np.tril(lower), (order - 1).astype(np.intp), max(1, int(rank))


def rank_at(rows: Tensor, tolerance: float) -> int:
    """As the host's, but for small factors: a card is through with them before the host has
    updated its sites, so that fewer columns save nothing and cost a round more."""
    rank = int(rows.shape[1])
    if rank < LARGE_RANK:
        return rank
    left = diagonal(rows) ** 2
    return int(np.count_nonzero(left > tolerance * left[0]))


def cholesky(A: Tensor, max_jitter: float = 1e-6, overwrite: bool = False) -> tuple[Tensor, float]:
    """Lower factor and the jitter that it took."""
    lower, info = torch.linalg.cholesky_ex(A)
    if int(info) == 0:
        return lower, 0.0
    if overwrite:
        raise NumericalError(f"a {len(A)}×{len(A)} matrix is not positive definite")
    scale = float(torch.diagonal(A).mean())
    relative = 1e-14
    while np.isfinite(scale) and scale > 0 and relative <= max_jitter:
        raised = A.clone()
        raised.diagonal().add_(relative * scale)
        lower, info = torch.linalg.cholesky_ex(raised)
        if int(info) == 0:
            return lower, relative * scale
        relative *= 10
    raise NumericalError(
        f"a {len(A)}×{len(A)} matrix is not positive definite even with a jitter of "
        f"{max_jitter:g} × its mean diagonal; remove duplicated items or raise the noise"
    )


def solve_lower(lower: Tensor, b: Any, transposed: bool = False, overwrite: bool = False) -> Any:
    """L⁻¹ b or L⁻ᵀ b."""
    if bool((torch.diagonal(lower) == 0.0).any()):
        raise NumericalError("a triangular factor has a zero on its diagonal")
    matrix = lower.T if transposed else lower
    if b.ndim == 1:
        column = up(b, lower.device)[:, None]
        return host(torch.linalg.solve_triangular(matrix, column, upper=transposed)[:, 0])
    # column by column in memory, as BLAS solves them: no copy but the result itself
    right = up(b, lower.device)
    solution = right
    if not overwrite or not right.T.is_contiguous():
        solution = right.T.clone(memory_format=torch.contiguous_format).T
    torch.linalg.solve_triangular(matrix, solution, upper=transposed, out=solution)
    return solution


def multiply(A: Tensor, B: Any) -> Any:
    """A @ B; with a vector the product is NumPy's."""
    product = A @ up(B, A.device)
    return host(product) if B.ndim == 1 else product


def multiply_symmetric(S: Any, rows: Tensor) -> Tensor:
    """S @ rows for a symmetric S."""
    return multiply_sparse(S, rows)


def blocks(n: int) -> Iterator[tuple[int, int]]:
    step = max(LEAST_BLOCK, -(-n // 16))
    return ((start, min(start + step, n)) for start in range(0, n, step))


def lower_gram(half: Tensor) -> Tensor:
    """The lower triangle of halfᵀ half; above it whatever the blocks hold."""
    n = half.shape[1]
    product = half.new_empty((n, n))
    for start, stop in blocks(n):
        product[start:stop, :stop] = half[:, start:stop].T @ half[:, :stop]
    return product


def gram(half: Tensor) -> Tensor:
    """halfᵀ half in full."""
    product = lower_gram(half)
    for start, stop in blocks(half.shape[1]):
        product[:start, start:stop] = product[start:stop, :start].T
    return product


def trapezoid_product(rows: Tensor, other: Tensor) -> Tensor:
    """The lower triangle of rowsᵀ other: r³/3 flops of the first r rows in place of 2 r³."""
    r = rows.shape[1]
    product = rows.new_zeros((r, r))
    for start, stop in blocks(r):
        product[start:stop, :stop] = rows[start:, start:stop].T @ other[start:, :stop]
    return product


def squared_distances(U: Tensor, V: Tensor | None = None) -> Tensor:
    """As `kernels.stationary.squared_distances`, a block of rows at a time where it is narrow."""
    right = U if V is None else V
    n, d = U.shape
    if d <= NARROW:
        squared = U.new_zeros((n, len(right)))
        step = max(1, CHUNK // max(1, len(right)))
        for start in range(0, n, step):
            part = slice(start, start + step)
            for k in range(d):
                difference = U[part, k, None] - right[:, k]
                squared[part] += difference.square_()
        return squared
    centre = U.mean(dim=0)
    left, right = U - centre, right - centre
    u, v = left.square().sum(dim=1), right.square().sum(dim=1)
    squared = torch.addmm(v[None, :], left, right.T, alpha=-2.0)
    squared += u[:, None]
    rounding = 4.0 * np.finfo(np.float64).eps * float(u.max() + v.max()) if n and len(v) else 0.0
    squared[squared < rounding] = 0.0
    if V is None:
        squared.fill_diagonal_(0.0)
    return squared


def grown_lower(lower: Tensor, z: FloatArray, stretch: FloatArray, share: FloatArray) -> Tensor:
    """L M for the factor M of I + z zᵀ."""
    column, stretched, shared = (up(v, lower.device)[:, None] for v in (z, stretch, share))
    part = lower.T
    later = torch.flip(torch.cumsum(torch.flip(part * column, (0,)), dim=0), (0,))
    grown = part * stretched
    grown[:-1] += shared[:-1] * later[1:]
    return grown.T


def shrunk_half(half: Tensor, z: FloatArray, stretch: FloatArray, share: FloatArray) -> Tensor:
    """M⁻¹ half."""
    column, stretched, shared = (up(v, half.device)[:, None] for v in (z, stretch, share))
    earlier = torch.cumsum(half * column, dim=0)
    shrunk = half / stretched
    shrunk[1:] -= shared[1:] * earlier[:-1]
    return shrunk
