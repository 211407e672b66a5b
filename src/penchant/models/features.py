"""The items that a fit saw: features, scaled, and relations, so that new rows are treated alike."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from penchant.data import Comparisons, check_connected
from penchant.errors import DataError, DataWarning, warn
from penchant.kernels import Inputs, Relation, as_relations
from penchant.kernels.inputs import Features
from penchant.kernels.relations import column_names, is_numbered
from penchant.models.defaults import Scaling
from penchant.models.validation import (
    check_features,
    in_order,
    rows_called,
    warn_constant_features,
    warn_far_lengthscale,
)


@dataclass(frozen=True)
class FeatureColumns:
    """How many feature columns there were, how they were scaled, and what they are called.

    >>> import numpy as np
    >>> columns, items = FeatureColumns.of(np.array([[0.0], [2.0]]), "ab", "items", scale=True)
    >>> columns.rows([[2.0]], 1, "items").X
    array([[1.]])
    """

    n_columns: int
    scaling: Scaling | None
    names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        X: Any,
        names: Sequence[Any],
        what: str,
        scale: bool,
        relations: Mapping[str, Any] | None = None,
    ) -> tuple["FeatureColumns", Inputs]:
        """Check features of and relations between what is fitted; return them as inputs too.

        names: of the items or users, in whose order rows come or are put.
        """
        if relations is not None and not isinstance(relations, Mapping):
            raise DataError(
                f"relations is a {type(relations).__name__}: it must be a dictionary "
                "{name: graph}; features of users go in user_features=…"
            )
        n = len(names)
        features = check_features(in_order(X, names, what), n, what)
        scaling = Scaling.of(features) if scale and features is not None else None
        n_columns = 0 if features is None else features.shape[1]
        columns = cls(n_columns, scaling, _names(X, n_columns, what))
        graphs = named_relations(relations, names, what)
        return columns, Inputs(columns._scaled(features), graphs, np.arange(n))

    def rows(self, X: Any, n: int, what: str) -> Inputs:
        """The features of n new rows; none are needed where the fit had none."""
        return Inputs(self._scaled(self._checked(X, n, what)), index=np.arange(n))

    def rows_of(self, names: Sequence[Any], X: Any, what: str) -> Inputs:
        """The features of new rows in the order of `names`."""
        return self.rows(in_order(X, names, what), len(names), what)

    def new_items(self, X: Any) -> Inputs:
        """Items outside the universe, known by their features alone."""
        return Inputs(self._scaled(self._checked(X, None, "items")))

    def _checked(self, X: Any, n: int | None, what: str) -> Any:
        if X is None and self.n_columns == 0:
            return None
        features = check_features(X, n, f"new {what}")
        if features is None or features.shape[1] != self.n_columns:
            got = "none were given" if features is None else f"{features.shape[1]} were given"
            raise DataError(
                f"features of new {what}: {got}, and the model was fitted on {self.n_columns}; "
                "give the same columns in the same order"
            )
        order = self._order(X, what)
        features = features if order is None else features[:, order]
        return features if self.n_columns else None

    def _order(self, X: Any, what: str) -> list[int] | None:
        """Which column of X each column of the fit is, by its name; None: they are in order."""
        given = column_names(X)
        if given is None or is_numbered(given):
            return None
        given, unnamed = tuple(map(str, given)), _numbered(self.n_columns, what)
        is_unnamed = self.names in ((), unnamed)
        numbers = tuple(map(str, range(self.n_columns)))
        for known in (self.names, numbers) if is_unnamed else (self.names,):
            if sorted(known) == sorted(given):
                return [given.index(name) for name in known]
        if is_unnamed:
            return None
        other = [name for name in given if name not in self.names]
        absent = [name for name in self.names if name not in given]
        raise DataError(
            f"features of new {what} have other columns than the fit: {other} are new and "
            f"{absent} are missing; give the columns of the fit, in any order (of a table that "
            "`encode` made, X.like(new_table) has them)"
        )

    def _scaled(self, features: Any) -> Any:
        if features is None or self.scaling is None:
            return features
        return self.scaling.apply(features)


def stacked(known: Features, new: Features) -> Features:
    """Rows below rows, sparse if those above are."""
    if isinstance(known, sparse.sparray):
        return sparse.csr_array(sparse.vstack([known, sparse.csr_array(new)]))
    return np.concatenate([known, new.toarray() if isinstance(new, sparse.sparray) else new])


def _names(X: Any, n_columns: int, what: str) -> tuple[str, ...]:
    """Column names of a data frame, or numbered ones."""
    given = column_names(X)
    if given is None or is_numbered(given):
        return _numbered(n_columns, what)
    names = tuple(map(str, given))
    if twice := [name for name, times in Counter(names).items() if times > 1]:
        raise DataError(f"X has several columns called {twice[0]!r}: rename or drop one of them")
    return names


def _numbered(n_columns: int, what: str) -> tuple[str, ...]:
    kind = "user feature" if what.endswith("users") else "feature"
    return tuple(f"{kind} {i}" for i in range(n_columns))


def named_relations(
    relations: Mapping[str, Any] | None, names: Sequence[Any], what: str
) -> dict[str, Relation]:
    """Relations in the order of `names`, by which the rows and columns of a frame are found."""
    return as_relations(
        relations, len(names), lambda called, table: rows_called(called, names, table, what)
    )


def fitted_items(
    X: Any,
    data: Comparisons,
    relations: Mapping[str, Any] | None,
    kernel: Any = None,
    *,
    scale: bool | None = None,
) -> tuple[FeatureColumns, Inputs]:
    """The items of a fit, checked, with a word about what they and the comparisons cannot tell.

    kernel: the one that was given, if any. scale: whether to standardise features; None: where
    no kernel is given.
    """
    scale = kernel is None if scale is None else scale
    columns, items = FeatureColumns.of(X, data.items, "items", scale, relations)
    nothing_links = items.X is None and not items.relations
    if nothing_links and (message := check_connected(data)) is not None:
        warn(message, DataWarning)
    if items.X is not None:
        warn_constant_features(items.X)
        warn_far_lengthscale(kernel, items)
    return columns, items
