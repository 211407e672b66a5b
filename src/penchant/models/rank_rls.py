"""RankRLS: regularised least squares on score differences."""

from typing import ClassVar

import numpy as np

from penchant.models._ranking_base import KernelParameter, KernelRanker, LinearScore
from penchant.models.validation import LANDMARKS, POSITIVE, SEED, Constraints, one_of
from penchant.numerics.random import RandomState
from penchant.numerics.types import FloatArray
from penchant.ranking import PreferenceGraph, leave_out_error, ridge_path


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
    >>> from penchant.models.rank_rls import RankRLS
    >>> X = [[0.0], [1.0], [2.0], [5.0], [6.0], [7.0]]
    >>> y = [0, 1, 2, 0, 1, 2]  # graded within two queries
    >>> model = RankRLS(kernel="linear").fit(X, y, qid=[1, 1, 1, 2, 2, 2])
    >>> model.score(X, y, qid=[1, 1, 1, 2, 2, 2])
    1.0
    """

    constraints: ClassVar[Constraints] = {
        "alpha": one_of(("cv",)) | POSITIVE,
        "n_landmarks": LANDMARKS,
        "random_state": SEED,
    }

    def __init__(
        self,
        kernel: KernelParameter = None,
        *,
        alpha: float | str = "cv",
        n_landmarks: int | str | None = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def _learn(self, features: FloatArray, graph: PreferenceGraph) -> LinearScore:
        path = ridge_path(features, graph)
        self.alphas_ = self.cv_error_ = None
        if self.alpha == "cv":
            self.alphas_ = path.default_alphas()
            self.cv_error_ = leave_out_error(path, features, graph, self.alphas_)
            # The largest of equally good ridges.
            best = len(self.alphas_) - 1 - np.argmin(np.nan_to_num(self.cv_error_, nan=1.0)[::-1])
            self.alpha_ = float(self.alphas_[best])
        else:
            self.alpha_ = float(self.alpha)
        return LinearScore(path.weights(np.array([self.alpha_]))[:, 0])
