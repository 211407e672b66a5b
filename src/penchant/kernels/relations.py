"""Relations between items: checked once, stored as symmetric sparse weights.

What a user has (a matrix of links, citations, shared authors) becomes a `Relation` here;
the graph kernels trust it and ask it for Laplacians, spectrum and cliques, which are worked
out once, on first use.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Literal, overload

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import spsolve

from penchant.errors import DataError, DataWarning, warn
from penchant.numerics.types import FloatArray, IntArray

Names = tuple[Any, ...]


def row_names(table: Any) -> Names | None:
    """The `names` of a table of features, or the index of a pandas frame; None: rows have none."""
    return _names(table.index if hasattr(table, "iloc") else getattr(table, "names", None))


def column_names(table: Any) -> Names | None:
    """The columns of a data frame or an arrow table; None: they have no names."""
    return _names(getattr(table, "column_names", getattr(table, "columns", None)))


def is_numbered(names: Names) -> bool:
    """Whether names are only positions: 0, 1, 2 …, as pandas numbers what has no names.

    >>> is_numbered((0, 1)), is_numbered((1, 0)), is_numbered(("a", "b"))
    (True, False, False)
    """
    return names == tuple(range(len(names)))


def _names(found: Any) -> Names | None:
    return None if found is None or callable(found) else tuple(found)


def maximal_cliques(adjacency: sparse.csr_array, limit: int | None = None) -> list[IntArray] | None:
    """Every maximal clique of two or more nodes; None when there are more than `limit`.

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
    """Depth first, on a stack of its own: a clique may be deeper than Python's recursion."""
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


TELEPORT = 0.15
"""How often the random walk on a directed graph jumps anywhere, as in PageRank."""

SYMMETRY_TOLERANCE = 1e-10
"""Asymmetry, relative to the largest weight, that is taken for rounding."""

Graph = Any
"""A dense array, a scipy sparse matrix or array, or a data frame."""
Places = Callable[[Names, str], IntArray | None]
"""From what rows are called, and of what, to the row of each item; None: they are in order."""


@dataclass(frozen=True, eq=False)
class Relation:
    """One relation over the whole universe of items.

    Made by `undirected`, `directed` or `bipartite`, which check what they are given.

    Parameters
    ----------
    weights : sparse array (n, n)
        Symmetric, non-negative, no self-loops, no stored zeros.
    kind : str
        What it was made from, for reports.
    walk_laplacian : sparse array (n, n) or None
        Chung's Laplacian of a directed graph, which then stands in for both Laplacians.

    `names` are what the items are called where the graph was a data frame, until a fit has put them
    in order; a file knows none.

    >>> undirected([[0, 2], [2, 0]]).laplacian.toarray()
    array([[ 2., -2.], [-2., 2.]])
    """

    weights: sparse.csr_array
    kind: str = "undirected"
    walk_laplacian: sparse.csr_array | None = None
    names: Names | None = field(default=None, init=False)

    def called(self, names: Names | None) -> "Relation":
        """The same, its items named."""
        object.__setattr__(self, "names", names)
        return self

    def take(self, items: IntArray) -> "Relation":
        """The same relation with its items in another order."""
        walk = self.walk_laplacian
        return Relation(
            self.weights[items][:, items],
            self.kind,
            None if walk is None else walk[items][:, items],
        )

    @property
    def n_items(self) -> int:
        return int(self.weights.shape[0])

    @property
    def n_edges(self) -> int:
        return int(self.weights.nnz) // 2

    @cached_property
    def laplacian(self) -> sparse.csr_array:
        """Combinatorial Laplacian Δ = D − W (000, below Eq. 2)."""
        if self.walk_laplacian is not None:
            return self.walk_laplacian
        degree = self.weights.sum(axis=1)
        return sparse.csr_array(sparse.diags_array(degree) - self.weights)

    @cached_property
    def normalised_laplacian(self) -> sparse.csr_array:
        """D^−½ Δ D^−½, eigenvalues in [0, 2]; zero on isolated items."""
        if self.walk_laplacian is not None:
            return self.walk_laplacian
        degree = self.weights.sum(axis=1)
        linked = degree > 0.0
        scale = sparse.diags_array(np.where(linked, degree, 1.0) ** -0.5)
        identity = sparse.diags_array(linked.astype(np.float64))
        return sparse.csr_array(identity - scale @ self.weights @ scale)

    @cached_property
    def spectrum(self) -> tuple[FloatArray, FloatArray]:
        """Eigenvalues (n,) and eigenvectors (n, n) of the Laplacian."""
        values, vectors = linalg.eigh(
            self.laplacian.toarray(), driver="evd", overwrite_a=True, check_finite=False
        )
        return values, vectors

    @cached_property
    def edge_causes(self) -> sparse.csr_array:
        """Incidence (n, causes) of one hidden cause an edge, and one an isolated item."""
        edges = sparse.triu(self.weights, k=1).tocoo()
        return _incidence(np.stack([edges.row, edges.col], axis=1), self.n_items)

    @cached_property
    def clique_causes(self) -> sparse.csr_array:
        """Incidence (n, causes) of one hidden cause a maximal clique, and one an isolated item."""
        return _incidence(maximal_cliques(self.weights) or [], self.n_items)

    @cached_property
    def causes(self) -> sparse.csr_array:
        """Causes by clique, or by edge where maximal cliques outnumber edges."""
        cliques = maximal_cliques(self.weights, limit=self.n_edges)
        return self.edge_causes if cliques is None else _incidence(cliques, self.n_items)


