"""What `numerics.linalg` and `numerics.batched` do differently on torch's tensors.

Functions have the names, arguments and results of those that they stand in for, which document
them. All is in double precision. Vectors come and go as NumPy's. Every sum has a fixed order
(sorted segments, or a product), so that the same numbers come out each time: atomic additions,
whose order is random, are not used. Index arrays derived from a fit's comparisons are cached as
long as the comparisons live.

The rank-one updates of `gp.update` are here too.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from scipy import sparse
from scipy.linalg import lapack

from penchant.errors import NumericalError
from penchant.numerics.batched import StackPlaces, _cells
from penchant.numerics.dispatch import CARD_CHUNK, CPU, MATRICES, Device
from penchant.numerics.linalg import NARROW, EdgeIndex, to_numpy
from penchant.numerics.types import FloatArray, IntArray

Tensor = Any
"""torch's; it is not installed where types are checked."""
T = TypeVar("T")

with warnings.catch_warnings():
    # torch warns once that its CSR matrices are in beta; products with them are cuSPARSE's
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1))


# Devices

STACKS, KEPT_STACKS = 2048, 16
"""Arrays of one block of users that a card has room for, and of all blocks that are kept."""


class TorchDevice(Device):
    """A device of torch, by its name for `device=`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.device = torch.device(name.removeprefix("torch:"))

    def __reduce__(self) -> Any:
        return TorchDevice, (self.name,)

    @cached_property
    def _memory(self) -> int | None:
        """Bytes of a card; None for torch on the CPU."""
        if self.device.type != "cuda":
            return None
        return int(torch.cuda.get_device_properties(self.device).total_memory)

    @property
    def most_items(self) -> int:  # type: ignore[override]
        """As many as fit beside each other, `MATRICES` times."""
        memory = self._memory
        return CPU.most_items if memory is None else int((memory / (8.0 * MATRICES)) ** 0.5)

    @property
    def stack_size(self) -> int:  # type: ignore[override]
        """A small share: large enough to be worth a launch, and some twenty exist at once."""
        return CPU.stack_size if self._memory is None else self._memory // (8 * STACKS)

    @property
    def kept_size(self) -> int:  # type: ignore[override]
        """Three of them take a fifth of a card."""
        return CPU.kept_size if self._memory is None else self._memory // (8 * KEPT_STACKS)

    @property
    def call_flops(self) -> float:  # type: ignore[override]
        """About a millisecond of a card."""
        return CPU.call_flops if self._memory is None else 1e10

    def matrix(self, array: FloatArray) -> Tensor:
        return to_device(array, self.device)

    def full(self, shape: tuple[int, int], value: float) -> Tensor:
        return torch.full(shape, value, dtype=torch.float64, device=self.device)

    def where_equal(self, rows: IntArray, columns: IntArray, value: float) -> Tensor:
        same = to_device(rows, self.device)[:, None] == to_device(columns, self.device)
        return same.to(torch.float64).mul_(value)


def to_device(array: Any, device: Any) -> Tensor:
    """The array on the device, in its own memory order."""
    if isinstance(array, torch.Tensor):
        return array
    if not array.flags.writeable:  # torch has no read-only tensors
        array = array.copy(order="K")
    if array.ndim == 2 and array.flags.f_contiguous and not array.flags.c_contiguous:
        return torch.from_numpy(np.ascontiguousarray(array.T)).to(device).T
    return torch.from_numpy(np.ascontiguousarray(array)).to(device)


def sparse_to_device(S: Any, device: Any) -> Tensor:
    """A SciPy sparse matrix, or a dense one, on the device."""
    if isinstance(S, np.ndarray):
        return to_device(S, device)
    csr = sparse.csr_array(S)
    width = np.int32 if csr.nnz < 2**31 else np.int64
    parts = (csr.indptr.astype(width), csr.indices.astype(width), csr.data)
    return torch.sparse_csr_tensor(
        *(to_device(part, device) for part in parts), size=csr.shape, check_invariants=False
    )


# Caches of what is derived from a fit's comparisons, which are the same in every sweep

_CACHE: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


def cached(source: Any, device: Any, make: Callable[..., T], *details: Any) -> T:
    """make(source, device, *details), computed once as long as `source` lives."""
    known = _CACHE.setdefault(source, {})
    key = (make, device, details)
    if key not in known:
        known[key] = make(source, device, *details)
    return known[key]


def cached_index(places: StackPlaces, name: str, device: Any) -> Tensor:
    """An index array of `places` by its name."""
    return cached(places, device, _index, name)


def _index(places: StackPlaces, device: Any, name: str) -> Tensor:
    return to_device(getattr(places, name), device)


# Entries, sums and copies


def chunks(k: int, size: int) -> Iterator[slice]:
    """Slices of k rows of so many numbers each, a few rows at a time."""
    step = max(1, CARD_CHUNK // max(1, size))
    return (slice(start, start + step) for start in range(0, k, step))


def add_outer(A: Tensor, a: FloatArray, b: FloatArray) -> None:
    A.addr_(to_device(a, A.device), to_device(b, A.device))


def subtract(A: Tensor, S: Any) -> None:
    if isinstance(S, np.ndarray):
        A -= to_device(S, A.device)
        return
    coo = S.tocoo()
    place = tuple(to_device(index.astype(np.int64), A.device) for index in (coo.row, coo.col))
    A.index_put_(place, to_device(-coo.data, A.device), accumulate=True)


def row_squares(A: Tensor) -> FloatArray:
    return to_numpy(squares(A.T))


def inner(A: Tensor, B: Tensor) -> float:
    # a few rows at a time: no temporary of the size of A
    return float(sum((A[some] * B[some]).sum() for some in chunks(len(A), A.shape[1])))


def contiguous(A: Tensor) -> Tensor:
    return A.clone(memory_format=torch.contiguous_format)


def bordered(A: Tensor, border: Any, corner: Any) -> Tensor:
    first = torch.cat([to_device(corner, A.device), A.new_zeros((len(corner), len(A)))], dim=1)
    return torch.cat([first, torch.cat([to_device(border, A.device), A], dim=1)])


def squares(A: Tensor) -> Tensor:
    """Σ_i A_ij², without a temporary of the size of A."""
    return torch.linalg.vector_norm(A, dim=0).square_()


# Factors, solves and products

PIVOT_BLOCK = 256
"""Pivots looked for together: the CPU factors so small a block while the card waits."""
PIVOT_SHARE = 0.5
"""A pivot need not be the best of all: at least this share of the best outside its block."""
LEAST_BLOCK = 512
"""Rows of a blocked product: fewer would leave a card idle."""


def pivoted_cholesky(
    K: Tensor, least: float, max_rank: int | None
) -> tuple[Tensor, IntArray, float]:
    """Rows, order and residual; the search ends where all variances left are at most `least`.

    Pivots are found a block at a time. The candidates of a block are the points with the largest
    variances left; the CPU factors their small matrix with pivoting. A pivot whose variance stays
    above the largest one outside the block is what a search one by one would choose next; down
    to half of that it is nearly as good.
    """
    n, left = len(K), torch.diagonal(K).clone()
    most = n if max_rank is None else min(n, max_rank)
    if most == n:
        # where all pivots are needed, the given order costs least
        lower, failed = torch.linalg.cholesky_ex(K)
        if not failed and float(torch.diagonal(lower).min()) ** 2 > least:
            return lower, np.arange(n), 0.0
    # ties are broken at random: neighbours in the given order are often alike
    spread = to_device(np.random.default_rng(0).permutation(n), K.device)
    factor, pivots, rank = K.new_empty((n, most)), [], 0
    while rank < most and float(left.max()) > least:
        top = torch.topk(left[spread], min(PIVOT_BLOCK, n - rank))
        candidates = spread[top.indices]
        among = K[candidates][:, candidates]
        known = factor[candidates, :rank]
        among -= known @ known.T
        floor = max(least, PIVOT_SHARE * float(top.values[-1]))
        lower, order, found, _ = lapack.dpstrf(to_numpy(among), tol=floor, lower=1)
        found, order = min(max(1, int(found)), most - rank), order.astype(np.intp) - 1
        new = candidates[to_device(order[:found], K.device)]
        columns = K[:, new]
        columns -= factor[:, :rank] @ factor[new, :rank].T
        small = to_device(np.tril(lower[:found, :found]), K.device)
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
    return rows, order.cpu().numpy(), residual


def try_cholesky(A: Tensor, overwrite: bool) -> Tensor | None:
    lower, info = torch.linalg.cholesky_ex(A)
    return None if int(info) else lower


def solve_lower(lower: Tensor, b: Any, transposed: bool = False, overwrite: bool = False) -> Any:
    if bool((torch.diagonal(lower) == 0.0).any()):
        raise NumericalError("a triangular factor has a zero on its diagonal")
    matrix = lower.T if transposed else lower
    if b.ndim == 1:
        column = to_device(b, lower.device)[:, None]
        return to_numpy(torch.linalg.solve_triangular(matrix, column, upper=transposed)[:, 0])
    # column by column in memory, as BLAS solves them: no copy but the result itself
    right = to_device(b, lower.device)
    solution = right
    if not overwrite or not right.T.is_contiguous():
        solution = right.T.clone(memory_format=torch.contiguous_format).T
    torch.linalg.solve_triangular(matrix, solution, upper=transposed, out=solution)
    return solution


def multiply(A: Tensor, B: Any) -> Any:
    product = A @ to_device(B, A.device)
    return to_numpy(product) if B.ndim == 1 else product


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


def add_to_diagonal(A: Tensor, value: float) -> None:
    A.diagonal().add_(value)


def normal_like(A: Tensor, shape: tuple[int, ...], rng: np.random.Generator) -> Tensor:
    generator = torch.Generator(device=A.device).manual_seed(int(rng.integers(2**63)))
    return torch.randn(shape, dtype=A.dtype, device=A.device, generator=generator)


def ranks_in_columns(draws: Tensor) -> Tensor:
    n = len(draws)
    order = torch.argsort(draws, dim=0, descending=True)
    places = torch.arange(1, n + 1, dtype=torch.int32, device=draws.device)
    ranks = torch.empty(draws.shape, dtype=torch.int32, device=draws.device)
    return ranks.scatter_(0, order, places[:, None].expand_as(order))


def sorted_at(A: Tensor, places: Any) -> Any:
    there = torch.sort(A, dim=1).values[:, to_device(places, A.device)]
    return to_numpy(there.T)


def gram(half: Tensor) -> Tensor:
    return mirrored(lower_gram(half))


def mirrored(lower: Tensor) -> Tensor:
    for start, stop in blocks(len(lower)):
        lower[:start, start:stop] = lower[start:stop, :start].T
    return lower


def inverse_of_lower(lower: Tensor) -> Tensor:
    return torch.cholesky_inverse(lower)


def trapezoid_product(rows: Tensor, other: Tensor) -> Tensor:
    """The lower triangle of rowsᵀ other: r³/3 flops of the first r rows in place of 2 r³."""
    r = rows.shape[1]
    product = rows.new_zeros((r, r))
    for start, stop in blocks(r):
        product[start:stop, :stop] = rows[start:, start:stop].T @ other[start:, :stop]
    return product


def squared_distances(U: Tensor, V: Tensor | None = None) -> Tensor:
    right = U if V is None else V
    n, d = U.shape
    if d <= NARROW:
        squared = U.new_zeros((n, len(right)))
        for part in chunks(n, len(right)):
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


# Rank-one updates of `gp.update`


def grown_lower(lower: Tensor, z: FloatArray, stretch: FloatArray, share: FloatArray) -> Tensor:
    """L M for the factor M of I + z zᵀ."""
    column, stretched, shared = (to_device(v, lower.device)[:, None] for v in (z, stretch, share))
    part = lower.T
    later = torch.flip(torch.cumsum(torch.flip(part * column, (0,)), dim=0), (0,))
    grown = part * stretched
    grown[:-1] += shared[:-1] * later[1:]
    return grown.T


def shrunk_half(half: Tensor, z: FloatArray, stretch: FloatArray, share: FloatArray) -> Tensor:
    """M⁻¹ half."""
    column, stretched, shared = (to_device(v, half.device)[:, None] for v in (z, stretch, share))
    earlier = torch.cumsum(half * column, dim=0)
    shrunk = half / stretched
    shrunk[1:] -= shared[1:] * earlier[:-1]
    return shrunk


# Differences between points along edges

GRAM_SHARE = 500
"""Form covariances when n² ≤ this × m: a product's flop costs a card so much less than a read."""
LAPLACIAN_SHARE = 150
"""Form the Laplacian when n² ≤ this × m: a sparse product reads a row of the factor an edge."""
DENSE_POINTS = 10_000
"""Beyond so many it would take the room of a matrix that others need."""


