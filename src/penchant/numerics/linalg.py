"""Dense linear algebra: factors, triangular solves, products, sums and copies.

Matrices may live on another device (see `numerics.dispatch`), vectors are always NumPy's. All
matrices are real and symmetric positive (semi)definite unless said otherwise.

Heavy products go through SciPy's BLAS, never through NumPy's `@`: the two wheels bring a thread
pool each, and a pool that still spins after its last call slows the other's next one (measured:
a product and a factor of size 1,000 on two cores take 25 ms in one library, 50–100 ms in two).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import blas, lapack

from penchant.errors import NumericalError
from penchant.numerics.dispatch import dispatched, like, namespace, torch_backend
from penchant.numerics.types import FloatArray, IntArray

CUDA_SPEED = 1000.0
"""Flops that a card does while the CPU does one."""

# Entries, sums and copies


def to_numpy(A: FloatArray) -> FloatArray:
    """A as NumPy's array; one that is NumPy's is returned as it is."""
    return A if isinstance(A, np.ndarray) else A.detach().cpu().numpy()


def relative_flops(A: FloatArray, flops: float) -> float:
    """What so many flops on A's device cost, in flops of the CPU."""
    return flops / CUDA_SPEED if getattr(A, "is_cuda", False) else flops


def diagonal(A: FloatArray) -> FloatArray:
    """(n,) the diagonal, read-only."""
    return to_numpy(A.diagonal())


@dispatched
def add_to_diagonal(A: FloatArray, value: float) -> None:
    """A += value · I."""
    rows = np.arange(len(A))
    A[rows, rows] += value


