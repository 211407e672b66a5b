"""`numerics.linalg` and `numerics.batched` on torch's tensors: functions of the same names.

All is in double precision. Vectors come and go as NumPy's. Every sum has a fixed order (segments
that were sorted once, or a product), so the same numbers come out each time: atomic additions,
whose order is chance, are not used. What is worked out of edges that stay the same in every sweep
is kept as long as they live.

Beside them stand the torch versions of `kernels.stationary.squared_distances` and of the rank-one
updates of `gp.update`, which are algebra, too.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from scipy import sparse
from scipy.linalg import lapack

from penchant.errors import NumericalError
from penchant.numerics.batched import EdgeMoments, StackPlaces, not_definite
from penchant.numerics.dispatch import HOST, MATRICES
from penchant.numerics.linalg import Ends
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


def to_numpy(A: Tensor) -> Any:
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
    return np.asarray(to_numpy(torch.diagonal(A)))


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
    return np.asarray(to_numpy(torch.linalg.vecdot(A, B, dim=1)))


def row_squares(A: Tensor) -> FloatArray:
    """(n,) Σ_j A_ij²."""
    return np.asarray(to_numpy(squares(A.T)))


def column_squares(A: Tensor) -> FloatArray:
    """(n,) Σ_i A_ij²."""
    return np.asarray(to_numpy(squares(A)))


def row_sums(A: Tensor) -> FloatArray:
    """(n,) Σ_j A_ij."""
    return np.asarray(to_numpy(A.sum(dim=1)))


def column_sums(A: Tensor) -> FloatArray:
    """(n,) Σ_i A_ij."""
    return np.asarray(to_numpy(A.sum(dim=0)))


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


def beside(A: Tensor, columns: Any) -> Tensor:
    """The columns, then those of A."""
    return torch.cat([up(columns, A.device), A], dim=1)


def bordered(A: Tensor, border: Any, corner: Any) -> Tensor:
    """[[corner, 0], [border, A]]: only the lower triangle counts."""
    first = torch.cat([up(corner, A.device), A.new_zeros((len(corner), len(A)))], dim=1)
    return torch.cat([first, beside(A, border)])


def trailing(A: Tensor, q: int) -> Tensor:
    """A[q:, q:], its own memory; A itself where q is zero."""
    return A[q:, q:].clone(memory_format=torch.contiguous_format) if q else A


def identity_like(A: Tensor, n: int) -> Tensor:
    """(n, n)."""
    return torch.eye(n, dtype=A.dtype, device=A.device)


def zeros_like(A: Tensor) -> Tensor:
    """Zeros in the shape of A."""
    return torch.zeros(A.shape, dtype=A.dtype, device=A.device)


def squares(A: Tensor) -> Tensor:
    return torch.linalg.vector_norm(A, dim=0).square_()


# Devices

STACKS, KEPT_STACKS = 2048, 16
"""Arrays of one block of users that a card has room for, and of all blocks that are kept."""


@dataclass(frozen=True)
class TorchDevice:
    """A device of torch; see `numerics.dispatch.Device`."""

    name: str
    device: Any

    @cached_property
    def _memory(self) -> int | None:
        """Bytes of a card."""
        if self.device.type != "cuda":
            return None
        return int(torch.cuda.get_device_properties(self.device).total_memory)

    @property
    def most_items(self) -> int:
        """As many as fit beside each other, `MATRICES` times."""
        if self._memory is None:
            return HOST.most_items
        return int((self._memory / (8.0 * MATRICES)) ** 0.5)

    @property
    def stack_size(self) -> int:
        """A small share: large enough to be worth a launch, and some twenty exist at once."""
        return HOST.stack_size if self._memory is None else self._memory // (8 * STACKS)

    @property
    def kept_size(self) -> int:
        """Three of them take a fifth of a card."""
        return HOST.kept_size if self._memory is None else self._memory // (8 * KEPT_STACKS)

    def matrix(self, array: FloatArray) -> FloatArray:
        """The array there."""
        moved: FloatArray = up(array, self.device)
        return moved

    def full(self, shape: tuple[int, int], value: float) -> FloatArray:
        """A matrix of one number."""
        made: FloatArray = torch.full(shape, value, dtype=torch.float64, device=self.device)
        return made

    def where_equal(self, rows: IntArray, columns: IntArray, value: float) -> FloatArray:
        """`value` where the numbers of row and column agree, else zero."""
        same = up(rows, self.device)[:, None] == up(columns, self.device)
        made: FloatArray = same.to(torch.float64).mul_(value)
        return made

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return TorchDevice.named, (self.name,)

    @staticmethod
    def named(name: str) -> "TorchDevice":
        """From its name alone."""
        return TorchDevice(name, torch.device(name.removeprefix("torch:")))


# Factors, solves and products

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
        lower, order, found = _small_pivoted(to_numpy(among), floor)
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
    return rows, to_numpy(order), residual


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
        return to_numpy(torch.linalg.solve_triangular(matrix, column, upper=transposed)[:, 0])
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
    return to_numpy(product) if B.ndim == 1 else product


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


# Differences between points along edges

T = TypeVar("T")

GRAM_SHARE = 500
"""Form covariances when n² ≤ this × m: a product's flop costs a card so much less than a read."""
LAPLACIAN_SHARE = 150
"""Form the Laplacian when n² ≤ this × m: a sparse product reads a row of the factor an edge."""
DENSE_POINTS = 10_000
"""Beyond so many it would take the room of a matrix that others need."""