def multiply_laplacian(
    rows: Tensor, edges: EdgeIndex, weight: FloatArray, laplacian: Callable[[FloatArray], Any]
) -> Tensor:
    """L @ rows; of few points L is made here, from nothing but the weights."""
    n, m = len(rows), len(weight)
    if n > DENSE_POINTS or n * n > LAPLACIAN_SHARE * m:
        return sparse_to_device(laplacian(weight), rows.device) @ rows.contiguous()
    cells, there = cached(edges, rows.device, _edge_cells, n), to_device(weight, rows.device)
    return dense_laplacians(there, cells, (1, n, n))[0] @ rows


def _edge_cells(edges: EdgeIndex, device: Any, n: int) -> tuple[Tensor, bool]:
    return _with_distinctness(to_device(edges.winner * n + edges.loser, device))


def _with_distinctness(cell: Tensor) -> tuple[Tensor, bool]:
    """Cells of a flattened stack of matrices, and whether no two of them are the same."""
    return cell, len(torch.unique(cell)) == len(cell)


def dense_laplacians(
    weight: Tensor, cells: tuple[Tensor, bool], shape: tuple[int, int, int]
) -> Tensor:
    """Laplacians of a stack of graphs, from the weights of their edges.

    cells: of each edge, the row of the winner and the column of the loser.
    """
    directed, (cell, is_distinct) = weight.new_zeros(shape), cells
    # with accumulate torch sorts on a card, which takes its time and keeps the order of sums
    directed.reshape(-1).index_put_((cell,), weight, accumulate=not is_distinct)
    L = -directed
    L -= directed.mT
    L.diagonal(dim1=1, dim2=2).copy_(-L.sum(dim=2))
    return L


