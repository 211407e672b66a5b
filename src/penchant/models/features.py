"""The items that a fit saw: features, scaled, and relations, so that new rows are treated alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from penchant.data import Comparisons, check_connected
from penchant.errors import DataError, DataWarning, warn
from penchant.kernels import Inputs, as_relations
from penchant.kernels.inputs import Features
from penchant.models.defaults import Scaling
from penchant.models.validation import check_features, warn_constant_features


@dataclass(frozen=True)
class FeatureColumns:
    """How many feature columns there were, how they were scaled, and what they are called.

    >>> import numpy as np
    >>> columns, items = FeatureColumns.of(np.array([[0.0], [2.0]]), 2, "items", scale=True)
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
        n: int,
        what: str,
        scale: bool,
        relations: Mapping[str, Any] | None = None,
    ) -> tuple["FeatureColumns", Inputs]:
        """Check features and relations of the n rows that are fitted; return them as inputs too."""
        if relations is not None and not isinstance(relations, Mapping):
            raise DataError(
                f"relations is a {type(relations).__name__}: it must be a dictionary "
                "{name: graph}; features of users go in user_features=…"
            )
        features = check_features(X, n, what)
        scaling = Scaling.of(features) if scale and features is not None else None
        n_columns = 0 if features is None else features.shape[1]
        columns = cls(n_columns, scaling, _names(X, n_columns, what))
        graphs = as_relations(relations or {}, n)
        return columns, Inputs(columns._scaled(features), graphs, np.arange(n))

    def rows(self, X: Any, n: int, what: str) -> Inputs:
        """The features of n new rows; none are needed where the fit had none."""
        return Inputs(self._scaled(self._checked(X, n, what)), index=np.arange(n))

    def new_items(self, X: Any) -> Inputs:
        """Items outside the universe, known by their features alone."""
        X = X if hasattr(X, "shape") else np.asarray(X)
        n = X.shape[0] if X.ndim else 0
        return Inputs(self._scaled(self._checked(X, n, "items")))

    def _checked(self, X: Any, n: int, what: str) -> Any:
        if X is None and self.n_columns == 0:
            return None
        features = check_features(X, n, f"new {what}")
        if features is None or features.shape[1] != self.n_columns:
            got = "none were given" if features is None else f"{features.shape[1]} were given"
            raise DataError(
                f"features of new {what}: {got}, and the model was fitted on {self.n_columns}; "
                "give the same columns in the same order"
            )
        return features if self.n_columns else None

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
    kind = "user feature" if what == "users" else "feature"
    columns = getattr(X, "columns", [f"{kind} {i}" for i in range(n_columns)])
    return tuple(str(column) for column in columns)


def fitted_items(
    X: Any, data: Comparisons, relations: Mapping[str, Any] | None, scale: bool
) -> tuple[FeatureColumns, Inputs]:
    """The items of a fit, checked, with a word about what they and the comparisons cannot tell."""
    columns, items = FeatureColumns.of(X, data.n_items, "items", scale, relations)
    nothing_links = items.X is None and not items.relations
    if nothing_links and (message := check_connected(data)) is not None:
        warn(message, DataWarning)
    if items.X is not None:
        warn_constant_features(items.X)
    return columns, items
