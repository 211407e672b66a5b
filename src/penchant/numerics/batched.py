"""Batched algebra on stacks, (k, p, q) arrays of one small matrix a user.

Every routine works on all matrices at once, on the device where the stack lives (see
`numerics.dispatch`). Stacks and matrices that it returns live there too; one number a user or item
comes back as NumPy's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from penchant.errors import NumericalError
from penchant.numerics.dispatch import (
    CARD_CHUNK,
    STACK_SIZE,
    dispatched,
    like,
    namespace,
    torch_backend,
)
from penchant.numerics.linalg import multiply, to_numpy
from penchant.numerics.types import FloatArray, IntArray

FEW = 64
"""Matrices in a stack below which calls from Python take longer than their work."""


# Algebra


def multiply_stack(A: FloatArray, B: FloatArray) -> FloatArray:
    """A @ B for each pair of matrices; a stack of one serves all of the other."""
    return A * B if A.shape[-1] == A.shape[-2] == B.shape[-1] == 1 else A @ B


def apply_stack(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """(k, p) products of (k, p, q) matrices and (k, q) vectors."""
    return multiply_stack(matrices, vectors[..., None])[..., 0]


def cholesky_stack(A: FloatArray, what: str) -> FloatArray:
    """Lower Cholesky factors (k, p, p); a matrix that has none is a NumericalError about `what`."""
    lower = try_cholesky_stack(A)
    if lower is None:
        raise NumericalError(
            f"{what} is not positive definite; use a log-concave likelihood or lower the kernel's "
            "variance"
        )
    return lower


@dispatched
def try_cholesky_stack(A: FloatArray) -> FloatArray | None:
    """The lower Cholesky factors, or None where a matrix is not positive definite."""
    if A.shape[1:] == (1, 1):  # LAPACK would take them one at a time
        return np.sqrt(A) if (A > 0.0).all() else None
    try:
        return np.asarray(np.linalg.cholesky(A), dtype=np.float64)
    except np.linalg.LinAlgError:
        return None


@dispatched
def solve_stack(lower: FloatArray, B: FloatArray) -> FloatArray:
    """L⁻¹ B for each of the lower triangular matrices (k, p, p), and (k, p, q) or (1, p, q)."""
    half = lower.shape[1] // 2
    if half == 0:
        return B / lower
    if len(lower) < FEW:
        every = np.broadcast_to(B, (len(lower), *B.shape[1:]))
        return np.asarray(np.linalg.solve(lower, every), dtype=np.float64)
    # Recursion on halves is made of products: two to four times as fast as LAPACK, whose only
    # stacked solve is that of full matrices.
    upper_rows = solve_stack(lower[:, :half, :half], B[:, :half])
    left = B[:, half:] - multiply_stack(lower[:, half:, :half], upper_rows)
    return np.concatenate([upper_rows, solve_stack(lower[:, half:, half:], left)], axis=1)


def log_det_stack(lower: FloatArray) -> float:
    """Σ log |L Lᵀ| over all."""
    return float(2.0 * namespace(lower).log(lower.diagonal(0, 1, 2)).sum())


@dispatched
def square_root_stack(K: FloatArray) -> FloatArray:
    """(k, p, p) factors F with F Fᵀ = K of positive semidefinite matrices."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]


def triangle_stack(F: FloatArray) -> FloatArray:
    """(k, p, min(p, q)) factors with the same F Fᵀ: a triangle where F has few rows."""
    if F.shape[1] >= F.shape[2]:
        return F
    found = namespace(F).linalg.qr(F.mT, mode="r")
    triangle: FloatArray = getattr(found, "R", found)  # torch returns Q, which is empty, and R
    return triangle.mT


def add_identity(A: FloatArray) -> None:
    """A += I, for each."""
    rows = np.arange(A.shape[1])
    A[:, rows, rows] += 1.0


def scale_stack(A: FloatArray, factors: FloatArray) -> FloatArray:
    """Each matrix times its own of the (k,) factors; one of either serves all of the other."""
    return like(factors, A)[:, None, None] * A


def scale_columns_stack(A: FloatArray, factors: FloatArray) -> FloatArray:
    """The columns of each matrix (k, p, q), or of one for all, times its own of the (k, q)."""
    return like(factors, A)[:, None, :] * A


