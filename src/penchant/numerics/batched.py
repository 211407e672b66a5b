"""Batched algebra on stacks, (k, p, q) arrays of one small matrix a user.

Every routine works on all matrices at once, on the device where the stack lives (see
`numerics.dispatch`). Matrices that are made of a stack live
with it; what is one number a user or item comes back as NumPy's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from penchant.errors import NumericalError
from penchant.numerics.dispatch import STACK_SIZE, dispatched
from penchant.numerics.linalg import multiply
from penchant.numerics.types import FloatArray, IntArray

FEW = 64
"""Matrices in a stack below which calls from Python take longer than their work."""


# Algebra


@dispatched()
def multiply_stack(A: FloatArray, B: FloatArray) -> FloatArray:
    """A @ B for each pair of matrices; a stack of one serves all of the other."""
    product: FloatArray = A * B if A.shape[-1] == A.shape[-2] == B.shape[-1] == 1 else A @ B
    return product


@dispatched()
def apply_stack(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """(k, p) products of (k, p, q) matrices and (k, q) vectors."""
    product: FloatArray = multiply_stack(matrices, vectors[..., None])[..., 0]
    return product


@dispatched()
def cholesky_stack(A: FloatArray, what: str) -> FloatArray:
    """Lower Cholesky factors (k, p, p); a matrix that has none is a NumericalError about `what`."""
    try:
        if A.shape[1:] == (1, 1):
            return _square_roots(A)
        lower: FloatArray = np.asarray(np.linalg.cholesky(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise not_definite(what) from None
    return lower


def _square_roots(A: FloatArray) -> FloatArray:
    """Of a stack of numbers, which LAPACK would take one at a time."""
    if not (A > 0.0).all():
        raise np.linalg.LinAlgError
    return np.sqrt(A)


def not_definite(what: str) -> NumericalError:
    """A matrix of a stack has no Cholesky factor."""
    return NumericalError(
        f"{what} is not positive definite; use a log-concave likelihood or lower the kernel's "
        "variance"
    )


@dispatched()
def solve_stack(lower: FloatArray, B: FloatArray) -> FloatArray:
    """L⁻¹ B for each of the lower triangular matrices (k, p, p), and (k, p, q) or (1, p, q)."""
    half = lower.shape[1] // 2
    if half == 0:
        return B / lower
    if len(lower) < FEW:
        every = np.broadcast_to(B, (len(lower), *B.shape[1:]))
        return np.asarray(np.linalg.solve(lower, every), dtype=np.float64)
    # halves of halves leave products alone: two to four times as fast as LAPACK, which has no
    # stacked solve but that of full matrices
    upper_rows = solve_stack(lower[:, :half, :half], B[:, :half])
    left = B[:, half:] - multiply_stack(lower[:, half:, :half], upper_rows)
    return np.concatenate([upper_rows, solve_stack(lower[:, half:, half:], left)], axis=1)


@dispatched()
def log_det_stack(lower: FloatArray) -> float:
    """Σ log |L Lᵀ| over all."""
    return float(2.0 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum())


@dispatched()
def square_root_stack(K: FloatArray) -> FloatArray:
    """(k, p, p) factors F with F Fᵀ = K of positive semidefinite matrices."""
    values, vectors = np.linalg.eigh(K)
    roots: FloatArray = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return roots


@dispatched()
def triangle_stack(F: FloatArray) -> FloatArray:
    """(k, p, min(p, q)) factors with the same F Fᵀ: rows turned into a triangle if they are few."""
    if F.shape[1] >= F.shape[2]:
        return F
    triangle: FloatArray = np.asarray(np.linalg.qr(F.transpose(0, 2, 1), mode="r"))
    return triangle.transpose(0, 2, 1)


@dispatched()
def transpose_stack(A: FloatArray) -> FloatArray:
    """The transpose of each matrix, without copying."""
    return A.transpose(0, 2, 1)


@dispatched()
def add_identity(A: FloatArray) -> None:
    """A += I, for each."""
    diagonal = np.arange(A.shape[1])
    A[:, diagonal, diagonal] += 1.0


@dispatched()
def scale_stack(A: FloatArray, factors: FloatArray) -> FloatArray:
    """Each matrix times its own of the (k,) factors; one of either serves all of the other."""
    scaled: FloatArray = factors[:, None, None] * A
    return scaled


@dispatched()
def join_stacks(first: FloatArray, *others: FloatArray) -> FloatArray:
    """One after the other."""
    return np.concatenate([first, *others]) if others else first


@dispatched()
def inner_stack(A: FloatArray, B: FloatArray) -> FloatArray:
    """(k,): Σ_ij A_ij B_ij of each pair of matrices."""
    products: FloatArray = np.einsum("kij,kij->k", A, B)
    return products


@dispatched()
def row_products_stack(A: FloatArray, B: FloatArray) -> FloatArray:
    """(k, t): Σ_p A_tp B_tp of each pair of matrices (k, t, p)."""
    products: FloatArray = np.einsum("stp,stp->st", A, B)
    return products


@dispatched()
def join_blocks(blocks: FloatArray) -> FloatArray:
    """(a·r, b·s) matrix of the blocks (a, b, r, s)."""
    a, b, r, s = blocks.shape
    return blocks.transpose(0, 2, 1, 3).reshape(a * r, b * s)


@dispatched()
def split_blocks(A: FloatArray, n_blocks: int) -> FloatArray:
    """(a², r, r) blocks of a matrix (a·r, a·r), row by row."""
    size = len(A) // n_blocks
    blocks = A.reshape(n_blocks, size, n_blocks, size)
    return blocks.transpose(0, 2, 1, 3).reshape(n_blocks * n_blocks, size, size)


@dispatched()
def trace_blocks(blocks: FloatArray) -> FloatArray:
    """(n, n): the sum of the diagonal blocks of (a, a, n, n)."""
    trace: FloatArray = np.trace(blocks, axis1=0, axis2=1)
    return trace


@dispatched()
def sum_stack(A: FloatArray, weights: FloatArray) -> FloatArray:
    """(q, p·r): Σ_u weights[u] · A_u, flattened, with (k, q) weights."""
    return multiply(weights.T, A.reshape(len(A), -1))


@dispatched()
def mix_stack(matrices: FloatArray, weights: FloatArray) -> FloatArray:
    """(k, r, r): Σ_q weights[u, q] · matrices[q], with (k, q) weights."""
    flat = matrices.reshape(len(matrices), -1)
    return multiply(weights, flat).reshape(-1, *matrices.shape[1:])


# Between stacks and what all users have in common: comparisons and items


@dataclass(frozen=True, eq=False)
class StackPlaces:
    """Where k users' matrices, p × p each, have their items and their comparisons.

    items: (k, p) what each compared, ascending, of n_items; edges: (e,) positions of these users'
    comparisons among all m; row, winner, loser: (e,) the user's row and the two columns of `items`
    that each comparison is about. An object, so that a device can keep what it made of it.
    repeats: whether an item may stand more than once in a row of `items`.
    """

    repeats: ClassVar[bool] = False

    items: IntArray
    edges: IntArray
    row: IntArray
    winner: IntArray
    loser: IntArray
    n_items: int

    @cached_property
    def same_items(self) -> bool:
        """Whether all these users compared the same items, so that one factor serves them all."""
        return not self.repeats and bool((self.items == self.items[0]).all())

    @property
    def cells(self) -> IntArray:
        """(k, p²) where each user's p × p matrix lies in a flattened n × n one."""
        return self.cells_of(self.items)

    @property
    def first_cells(self) -> IntArray:
        """(p²,) of the first user."""
        first: IntArray = self.cells_of(self.items[:1])[0]
        return first

    def cells_of(self, items: IntArray) -> IntArray:
        """(k, p²) of some items (k, p)."""
        pairs: IntArray = items[:, :, None] * self.n_items + items[:, None, :]
        return pairs.reshape(len(items), -1)


