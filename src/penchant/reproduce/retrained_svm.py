"""The batch learner that paper 002 compares its perceptron with."""

from typing import Any, Self

import numpy as np
from sklearn.model_selection import KFold

from penchant.models import RankSVM
from penchant.numerics.types import FloatArray, IntArray
from penchant.online.rule import discounts

GROWTH = 1.1
FEW_EXAMPLES, C_FOR_FEW = 50, 100.0
C_GRID = (0.01, 0.1, 1.0, 10.0, 100.0)


class RetrainedSVM:
    """The paper's baseline: a ranking SVM on pairs φ(x, ȳ) ≻ φ(x, y), trained again at times.

    Trained when the examples have grown by a tenth; C by five-fold cross-validation, or 100
    below fifty examples.
    """

    k = 5

    def __init__(self, random_state: int = 0) -> None:
        self.rng = np.random.default_rng(random_state)
        self.improved: list[FloatArray] = []
        self.presented: list[FloatArray] = []
        self.weights: FloatArray | None = None
        self.n_rounds = self.n_trained = 0

    def present(self, docs: Any) -> IntArray:
        """Sort by score; a random order before the first training."""
        if self.weights is None:
            return self.rng.permutation(len(docs))
        return np.argsort(-(docs @ self.weights), kind="stable")

    def learn(self, docs: Any, presented: Any, feedback: Any) -> Self:
        """Store the pair, and train again if it is time."""
        discount = discounts(min(self.k, len(docs)))
        better, shown = (discount @ docs[order[: self.k]] for order in (feedback, presented))
        if np.any(better != shown):
            self.improved.append(better)
            self.presented.append(shown)
        self.n_rounds += 1
        if self.improved and self.n_rounds >= GROWTH * self.n_trained:
            self.n_trained = self.n_rounds
            pairs = np.stack([self.improved, self.presented], axis=1)
            self.weights = _train(pairs, self._choose_c(pairs))
        return self

    def _choose_c(self, pairs: FloatArray) -> float:
        if len(pairs) < FEW_EXAMPLES:
            return C_FOR_FEW
        folds = list(KFold(5, shuffle=True, random_state=0).split(pairs))

        def accuracy(c: float) -> float:
            differences = pairs[:, 0] - pairs[:, 1]
            right = [differences[test] @ _train(pairs[train], c) > 0 for train, test in folds]
            return float(np.mean(np.concatenate(right)))

        return max(C_GRID, key=accuracy)


def _train(pairs: FloatArray, c: float) -> FloatArray:
    """Weights from (m, 2, d): in each pair the first is better."""
    m = len(pairs)
    model = RankSVM("linear", C=c)
    model.fit(pairs.reshape(2 * m, -1), np.tile([1.0, 0.0], m), qid=np.repeat(np.arange(m), 2))
    return np.asarray(model.coef_, dtype=np.float64)
