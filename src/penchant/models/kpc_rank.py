"""KPCRank: ranking along kernel principal components."""

from typing import ClassVar

import numpy as np

from penchant.errors import DataError
from penchant.models._ranking_base import KernelParameter, KernelRanker, LinearScore
from penchant.models.validation import LANDMARKS, SEED, Constraints, one_of, whole
from penchant.numerics.random import RandomState
from penchant.numerics.types import FloatArray
from penchant.ranking import (
    PreferenceGraph,
    Selection,
    component_path,
    held_out_error,
    principal_components,
)


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
    >>> from penchant.models.kpc_rank import KPCRank
    >>> X = np.linspace(-4, 4, 60)[:, None]
    >>> model = KPCRank().fit(X, np.sinc(X[:, 0]))
    >>> bool(model.score(X, np.sinc(X[:, 0])) > 0.95)
    True
    """

    cv_error_: FloatArray | None

    constraints: ClassVar[Constraints] = {
        "n_components": one_of(("cv",)) | whole(1),
        "max_components": whole(1),
        "selection": one_of(("nested", "truncate")),
        "n_landmarks": LANDMARKS,
        "random_state": SEED,
    }

    def __init__(
        self,
        kernel: KernelParameter = None,
        *,
        n_components: int | str = "cv",
        max_components: int = 500,
        selection: Selection = "nested",
        n_landmarks: int | str | None = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.max_components = max_components
        self.selection = selection
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def _learn(self, features: FloatArray, graph: PreferenceGraph) -> LinearScore:
        given = None if self.n_components == "cv" else int(self.n_components)
        limit = self.max_components
        if given is not None and self.selection == "nested":
            limit = given  # later components do not change the earlier ones
        mean, axes, Z = principal_components(features, limit)
        if not Z.shape[1]:
            raise DataError("every row of X looks the same to the kernel: nothing can be ranked")
        if given is None:
            self.cv_error_ = held_out_error(Z, graph, self.selection)
            self.n_components_ = 1 + int(np.argmin(np.nan_to_num(self.cv_error_, nan=1.0)))
        else:
            self.cv_error_ = None
            self.n_components_ = min(given, Z.shape[1])
        weights = axes @ component_path(Z, graph, self.selection).weights(self.n_components_)
        return LinearScore(weights, -float(mean @ weights))
