"""Kernel rankers: RankRLS, KPCRank and RankSVM, from graded scores or comparisons (paper 001)."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from os import PathLike
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import gen_batches
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from penchant import ranking
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.kernels import RBF, Inputs, Kernel, Linear
from penchant.metrics import disagreement_error
from penchant.models import store
from penchant.models.features import in_order
from penchant.models.parameters import (
    LANDMARKS,
    POSITIVE,
    SEED,
    Estimator,
    check_parameters,
    one_of,
    parameter,
    whole,
)
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import FloatArray
from penchant.ranking import FeatureMap, PreferenceGraph

KernelParameter = Kernel | str | Callable[[Any, Any], FloatArray] | None

EXACT_ROWS = 3000
"""n_landmarks="auto" keeps every row up to here, where n × n matrices are still cheap."""
AUTO_LANDMARKS = 1000
_BATCH = 8192
"""Rows predicted at once, so that memory does not grow with the number of new rows."""


class KernelRanker(Estimator, BaseEstimator, ABC):  # type: ignore[misc]
    """A ranker that is linear in the features of a kernel; subclasses say how it learns."""

    kernel: KernelParameter
    n_landmarks: int | str | None
    random_state: RandomState

    def fit(self, X: Any, y: Any, qid: Any = None) -> Self:
        """Learn to score rows so that preferred ones score higher.

        X : (n, d) features, dense or sparse.
        y : (n,) graded scores, or `Comparisons` between the rows of X.
        qid : (n,) the group (query) of each row; scores are compared within groups only.
        """
        check_parameters(self)
        X, graph = check_ranking_data(self, X, y, qid)
        kernel = resolve_kernel(self.kernel, X)
        feature_map, features = self._features(kernel, X)
        if feature_map is None and self.n_landmarks not in (None, "auto"):
            raise DataError(
                f"{type(self).__name__}: n_landmarks={self.n_landmarks}: a linear kernel works on "
                "the features themselves and needs no landmarks: leave n_landmarks out"
            )
        weights, self.intercept_ = self._learn(features, graph)
        self.kernel_ = kernel
        self.coef_ = self.dual_coef_ = self.landmarks_ = None
        if feature_map is None:
            self.coef_ = np.sqrt(kernel.variance) * weights
        elif isinstance(kernel, Linear):
            self.coef_ = kernel.variance * (feature_map.landmarks.T @ feature_map.dual(weights))
        else:
            self.landmarks_ = feature_map.landmarks
            self.dual_coef_ = feature_map.dual(weights)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Scores (n,); only their order within a group carries meaning."""
        check_is_fitted(self, "kernel_")
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        if self.coef_ is not None:
            return X @ self.coef_ + self.intercept_
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
        wrong = ranking.disagreement(predicted[:, None], pairs)[0]
        return float(1.0 - wrong / pairs.weight.sum())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file; `penchant.load(path)` reads it back."""
        store.save(self, path)

    @abstractmethod
    def _learn(self, features: Any, graph: PreferenceGraph) -> tuple[FloatArray, float]:
        """Weights on features (n, r) and the intercept; sets what else the method has to tell."""

    def _features(self, kernel: Any, X: Any) -> tuple[FeatureMap | None, Any]:
        """Features of the rows: X itself where the kernel is linear and X not wider than long."""
        n, d = X.shape
        if isinstance(kernel, Linear) and d <= n:
            dense = X.toarray() if sparse.issparse(X) else X
            return None, np.sqrt(kernel.variance) * dense
        size: Any = n if self.n_landmarks is None else self.n_landmarks
        if size == "auto":
            size = n if n <= EXACT_ROWS else AUTO_LANDMARKS
        candidates = X
        if size < n:
            chosen = as_rng(self.random_state).choice(n, int(size), replace=False)
            candidates = X[np.sort(chosen)]

        def product(A: Any, B: Any) -> FloatArray:
            """The linear kernel on sparse rows too, with a dense result."""
            return kernel.variance * safe_sparse_dot(A, B.T, dense_output=True)

        function = product if isinstance(kernel, Linear) else kernel
        return ranking.kernel_features(function, X, candidates)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def check_ranking_data(
    estimator: Estimator, X: Any, y: Any, qid: Any
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
    return X, ranking.Groups(groups, scores)


def _pairs(comparisons: Comparisons, n_rows: int, qid: Any) -> ranking.Pairs:
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
    return ranking.Pairs(comparisons.winner, comparisons.loser, count, margin, n_rows)


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


@dataclass(eq=False, repr=False)
class RankRLS(KernelRanker):
    """Rank by least squares on the differences of scores, (LK + λI) a = Ls.

    L is the Laplacian of the graph of comparisons: rows of the same group, each pair by its
    difference of scores, or explicit `Comparisons` (by their margin, or by one where only the
    direction is known). One decomposition serves every λ.

    Parameters
    ----------
    kernel : Kernel, "rbf", "linear" or None
        None: an RBF whose lengthscale is the median distance between rows, or linear for
        sparse X.
    alpha : float or "cv"
        The ridge λ > 0. "cv" takes, of 21 over nine decades of the problem's scale, the one with
        the least disagreement error on what was left out: each group in turn; with a single
        group its rows in parts; with `Comparisons` each distinct comparison in turn.
    n_landmarks : int, None or "auto"
        Rows that carry the kernel (Nyström). None: every row, n³ time. "auto": every row up to
        3,000, else 1,000 drawn at random. A linear kernel on long data needs none.
    random_state : None, int or Generator
        Draws the landmarks.

    Attributes
    ----------
    alpha_ : float, the ridge in use
    alphas_, cv_error_ : (21,) the ridges tried and their errors; None with a given alpha
    coef_ : (d,) with a linear kernel, else None
    landmarks_, dual_coef_ : (r, d) and (r,) otherwise: f(x) = k(x, landmarks_) @ dual_coef_
    kernel_, intercept_, n_features_in_

    Examples
    --------
    >>> from penchant.models import RankRLS
    >>> X = [[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]]
    >>> y = [0, 1, 2, 0, 1, 2]  # graded within two queries
    >>> model = RankRLS(kernel="linear").fit(X, y, qid=[1, 1, 1, 2, 2, 2])
    >>> model.score(X, y, qid=[1, 1, 1, 2, 2, 2])
    1.0
    """

    kernel: KernelParameter = None
    _: KW_ONLY
    alpha: float | str = parameter("cv", one_of(("cv",)) | POSITIVE)
    n_landmarks: int | str | None = parameter("auto", LANDMARKS)
    random_state: RandomState = parameter(None, SEED)

    def _learn(self, features: FloatArray, graph: PreferenceGraph) -> tuple[FloatArray, float]:
        path = ranking.ridge_path(features, graph)
        self.alphas_ = self.cv_error_ = None
        if self.alpha == "cv":
            self.alphas_ = path.default_alphas()
            self.cv_error_ = ranking.leave_out_error(path, features, graph, self.alphas_)
            # The largest of equally good ridges.
            best = len(self.alphas_) - 1 - np.argmin(np.nan_to_num(self.cv_error_, nan=1.0)[::-1])
            self.alpha_ = float(self.alphas_[best])
        else:
            self.alpha_ = float(self.alpha)
        return path.weights(np.array([self.alpha_]))[:, 0], 0.0


@dataclass(eq=False, repr=False)
class KPCRank(KernelRanker):
    """Rank by least squares on differences along the first p kernel principal components.

    The components of the centred kernel are found once; Eq. 8 of the paper is then solved for
    every p at once by a Cholesky factor whose leading blocks are those of the smaller problems.

    Parameters
    ----------
    kernel : Kernel, "rbf", "linear" or None
        None: an RBF whose lengthscale is the median distance between rows, or linear for
        sparse X.
    n_components : int or "cv"
        How many components. "cv" takes the number with the least disagreement error in 5-fold
        cross-validation over groups (over rows with a single group, over comparisons with
        `Comparisons`), looking at every number up to max_components. The components themselves
        come from all rows: they need no labels.
    max_components : int
        The largest number that "cv" considers.
    selection : {"nested", "truncate"}
        "nested": p leading components of the kernel, exactly. "truncate": the shortcut of the
        paper's section 4.2, which keeps the p largest eigenvalues of ZᵀLZ over all (up to
        max_components) components instead. That is another model: its p directions mix
        components and are those along which the training groups differ most.
    n_landmarks : int, None or "auto"
        Rows that carry the kernel (Nyström): time and memory are then linear in n. None: every
        row. "auto": every row up to 3,000, else 1,000 drawn at random.
    random_state : None, int or Generator
        Draws the landmarks.

    Attributes
    ----------
    n_components_ : int, the number in use
    cv_error_ : (p,) error of 1, 2, …, p components; None with a given number
    coef_ : (d,) with a linear kernel, else None
    landmarks_, dual_coef_ : (r, d) and (r,) otherwise
    intercept_ : centres the scores of the training rows; f = k(x, landmarks_) @ dual_coef_ + it
    kernel_, n_features_in_

    Examples
    --------
    >>> import numpy as np
    >>> from penchant.models import KPCRank
    >>> X = np.linspace(-4, 4, 60)[:, None]
    >>> model = KPCRank().fit(X, np.sinc(X[:, 0]))
    >>> bool(model.score(X, np.sinc(X[:, 0])) > 0.95)
    True
    """

    cv_error_: FloatArray | None = field(init=False)

    kernel: KernelParameter = None
    _: KW_ONLY
    n_components: int | str = parameter("cv", one_of(("cv",)) | whole(1))
    max_components: int = parameter(500, whole(1))
    selection: ranking.Selection = parameter("nested", one_of(("nested", "truncate")))
    n_landmarks: int | str | None = parameter("auto", LANDMARKS)
    random_state: RandomState = parameter(None, SEED)

    def _learn(self, features: FloatArray, graph: PreferenceGraph) -> tuple[FloatArray, float]:
        given = None if self.n_components == "cv" else int(self.n_components)
        limit = self.max_components
        if given is not None and self.selection == "nested":
            limit = given  # later components do not change the earlier ones
        mean, axes, Z = ranking.principal_components(features, limit)
        if not Z.shape[1]:
            raise DataError("every row of X looks the same to the kernel: nothing can be ranked")
        if given is None:
            self.cv_error_ = ranking.held_out_error(Z, graph, self.selection)
            self.n_components_ = 1 + int(np.argmin(np.nan_to_num(self.cv_error_, nan=1.0)))
        else:
            self.cv_error_ = None
            self.n_components_ = min(given, Z.shape[1])
        path = ranking.component_path(Z, graph, self.selection)
        weights = axes @ path.weights(self.n_components_)
        return weights, -float(mean @ weights)


@dataclass(eq=False, repr=False)
class RankSVM(KernelRanker):
    """Rank with a squared hinge loss on pairs: ½|w|² + C Σ max(0, 1 − (f[better] − f[worse]))².

    The differences are never formed: a linear kernel works on X as it is, dense or sparse, and
    other kernels on a factor of their matrix.

    Parameters
    ----------
    kernel : Kernel, "rbf", "linear" or None
        None: an RBF whose lengthscale is the median distance between rows, or linear for
        sparse X.
    C : float
        Price of a pair in the wrong order. Graded scores: all pairs weigh the same, together as
        much as there are rows. `Comparisons`: each weighs its count; ties and margins do not
        enter.
    max_pairs : int
        Beyond about this many pairs of graded rows an even sample of them is learned from.
    tol : float
        Newton's method stops when the gradient has fallen to this share of the first.
    max_iter : int
        The most Newton steps.
    n_landmarks : int, None or "auto"
        Rows that carry a kernel that is not linear (Nyström). None: every row. "auto": every row
        up to 3,000, else 1,000 drawn at random.
    random_state : None, int or Generator
        Draws the landmarks.

    Attributes
    ----------
    n_iter_ : int, Newton steps taken
    coef_ : (d,) with a linear kernel, else None
    landmarks_, dual_coef_ : (r, d) and (r,) otherwise: f(x) = k(x, landmarks_) @ dual_coef_
    kernel_, intercept_, n_features_in_

    Examples
    --------
    >>> import numpy as np
    >>> from penchant.data import Comparisons
    >>> from penchant.models import RankSVM
    >>> better = Comparisons.from_pairs([2, 1], [1, 0], items=range(3))
    >>> model = RankSVM("linear").fit([[0.0], [1.0], [2.0]], better)
    >>> np.argsort(model.predict([[5.0], [3.0], [4.0]]))
    array([1, 2, 0])
    """

    kernel: KernelParameter = None
    _: KW_ONLY
    C: float = parameter(1.0, POSITIVE)
    max_pairs: int = parameter(1_000_000, whole(1))
    tol: float = parameter(1e-5, POSITIVE)
    max_iter: int = parameter(100, whole(1))
    n_landmarks: int | str | None = parameter("auto", LANDMARKS)
    random_state: RandomState = parameter(None, SEED)

    def _features(self, kernel: Any, X: Any) -> tuple[FeatureMap | None, Any]:
        if isinstance(kernel, Linear):  # any shape: the solver only multiplies by X
            return None, np.sqrt(kernel.variance) * X
        return super()._features(kernel, X)

    def _learn(self, features: Any, graph: PreferenceGraph) -> tuple[FloatArray, float]:
        pairs = ranking.training_pairs(graph, int(self.max_pairs))
        stop = (self.tol, int(self.max_iter))
        weights, self.n_iter_ = ranking.fit_rank_svm(features, pairs, self.C, *stop)
        return weights, 0.0