def mix_rows(A: FloatArray, weights: FloatArray) -> FloatArray:
    """(k, p, s): Σ_q weights[u, q] · A_u[:, q·s : (q + 1)·s], for A (k, p, q·s), weights (k, q)."""
    parts = A.reshape(*A.shape[:2], weights.shape[1], -1)
    return namespace(A).einsum("kpqs,kq->kps", parts, like(weights, A))


def inner_rows(A: FloatArray, B: FloatArray) -> FloatArray:
    """(k, q): ⟨A_u[:, q·s : (q + 1)·s], B_u⟩ for A (k, p, q·s), B (k, p, s)."""
    k, p, s = B.shape
    return to_numpy(namespace(A).einsum("kpqs,kps->kq", A.reshape(k, p, -1, s), B))


def join_stacks(first: FloatArray, *others: FloatArray) -> FloatArray:
    """One after the other."""
    return namespace(first).concatenate([first, *others]) if others else first


def inner_stack(A: FloatArray, B: FloatArray) -> FloatArray:
    """(k,): Σ_ij A_ij B_ij of each pair of matrices."""
    return to_numpy(namespace(A).einsum("kij,kij->k", A, B))


def row_products_stack(A: FloatArray, B: FloatArray) -> FloatArray:
    """(k, t): Σ_p A_tp B_tp of each pair of matrices (k, t, p)."""
    return to_numpy(namespace(A).einsum("ktp,ktp->kt", A, B))


def join_blocks(blocks: FloatArray) -> FloatArray:
    """(a·r, b·s) matrix of the blocks (a, b, r, s)."""
    a, b, r, s = blocks.shape
    return blocks.swapaxes(1, 2).reshape(a * r, b * s)


def split_blocks(A: FloatArray, n_blocks: int) -> FloatArray:
    """(a², r, r) blocks of a matrix (a·r, a·r), row by row."""
    size = len(A) // n_blocks
    blocks = A.reshape(n_blocks, size, n_blocks, size)
    return blocks.swapaxes(1, 2).reshape(n_blocks * n_blocks, size, size)


def sum_stack(A: FloatArray, weights: FloatArray) -> FloatArray:
    """(q, p·r): Σ_u weights[u] · A_u, flattened, with (k, q) weights."""
    return multiply(A.reshape(len(A), -1).T, like(weights, A)).T  # in C order


def mix_stack(matrices: FloatArray, weights: FloatArray) -> FloatArray:
    """(k, r, r): Σ_q weights[u, q] · matrices[q], with (k, q) weights."""
    flat = matrices.reshape(len(matrices), -1)
    mixed = multiply(flat.T, like(weights, flat).T).T  # in C order, as stacked products need it
    return mixed.reshape(-1, *matrices.shape[1:])


# Between stacks and arrays that all users share: comparisons and items


