"""The feature columns that a fit saw, so that new rows are checked and scaled the same way."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from penchant.errors import DataError
from penchant.kernels import Inputs
from penchant.models.defaults import Scaling
from penchant.models.validation import check_features


@dataclass(frozen=True)
class FeatureColumns:
    """How many feature columns there were, and how they were scaled.

    >>> import numpy as np
    >>> columns, items = FeatureColumns.of(np.array([[0.0], [2.0]]), 2, "items", scale=True)
    >>> columns.rows([[2.0]], 1, "items").X
    array([[1.]])
    """

    n_columns: int
    scaling: Scaling | None

    @classmethod
    def of(cls, X: Any, n: int, what: str, scale: bool) -> tuple["FeatureColumns", Inputs]:
        """Check the features of the n rows that are fitted; return them as kernel inputs too."""
        features = check_features(X, n, what)
        scaling = Scaling.of(features) if scale and features is not None else None
        columns = cls(0 if features is None else features.shape[1], scaling)
        return columns, columns._inputs(features, n)

    def rows(self, X: Any, n: int, what: str) -> Inputs:
        """The features of n new rows; none are needed where the fit had none."""
        if X is None and self.n_columns == 0:
            return self._inputs(None, n)
        features = check_features(X, n, f"new {what}")
        if features is None or features.shape[1] != self.n_columns:
            got = "none were given" if features is None else f"{features.shape[1]} were given"
            raise DataError(
                f"features of new {what}: {got}, and the model was fitted on {self.n_columns}; "
                "give the same columns in the same order"
            )
        return self._inputs(features if self.n_columns else None, n)

    def _inputs(self, features: Any, n: int) -> Inputs:
        if features is not None and self.scaling is not None:
            features = self.scaling.apply(features)
        return Inputs(features, index=np.arange(n))