def undirected(graph: Graph) -> Relation:
    """A relation from symmetric non-negative weights (n, n), dense, sparse or a data frame.

    >>> undirected([[0, 1], [1, 0]]).n_edges
    1
    """
    return _undirected(graph, "the graph")


@overload
def directed(graph: Graph, treatment: Literal["roles"] = "roles") -> dict[str, Relation]: ...
@overload
def directed(graph: Graph, treatment: Literal["chung", "symmetric"]) -> Relation: ...
def directed(
    graph: Graph, treatment: Literal["roles", "chung", "symmetric"] = "roles"
) -> Relation | dict[str, Relation]:
    """Relations from directed weights (n, n), where entry (i, j) is the link from i to j.

    Parameters
    ----------
    graph : array, sparse array or data frame (n, n)
        Non-negative weights.
    treatment : "roles", "chung" or "symmetric"
        "roles" gives two relations (000, Section 7): "linking", between items that link to the
        same item (bibliographic coupling), and "linked", between items that the same item links
        to (co-citation). "chung" gives one, through Chung's Laplacian of the random walk along
        the links; it is a dense matrix. "symmetric" forgets the direction and adds both weights.

    >>> roles = directed([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    >>> roles["linking"].n_edges, roles["linked"].n_edges
    (1, 0)
    """
    W, names = _square(graph, "the graph")
    if treatment == "roles":
        return {
            "linking": Relation(_without_loops(W @ W.T), "linking").called(names),
            "linked": Relation(_without_loops(W.T @ W), "linked").called(names),
        }
    if treatment == "chung":
        return Relation(sparse.csr_array(W + W.T), "chung", _walk_laplacian(W)).called(names)
    if treatment == "symmetric":
        return Relation(sparse.csr_array(W + W.T), "symmetric").called(names)
    raise DataError(f'treatment is {treatment!r}: it must be "roles", "chung" or "symmetric"')


def bipartite(incidence: Graph) -> Relation:
    """A relation between items (rows) that share a neighbour (column): 000, Section 7.

    >>> films_by_director = [[1, 0], [1, 0], [0, 1]]
    >>> bipartite(films_by_director).weights.toarray()[0]
    array([0., 1., 0.])
    """
    B = _weights(incidence, "the incidence matrix")
    return Relation(_without_loops(B @ B.T), "bipartite").called(row_names(incidence))


def as_relations(
    relations: Mapping[str, object] | None, n_items: int, places: Places | None = None
) -> dict[str, Relation]:
    """Named relations from what a user passes: graphs, relations, or roles of a relation.

    A graph is taken for undirected; the items of a data frame are put in order by `places`. The
    roles that `directed` gives under the name "cites" become the relations "cites:linking" and
    "cites:linked".

    >>> list(as_relations({"cites": directed(np.eye(3, k=1))}, n_items=3))
    ['cites:linking', 'cites:linked']
    """
    if relations is not None and not isinstance(relations, Mapping):
        raise DataError(
            f"relations is a {type(relations).__name__}: it must map names to graphs, "
            'as in relations={"cites": graph}'
        )
    named: dict[str, Relation] = {}
    for name, value in (relations or {}).items():
        if isinstance(value, Mapping):
            roles = {f"{name}:{role}": relation for role, relation in value.items()}
            named |= as_relations(roles, n_items, places)
            continue
        what = f"relation {name!r}"
        relation = value if isinstance(value, Relation) else _undirected(value, what)
        if relation.names is not None and places is not None:
            order = places(relation.names, what)
            relation = relation if order is None else relation.take(order)
        if relation.n_items != n_items:
            raise DataError(
                f"{what} is over {relation.n_items} items, the data over {n_items}: "
                "its rows and columns must be the items in index order; add empty ones for "
                "items without links"
            )
        named[name] = relation
    return named


