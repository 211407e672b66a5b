"""Graph kernels: items that a relation links have similar utilities.

Three of them are functions of a Laplacian. They compute only the columns of the items that are
asked for: by sparse solves or products where these are cheap, by dense LAPACK where they are not.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from numbers import Integral
from typing import ClassVar, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse.linalg import expm_multiply, splu

from penchant.errors import DataError, NumericalError
from penchant.kernels.base import Leaf, positive
from penchant.kernels.inputs import Inputs, Relation
from penchant.numerics.linalg import inner, multiply, to_numpy
from penchant.numerics.types import FloatArray, IntArray

DENSE_SHARE = 0.05
"""A Laplacian with a larger share of non-zeros is handled as a dense matrix."""

SPECTRUM_ITEMS = 4000
"""Up to so many items an eigendecomposition takes seconds, and every later call reuses it."""

SOLVE_COST = 12
"""Time of a sparse solve per non-zero of its factor, in units of dense work (measured)."""

LEAST_SHIFT = 1e-12
"""Below this share of the largest degree, 1/iota² is lost in rounding."""


class GraphKernel(Leaf):
    """A kernel over the items of one relation, given by its name."""

    relation: str

    def bind(self, relation: str) -> Self:
        """The same kernel on another relation.

        >>> Diffusion("cites", beta=0.5).bind("authors")
        Diffusion(relation='authors', beta=0.5, variance=1.0)
        """
        return replace(self, relation=relation)  # type: ignore[type-var]  # a dataclass

    def _places(self, A: Inputs, B: Inputs | None) -> tuple[Relation, IntArray, IntArray]:
        relation, rows = A.place(self.relation)
        if B is None:
            return relation, rows, rows
        same, columns = B.place(self.relation)
        if same is not relation:
            raise DataError(
                f"the two sets of items stand in different relations named {self.relation!r}: "
                "take both from the relations that cover all items"
            )
        return relation, rows, columns


class Smoother(GraphKernel):
    """A kernel that is a function of a Laplacian, evaluated a few columns at a time."""

    @abstractmethod
    def _columns(self, relation: Relation, where: IntArray) -> FloatArray:
        """K[:, where]."""

    @abstractmethod
    def _gradient(
        self, relation: Relation, rows: IntArray, columns: IntArray, G: FloatArray
    ) -> tuple[float, ...]:
        """Gradient of Σ_ij G_ij K[rows, columns]_ij with respect to theta."""

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        relation, rows, columns = self._places(A, B)
        if len(rows) < len(columns):
            block = self._columns(relation, rows)[columns].T
        else:
            block = self._columns(relation, columns)[rows]
        return A.device.matrix(np.ascontiguousarray(block))

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        return np.array(self._gradient(*self._places(A, B), to_numpy(G)))

    def _diag(self, A: Inputs) -> FloatArray:
        relation, where = A.place(self.relation)
        return self._columns(relation, where)[where, np.arange(len(where))]


@dataclass(frozen=True)
class RegularizedLaplacian(Smoother):
    """[beta (Δ + I/iota²)]⁻¹: utilities differ little along links; 000 Eq. 2.

    Parameters
    ----------
    relation : str
        Name of the relation.
    beta : float
        Stiffness of the links: the larger, the less utilities vary.
    iota : float
        Prior scale of the level of a connected part; an isolated item has prior variance
        iota² / beta.

    >>> from penchant.kernels import undirected
    >>> pair = undirected([[0, 1], [1, 0]])
    >>> items = Inputs(relations={"link": pair}, index=np.arange(2))
    >>> RegularizedLaplacian("link")(items).round(3)
    array([[0.667, 0.333], [0.333, 0.667]])
    """

    relation: str
    beta: float = positive(1.0, 1e-5, 1e5)
    iota: float = positive(1.0, 1e-3, 1e3)
    _powers: ClassVar[dict[str, float]] = {"beta": -1.0}

    def _columns(self, relation: Relation, where: IntArray) -> FloatArray:
        Z = _resolvent(relation, self.iota**-2, where)
        Z /= self.beta
        return Z

    def _gradient(
        self, relation: Relation, rows: IntArray, columns: IntArray, G: FloatArray
    ) -> tuple[float, ...]:
        Z = self._columns(relation, columns)
        Y = Z if rows is columns else self._columns(relation, rows)
        for_beta = -inner(G, Z[rows])
        # ∂K/∂(1/iota²) = −beta K K, of which the block is −beta Y'Z
        for_iota = 2.0 * self.beta * self.iota**-2 * inner(multiply(Y, G), Z)
        return for_beta, for_iota


@dataclass(frozen=True)
class Diffusion(Smoother):
    """variance · exp(−beta Δ): heat that spreads along the links for a time beta.

    An isolated item has this variance; linked items have less.

    >>> from penchant.kernels import undirected
    >>> pair = undirected([[0, 1], [1, 0]])
    >>> items = Inputs(relations={"link": pair}, index=np.arange(2))
    >>> Diffusion("link")(items).round(3)
    array([[0.568, 0.432], [0.432, 0.568]])
    """

    relation: str
    beta: float = positive(1.0, 1e-5, 1e2)
    variance: float = positive(1.0, 1e-5, 1e5)

    def _columns(self, relation: Relation, where: IntArray) -> FloatArray:
        if _spectrum_pays(relation, len(where)):
            values, vectors = relation.spectrum
            heat = self.variance * np.exp(-self.beta * values)
            return (vectors * heat) @ vectors[where].T
        start = self.variance * _unit_columns(relation.n_items, where)
        return expm_multiply(-self.beta * relation.laplacian, start)

    def _gradient(
        self, relation: Relation, rows: IntArray, columns: IntArray, G: FloatArray
    ) -> tuple[float, ...]:
        Z = self._columns(relation, columns)
        for_beta = -self.beta * inner(G, _operator(relation.laplacian)[rows] @ Z)
        return for_beta, inner(G, Z[rows])


@dataclass(frozen=True)
class RandomWalk(Smoother):
    """variance · (I − L/offset)^steps with L the normalised Laplacian: walks of a few steps.

    Smola and Kondor's (offset · I − L)^steps, divided by offset^steps so that the smoothest
    direction has prior variance `variance` (an isolated item too), as in Diffusion. The default
    offset of 2 is the lazy random walk: stay or follow a link, even odds.

    Parameters
    ----------
    relation : str
        Name of the relation.
    steps : int
        Items farther apart than so many links have covariance zero.
    offset : float
        At least 2, the largest possible eigenvalue of L: below it K is not a covariance.
    variance : float
        Prior variance of the smoothest direction.

    >>> from penchant.kernels import undirected
    >>> pair = undirected([[0, 1], [1, 0]])
    >>> items = Inputs(relations={"link": pair}, index=np.arange(2))
    >>> RandomWalk("link", steps=1, offset=4.0)(items)
    array([[0.75, 0.25], [0.25, 0.75]])
    """

    relation: str
    steps: int = 2
    offset: float = positive(2.0, 2.0, 1e3)
    variance: float = positive(1.0, 1e-5, 1e5)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.steps, Integral) or self.steps < 1:
            raise DataError(
                f"RandomWalk: steps is {self.steps!r}: it must be a whole number, from 1"
            )
        object.__setattr__(self, "steps", int(self.steps))
        if self.offset < 2.0:
            raise DataError(
                f"RandomWalk: offset is {self.offset!r}: it must be at least 2, or the kernel is "
                "not positive semi-definite"
            )

    def _columns(self, relation: Relation, where: IntArray) -> FloatArray:
        return self._walk(relation, where)[1]

    def _gradient(
        self, relation: Relation, rows: IntArray, columns: IntArray, G: FloatArray
    ) -> tuple[float, ...]:
        before, after = self._walk(relation, columns)
        for_variance = inner(G, after[rows])
        # With H = I − L/offset: ∂H^p / ∂ log offset = p (H^(p−1) − H^p)
        for_offset = self.steps * (inner(G, before[rows]) - for_variance)
        return for_offset, for_variance

    def _walk(self, relation: Relation, where: IntArray) -> tuple[FloatArray, FloatArray]:
        """Columns of variance · H^(steps − 1) and variance · H^steps."""
        L = _operator(relation.normalised_laplacian)
        after = self.variance * _unit_columns(relation.n_items, where)
        for _ in range(self.steps):
            before = after
            after = before - (L @ before) / self.offset
        return before, after


def _unit_columns(n: int, where: IntArray) -> FloatArray:
    columns = np.zeros((n, len(where)))
    columns[where, np.arange(len(where))] = 1.0
    return columns


def _is_dense(laplacian: sparse.csr_array) -> bool:
    return bool(laplacian.nnz > DENSE_SHARE * laplacian.shape[0] ** 2)


def _operator(laplacian: sparse.csr_array) -> sparse.csr_array | FloatArray:
    """The Laplacian in the form that multiplies faster."""
    return laplacian.toarray() if _is_dense(laplacian) else laplacian


def _spectrum_pays(relation: Relation, n_columns: int) -> bool:
    n = relation.n_items
    return n <= SPECTRUM_ITEMS or 8 * n_columns >= n or _is_dense(relation.laplacian)


def _resolvent(relation: Relation, shift: float, where: IntArray) -> FloatArray:
    """(Δ + shift · I)⁻¹[:, where]: by a sparse factor, or by dense algebra where that fills in.

    A few columns of a dense one come from its eigenvectors, which later calls reuse.
    """
    laplacian, n = relation.laplacian, relation.n_items
    if shift < LEAST_SHIFT * laplacian.diagonal().max(initial=0.0):
        raise NumericalError(
            f"1/iota² is {shift:.3g}, too small next to links as strong as "
            f"{laplacian.diagonal().max():.3g}: take a smaller iota, or scale the weights down"
        )
    if not _is_dense(laplacian):
        factor = splu(
            sparse.csc_array(laplacian + shift * sparse.eye_array(n)),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        if SOLVE_COST * factor.nnz * len(where) < n**3:
            return factor.solve(_unit_columns(n, where))
    elif 8 * len(where) <= n:
        values, vectors = relation.spectrum
        return multiply(vectors / (np.maximum(values, 0.0) + shift), vectors[where].T)
    shifted = laplacian.toarray(order="F")
    shifted[np.diag_indices(n)] += shift
    cholesky, _ = lapack.dpotrf(shifted, lower=1, overwrite_a=1)
    lower, _ = lapack.dpotri(cholesky, lower=1, overwrite_c=1)
    inverse: FloatArray = np.tril(lower)
    inverse += np.tril(lower, -1).T
    return inverse[:, where]


@dataclass(frozen=True)
class CommonCause(GraphKernel):
    """Silva et al.'s hidden common causes: related items share unit-variance causes.

    U_ij = shared causes / √(causes of i · causes of j), so every item has the same variance,
    and an isolated item is independent of all others. Weights of links are ignored.

    Parameters
    ----------
    relation : str
        Name of the relation.
    variance : float
        Prior variance of a utility.
    per : "clique", "edge" or "auto"
        One cause a maximal clique, or one an edge; "auto" takes cliques unless they outnumber
        the edges.

    >>> from penchant.kernels import undirected
    >>> path = undirected([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> items = Inputs(relations={"path": path}, index=np.arange(3))
    >>> CommonCause("path")(items).round(3)
    array([[1. , 0.707, 0. ], [0.707, 1. , 0.707], [0. , 0.707, 1. ]])
    """

    relation: str
    variance: float = positive(1.0, 1e-5, 1e5)
    per: Literal["clique", "edge", "auto"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.per not in ("clique", "edge", "auto"):
            raise DataError(
                f'CommonCause: per is {self.per!r}: it must be "clique", "edge" or "auto"'
            )

    def _matrix(self, A: Inputs, B: Inputs | None) -> FloatArray:
        relation, rows, columns = self._places(A, B)
        loadings = self._loadings(relation)
        K: FloatArray = (loadings[rows] @ loadings[columns].T).toarray()
        K *= self.variance
        return A.device.matrix(K)

    def _diag(self, A: Inputs) -> FloatArray:
        return np.full(len(A), self.variance)

    def _pullback(self, A: Inputs, G: FloatArray, B: Inputs | None) -> FloatArray:
        return np.array([inner(G, self._matrix(A, B))])

    def _loadings(self, relation: Relation) -> sparse.csr_array:
        """Loading of each item (row) on each cause: unit rows, so U has a unit diagonal."""
        known = _LOADINGS.setdefault(relation, {})
        if self.per not in known:
            causes = _causes(relation, self.per)
            known[self.per] = sparse.csr_array(
                sparse.diags_array(causes.sum(axis=1) ** -0.5) @ causes
            )
        return known[self.per]


_LOADINGS: WeakKeyDictionary[Relation, dict[str, sparse.csr_array]] = WeakKeyDictionary()
"""Of `CommonCause`: the search for cliques may take long, and a fit asks for them many times."""


def _causes(relation: Relation, per: str) -> sparse.csr_array:
    """Incidence (n, causes); an item without a link gets a cause to itself."""
    groups = None
    if per != "edge":
        groups = maximal_cliques(relation.weights, relation.n_edges if per == "auto" else None)
    if groups is None:
        edges = sparse.triu(relation.weights, k=1).tocoo()
        groups = list(np.stack([edges.row, edges.col], axis=1))
    alone = np.flatnonzero(np.diff(relation.weights.indptr) == 0)
    groups += list(alone[:, None])
    members = np.concatenate(groups)
    causes = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return sparse.csr_array((np.ones(len(members)), (members, causes)))


def maximal_cliques(adjacency: sparse.csr_array, limit: int | None = None) -> list[IntArray] | None:
    """Every maximal clique of two or more nodes; None if there are more than `limit`.

    Bron and Kerbosch's search with Tomita's pivot, sets of nodes as the bits of an integer.

    >>> path = sparse.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    >>> [clique.tolist() for clique in maximal_cliques(path)]
    [[1, 2], [0, 1]]
    """
    neighbours = [
        sum(1 << int(j) for j in adjacency.indices[start:stop])
        for start, stop in zip(adjacency.indptr[:-1], adjacency.indptr[1:], strict=True)
    ]
    found = list(islice(_search(neighbours), None if limit is None else limit + 1))
    if limit is not None and len(found) > limit:
        return None
    return [np.array(clique, dtype=np.intp) for clique in found]


def _search(neighbours: list[int]) -> Iterator[list[int]]:
    """Depth first, without recursion: a clique may be larger than Python's recursion limit."""
    linked = sum(1 << i for i, mask in enumerate(neighbours) if mask)
    stack: list[tuple[list[int], int, int]] = [([], linked, 0)]
    while stack:
        clique, candidates, excluded = stack.pop()
        if not candidates:
            if clique and not excluded:
                yield sorted(clique)
            continue
        pivot = max(
            _nodes(candidates | excluded), key=lambda u: (candidates & neighbours[u]).bit_count()
        )
        for node in _nodes(candidates & ~neighbours[pivot]):
            near = neighbours[node]
            stack.append(([*clique, node], candidates & near, excluded & near))
            candidates ^= 1 << node
            excluded |= 1 << node


def _nodes(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