@dataclass(frozen=True, eq=False)
class StackPlaces:
    """Where k users' matrices, p × p each, have their items and their comparisons.

    items: (k, p) the items that each compared, ascending, of n_items; edges: (e,) positions of
    these users' comparisons among all m; row, winner, loser: (e,) the user's row and the two
    columns of `items` that each comparison is about. A device caches what it derives from this
    object. repeats: whether an item may occur more than once in a row of `items`.
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
    def winner_at(self) -> IntArray:
        """(e,) where the winner of each comparison lies in a flattened (k, p) array."""
        return self.row * self.items.shape[1] + self.winner

    @property
    def loser_at(self) -> IntArray:
        """(e,) where the loser of each comparison lies in a flattened (k, p) array."""
        return self.row * self.items.shape[1] + self.loser

    @property
    def pair_at(self) -> IntArray:
        """(e,) where the pair (winner, loser) lies in a flattened (k, p, p) array."""
        return self.winner_at * self.items.shape[1] + self.loser

    def index(self, name: str, A: FloatArray) -> Any:
        """One of these index arrays, on the device of A, where it is cached."""
        if isinstance(A, np.ndarray):
            return getattr(self, name)
        return torch_backend().cached_index(self, name, A.device)

    def laplacian(self, weight: FloatArray) -> FloatArray:
        """(k, p, p) Laplacian of each user's comparisons, `weight` being (m,) over all."""
        return laplacian_stack(weight, self)

    def adjoint(self, y: FloatArray) -> FloatArray:
        """(k, p) sums of ±y over each user's comparisons, + for winners; y is (m,) over all."""
        return adjoint_stack(y, self)

    def forward(self, utility: FloatArray) -> FloatArray:
        """(e,) differences of (k, p) utilities, in the order of `edges`."""
        flat = utility.reshape(-1)
        return flat[self.index("winner_at", flat)] - flat[self.index("loser_at", flat)]

    def put(self, total: FloatArray, values: Sequence[FloatArray]) -> None:
        """Write (e,) values where the comparisons stand in the rows of (c, m)."""
        edges = self.index("edges", total)
        for row, value in zip(total, values, strict=True):
            row[edges] = value

    def collect(self, weights: FloatArray, x: FloatArray) -> FloatArray:
        """(q, n): Σ_u weights[u] x_uᵀ over all items, with (k, q) weights and (k, p) vectors."""
        return collect_items(x, weights, self)

    def pick(self, weights: FloatArray, vectors: FloatArray) -> FloatArray:
        """(k, p): Σ_q weights[u, q] · vectors[q] at each user's own items, vectors (q, n)."""
        items, weights = self.index("items", vectors), like(weights, vectors)
        if self.same_items:
            return multiply(weights, vectors.T[items[0]].T)
        return namespace(vectors).einsum("kq,qkp->kp", weights, vectors[:, items])

    def meet(self, x: FloatArray, vectors: FloatArray) -> FloatArray:
        """(k, q): of (k, p) vectors the products with each of (q, n) at the user's own items."""
        there = like(vectors, x)[:, self.index("items", x)]
        return to_numpy(namespace(x).einsum("kp,qkp->kq", x, there))

    def weighted_sum(self, weights: FloatArray, stack: FloatArray) -> FloatArray:
        """(q, n, n): Σ_u weights[u] · stack[u], with (k, q) weights and (k, p, p) matrices."""
        return collect_cells(stack, weights, self)

    def weighted_pick(self, weights: FloatArray, matrices: FloatArray) -> FloatArray:
        """(k, p, p): Σ_q weights[u, q] · matrices[q], (q, n, n), at each user's own items."""
        (k, p), n = self.items.shape, self.n_items
        flat = matrices.reshape(len(matrices), -1)
        items, weights = self.index("items", flat), like(weights, flat)
        if self.same_items:
            picked = multiply(weights, flat[:, _cells(items[:1], n)[0]])
        elif len(flat) == 1:
            picked = weights * flat[0][_cells(items, n)]
        elif 4 * p * p < n * n:
            # some users at a time: the cells of all matrices are gathered for each
            most = STACK_SIZE if isinstance(flat, np.ndarray) else CARD_CHUNK
            step = max(1, most // (p * p * len(flat)))
            parts = [slice(start, start + step) for start in range(0, k, step)]
            einsum = namespace(flat).einsum
            mine = [einsum("kq,qkc->kc", weights[s], flat[:, _cells(items[s], n)]) for s in parts]
            picked = join_stacks(*mine)
        else:
            users = like(np.arange(k)[:, None], flat)
            picked = multiply(weights, flat)[users, _cells(items, n)]
        return picked.reshape(k, p, p)

    def collect_rows(self, stack: FloatArray, weights: FloatArray, some: slice) -> FloatArray:
        """(q, r, n): Σ_u weights[u] · stack[u]ᵀ of some users, (k, q) and (k, p, r)."""
        return collect_rows(stack, weights, self.items[some], self.n_items)

    def add_rows(
        self, total: FloatArray, stack: FloatArray, weights: FloatArray, some: slice
    ) -> None:
        """total (n, q·r) += Σ_u weights[u] ⊗ stack[u] of some users, (k, q) and (k, p, r)."""
        add_rows(total, stack, weights, self.items[some])


def _cells(items: Any, n_items: int) -> Any:
    """(k, p²) where each user's p × p matrix lies in a flattened n × n one, for items (k, p)."""
    return (items[:, :, None] * n_items + items[:, None, :]).reshape(len(items), -1)


@dispatched
def laplacian_stack(weight: FloatArray, places: StackPlaces) -> FloatArray:
    """`StackPlaces.laplacian`."""
    k, p = places.items.shape
    directed = np.bincount(places.pair_at, weight[places.edges], k * p * p).reshape(k, p, p)
    L: FloatArray = -directed.astype(np.float64, copy=False)
    L -= directed.transpose(0, 2, 1)
    diagonal = np.arange(p)
    L[:, diagonal, diagonal] = -L.sum(axis=2)
    return L


@dispatched
def adjoint_stack(y: FloatArray, places: StackPlaces) -> FloatArray:
    """`StackPlaces.adjoint`."""
    mine, size = y[places.edges], places.items.size
    won = np.bincount(places.winner_at, mine, size)
    lost = np.bincount(places.loser_at, mine, size)
    total: FloatArray = np.subtract(won, lost, dtype=np.float64)
    return total.reshape(places.items.shape)


@dispatched
def collect_items(x: FloatArray, weights: FloatArray, places: StackPlaces) -> FloatArray:
    """`StackPlaces.collect`."""
    if places.same_items:
        total = np.zeros((weights.shape[1], places.n_items))
        total[:, places.items[0]] = multiply(weights.T, x)
        return total
    k, p = x.shape
    wide = sparse.csr_array((x.ravel(), places.items.ravel(), np.arange(0, k * p + 1, p)))
    wide.resize(k, places.n_items)
    return (wide.T @ weights).T


def take_columns_stack(matrix: FloatArray, items: IntArray) -> FloatArray:
    """(k, t, p): of a matrix (t, n) the columns of each user's items (k, p)."""
    return matrix[:, like(items, matrix)].swapaxes(0, 1)


@dispatched
def collect_cells(stack: FloatArray, weights: FloatArray, places: StackPlaces) -> FloatArray:
    """`StackPlaces.weighted_sum`."""
    k, n = len(stack), places.n_items
    flat = stack.reshape(k, -1)
    if places.same_items:
        total = np.zeros((weights.shape[1], n * n))
        total[:, _cells(places.items[:1], n)[0]] = multiply(weights.T, flat)
        return total.reshape(-1, n, n)
    cells = _cells(places.items, n)
    if weights.shape[1] == 1:
        every = (weights * flat).ravel()
        total = np.bincount(cells.ravel(), every, n * n).astype(np.float64, copy=False)
    elif places.repeats or 4 * flat.shape[1] < n * n:
        ends = np.arange(0, flat.size + 1, flat.shape[1])
        wide = sparse.csr_array((flat.ravel(), cells.ravel(), ends), (k, n * n))
        total = (wide.T @ weights).T
    else:
        dense = np.zeros((k, n * n))
        np.put_along_axis(dense, cells, flat, axis=1)
        total = multiply(weights.T, dense)
    return total.reshape(-1, n, n)


@dispatched
def add_rows(total: FloatArray, stack: FloatArray, weights: FloatArray, items: IntArray) -> None:
    """`StackPlaces.add_rows`; items: (k, p) that the rows are about."""
    wide = weights[:, None, :, None] * stack[:, :, None, :]
    order = np.argsort(items.ravel(), kind="stable")
    known, starts = np.unique(items.ravel()[order], return_index=True)
    cells = sparse.csr_array((np.ones(len(order)), order, np.append(starts, len(order))))
    total[known] += cells @ wide.reshape(len(order), -1)


ROWS_AN_ITEM = 2_000
"""Numbers that one sparse product takes in the time of a call."""


@dispatched
def collect_rows(
    stack: FloatArray, weights: FloatArray, items: IntArray, n_items: int
) -> FloatArray:
    """(q, r, n): Σ_u weights[u] · stack[u]ᵀ, with (k, q) weights and (k, p, r) rows about items."""
    (p, r), q = stack.shape[1:], weights.shape[1]
    flat, k = stack.reshape(-1, r), len(stack)
    by_item = np.argsort(items.ravel(), kind="stable")
    ends = np.searchsorted(items.ravel()[by_item], np.arange(n_items + 1))
    known = np.flatnonzero(np.diff(ends))
    if k * p * q * r < ROWS_AN_ITEM * len(known):
        wide = (weights[:, None, :, None] * stack[:, :, None, :]).reshape(k * p, q * r)
        ones = np.ones(k * p)
        cells = sparse.csr_array((ones, by_item, ends), (n_items, k * p))
        return np.ascontiguousarray((cells @ wide).T).reshape(q, r, n_items)
    # one product an item: there are fewer items than products of features, and no 0 in it
    total = np.zeros((q, r, n_items))
    for item in known:
        rows = by_item[ends[item] : ends[item + 1]]
        total[:, :, item] = multiply(weights[rows // p].T, flat[rows])
    return total
