"""The inputs of kernels: features of items, relations between them, and where an item stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from scipy import linalg, sparse

from penchant.errors import DataError
from penchant.numerics.dispatch import CPU, Device
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


# Relations


@dataclass(frozen=True, eq=False)
class Relation:
    """One relation over the whole universe of items.

    Made by `undirected`, `directed` or `bipartite`, which check what they are given.

    Parameters
    ----------
    weights : sparse array (n, n)
        Symmetric, non-negative, no self-loops, no stored zeros.
    kind : str
        The treatment of the graph, for reports.
    walk_laplacian : sparse array (n, n) or None
        Chung's Laplacian of a directed graph, which then replaces both Laplacians.

    `names` are those of a data frame's rows, until a fit has put the items in its order; a model
    file has none.

    >>> from penchant.kernels import undirected
    >>> undirected([[0, 2], [2, 0]]).laplacian.toarray()
    array([[ 2., -2.], [-2., 2.]])
    """

    weights: sparse.csr_array
    kind: str = "undirected"
    walk_laplacian: sparse.csr_array | None = None
    names: Names | None = field(default=None, init=False)

    def called(self, names: Names | None) -> "Relation":
        """This relation, with names of its items."""
        object.__setattr__(self, "names", names)
        return self

    def take(self, items: IntArray) -> "Relation":
        """The same relation with its items in another order."""
        walk = self.walk_laplacian
        walk = None if walk is None else walk[items][:, items]
        return Relation(self.weights[items][:, items], self.kind, walk)

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


# Items

Features: TypeAlias = FloatArray | sparse.csr_array
"""Rows of numbers, one an item: dense, or sparse where most are zero (bags of words)."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """Items as kernels see them: their features, and their positions in relations.

    Parameters
    ----------
    X : array (n, d), sparse array (n, d) or None
        Features of the items; sparse ones stay so.
    relations : mapping of name to Relation
        Over the whole universe of items; subsets share it, without copies.
    index : integer array (n,) or None
        Position of each item in the universe; None for new items outside it.

    `device` is where matrices between the items are made (see `on`). The inputs themselves are
    NumPy's; files and pickled copies have no device.

    >>> items = Inputs(np.eye(3), index=np.arange(3))
    >>> len(items.take(np.array([2, 0])))
    2
    """

    X: Features | None = None
    relations: Mapping[str, Relation] = field(default_factory=lambda: MappingProxyType({}))
    index: IntArray | None = None
    device: Device = field(default=CPU, init=False)

    def __post_init__(self) -> None:
        if self.X is None and self.index is None:
            raise DataError(
                "the inputs of a kernel have neither features X nor an index: "
                "give X (n, d), or the positions of the items in the universe"
            )
        if self.X is not None and self.X.ndim != 2:
            raise DataError(
                f"X has shape {self.X.shape}: features must be a matrix (n, d); "
                "for one feature use X.reshape(-1, 1)"
            )
        if self.X is not None and self.index is not None and self.X.shape[0] != len(self.index):
            raise DataError(
                f"X has {self.X.shape[0]} rows but index has {len(self.index)}: one of each an item"
            )

    @classmethod
    def of(cls, items: "Inputs | FloatArray") -> "Inputs":
        """Inputs as they are, or a plain feature matrix (n, d) as new items."""
        if isinstance(items, Inputs):
            return items
        if sparse.issparse(items):
            return cls(sparse.csr_array(items, dtype=np.float64))
        return cls(np.asarray(items, dtype=np.float64))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "device": CPU}

    def __len__(self) -> int:
        if self.X is not None:
            return int(self.X.shape[0])
        return 0 if self.index is None else len(self.index)

    def features(self) -> Features:
        """X (n, d), for a kernel that needs features."""
        if self.X is None:
            raise DataError(
                "this kernel compares the features of items, but they have none: pass X (n, d), "
                "or use Independent or a graph kernel"
            )
        return self.X

    def place(self, name: str) -> tuple[Relation, IntArray]:
        """The relation of that name, and the positions of the items in it, for a graph kernel."""
        if name not in self.relations:
            known = ", ".join(map(repr, self.relations)) or "none"
            raise DataError(
                f"a kernel looks for the relation {name!r}, but the relations given are: {known}; "
                "pass it in relations={name: graph}, or bind the kernel to another with .bind(name)"
            )
        relation = self.relations[name]
        if self.index is None or (len(self.index) and self.index.max() >= relation.n_items):
            raise DataError(
                f"new items stand outside the relation {name!r} of {relation.n_items} items: "
                "give relations that cover the new items too, after the items already known"
            )
        return relation, self.index

    def on(self, device: Device) -> "Inputs":
        """The same items, with matrices made on the device; sparse features become dense there."""
        if device is self.device:
            return self
        moved = replace(self) if self.X is None else replace(self, X=as_dense(self.X))
        object.__setattr__(moved, "device", device)
        return moved

    def take(self, rows: IntArray) -> "Inputs":
        """Some of the items (repeats allowed), in the same universe."""
        X = None if self.X is None else self.X[rows]
        index = None if self.index is None else self.index[rows]
        return replace(self, X=X, index=index).on(self.device)


def as_dense(K: Features) -> FloatArray:
    """The matrix as a dense one."""
    return K.toarray() if isinstance(K, sparse.sparray) else K