def edge_variances(half: Tensor, edges: EdgeIndex) -> FloatArray:
    """(m,) |half_w − half_l|², from blocks of the covariance, or by reading two columns an edge."""
    n, m = half.shape[1], len(edges.winner)
    if n * n <= GRAM_SHARE * m:
        return _variances_by_blocks(half, cached(edges, half.device, _in_blocks, n))
    first, second = to_device(edges.winner, half.device), to_device(edges.loser, half.device)
    rows, var = half.T.contiguous(), half.new_empty(m)
    for part in chunks(m, 4 * len(half)):
        difference = rows[first[part]]
        difference -= rows[second[part]]
        var[part] = torch.linalg.vector_norm(difference, dim=1).square_()
    return to_numpy(var)


class _BlockedEdges(NamedTuple):
    """Edges in the order of their later point, so that each block of covariances serves its own.

    cuts: where the edges of each block begin, and where those of the last end.
    """

    order: Tensor
    high: Tensor
    low: Tensor
    cuts: list[int]


def _in_blocks(edges: EdgeIndex, device: Any, n: int) -> _BlockedEdges:
    winner, loser = to_device(edges.winner, device), to_device(edges.loser, device)
    high, order = torch.sort(torch.maximum(winner, loser), stable=True)
    low = torch.minimum(winner, loser)[order]
    stops = to_device(np.array([0, *(stop for _, stop in blocks(n))]), device)
    return _BlockedEdges(order, high, low, torch.searchsorted(high, stops).tolist())