_KEPT: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()
"""The edges of a fit are the same in every sweep."""


def multiply_laplacian(
    rows: Tensor, ends: Ends, weight: FloatArray, laplacian: Callable[[FloatArray], Any]
) -> Tensor:
    """L @ rows; of few points L is made here, from nothing but the weights."""
    n, m = len(rows), len(weight)
    if n > DENSE_POINTS or n * n > LAPLACIAN_SHARE * m:
        return multiply_sparse(laplacian(weight), rows)
    cells, there = kept(ends, rows.device, _edge_cells, n), up(weight, rows.device)
    return dense_laplacians(there, cells, (1, n, n))[0] @ rows


@dataclass(frozen=True)
class Cells:
    """Where each edge lies in a flattened stack of matrices: row of the winner, column of the
    loser; and whether no two lie in the same place."""

    place: Tensor
    is_distinct: bool

    @classmethod
    def of(cls, place: Tensor) -> "Cells":
        """From the places alone."""
        return cls(place, len(torch.unique(place)) == len(place))


def _edge_cells(ends: Ends, device: Any, n: int) -> Cells:
    return Cells.of(up(ends.winner * n + ends.loser, device))


def dense_laplacians(weight: Tensor, cells: Cells, shape: tuple[int, int, int]) -> Tensor:
    """Laplacians of a stack of graphs, from the weights of their edges."""
    directed = weight.new_zeros(shape)
    # with accumulate torch sorts on a card, which takes its time and keeps the order of sums
    directed.reshape(-1).index_put_((cells.place,), weight, accumulate=not cells.is_distinct)
    L = -directed
    L -= directed.mT
    L.diagonal(dim1=1, dim2=2).copy_(-L.sum(dim=2))
    return L


