"""The one state of a fitted model: kept as a value, changed by one at a time, undone, copied."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock, RLock
from typing import Any, Self

from sklearn.utils.validation import check_is_fitted

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.likelihoods import Likelihood
from penchant.models.estimator import BaseEstimator
from penchant.models.features import FeatureColumns
from penchant.models.validation import check_row_pairs, n_rows
from penchant.numerics.threads import threads_for
from penchant.numerics.types import IntArray

UNDO_DEPTH = 50
"""How many `tell`s can be taken back by `undo`; each keeps its posterior in memory until then."""
_MAKING_LOCKS = Lock()


@dataclass(frozen=True, eq=False)
class Fitted:
    """All that a fit has left, as one value: undo is keeping a reference to the one before.

    learned: what the model knows; it has `data`, the comparisons, and `likelihood`.
    columns, user_columns: the features that the fit saw. n_learned: how many comparisons
    hyperparameters rest on. told: the pairs that were told last.
    """

    learned: Any
    columns: FeatureColumns
    user_columns: FeatureColumns
    n_learned: int
    told: tuple[tuple[int, int], ...] = ()

    @cached_property
    def pooled(self) -> Comparisons:
        """The comparisons without who made them."""
        data: Comparisons = self.learned.data
        return data if data.user is None else data.pooled()

    def pair_index(self, pairs: Any, X: Any) -> IntArray:
        """(k, 2) positions of pairs: of items by name or index, or of rows of X where given."""
        if X is not None:
            return check_row_pairs(pairs, n_rows(X))
        index: IntArray = self.learned.data.pair_index(pairs)
        return index


class StatefulModel(BaseEstimator):
    """An estimator whose fit is one `Fitted`: results are built aside and assigned last."""

    state_: Fitted

    @property
    def comparisons_(self) -> Comparisons:
        """The data that were fitted, and told since."""
        return self._seen(self._fitted())

    @property
    def n_elsewhere_(self) -> int:
        """Comparisons that taught this model, of users whom it does not know: those of a scan."""
        n: int = self._fitted().learned.n_elsewhere
        return n

    @property
    def likelihood_(self) -> Likelihood:
        """With learned parameters."""
        likelihood: Likelihood = self._fitted().learned.hyper.likelihood
        return likelihood

    @property
    def kernel_(self) -> Any:
        """The kernel over items, with learned parameters."""
        return self._fitted().learned.hyper.kernel

    @property
    def report_(self) -> Any:
        """How it went: sweeps, tolerance, damping, jitter; or chains and their agreement."""
        return self._fitted().learned.report

    @property
    def n_features_in_(self) -> int:
        """How many features an item has."""
        return self._fitted().columns.n_columns

    @property
    def n_unsettled_(self) -> int:
        """How many answers were told but only absorbed, see `tell`."""
        return int(self._fitted().learned.n_unsettled)

    def undo(self) -> Self:
        """Take the last `tell` or `withdraw` back, exactly."""
        with self._alone():
            history = self._history
            if not history:
                raise DataError(
                    f"{type(self).__name__}: there is no tell to undo (a fit or a load forgets "
                    f"them, and at most {UNDO_DEPTH} are kept); withdraw takes back any answer"
                )
            self.state_, self._history = history[-1], history[:-1]
        return self

    def _seen(self, fitted: Fitted) -> Comparisons:
        """The comparisons as the model takes them."""
        data: Comparisons = fitted.learned.data
        return data

    def _keep(self, learned: Any, columns: FeatureColumns, user_columns: FeatureColumns) -> Self:
        """Take a fit over: built aside, assigned last."""
        fitted = Fitted(learned, columns, user_columns, learned.data.n_comparisons)
        self.state_, self._history = fitted, ()
        return self

    def _with(self, learned: Any) -> Self:
        """A copy of this model that knows something else."""
        model = type(self)(**self.get_params(deep=False))
        model.state_ = replace(self._fitted(), learned=learned, told=())
        return model

    def _fitted(self) -> Fitted:
        check_is_fitted(self, "state_")
        return self.state_

    @property
    def _history(self) -> tuple[Fitted, ...]:
        history: tuple[Fitted, ...] = vars(self).get("_before", ())
        return history

    @_history.setter
    def _history(self, history: tuple[Fitted, ...]) -> None:
        self._before = history[-UNDO_DEPTH:]

    def _remember(self, before: Fitted, after: Fitted) -> None:
        self._history = (*self._history, before)
        self.state_ = after

    @contextmanager
    def _alone(self) -> Iterator[Fitted]:
        """One change of state at a time, with as many BLAS threads as the items are worth."""
        with _MAKING_LOCKS:
            lock = self.__dict__.setdefault("_lock", RLock())
        with lock:
            fitted = self._fitted()
            with threads_for(fitted.learned.data.n_items):
                yield fitted

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name != "_lock"}
        return kept

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
