"""From a user's graph to a `Relation`: it is checked here, once.

A graph is a dense array, a scipy sparse matrix or array, or a data frame whose rows and columns
name the items.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve

from penchant.errors import DataError, DataWarning, warn
from penchant.kernels.inputs import Names, Relation, column_names, is_numbered, row_names
from penchant.numerics.types import IntArray

TELEPORT = 0.15
"""Probability that the random walk on a directed graph jumps to any item, as in PageRank."""

SYMMETRY_TOLERANCE = 1e-10
"""Asymmetry, relative to the largest weight, that counts as rounding."""

Graph = Any
"""A dense array, a scipy sparse matrix or array, or a data frame."""
Places = Callable[[Names, str], IntArray | None]
"""(names of rows, what they are rows of) → the row of each item; None: rows are in order."""


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
    """Named relations from a user's graphs, relations, or roles of a relation.

    A graph counts as undirected; `places` puts the items of a data frame in order. The roles that
    `directed` returns become, under the name "cites", the relations "cites:linking" and
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
    """Weights, and the names of rows and columns."""
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
            f"{what} has {loops} self-loops, which say nothing about other items: ignored",
            DataWarning,
        )
    return _without_loops(W), names


def _names_in_order(
    W: sparse.csr_array, rows: Names | None, columns: Names | None, what: str
) -> tuple[sparse.csr_array, Names | None]:
    """Weights with columns in the order of the rows, and the names of both; where only rows or
    only columns have names, these."""
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