def edge_variances(half: Tensor, ends: Ends) -> FloatArray:
    """(m,) |half_w − half_l|², from blocks of the covariance, or by reading two columns an edge."""
    n, m = half.shape[1], len(ends.winner)
    if n * n <= GRAM_SHARE * m:
        return _variances_by_blocks(half, kept(ends, half.device, _plan, n))
    first, second = up(ends.winner, half.device), up(ends.loser, half.device)
    rows, var = half.T.contiguous(), half.new_empty(m)
    step = max(1, CHUNK // max(1, 4 * len(half)))
    for start in range(0, m, step):
        part = slice(start, start + step)
        difference = rows[first[part]]
        difference -= rows[second[part]]
        var[part] = torch.linalg.vector_norm(difference, dim=1).square_()
    return np.asarray(to_numpy(var))


@dataclass(frozen=True)
class _Plan:
    """Edges in the order of their later end, so that each block of covariances serves its own.

    cuts: where the edges of each block begin, and where those of the last end.
    """

    order: Tensor
    high: Tensor
    low: Tensor
    cuts: list[int]


def kept(places: Any, device: Any, make: Callable[..., T], *details: int) -> T:
    """What `make` works out of some edges or places, once for each device."""
    known = _KEPT.setdefault(places, {})
    key = (make, device, details)
    if key not in known:
        known[key] = make(places, device, *details)
    found: T = known[key]
    return found


def _plan(ends: Ends, device: Any, n: int) -> _Plan:
    winner, loser = up(ends.winner, device), up(ends.loser, device)
    high, order = torch.sort(torch.maximum(winner, loser), stable=True)
    low = torch.minimum(winner, loser)[order]
    stops = up(np.array([0, *(stop for _, stop in blocks(n))]), device)
    return _Plan(order, high, low, torch.searchsorted(high, stops).tolist())


def _variances_by_blocks(half: Tensor, plan: _Plan) -> FloatArray:
    diagonal, sorted_var = squares(half), half.new_empty(len(plan.order))
    for (start, stop), begin, end in zip(
        blocks(half.shape[1]), plan.cuts[:-1], plan.cuts[1:], strict=True
    ):
        covariance = half[:, start:stop].T @ half[:, :stop]
        a, b = plan.high[begin:end], plan.low[begin:end]
        sorted_var[begin:end] = diagonal[a] + diagonal[b] - 2.0 * covariance[a - start, b]
    var = torch.empty_like(sorted_var)
    var[plan.order] = sorted_var
    return np.asarray(to_numpy(var))


# Batched

JITTERS = (0.0, 1e-14, 1e-12)
"""Of a singular covariance, relative to each variance."""

# Algebra


def multiply_stack(A: Tensor, B: Tensor) -> Tensor:
    """A @ B for each."""
    return A @ B


def apply_stack(matrices: Tensor, vectors: Tensor) -> Tensor:
    """(k, p) products."""
    return (matrices @ vectors[..., None])[..., 0]


def cholesky_stack(A: Tensor, what: str) -> Tensor:
    """Lower factors."""
    lower, failed = torch.linalg.cholesky_ex(A)
    if bool(failed.any()):
        raise not_definite(what)
    return lower


def solve_stack(lower: Tensor, B: Tensor) -> Tensor:
    """L⁻¹ B for each."""
    every = B.expand(len(lower), *B.shape[1:])
    return torch.linalg.solve_triangular(lower, every, upper=False)


def log_det_stack(lower: Tensor) -> float:
    """Σ log |L Lᵀ|."""
    return float(2.0 * torch.diagonal(lower, dim1=1, dim2=2).log().sum())


def square_root_stack(K: Tensor) -> Tensor:
    """F with F Fᵀ = K, to 1e-12 of its variances: triangles, which cost a card far less than
    eigenvectors."""
    variance = torch.diagonal(K, dim1=1, dim2=2)
    for jitter in JITTERS:
        raised = K + torch.diag_embed(jitter * variance)
        lower, failed = torch.linalg.cholesky_ex(raised)
        if not bool(failed.any()):
            return lower
    values, vectors = torch.linalg.eigh(K)
    return vectors * values.clamp(min=0.0).sqrt()[:, None, :]


def triangle_stack(F: Tensor) -> Tensor:
    """The same F Fᵀ from a triangle, where rows are few."""
    if F.shape[1] >= F.shape[2]:
        return F
    return torch.linalg.qr(F.mT, mode="r")[1].mT


def transpose_stack(A: Tensor) -> Tensor:
    """Of each, a view."""
    return A.mT


def add_identity(A: Tensor) -> None:
    """In place."""
    A.diagonal(dim1=1, dim2=2).add_(1.0)


def scale_stack(A: Tensor, factors: FloatArray) -> Tensor:
    """Each times its own factor."""
    return up(factors, A.device)[:, None, None] * A


def join_stacks(first: Tensor, *others: Tensor) -> Tensor:
    """One after the other."""
    return torch.cat([first, *others]) if others else first


def inner_stack(A: Tensor, B: Tensor) -> FloatArray:
    """(k,)."""
    return np.asarray(to_numpy((A * B).sum(dim=(1, 2))))


def row_products_stack(A: Tensor, B: Tensor) -> FloatArray:
    """(k, t), NumPy's."""
    return np.asarray(to_numpy((A * B).sum(dim=2)))


def join_blocks(blocks: Tensor) -> Tensor:
    """(a·r, b·s)."""
    a, b, r, s = blocks.shape
    return blocks.permute(0, 2, 1, 3).reshape(a * r, b * s)


def split_blocks(A: Tensor, n_blocks: int) -> Tensor:
    """(a², r, r)."""
    size = len(A) // n_blocks
    blocks = A.reshape(n_blocks, size, n_blocks, size)
    return blocks.permute(0, 2, 1, 3).reshape(n_blocks * n_blocks, size, size)


def trace_blocks(blocks: Tensor) -> Tensor:
    """(n, n)."""
    return torch.diagonal(blocks, dim1=0, dim2=1).sum(dim=-1)


def sum_stack(A: Tensor, weights: Any) -> Tensor:
    """(q, p·r)."""
    return up(weights, A.device).T @ A.reshape(len(A), -1)


def mix_stack(matrices: Tensor, weights: Any) -> Tensor:
    """(k, r, r)."""
    flat = matrices.reshape(len(matrices), -1)
    return (up(weights, matrices.device) @ flat).reshape(-1, *matrices.shape[1:])


# Comparisons


class _Ends(NamedTuple):
    """The comparisons of a stack: where they stand among all, in (k, p, p), and in (k, p)."""

    edges: Tensor
    cells: Cells
    winner: Tensor
    loser: Tensor


def _ends(places: StackPlaces, device: Any) -> _Ends:
    p = places.items.shape[1]
    winner, loser = places.row * p + places.winner, places.row * p + places.loser
    cell = winner * p + places.loser
    edges, there, first, second = (up(x, device) for x in (places.edges, cell, winner, loser))
    return _Ends(edges, Cells.of(there), first, second)


class _Segments(NamedTuple):
    """Entries sorted by where they go: their order, how many go to each place, and the places."""

    order: Tensor
    lengths: Tensor
    places: Tensor | None = None

    def sums(self, values: Tensor) -> Tensor:
        """One sum a place."""
        if not len(values):
            return values.new_zeros(len(self.lengths))
        return torch.segment_reduce(values[self.order], "sum", lengths=self.lengths, unsafe=True)


def _by_winner_and_loser(places: StackPlaces, device: Any) -> _Segments:
    ends = kept(places, device, _ends)
    return _sorted(torch.cat([ends.winner, ends.loser]), places.items.size)


def _by_item(places: StackPlaces, device: Any) -> _Segments:
    return _sorted(up(places.items, device).reshape(-1), places.n_items)


def _by_cell(places: StackPlaces, device: Any) -> _Segments:
    """Of the cells of (n, n) that occur."""
    cells, order = torch.sort(_cells(places, device).reshape(-1), stable=True)
    distinct, lengths = torch.unique_consecutive(cells, return_counts=True)
    return _Segments(order, lengths, distinct)


def _sorted(place: Tensor, n: int) -> _Segments:
    return _Segments(torch.argsort(place, stable=True), torch.bincount(place, minlength=n))


def laplacian_stack(weight: Tensor, places: StackPlaces) -> Tensor:
    """(k, p, p)."""
    (k, p), ends = places.items.shape, kept(places, weight.device, _ends)
    return dense_laplacians(weight[ends.edges], ends.cells, (k, p, p))


def adjoint_stack(y: Tensor, places: StackPlaces) -> Tensor:
    """(k, p)."""
    mine = y[kept(places, y.device, _ends).edges]
    total = kept(places, y.device, _by_winner_and_loser).sums(torch.cat([mine, -mine]))
    return total.reshape(places.items.shape)


def forward_stack(utility: Tensor, places: StackPlaces) -> Tensor:
    """(e,)."""
    ends, flat = kept(places, utility.device, _ends), utility.reshape(-1)
    return flat[ends.winner] - flat[ends.loser]


def edge_moments(
    covariance: Tensor, utility: Tensor, places: StackPlaces, least: float
) -> EdgeMoments:
    """Of differences."""
    ends = kept(places, covariance.device, _ends)
    own = torch.diagonal(covariance, dim1=1, dim2=2).reshape(-1)
    var = own[ends.winner] + own[ends.loser] - 2.0 * covariance.reshape(-1)[ends.cells.place]
    largest = max(0.0, float(own.max())) if len(own) else 0.0
    var.clamp_(min=least * min(largest, 1.0))
    return EdgeMoments(forward_stack(utility, places), var, largest)


def put_edges(total: Tensor, values: Sequence[Tensor], places: StackPlaces) -> None:
    """In place."""
    edges = kept(places, total.device, _ends).edges
    for row, value in zip(total, values, strict=True):
        row[edges] = value


# Items


def _items(places: StackPlaces, device: Any) -> Tensor:
    return up(places.items, device)


def _cells(places: StackPlaces, device: Any) -> Tensor:
    """(k, p²): as many numbers as a stack, so they are not kept."""
    items = kept(places, device, _items)
    return (items[:, :, None] * places.n_items + items[:, None, :]).reshape(len(items), -1)


def collect_items(x: Tensor, weights: Any, places: StackPlaces) -> FloatArray:
    """(q, n), NumPy's."""
    weights = up(weights, x.device)
    if places.same_items:
        total = np.zeros((weights.shape[1], places.n_items))
        total[:, places.items[0]] = to_numpy(weights.T @ x)
        return total
    by_item = kept(places, x.device, _by_item)
    rows = [by_item.sums((column[:, None] * x).reshape(-1)) for column in weights.T]
    return np.asarray(to_numpy(torch.stack(rows)))


def pick_items(vectors: Tensor, weights: Any, places: StackPlaces) -> Tensor:
    """(k, p)."""
    weights, items = up(weights, vectors.device), kept(places, vectors.device, _items)
    if places.same_items:
        return weights @ vectors[:, items[0]]
    return torch.einsum("kq,qkp->kp", weights, vectors[:, items])


def meet_items(x: Tensor, vectors: Any, places: StackPlaces) -> FloatArray:
    """(k, q), NumPy's."""
    items = kept(places, x.device, _items)
    return np.asarray(to_numpy(torch.einsum("kp,qkp->kq", x, up(vectors, x.device)[:, items])))


def take_columns_stack(matrix: Tensor, items: IntArray) -> Tensor:
    """(k, t, p)."""
    return matrix[:, up(items, matrix.device)].movedim(0, 1)


def collect_cells(stack: Tensor, weights: Any, places: StackPlaces) -> Tensor:
    """(q, n, n)."""
    k, n = len(stack), places.n_items
    flat, weights = stack.reshape(k, -1), up(weights, stack.device)
    total = flat.new_zeros((weights.shape[1], n * n))
    if places.same_items:
        total[:, up(places.first_cells, flat.device)] = weights.T @ flat
    elif 4 * flat.shape[1] < n * n:
        by_cell = kept(places, flat.device, _by_cell)
        rows = [by_cell.sums((column[:, None] * flat).reshape(-1)) for column in weights.T]
        total[:, by_cell.places] = torch.stack(rows)
    else:
        cells = _cells(places, flat.device)
        for some in _chunks(k, n * n):
            wide = flat.new_zeros((len(flat[some]), n * n))
            wide.scatter_(1, cells[some], flat[some])
            total += weights[some].T @ wide
    return total.reshape(-1, n, n)


def _chunks(k: int, size: int) -> Iterator[slice]:
    """Rows of so many numbers each, a few at a time."""
    step = max(1, CHUNK // size)
    return (slice(start, start + step) for start in range(0, k, step))


def collect_rows(stack: Tensor, weights: Any, items: IntArray, n_items: int) -> Tensor:
    """(q, r, n)."""
    (k, _, r), there = stack.shape, up(items, stack.device)
    weights = up(weights, stack.device)
    total = stack.new_zeros((weights.shape[1], n_items * r))
    for some in _chunks(k, n_items * r):
        wide = stack.new_zeros((len(stack[some]), n_items, r))
        wide.scatter_(1, there[some][:, :, None].expand(-1, -1, r), stack[some])
        total += weights[some].T @ wide.reshape(len(wide), -1)
    return total.reshape(-1, n_items, r).mT


def pick_cells(matrices: Tensor, weights: Any, places: StackPlaces) -> Tensor:
    """(k, p, p)."""
    k, p = places.items.shape
    flat, weights = matrices.reshape(len(matrices), -1), up(weights, matrices.device)
    if places.same_items:
        first = up(places.first_cells, flat.device)
        picked = weights @ flat[:, first]
    elif len(flat) == 1:
        picked = weights * flat[0][_cells(places, flat.device)]
    elif 4 * p * p < places.n_items**2:
        cells, parts = _cells(places, flat.device), _chunks(k, p * p * len(flat))
        rows = [torch.einsum("kq,qkc->kc", weights[s], flat[:, cells[s]]) for s in parts]
        picked = torch.cat(rows)
    else:
        picked = (weights @ flat).gather(1, _cells(places, flat.device))
    return picked.reshape(k, p, p)