@dispatched
def normal_like(A: FloatArray, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Standard normal draws where A is; those of a card are other ones."""
    return rng.standard_normal(shape)


@dispatched
def ranks_in_columns(draws: FloatArray) -> Any:
    """(n, k) ranks in each column, 1 for the largest, in 32 bits."""
    places = np.arange(1, len(draws) + 1, dtype=np.int32)
    ranks = np.empty(draws.T.shape, dtype=np.int32)
    np.put_along_axis(ranks, np.argsort(-draws.T, axis=1), places[None, :], axis=1)
    return ranks.T


def rank_statistics(parts: Sequence[Any], places: IntArray) -> tuple[IntArray, IntArray]:
    """Of (n, k) ranks in parts: how often each item is first, (n,), and what stands at some places
    of its sorted ranks, (len(places), n)."""
    ranks = namespace(parts[0]).concatenate(list(parts), 1)
    first = to_numpy((ranks == 1).sum(1)).astype(np.intp)
    return first, np.asarray(sorted_at(ranks, places), dtype=np.intp)


@dispatched
def sorted_at(A: Any, places: IntArray) -> Any:
    """(len(places), n): what stands at some places of each sorted row."""
    return np.partition(A, places, axis=1)[:, places].T


@dispatched
def add_outer(A: FloatArray, a: FloatArray, b: FloatArray) -> None:
    """A += a bᵀ."""
    A += np.outer(a, b)


@dispatched
def subtract(A: FloatArray, S: Any) -> None:
    """A −= S, for a sparse or dense S of the CPU."""
    A -= S if isinstance(S, np.ndarray) else S.toarray()


def row_products(A: FloatArray, B: FloatArray) -> FloatArray:
    """(n,) Σ_j A_ij B_ij."""
    return to_numpy(namespace(A).einsum("ij,ij->i", A, B))


@dispatched
def row_squares(A: FloatArray | sparse.csr_array) -> FloatArray:
    """(n,) Σ_j A_ij²; A may be sparse."""
    if isinstance(A, sparse.sparray):
        return np.asarray(A.multiply(A).sum(axis=1), dtype=np.float64).ravel()
    return np.einsum("ij,ij->i", A, A)


def column_squares(A: FloatArray) -> FloatArray:
    """(n,) Σ_i A_ij²."""
    return row_squares(A.T)


@dispatched
def inner(A: FloatArray, B: FloatArray) -> float:
    """Σ_ij A_ij B_ij."""
    return float(np.vdot(A, B))


@dispatched
def contiguous(A: FloatArray) -> FloatArray:
    """A in C order."""
    return np.ascontiguousarray(A)


def leading_columns(A: FloatArray, k: int) -> FloatArray:
    """A[:, :k] in C order."""
    return contiguous(A[:, :k])


def trailing_block(A: FloatArray, q: int) -> FloatArray:
    """A[q:, q:] in Fortran order; A itself where q is zero."""
    return contiguous(A.T[q:, q:]).T if q else A


def take_columns(A: FloatArray, columns: IntArray) -> FloatArray:
    """A[:, columns] in Fortran order."""
    return A.T[like(columns, A)].T


def stack_rows(A: FloatArray, B: FloatArray) -> FloatArray:
    """A above B."""
    return namespace(A).concatenate([A, B])


def prepend_columns(columns: FloatArray, A: FloatArray) -> FloatArray:
    """The columns (n, q), then those of A."""
    return namespace(A).concatenate([like(columns, A), A], axis=1)


@dispatched
def bordered(A: FloatArray, border: FloatArray, corner: FloatArray) -> FloatArray:
    """The lower triangle of [[corner, borderᵀ], [border, A]] in Fortran order, from that of A."""
    q, n = len(corner), len(corner) + len(A)
    whole: FloatArray = np.zeros((n, n), order="F")
    whole[:q, :q], whole[q:, :q], whole[q:, q:] = corner, border, A
    return whole


def identity_like(A: FloatArray, n: int) -> FloatArray:
    """The (n, n) identity on the device of A."""
    return namespace(A).eye(n, dtype=A.dtype, device=A.device)


def zeros_like(A: FloatArray) -> FloatArray:
    """Zeros in the shape of A, on its device."""
    return namespace(A).zeros_like(A)


# Factors, solves and products

FACTOR_TOLERANCE = 1e-10
"""Default bound on the residual diagonal of a pivoted factor, relative to the largest variance."""

BOUNDED_ON_CPU = 4_000
"""Up to so many candidates the CPU finds the pivots of a bounded factor, whatever the device."""
FEW_PIVOTS = 4
"""Where points are so many times as many as the bound on the rank, columns are taken one by one:
LAPACK's routine goes on to the full rank."""
LARGE_RANK = 4_000
"""From this rank on a card gains from a first guess by a factor's leading columns."""


class PivotedCholesky(NamedTuple):
    """K[order][:, order] ≈ rows @ rows.T with error at most `residual` on the diagonal.

    rows: (n, r), points in the order in which they were chosen, so that rows[:r] is lower
    triangular. order: (n,) that order; its first r entries are the pivots.
    """

    rows: FloatArray
    order: IntArray
    residual: float

    @property
    def pivots(self) -> IntArray:
        """(r,) the chosen points."""
        return self.order[: self.rows.shape[1]]

    @property
    def lower(self) -> FloatArray:
        """(r, r) lower triangular factor of the pivots' own covariance."""
        return self.rows[: self.rows.shape[1]]

    def in_given_order(self) -> FloatArray:
        """(n, r) the factor's rows in the order of K."""
        return self.rows[np.argsort(self.order)]


class Cholesky(NamedTuple):
    """A + jitter·I = lower @ lower.T."""

    lower: FloatArray
    jitter: float


def pivoted_cholesky(
    K: FloatArray,
    tolerance: float = FACTOR_TOLERANCE,
    max_rank: int | None = None,
    overwrite: bool = False,
) -> PivotedCholesky:
    """Rank-revealing Cholesky factor of a positive semidefinite matrix (LAPACK dpstrf).

    Cost n·r² flops for rank r. With the default tolerance it is the exact path; `max_rank`
    makes it the bounded one. With `overwrite` a C-ordered K is worked on in place.
    """
    variance = diagonal(K).copy()
    largest = float(variance.max())
    if not np.isfinite(largest) or largest <= 0.0:
        raise NumericalError(
            f"the prior covariance has a largest variance of {largest}: it must be positive and "
            "finite; check the kernel's parameters and the features"
        )
    if not isinstance(K, np.ndarray):
        if max_rank is None or len(K) > BOUNDED_ON_CPU:
            least = tolerance * largest
            return PivotedCholesky(*torch_backend().pivoted_cholesky(K, least, max_rank))
        # which pivots a bounded factor takes is part of the result: the CPU chooses them
        chosen = pivoted_cholesky(to_numpy(K), tolerance, max_rank)
        return chosen._replace(rows=like(chosen.rows, K))
    if max_rank is not None and FEW_PIVOTS * max_rank < len(K):
        by_columns, pivots, left, _ = pivoted_columns(variance, lambda i: K[i], tolerance, max_rank)
        others = np.setdiff1d(np.arange(len(K)), pivots)
        order = np.append(pivots, others)
        return PivotedCholesky(by_columns[order], order, float(left.max(initial=0.0)))
    matrix = K.T if overwrite else np.array(K, order="F")
    factor, order, rank, _ = lapack.dpstrf(matrix, tol=tolerance * largest, lower=1, overwrite_a=1)
    rank = int(rank if max_rank is None else min(rank, max_rank))
    rows = np.ascontiguousarray(factor[:, :rank])
    rows[:rank] = np.tril(rows[:rank])
    order = (order - 1).astype(np.intp)
    left = variance[order[rank:]] - row_squares(rows[rank:])
    return PivotedCholesky(rows, order, float(left.max(initial=0.0)))


def pivoted_columns(
    variance: FloatArray,
    column: Callable[[int], FloatArray],
    tolerance: float,
    max_rank: int,
) -> tuple[FloatArray, IntArray, FloatArray, bool]:
    """A bounded pivoted Cholesky factor of a matrix that is given by its diagonal and columns.

    Each pivot is the point of the largest variance that is left. Returns the rows (n, r) in the
    given order, the pivots (r,), what is left of each variance, and whether all of that is within
    the tolerance. It takes n r² flops.

    >>> K = np.array([[4.0, 2.0], [2.0, 2.0]])
    >>> rows, pivots, left, is_exact = pivoted_columns(np.diag(K), lambda i: K[:, i], 1e-10, 1)
    >>> rows.tolist(), pivots.tolist(), left.tolist(), is_exact
    ([[2.0], [1.0]], [0], [0.0, 1.0], False)
    """
    left, enough = variance.copy(), tolerance * float(variance.max())
    rows, pivots = np.zeros((len(left), max_rank)), np.zeros(0, dtype=np.intp)
    for number in range(max_rank):
        pivot = int(np.argmax(left))
        if left[pivot] <= enough:
            break
        known = rows[:, :number]
        rows[:, number] = (column(pivot) - multiply(known, known[pivot])) / np.sqrt(left[pivot])
        rows[pivots, number] = 0.0  # the factor is exact at the pivots
        left -= rows[:, number] ** 2
        pivots = np.append(pivots, pivot)
        left[pivots] = 0.0
    rank, is_exact = len(pivots), bool(left.max(initial=0.0) <= enough)
    return np.ascontiguousarray(rows[:, :rank]), pivots, np.maximum(left, 0.0), is_exact


def rank_at(rows: FloatArray, tolerance: float) -> int:
    """How many leading columns of a pivoted factor reach a coarser relative tolerance.

    A pivot's squared diagonal is the largest variance that was left when it was chosen. A card
    takes all columns of a small factor: fewer would save nothing and cost another round.
    """
    rank = int(rows.shape[1])
    if not isinstance(rows, np.ndarray) and rank < LARGE_RANK:
        return rank
    is_worth = diagonal(rows) ** 2 > tolerance * float(rows[0, 0]) ** 2
    n_worth = int(np.count_nonzero(is_worth))
    return n_worth if is_worth[:n_worth].all() else rank  # a card's factor may stand in given order


def cholesky(A: FloatArray, max_jitter: float = 1e-6, overwrite: bool = False) -> Cholesky:
    """Lower Cholesky factor; adds the least power-of-ten jitter that makes it succeed.

    Only the lower triangle of A is read. The jitter is relative to the mean diagonal, and
    returned so that callers can report it. With `overwrite` a Fortran-ordered A is worked on in
    place, and there is no second try.
    """
    lower = try_cholesky(A, overwrite)
    if lower is not None:
        return Cholesky(lower, 0.0)
    if overwrite:
        raise NumericalError(f"a {len(A)}×{len(A)} matrix is not positive definite")
    scale = float(np.mean(diagonal(A)))
    relative = 1e-14
    while np.isfinite(scale) and scale > 0 and relative <= max_jitter:
        raised = A + 0.0
        add_to_diagonal(raised, relative * scale)
        lower = try_cholesky(raised, False)
        if lower is not None:
            return Cholesky(lower, relative * scale)
        relative *= 10
    raise NumericalError(
        f"a {len(A)}×{len(A)} matrix is not positive definite even with a jitter of "
        f"{max_jitter:g} × its mean diagonal; remove duplicated items or raise the noise"
    )


@dispatched
def try_cholesky(A: FloatArray, overwrite: bool) -> FloatArray | None:
    """The lower Cholesky factor, or None where A is not positive definite."""
    lower, info = lapack.dpotrf(A, lower=1, clean=1, overwrite_a=int(overwrite))
    return None if info else lower


@dispatched
def solve_lower(
    lower: FloatArray, b: FloatArray, transposed: bool = False, overwrite: bool = False
) -> FloatArray:
    """Solve L x = b, or Lᵀ x = b with `transposed`; b is (n,) or (n, k), best Fortran-ordered.

    With `overwrite` a Fortran-ordered b is worked on in place.
    """
    x, info = lapack.dtrtrs(lower, b, lower=1, trans=int(transposed), overwrite_b=int(overwrite))
    _check_diagonal(info)
    return x


@dispatched
def inverse_of_lower(lower: FloatArray) -> FloatArray:
    """The lower triangle of (L Lᵀ)⁻¹, from L."""
    inverse, info = lapack.dpotri(lower, lower=1)
    _check_diagonal(info)
    return inverse


def _check_diagonal(row: int) -> None:
    """Raise NumericalError for the row of a triangular factor that LAPACK found to be singular."""
    if row:
        raise NumericalError(f"a triangular factor has a zero on its diagonal, in row {row}")


@dispatched
def multiply(A: FloatArray, B: FloatArray) -> FloatArray:
    """A @ B for matrices, or a matrix and a vector, in SciPy's BLAS; no copies for either order."""
    if not A.size or not B.size:  # BLAS refuses what is empty
        return np.zeros((*A.shape[:1], *B.shape[1:]))
    a, trans_a = (A, 0) if A.flags.f_contiguous else (A.T, 1)
    if B.ndim == 1:
        return blas.dgemv(1.0, a, B, trans=trans_a)
    b, trans_b = (B, 0) if B.flags.f_contiguous else (B.T, 1)
    return blas.dgemm(1.0, a, b, trans_a=trans_a, trans_b=trans_b)


def multiply_sparse(S: Any, A: FloatArray) -> FloatArray:
    """S @ A for a sparse or dense S of the CPU."""
    there = S if isinstance(A, np.ndarray) else torch_backend().sparse_to_device(S, A.device)
    return there @ A


def multiply_symmetric(S: sparse.csr_array | FloatArray, rows: FloatArray) -> FloatArray:
    """S @ rows in C order, for a symmetric S of the CPU and C-ordered rows (n, r)."""
    if isinstance(S, np.ndarray) and isinstance(rows, np.ndarray):
        return multiply(rows.T, S).T  # Sᵀ = S
    return multiply_sparse(S, rows)


@dispatched
def lower_gram(half: FloatArray) -> FloatArray:
    """The lower triangle of halfᵀ half, for half (r, n); above the diagonal is zero."""
    trans = int(half.flags.f_contiguous)
    return blas.dsyrk(1.0, half if trans else half.T, trans=trans, lower=1)


@dispatched
def gram(half: FloatArray) -> FloatArray:
    """halfᵀ half in full, for half (r, n)."""
    return mirrored(lower_gram(half))


@dispatched
def mirrored(lower: FloatArray) -> FloatArray:
    """The symmetric matrix of a lower triangle above which are zeros, in place."""
    lower += np.tril(lower, -1).T
    return lower


@dispatched
def trapezoid_product(rows: FloatArray, other: FloatArray) -> FloatArray:
    """rowsᵀ other, known to be symmetric, for C-ordered (n, r) with rows[:r] lower triangular.

    Only the lower triangle of the product is promised. The triangle of the rows halves the work
    of the first r.
    """
    r = rows.shape[1]
    # otherᵀ rows, the transpose: its parts are not symmetric, only their sum is
    product: FloatArray = blas.dtrmm(1.0, rows[:r].T, other[:r].T, side=1, lower=0, trans_a=1)
    if len(rows) > r:
        product = blas.dgemm(
            1.0, other[r:].T, rows[r:].T, trans_b=1, beta=1.0, c=product, overwrite_c=1
        )
    return product


def log_det_lower(lower: FloatArray) -> float:
    """log |L Lᵀ| from the lower factor."""
    return float(2.0 * np.log(diagonal(lower)).sum())


def solve_square(A: FloatArray, b: FloatArray) -> FloatArray:
    """A⁻¹ b for a general square matrix."""
    return np.asarray(np.linalg.solve(A, b), dtype=np.float64)


# Differences between points along edges

GRAM_SHARE = 100
"""Form Σ when n² ≤ this × m: a gathered product costs 3 ns a number, a syrk 0.01–0.02 ns a flop."""


class EdgeIndex:
    """The two points of every edge; a device caches what it derives from this object."""

    def __init__(self, winner: IntArray, loser: IntArray) -> None:
        self.winner, self.loser = winner, loser


@dispatched
def multiply_laplacian(
    rows: FloatArray,
    edges: EdgeIndex,
    weight: FloatArray,
    laplacian: Callable[[FloatArray], sparse.csr_array | FloatArray],
) -> FloatArray:
    """L @ rows in C order, L = Aᵀ diag(weight) A of edges between n points, for rows (n, r).

    laplacian: makes L on the CPU, for a device that does not make it itself.
    """
    return multiply_symmetric(laplacian(weight), rows)


@dispatched
def edge_variances(half: FloatArray, edges: EdgeIndex) -> FloatArray:
    """(m,) variances |half_w − half_l|² of differences under Σ = halfᵀ half, half (r, n)."""
    winner, loser = edges.winner, edges.loser
    m, n = len(winner), half.shape[1]
    if n * n <= GRAM_SHARE * m:
        return difference_variances(lower_gram(half), winner, loser)
    rows = np.ascontiguousarray(half.T)
    var: FloatArray = np.empty(m)
    block = max(1, 2**18 // max(rows.shape[1], 1))
    for start in range(0, m, block):
        part = slice(start, start + block)
        var[part] = row_squares(rows[winner[part]] - rows[loser[part]])
    return var


def difference_variances(cov: FloatArray, winner: IntArray, loser: IntArray) -> FloatArray:
    """(m,) variances of differences, from the lower triangle of a covariance (n, n)."""
    d = np.diagonal(cov)
    high, low = np.maximum(winner, loser), np.minimum(winner, loser)
    return d[high] + d[low] - 2.0 * cov[high, low]


# Distances between rows

NARROW = 16
"""Up to so many features, differencing them one by one costs no more than a matrix product."""


@dispatched
def squared_distances(
    U: FloatArray | sparse.csr_array, V: FloatArray | sparse.csr_array | None = None
) -> FloatArray:
    """Squared Euclidean distances (n, m) between rows; never negative.

    Few features are differenced one by one, which is exact. Many go through one matrix product
    |u|² + |v|² − 2 uᵀv around the mean of U; what is below its rounding error counts as zero,
    so that duplicate rows stay duplicates. Sparse rows are not centred, which would make them
    dense.
    """
    squared: FloatArray
    if isinstance(U, sparse.sparray) or isinstance(V, sparse.sparray):
        left = sparse.csr_array(U)
        right = left if V is None else sparse.csr_array(V)
        u, v = row_squares(left), row_squares(right)
        squared = (left @ right.T).toarray()
        squared *= -2.0
        squared += u[:, None]
        squared += v
    elif U.shape[1] <= NARROW:
        from scipy.spatial.distance import cdist  # slow to import

        return cdist(U, U if V is None else V, "sqeuclidean")
    else:
        centre = U.mean(axis=0)
        left = U - centre
        right = left if V is None else V - centre
        u, v = row_squares(left), row_squares(right)
        augmented = np.vstack([-2.0 * right.T, np.ones(len(v)), v])
        squared = np.column_stack([left, u, np.ones(len(u))]) @ augmented
    rounding = 4.0 * np.finfo(np.float64).eps * (u.max(initial=0.0) + v.max(initial=0.0))
    squared[squared < rounding] = 0.0
    if V is None:
        np.fill_diagonal(squared, 0.0)
    return squared