class EdgeMoments(NamedTuple):
    """(e,) means and variances of a stack's comparisons; largest: variance of a utility."""

    mean: FloatArray
    var: FloatArray
    largest: float


@dispatched()
def laplacian_stack(weight: FloatArray, places: StackPlaces) -> FloatArray:
    """(k, p, p) Laplacian of each user's comparisons, `weight` being (m,) over all."""
    k, p = places.items.shape
    cell = (places.row * p + places.winner) * p + places.loser
    directed = np.bincount(cell, weight[places.edges], k * p * p).reshape(k, p, p)
    L: FloatArray = -directed.astype(np.float64, copy=False)
    L -= directed.transpose(0, 2, 1)
    diagonal = np.arange(p)
    L[:, diagonal, diagonal] = -L.sum(axis=2)
    return L


@dispatched()
def adjoint_stack(y: FloatArray, places: StackPlaces) -> FloatArray:
    """(k, p) sums of ±y over each user's comparisons, + for winners; y is (m,) over all."""
    k, p = places.items.shape
    mine, start = y[places.edges], places.row * p
    won = np.bincount(start + places.winner, mine, k * p)
    lost = np.bincount(start + places.loser, mine, k * p)
    total: FloatArray = np.subtract(won, lost, dtype=np.float64)
    return total.reshape(k, p)


@dispatched()
def forward_stack(utility: FloatArray, places: StackPlaces) -> FloatArray:
    """(e,) differences of (k, p) utilities, in the order of `edges`."""
    return utility[places.row, places.winner] - utility[places.row, places.loser]


@dispatched()
def edge_moments(
    covariance: FloatArray, utility: FloatArray, places: StackPlaces, least: float
) -> EdgeMoments:
    """Of the differences of (k, p) utilities with covariances (k, p, p).

    least: of a variance, relative to the largest variance of a utility, or to 1 if that is less.
    """
    row, winner, loser = places.row, places.winner, places.loser
    own = np.diagonal(covariance, axis1=1, axis2=2)
    var = own[row, winner] + own[row, loser] - 2.0 * covariance[row, winner, loser]
    largest = float(own.max(initial=0.0))
    floor = least * min(largest, 1.0)
    return EdgeMoments(forward_stack(utility, places), np.maximum(var, floor), largest)


