"""What a kernel looks at: features of items, and where they stand in the relations."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from penchant.errors import DataError
from penchant.kernels.relations import Relation
from penchant.numerics.dispatch import HOST, Device
from penchant.numerics.types import FloatArray, IntArray

Features: TypeAlias = FloatArray | sparse.csr_array
"""Rows of numbers, one an item: dense, or sparse where most are zero (bags of words)."""
NO_RELATIONS: Mapping[str, Relation] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Inputs:
    """The items a kernel looks at: their features, and where they stand in the relations.

    Parameters
    ----------
    X : array (n, d), sparse array (n, d) or None
        Features of the items; sparse ones stay so.
    relations : mapping of name to Relation
        Over the whole universe of items; shared between subsets, never copied.
    index : integer array (n,) or None
        Position of each item in the universe; None for new items outside it.

    `device` is where matrices between the items are made (see `on`); the inputs themselves are
    NumPy's, and a file or a copy knows no device.

    >>> items = Inputs(np.eye(3), index=np.arange(3))
    >>> len(items.take(np.array([2, 0])))
    2
    """

    X: Features | None = None
    relations: Mapping[str, Relation] = field(default_factory=lambda: NO_RELATIONS)
    index: IntArray | None = None
    device: Device = field(default=HOST, init=False)

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
        return {**vars(self), "device": HOST}

    def __len__(self) -> int:
        if self.X is not None:
            return int(self.X.shape[0])
        return 0 if self.index is None else len(self.index)

    def features(self) -> Features:
        """X (n, d), for a kernel that cannot do without."""
        if self.X is None:
            raise DataError(
                "this kernel compares the features of items, but they have none: pass X (n, d), "
                "or use Independent or a graph kernel"
            )
        return self.X

    def place(self, name: str) -> tuple[Relation, IntArray]:
        """The relation of that name, and where in it the items stand, for a graph kernel."""
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
        """The same items, with matrices made elsewhere; sparse features become dense on a card."""
        if device is self.device:
            return self
        moved = replace(self) if self.X is None else replace(self, X=as_dense(self.X))
        object.__setattr__(moved, "device", device)
        return moved

    def take(self, rows: IntArray) -> "Inputs":
        """The same universe, seen from a subset of the items (repeats allowed)."""
        subset = replace(
            self,
            X=None if self.X is None else self.X[rows],
            index=None if self.index is None else self.index[rows],
        )
        return subset.on(self.device)


def squared_norms(X: Features) -> FloatArray:
    """|x|² of each row, (n,)."""
    if isinstance(X, sparse.sparray):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    norms: FloatArray = np.einsum("ij,ij->i", X, X)
    return norms


def as_dense(K: Features) -> FloatArray:
    """A product of rows, which is dense whatever the rows were."""
    dense: FloatArray = K.toarray() if isinstance(K, sparse.sparray) else K
    return dense