def _undirected(graph: Graph, what: str) -> Relation:
    W, names = _square(graph, what)
    asymmetry = abs(W - W.T).max() if W.nnz else 0.0
    if asymmetry > SYMMETRY_TOLERANCE * (W.max() if W.nnz else 0.0):
        raise DataError(
            f"{what} is not symmetric (two directions differ by {asymmetry:.3g}): an undirected "
            "relation has the same weight both ways; for links with a direction use "
            "kernels.directed(graph)"
        )
    return Relation(sparse.csr_array((W + W.T) / 2.0)).called(names)


def _square(graph: Graph, what: str) -> tuple[sparse.csr_array, Names | None]:
    """Weights, and what rows and columns are called."""
    W = _weights(graph, what)
    if W.shape[0] != W.shape[1]:
        raise DataError(
            f"{what} has shape {W.shape}: weights between items must be square (n, n); for items "
            "that share neighbours of another kind use kernels.bipartite(incidence)"
        )
    W, names = _names_in_order(W, row_names(graph), column_names(graph), what)
    loops = int(np.count_nonzero(W.diagonal()))
    if loops:
        warn(
            f"{what} has {loops} self-loops, which say nothing about other items: left out",
            DataWarning,
        )
    return _without_loops(W), names


def _names_in_order(
    W: sparse.csr_array, rows: Names | None, columns: Names | None, what: str
) -> tuple[sparse.csr_array, Names | None]:
    """Columns in the order of the rows, and what both are called; who has no names has the
    other's."""
    if rows is None or columns is None:
        return W, columns if rows is None else rows
    place = {str(name): column for column, name in enumerate(columns)}
    if len(place) == len(rows) and place.keys() == set(map(str, rows)):
        return W[:, [place[str(name)] for name in rows]], rows
    if not (is_numbered(rows) or is_numbered(columns)):
        raise DataError(
            f"the rows and the columns of {what} have different names, such as "
            f"{rows[0]!r} and {columns[0]!r}: both must name the same items, each once"
        )
    return W, columns if is_numbered(rows) else rows


def _weights(graph: Graph, what: str) -> sparse.csr_array:
    matrix = graph if sparse.issparse(graph) else np.asarray(graph)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise DataError(
            f"{what} is of type {type(graph).__name__}, shape {matrix.shape}, dtype "
            f"{matrix.dtype}: it must be a matrix of numbers, dense or scipy sparse"
        )
    W = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    W.sum_duplicates()
    W.eliminate_zeros()
    if not np.isfinite(W.data).all():
        raise DataError(f"{what} has weights that are NaN or infinite: give 0 where no link is")
    if (W.data < 0.0).any():
        raise DataError(
            f"{what} has negative weights (down to {W.data.min():.3g}): a weight says how "
            "strongly two items are alike, from 0; clip or shift the similarities first"
        )
    return W


def _without_loops(W: sparse.csr_array) -> sparse.csr_array:
    links = W.tocoo()
    off = links.row != links.col
    return sparse.csr_array((links.data[off], (links.row[off], links.col[off])), shape=W.shape)


def _walk_laplacian(W: sparse.csr_array) -> sparse.csr_array:
    """I − (Π^½ P Π^−½ + Π^−½ Pᵀ Π^½)/2 for the walk with teleport, stationary at π (Chung)."""
    n = W.shape[0]
    degree = W.sum(axis=1)
    stuck = degree == 0.0
    follow = (1.0 - TELEPORT) * (sparse.diags_array(1.0 / np.where(stuck, 1.0, degree)) @ W)
    # A stuck walk teleports: like the regular jumps, that adds the same to every item, so π is
    # (I − followᵀ)⁻¹ 1 up to scale.
    stationary = spsolve(sparse.csc_array(sparse.eye_array(n) - follow.T), np.ones(n))
    P = follow.toarray() + np.where(stuck, 1.0 / n, TELEPORT / n)[:, None]
    root = np.sqrt(stationary)
    S = root[:, None] * P / root
    return sparse.csr_array(np.eye(n) - (S + S.T) / 2.0)


def _incidence(groups: list[IntArray] | IntArray, n_items: int) -> sparse.csr_array:
    """Items × groups, with a group of its own for an item in none."""
    sizes = np.array([len(group) for group in groups], dtype=np.intp)
    members = np.concatenate(list(groups)) if len(sizes) else np.zeros(0, dtype=np.intp)
    alone = np.setdiff1d(np.arange(n_items), members)
    rows = np.concatenate([members, alone])
    columns = np.concatenate(
        [np.repeat(np.arange(len(sizes)), sizes), len(sizes) + np.arange(len(alone))]
    )
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)))
