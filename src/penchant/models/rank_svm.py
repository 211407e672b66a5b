"""RankSVM: large-margin ranking from pairs."""

from typing import Any, ClassVar

import numpy as np

from penchant.kernels import Linear
from penchant.models._ranking_base import KernelParameter, KernelRanker, LinearScore
from penchant.models.validation import LANDMARKS, POSITIVE, SEED, Constraints, whole
from penchant.numerics.random import RandomState
from penchant.ranking import FeatureMap, PreferenceGraph, fit_rank_svm, training_pairs


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
    >>> from penchant.models.rank_svm import RankSVM
    >>> better = Comparisons.from_pairs([2, 1], [1, 0], items=range(3))
    >>> model = RankSVM("linear").fit([[0.0], [1.0], [2.0]], better)
    >>> np.argsort(model.predict([[5.0], [3.0], [4.0]]))
    array([1, 2, 0])
    """

    constraints: ClassVar[Constraints] = {
        "C": POSITIVE,
        "tol": POSITIVE,
        "max_iter": whole(1),
        "max_pairs": whole(1),
        "n_landmarks": LANDMARKS,
        "random_state": SEED,
    }

    def __init__(
        self,
        kernel: KernelParameter = None,
        *,
        C: float = 1.0,
        max_pairs: int = 1_000_000,
        tol: float = 1e-5,
        max_iter: int = 100,
        n_landmarks: int | str | None = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.max_pairs = max_pairs
        self.tol = tol
        self.max_iter = max_iter
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def _features(self, kernel: Any, X: Any) -> tuple[FeatureMap | None, Any]:
        if isinstance(kernel, Linear):  # any shape: the solver only multiplies by X
            return None, np.sqrt(kernel.variance) * X
        return super()._features(kernel, X)

    def _learn(self, features: Any, graph: PreferenceGraph) -> LinearScore:
        pairs = training_pairs(graph, int(self.max_pairs))
        fitted = fit_rank_svm(features, pairs, self.C, self.tol, int(self.max_iter))
        self.n_iter_ = fitted.n_iter
        return LinearScore(fitted.weights)
