"""Models that score by features, given the face of those that know how sure they are."""

from os import PathLike
from typing import Any, Self

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.models import BaseEstimator, RankedItem, Ranking, Tally, in_order
from penchant.numerics.types import FloatArray


class Scorer(BaseEstimator):
    """A model that scores items by their features and does not know how sure it is.

    It ranks and predicts as the others do, and says what it cannot.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, data: Comparisons) -> Self:
        """Learn to score the rows of X."""
        if X is None:
            raise DataError(
                f"{self._name} ranks items by their features, and there are none: give "
                "X, or use a gp model"
            )
        X = in_order(X, data.items, "items")
        fitted = self.estimator.fit(X, data)
        # kept with the estimator, so that its file knows the items too
        fitted.comparisons_ = data.pooled() if data.users else data
        fitted.scores_ = fitted.predict(X)
        return self

    @property
    def _name(self) -> str:
        return type(self.estimator).__name__

    @property
    def comparisons_(self) -> Comparisons:
        """The data that were fitted, everybody's together."""
        data: Comparisons = self.estimator.comparisons_
        return data

    def predict(
        self, X: Any = None, *, users: Any = None, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Scores (n,) of the items, or of new ones, above the average item; how sure they are is
        unknown, NaN."""
        known: FloatArray = self.estimator.scores_
        scores = (known if X is None else self.estimator.predict(X)) - known.mean()
        return (scores, np.full(len(scores), np.nan)) if return_std else scores

    def predict_proba(
        self, pairs: Any, users: Any = None, X: Any = None, *, ties: bool = False
    ) -> FloatArray:
        """There are no probabilities."""
        raise DataError(f"{self._name} gives scores and no probabilities: fit a gp model for them")

    def ask(self, k: int = 1, criterion: str = "", *, user: Any = None) -> list[tuple[Any, Any]]:
        """There is nothing to choose questions by."""
        raise DataError(
            f"{self._name} does not know how sure it is: fit a gp model to ask questions"
        )

    def rank(self, user: Any = None, level: float = 0.95) -> Ranking:
        """Items from best to worst; what is not known is NaN."""
        unknown: Any = float("nan")
        scores, data = np.asarray(self.predict()), self.comparisons_
        tally = Tally.of(data)
        rows = tuple(
            RankedItem(
                rank=place,
                item=data.items[i],
                utility=float(scores[i]),
                **dict.fromkeys(("low", "high", "prob_best", "rank_low", "rank_high"), unknown),
                **tally.of_item(i),
            )
            for place, i in enumerate(np.argsort(-scores, kind="stable"), start=1)
        )
        return Ranking(rows, level)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the estimator, with the comparisons that it was fitted to, to one file."""
        self.estimator.save(path)
