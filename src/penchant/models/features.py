"""The items that a fit saw: features, scaled, and relations, so that new rows are treated alike."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from penchant.data import Comparisons, check_connected, closest
from penchant.errors import DataError, DataWarning, warn
from penchant.kernels import Inputs, Relation, as_relations
from penchant.kernels.base import Combination, NotGiven
from penchant.kernels.inputs import Features, column_names, is_numbered, row_names
from penchant.kernels.stationary import Stationary
from penchant.numerics.types import FloatArray, IntArray


def in_order(X: Any, names: Sequence[Any], what: str) -> Any:
    """Features with their rows in the order of `names`, where the rows have names of their own."""
    if X is None or isinstance(X, np.ndarray):
        return X
    called = row_names(X)
    rows = None if called is None else rows_called(called, names, "X", what)
    if rows is None:
        return X
    return X.iloc[rows] if hasattr(X, "iloc") else X.take(rows)


def rows_called(
    called: Sequence[Any], names: Sequence[Any], table: str, what: str
) -> IntArray | None:
    """The row of each of `names`; None where rows have no names.

    called: the names of the rows. Rows called 0, 1, 2 … have none, unless these are the names
    themselves. Names are found as they are, or else by their text.

    >>> rows_called(["tea", "milk"], ["milk", "tea"], "X", "items").tolist()
    [1, 0]
    """
    if is_numbered(tuple(called)) and set(called) != set(names):
        return None
    if not set(names) <= set(called):
        called, names = list(map(str, called)), list(map(str, names))
    row = {name: number for number, name in enumerate(called)}
    (name, times), *_ = Counter(called).most_common(1) or [("", 0)]
    if times > 1:
        raise DataError(f"{table} has {times} rows for {name!r}: every name must have one row")
    if absent := [name for name in names if name not in row]:
        raise DataError(
            f"{len(absent)} of {len(names)} {what} have no row in {table}, whose rows are named "
            f"(for example {absent[0]!r}{closest(absent[0], row)}): add a row for each; or drop "
            f"the names, as X.to_numpy() does, where rows are in the order of data.{what}"
        )
    if more := row.keys() - set(names):
        other = next(name for name in called if name in more)
        raise DataError(
            f"{table} has rows for {len(more)} {what} that the comparisons do not know (for "
            f"example {other!r}): drop them, or make the comparisons with {what}= and all names"
        )
    return np.array([row[name] for name in names], dtype=np.intp)


def check_features(X: Any, n: int | None, what: str) -> Features | None:
    """Features as a finite float matrix with n rows (None: any number), or None.

    Accepts arrays, lists, data frames of numbers and scipy sparse matrices. Sparse features of
    items stay sparse; those of users become dense.
    """
    if X is None:
        return None
    if sparse.issparse(X) and what.endswith("users"):
        X = X.toarray()
    features: Features
    try:
        is_sparse = sparse.issparse(X)
        features = sparse.csr_array(X, dtype=float) if is_sparse else np.asarray(X, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"X holds values that are not numbers ({error}): encode text columns as numbers, "
            "for example one 0/1 column a category"
        ) from None
    if features.ndim != 2:
        raise DataError(
            f"X has shape {features.shape}: it must be a matrix with one row an item; "
            "for one feature use X.reshape(-1, 1)"
        )
    if n is not None and features.shape[0] != n:
        raise DataError(
            f"X has {features.shape[0]} rows and there are {n} {what}: give one row for each, in "
            "index order"
        )
    if not np.isfinite(features.data if sparse.issparse(features) else features).all():
        stored = sparse.coo_array(features)
        bad = ~np.isfinite(stored.data)
        places = sorted(zip(stored.row[bad].tolist(), stored.col[bad].tolist(), strict=True))
        raise DataError(
            f"X has {len(places)} missing or infinite values, the first in row {places[0][0]}, "
            f"column {places[0][1]}: fill or drop them (scikit-learn's SimpleImputer fills)"
        )
    return features


def warn_constant_features(X: Features) -> None:
    """Warn of constant columns, which say nothing about preference.

    Not of sparse features: a sample lacks many words of a vocabulary.
    """
    if isinstance(X, sparse.sparray) or len(X) < 2:
        return
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0.0)
    if len(constant):
        listed = ", ".join(map(str, constant[:10])) + (" …" if len(constant) > 10 else "")
        warn(
            f"feature columns {listed} of X are constant: they carry no information about "
            "preference and can be dropped",
            DataWarning,
        )


FAR = 30.0
"""A lengthscale so many times as large as the median distance, or as small, is far off."""


def warn_far_lengthscale(kernel: Any, items: Inputs) -> None:
    """Warn of a given lengthscale that is far from the scale of the features."""
    if isinstance(kernel, Combination):
        for part in kernel.kernels:
            warn_far_lengthscale(part, items)
    if not isinstance(kernel, Stationary) or isinstance(kernel.lengthscale, NotGiven):
        return
    distance = kernel.typical_distance(items)
    if not 1.0 / FAR <= distance <= FAR:
        name, all_are = type(kernel).__name__, "alike" if distance < 1.0 else "unrelated"
        warn(
            f"two typical rows of X lie {distance:.3g} lengthscales of {kernel!r} apart, so that "
            f"all are {all_are}: a kernel works on features as they are; leave the lengthscale "
            f"out, {name}(), to start at the features' own scale, or scale the features",
            DataWarning,
        )


def evenly_spaced(n: int, size: int) -> IntArray:
    """Up to `size` positions evenly over n: the same ones every time."""
    return np.unique(np.linspace(0, n - 1, min(n, size)).round().astype(np.intp))


@dataclass(frozen=True)
class Scaling:
    """Centre and scale of each feature, so that one default lengthscale suits all.

    A two-valued column is scaled as if both values were equally frequent: divided by its standard
    deviation a rare flag would outweigh all else.

    >>> Scaling.of(np.array([[0.0], [2.0]])).apply(np.array([[2.0]]))
    array([[1.]])
    """

    center: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, X: Features) -> "Scaling":
        """Mean and standard deviation per column; a constant column is only centred.

        Sparse features are only scaled: centring makes them dense and changes no distance.
        """
        if isinstance(X, sparse.sparray):
            return cls(np.zeros(X.shape[1]), _sparse_scale(X))
        low, high = X.min(axis=0), X.max(axis=0)
        two_valued = ((low == X) | (high == X)).all(axis=0)
        spread = np.where(two_valued, 0.5 * (high - low), X.std(axis=0))
        return cls(X.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def apply(self, X: Features) -> Features:
        """Standardised features."""
        if not isinstance(X, sparse.sparray):
            return (X - self.center) / self.scale
        if self.center.any():  # the fit saw dense features, so the same rows must be dense here
            return self.apply(X.toarray())
        return sparse.csr_array(X @ sparse.diags_array(1.0 / self.scale))


def _sparse_scale(X: sparse.csr_array) -> FloatArray:
    """The scale of sparse columns, from the stored values and the number of zeros."""
    n, columns = X.shape[0], X.tocsc()
    columns.eliminate_zeros()
    stored = np.diff(columns.indptr)
    low = columns.min(axis=0).toarray().ravel()
    high = columns.max(axis=0).toarray().ravel()
    column = np.repeat(np.arange(X.shape[1]), stored)
    between = (columns.data != low[column]) & (columns.data != high[column])
    inside = np.bincount(column, between, minlength=X.shape[1]) > 0
    inside |= (stored < n) & (low < 0.0) & (high > 0.0)
    mean = np.asarray(columns.mean(axis=0)).ravel()
    square = np.asarray(columns.multiply(columns).mean(axis=0)).ravel()
    spread = np.where(inside, np.sqrt(np.maximum(square - mean**2, 0.0)), 0.5 * (high - low))
    return np.where(spread > 0, spread, 1.0)


@dataclass(frozen=True)
class FeatureColumns:
    """The feature columns of a fit: their number, scaling and names.

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
        """Check features of and relations between items or users; return them as inputs too.

        names: of the items or users; rows are put in their order.
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
        return Inputs(self._checked(X, n, what), index=np.arange(n))

    def new_items(self, X: Any) -> Inputs:
        """New items, which have features alone."""
        return Inputs(self._checked(X, None, "items"))

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
        return self._scaled(features) if self.n_columns else None

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


def _names(X: Any, n_columns: int, what: str) -> tuple[str, ...]:
    """Column names of a data frame, or numbered ones."""
    given = None if X is None or isinstance(X, np.ndarray) else column_names(X)
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
    """Relations with their rows and columns in the order of `names`."""
    if not relations:
        return {}
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
    """The items of a fit, checked; warn where features or comparisons say too little.

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
