"""`numerics.stacks` on torch's tensors, in double precision: functions of the same names.

Every sum has a fixed order: segments that were sorted once, or a product. Atomic additions, whose
order is chance, are not used.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from penchant.numerics.stacks import EdgeMoments, StackPlaces, not_definite
from penchant.numerics.torch_differences import Cells, dense_laplacians, kept
from penchant.numerics.torch_entries import CHUNK, Tensor, host, up
from penchant.numerics.types import FloatArray, IntArray

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
    return np.asarray(host((A * B).sum(dim=(1, 2))))


def row_products_stack(A: Tensor, B: Tensor) -> FloatArray:
    """(k, t), NumPy's."""
    return np.asarray(host((A * B).sum(dim=2)))


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
        total[:, places.items[0]] = host(weights.T @ x)
        return total
    by_item = kept(places, x.device, _by_item)
    rows = [by_item.sums((column[:, None] * x).reshape(-1)) for column in weights.T]
    return np.asarray(host(torch.stack(rows)))


def pick_items(vectors: Tensor, weights: Any, places: StackPlaces) -> Tensor:
    """(k, p)."""
    weights, items = up(weights, vectors.device), kept(places, vectors.device, _items)
    if places.same_items:
        return weights @ vectors[:, items[0]]
    return torch.einsum("kq,qkp->kp", weights, vectors[:, items])


def meet_items(x: Tensor, vectors: Any, places: StackPlaces) -> FloatArray:
    """(k, q), NumPy's."""
    items = kept(places, x.device, _items)
    return np.asarray(host(torch.einsum("kp,qkp->kq", x, up(vectors, x.device)[:, items])))


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