def _variances_by_blocks(half: Tensor, edges: _BlockedEdges) -> FloatArray:
    diagonal, sorted_var = squares(half), half.new_empty(len(edges.order))
    for (start, stop), begin, end in zip(
        blocks(half.shape[1]), edges.cuts[:-1], edges.cuts[1:], strict=True
    ):
        covariance = half[:, start:stop].T @ half[:, :stop]
        a, b = edges.high[begin:end], edges.low[begin:end]
        sorted_var[begin:end] = diagonal[a] + diagonal[b] - 2.0 * covariance[a - start, b]
    var = torch.empty_like(sorted_var)
    var[edges.order] = sorted_var
    return to_numpy(var)


# Stacks

JITTERS = (0.0, 1e-14, 1e-12)
"""Of a singular covariance, relative to each variance."""


def try_cholesky_stack(A: Tensor) -> Tensor | None:
    lower, failed = torch.linalg.cholesky_ex(A)
    return None if bool(failed.any()) else lower


def solve_stack(lower: Tensor, B: Tensor) -> Tensor:
    every = B.expand(len(lower), *B.shape[1:])
    return torch.linalg.solve_triangular(lower, every, upper=False)


def square_root_stack(K: Tensor) -> Tensor:
    # triangles, which cost a card far less than eigenvectors; F Fᵀ = K to 1e-12 of its variances
    variance = torch.diagonal(K, dim1=1, dim2=2)
    for jitter in JITTERS:
        raised = K + torch.diag_embed(jitter * variance)
        lower, failed = torch.linalg.cholesky_ex(raised)
        if not bool(failed.any()):
            return lower
    values, vectors = torch.linalg.eigh(K)
    return vectors * values.clamp(min=0.0).sqrt()[:, None, :]