@dispatched()
def put_edges(total: FloatArray, values: Sequence[FloatArray], places: StackPlaces) -> None:
    """Write (e,) values about a stack's comparisons where they stand in the rows of (c, m)."""
    for row, value in zip(total, values, strict=True):
        row[places.edges] = value


@dispatched()
def collect_items(x: FloatArray, weights: FloatArray, places: StackPlaces) -> FloatArray:
    """(q, n): Σ_u weights[u] x_uᵀ over all items, with (k, q) weights and (k, p) vectors."""
    if places.same_items:
        total = np.zeros((weights.shape[1], places.n_items))
        total[:, places.items[0]] = multiply(weights.T, x)
        return total
    k, p = x.shape
    wide = sparse.csr_array((x.ravel(), places.items.ravel(), np.arange(0, k * p + 1, p)))
    wide.resize(k, places.n_items)
    summed: FloatArray = (wide.T @ weights).T
    return summed


@dispatched()
def pick_items(vectors: FloatArray, weights: FloatArray, places: StackPlaces) -> FloatArray:
    """(k, p): Σ_q weights[u, q] · vectors[q] at each user's own items, vectors (q, n)."""
    if places.same_items:
        return multiply(weights, np.ascontiguousarray(vectors[:, places.items[0]]))
    picked: FloatArray = np.einsum("kq,qkp->kp", weights, vectors[:, places.items])
    return picked


@dispatched()
def meet_items(x: FloatArray, vectors: FloatArray, places: StackPlaces) -> FloatArray:
    """(k, q): of (k, p) vectors the products with each of (q, n) at the user's own items."""
    met: FloatArray = np.einsum("kp,qkp->kq", x, vectors[:, places.items])
    return met


@dispatched()
def take_columns_stack(matrix: FloatArray, items: IntArray) -> FloatArray:
    """(k, t, p): of a matrix (t, n) the columns of each user's items (k, p)."""
    return np.moveaxis(matrix[:, items], 0, 1)


@dispatched()
def collect_cells(stack: FloatArray, weights: FloatArray, places: StackPlaces) -> FloatArray:
    """(q, n, n): Σ_u weights[u] · stack[u], with (k, q) weights and (k, p, p) matrices."""
    k, n = len(stack), places.n_items
    flat = stack.reshape(k, -1)
    if places.same_items:
        total = np.zeros((weights.shape[1], n * n))
        total[:, places.first_cells] = multiply(weights.T, flat)
    elif weights.shape[1] == 1:
        every = (weights * flat).ravel()
        total = np.bincount(places.cells.ravel(), every, n * n).astype(np.float64, copy=False)
    elif places.repeats or 4 * flat.shape[1] < n * n:
        ends = np.arange(0, flat.size + 1, flat.shape[1])
        wide = sparse.csr_array((flat.ravel(), places.cells.ravel(), ends), (k, n * n))
        total = (wide.T @ weights).T
    else:
        dense = np.zeros((k, n * n))
        np.put_along_axis(dense, places.cells, flat, axis=1)
        total = multiply(weights.T, dense)
    return total.reshape(-1, n, n)


@dispatched()
def collect_rows(
    stack: FloatArray, weights: FloatArray, items: IntArray, n_items: int
) -> FloatArray:
    """(q, r, n): Σ_u weights[u] · stack[u]ᵀ, with (k, q) weights and (k, p, r) rows about items."""
    (p, r), q = stack.shape[1:], weights.shape[1]
    total, flat = np.zeros((q, r, n_items)), stack.reshape(-1, r)
    # one product an item: there are fewer items than products of features, and no 0 in it
    by_item = np.argsort(items.ravel(), kind="stable")
    ends = np.searchsorted(items.ravel()[by_item], np.arange(n_items + 1))
    for item in np.flatnonzero(np.diff(ends)):
        rows = by_item[ends[item] : ends[item + 1]]
        total[:, :, item] = multiply(weights[rows // p].T, flat[rows])
    return total


@dispatched()
def pick_cells(matrices: FloatArray, weights: FloatArray, places: StackPlaces) -> FloatArray:
    """(k, p, p): Σ_q weights[u, q] · matrices[q], (q, n, n), at each user's own items."""
    k, p = places.items.shape
    flat = matrices.reshape(len(matrices), -1)
    if places.same_items:
        picked = multiply(weights, flat[:, places.first_cells])
    elif len(flat) == 1:
        picked = weights * flat[0][places.cells]
    elif p * p * 4 < places.n_items**2:
        picked = np.empty((k, p * p))
        step = max(1, STACK_SIZE // (p * p * len(flat)))
        for start in range(0, k, step):
            some = slice(start, start + step)
            mine = flat[:, places.cells_of(places.items[some])]
            picked[some] = np.einsum("kq,qkc->kc", weights[some], mine)
    else:
        picked = np.take_along_axis(multiply(weights, flat), places.cells, axis=1)
    return picked.reshape(k, p, p)
