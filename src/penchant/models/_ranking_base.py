"""What the kernel rankers share: checking data, turning kernels into features, predicting."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.kernels import RBF, Inputs, Kernel, Linear
from penchant.metrics import disagreement_error
from penchant.models.estimator import BaseEstimator
from penchant.models.storage import save
from penchant.models.validation import Constraints, check_parameters, in_order
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import FloatArray
from penchant.ranking import (
    FeatureMap,
    Groups,
    Pairs,
    PreferenceGraph,
    disagreement,
    kernel_features,
)

KernelParameter = Kernel | str | Callable[[Any, Any], FloatArray] | None

EXACT_ROWS = 3000
"""n_landmarks="auto" keeps every row up to here, where n × n matrices are still cheap."""
AUTO_LANDMARKS = 1000
_BATCH = 8192
"""Rows predicted at once, so that memory does not grow with the number of new rows."""


class LinearScore(NamedTuple):
    """A learned function f(x) = φ(x) @ weights + intercept."""

    weights: FloatArray
    intercept: float = 0.0


class KernelRanker(BaseEstimator, ABC):
    """A ranker that is linear in the features of a kernel; subclasses say how it learns."""

    constraints: ClassVar[Constraints]
    kernel: KernelParameter
    n_landmarks: int | str | None
    random_state: RandomState

    def fit(self, X: Any, y: Any, qid: Any = None) -> Self:
        """Learn to score rows so that preferred ones score higher.

        X : (n, d) features, dense or sparse.
        y : (n,) graded scores, or `Comparisons` between the rows of X.
        qid : (n,) the group (query) of each row; scores are compared within groups only.
        """
        check_parameters(self, self.constraints)
        X, graph = check_ranking_data(self, X, y, qid)
        kernel = resolve_kernel(self.kernel, X)
        feature_map, features = self._features(kernel, X)
        if feature_map is None and self.n_landmarks not in (None, "auto"):
            raise DataError(
                f"{type(self).__name__}: n_landmarks={self.n_landmarks}: a linear kernel works on "
                "the features themselves and needs no landmarks: leave n_landmarks out"
            )
        learned = self._learn(features, graph)
        self.kernel_ = kernel
        self.coef_ = self.dual_coef_ = self.landmarks_ = None
        self.intercept_ = learned.intercept
        if feature_map is None:
            self.coef_ = np.sqrt(kernel.variance) * learned.weights
        elif isinstance(kernel, Linear):
            self.coef_ = kernel.variance * (
                feature_map.landmarks.T @ feature_map.dual(learned.weights)
            )
        else:
            self.landmarks_ = feature_map.landmarks
            self.dual_coef_ = feature_map.dual(learned.weights)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Scores (n,); only their order within a group carries meaning."""
        check_is_fitted(self, "kernel_")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        if self.coef_ is not None:
            linear: FloatArray = X @ self.coef_ + self.intercept_
            return linear
        check_dense(X)
        scores = [
            self.kernel_(X[rows], self.landmarks_) @ self.dual_coef_
            for rows in gen_batches(X.shape[0], _BATCH)
        ]
        return np.concatenate(scores) + self.intercept_

    def score(self, X: Any, y: Any, qid: Any = None) -> float:
        """Share of the pairs put in the right order, averaged over groups; a tie counts half."""
        predicted = self.predict(in_order(X, y.items, "items") if isinstance(y, Comparisons) else X)
        if not isinstance(y, Comparisons):
            return 1.0 - disagreement_error(column_or_1d(y), predicted, qid)
        pairs = _pairs(y, len(predicted), qid).ordered_pairs()
        wrong = disagreement(predicted[:, None], pairs)[0]
        return float(1.0 - wrong / pairs.weight.sum())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file; `penchant.load(path)` reads it back."""
        save(self, path)

    @abstractmethod
    def _learn(self, features: Any, graph: PreferenceGraph) -> LinearScore:
        """Weights on features (n, r), and what else the method has to tell as attributes."""

    def _features(self, kernel: Any, X: Any) -> tuple[FeatureMap | None, Any]:
        """Features of the rows: X itself where the kernel is linear and X not wider than long."""
        n, d = X.shape
        size = self._landmark_count(n)
        if isinstance(kernel, Linear) and d <= n:
            dense = X.toarray() if sparse.issparse(X) else X
            return None, np.sqrt(kernel.variance) * dense
        candidates = X
        if size < n:
            chosen = as_rng(self.random_state).choice(n, size, replace=False)
            candidates = X[np.sort(chosen)]
        function = _linear_function(kernel) if isinstance(kernel, Linear) else kernel
        return kernel_features(function, X, candidates)

    def _landmark_count(self, n: int) -> int:
        if self.n_landmarks is None:
            return n
        if self.n_landmarks == "auto":
            return n if n <= EXACT_ROWS else AUTO_LANDMARKS
        return min(int(self.n_landmarks), n)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def check_ranking_data(
    estimator: BaseEstimator, X: Any, y: Any, qid: Any
) -> tuple[Any, PreferenceGraph]:
    """Features as a finite float matrix, and the comparisons between its rows as a graph."""
    checks = {"accept_sparse": "csr", "dtype": np.float64, "ensure_min_samples": 2}
    if isinstance(y, Comparisons):
        X = validate_data(estimator, in_order(X, y.items, "items"), **checks)
        return X, _pairs(y, X.shape[0], qid)
    X, y = validate_data(estimator, X, y, y_numeric=True, **checks)
    scores = np.asarray(y, dtype=np.float64)
    groups = np.zeros(len(scores), dtype=np.intp)
    if qid is not None:
        qid = column_or_1d(qid)
        if len(qid) != len(scores):
            raise DataError(
                f"qid has {len(qid)} entries and X has {len(scores)} rows: give each row its group"
            )
        groups = np.unique(qid, return_inverse=True)[1].astype(np.intp)
    first = np.unique(groups, return_index=True)[1]
    if np.array_equal(scores, scores[first][groups]):
        raise DataError(
            "y: no two rows of a group differ in score, so nothing is preferred to anything: "
            "check y, or whether qid splits the rows too finely"
        )
    return X, Groups(groups, scores)


def _pairs(comparisons: Comparisons, n_rows: int, qid: Any) -> Pairs:
    if qid is not None:
        raise DataError("qid groups graded scores; with Comparisons as y leave qid out")
    if comparisons.n_items != n_rows:
        raise DataError(
            f"X has {n_rows} rows and the comparisons know {comparisons.n_items} items: give one "
            "row for each, in the order of comparisons.items"
        )
    margin = comparisons.margin
    if margin is None:
        margin = np.where(comparisons.tie, 0.0, 1.0)
    if not np.any(margin > 0):
        raise DataError("every comparison is a tie: a ranking needs some that are not")
    count = comparisons.count.astype(np.float64)
    return Pairs(comparisons.winner, comparisons.loser, count, margin, n_rows)


def resolve_kernel(kernel: KernelParameter, X: Any) -> Any:
    """The kernel to use on X: a default, one by name, or the one given."""
    if kernel is None:
        kernel = "linear" if sparse.issparse(X) else "rbf"
    if isinstance(kernel, str) and kernel == "linear":
        return Linear()
    if isinstance(kernel, Linear):
        return kernel
    check_dense(X)
    if isinstance(kernel, str) and kernel == "rbf":
        kernel = RBF()
    if isinstance(kernel, Kernel):
        return kernel.at_scale_of(Inputs.of(X))
    if callable(kernel):
        return kernel
    raise DataError(
        f"kernel={kernel!r}: it must be None, 'rbf', 'linear', or a kernel from penchant.kernels"
    )


def check_dense(X: Any) -> None:
    """Only the linear kernel works on sparse rows."""
    if sparse.issparse(X):
        raise DataError(
            "X is sparse and the kernel is not linear: use kernel='linear', or X.toarray() where "
            "memory allows"
        )


def _linear_function(kernel: Linear) -> Callable[[Any, Any], FloatArray]:
    """The linear kernel on sparse rows too, with a dense result."""

    def product(A: Any, B: Any) -> FloatArray:
        gram = A @ B.T
        dense = gram.toarray() if sparse.issparse(gram) else gram
        return np.asarray(kernel.variance * dense)

    return product