class _Segments(NamedTuple):
    """Entries sorted by the place that each is added to.

    order: (N,) the sorted entries; lengths: how many are added to each place; places: which these
    are, where not all occur.
    """

    order: Tensor
    lengths: Tensor
    places: Tensor | None = None

    def sums(self, values: Tensor) -> Tensor:
        """The sum of the values at each place."""
        if not len(values):
            return values.new_zeros(len(self.lengths))
        return torch.segment_reduce(values[self.order], "sum", lengths=self.lengths, unsafe=True)


def _by_winner_and_loser(places: StackPlaces, device: Any) -> _Segments:
    both = [cached_index(places, name, device) for name in ("winner_at", "loser_at")]
    return _sorted(torch.cat(both), places.items.size)


def _by_item(places: StackPlaces, device: Any) -> _Segments:
    return _sorted(cached_index(places, "items", device).reshape(-1), places.n_items)


def _by_cell(places: StackPlaces, device: Any) -> _Segments:
    """Over the cells of (n, n) that occur."""
    every = _cells(cached_index(places, "items", device), places.n_items)
    cells, order = torch.sort(every.reshape(-1), stable=True)
    distinct, lengths = torch.unique_consecutive(cells, return_counts=True)
    return _Segments(order, lengths, distinct)


def _sorted(place: Tensor, n: int) -> _Segments:
    return _Segments(torch.argsort(place, stable=True), torch.bincount(place, minlength=n))


def laplacian_stack(weight: Tensor, places: StackPlaces) -> Tensor:
    (k, p), device = places.items.shape, weight.device
    cells = cached(places, device, _pair_cells)
    return dense_laplacians(weight[cached_index(places, "edges", device)], cells, (k, p, p))


def _pair_cells(places: StackPlaces, device: Any) -> tuple[Tensor, bool]:
    return _with_distinctness(cached_index(places, "pair_at", device))


def adjoint_stack(y: Tensor, places: StackPlaces) -> Tensor:
    mine = y[cached_index(places, "edges", y.device)]
    total = cached(places, y.device, _by_winner_and_loser).sums(torch.cat([mine, -mine]))
    return total.reshape(places.items.shape)


def collect_items(x: Tensor, weights: Any, places: StackPlaces) -> FloatArray:
    weights = to_device(weights, x.device)
    if places.same_items:
        total = np.zeros((weights.shape[1], places.n_items))
        total[:, places.items[0]] = to_numpy(weights.T @ x)
        return total
    by_item = cached(places, x.device, _by_item)
    rows = [by_item.sums((column[:, None] * x).reshape(-1)) for column in weights.T]
    return to_numpy(torch.stack(rows))


def collect_cells(stack: Tensor, weights: Any, places: StackPlaces) -> Tensor:
    k, n = len(stack), places.n_items
    flat, weights = stack.reshape(k, -1), to_device(weights, stack.device)
    total = flat.new_zeros((weights.shape[1], n * n))
    items = cached_index(places, "items", flat.device)
    if places.same_items:
        total[:, _cells(items[:1], n)[0]] = weights.T @ flat
    elif 4 * flat.shape[1] < n * n:
        by_cell = cached(places, flat.device, _by_cell)
        rows = [by_cell.sums((column[:, None] * flat).reshape(-1)) for column in weights.T]
        total[:, by_cell.places] = torch.stack(rows)
    else:
        cells = _cells(items, n)
        for some in chunks(k, n * n):
            wide = flat.new_zeros((len(flat[some]), n * n))
            wide.scatter_(1, cells[some], flat[some])
            total += weights[some].T @ wide
    return total.reshape(-1, n, n)


def add_rows(total: Tensor, stack: Tensor, weights: Any, items: IntArray) -> None:
    weights = to_device(weights, stack.device)
    wide = weights[:, None, :, None] * stack[:, :, None, :]
    where = to_device(items, stack.device).reshape(-1)
    total.index_add_(0, where, wide.reshape(len(where), -1))


def collect_rows(stack: Tensor, weights: Any, items: IntArray, n_items: int) -> Tensor:
    (k, _, r), there = stack.shape, to_device(items, stack.device)
    weights = to_device(weights, stack.device)
    total = stack.new_zeros((weights.shape[1], n_items * r))
    for some in chunks(k, n_items * r):
        wide = stack.new_zeros((len(stack[some]), n_items, r))
        wide.scatter_(1, there[some][:, :, None].expand(-1, -1, r), stack[some])
        total += weights[some].T @ wide.reshape(len(wide), -1)
    return total.reshape(-1, n_items, r).mT
