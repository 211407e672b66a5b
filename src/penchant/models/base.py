"""The contract of every model of utilities, and the methods that follow from it.

A model adds how it fits, the posterior of each user's utilities, and how its one state changes with
answers. Predictions, rankings, questions and files are written here, once.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from threading import Lock, RLock
from typing import Any, Self

import numpy as np

from penchant.ask import Belief, Rules, as_answers, ask, grow_sets, one_user, rng_for, without_last
from penchant.data import Comparisons
from penchant.errors import ConvergenceWarning, DataError, UntoldError, warn
from penchant.gp import ORDER, Normal, RaterAnswers, Report, Rows
from penchant.io import as_comparisons
from penchant.kernels import Inputs
from penchant.likelihoods import Likelihood
from penchant.models import predictive, store, tables
from penchant.models.features import FeatureColumns
from penchant.models.parameters import (
    BY_NAME,
    NONE,
    NOT_NEGATIVE,
    SEED,
    SIDES,
    YES_OR_NO,
    Constraint,
    Estimator,
    between,
    check_arguments,
    not_fitted,
    whole,
)
from penchant.models.predictive import OutcomeProbabilities
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for
from penchant.numerics.types import FloatArray, IntArray

UNDO_DEPTH = 50
"""How many `tell`s can be taken back by `undo`; each keeps its posterior in memory until then."""
MOST_DRAWS = 10_000_000
"""Of the utilities behind P(best): 0.3 GB of ranks for 8 items."""
RULES = Constraint("a penchant.ask.Rules", lambda value: isinstance(value, Rules))
_MAKING_LOCKS = Lock()

Answers = Comparisons | Iterable[tuple[Any, Any]]
"""Comparisons, or (winner, loser) pairs."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of a fit as one value, so that `undo` is keeping a reference to the one before.

    learned: what the model learned; it has `data`, the comparisons, and `hyper`.
    columns, user_columns: the features that the fit saw. n_learned: the number of comparisons
    from which hyperparameters were learned. last_pairs: the pairs of the last `tell`.
    """

    learned: Any
    columns: FeatureColumns
    user_columns: FeatureColumns
    n_learned: int
    last_pairs: tuple[tuple[int, int], ...] = ()

    @cached_property
    def pooled(self) -> Comparisons:
        """The comparisons without users."""
        data: Comparisons = self.learned.data
        return data if data.user is None else data.pooled()

    def new_items(self, X: Any) -> Inputs | None:
        """New items by their features; None for those of the fit."""
        return None if X is None else self.columns.new_items(X)

    def pair_index(self, pairs: Any, X: Any) -> IntArray:
        """(k, 2) positions of pairs: of items by name or index, or of rows of X where given."""
        if X is not None:
            return predictive.check_row_pairs(pairs, predictive.n_rows(X))
        return self.learned.data.pair_index(pairs)


class UtilityModel(Estimator, ABC):
    """A model of what is preferred: utilities with uncertainty, of everybody or of each user.

    The state of a model is one `Fitted`: it is built aside and assigned last.
    """

    random_state: RandomState
    state_: Fitted
    _history: tuple[Fitted, ...] = ()

    @abstractmethod
    def fit(self, X: Any, data: Comparisons, relations: Mapping[str, Any] | None = None) -> Self:
        """Learn from comparisons.

        X : (n_items, d) features, by name or in the order of `data.items`; or None.
        relations : {"name": graph} between the items: a symmetric (n_items, n_items) matrix,
            dense or sparse, or what `kernels.directed` and `kernels.bipartite` make.
        """

    # What each model implements. `users` are positions (k,), or None for people at large.

    @abstractmethod
    def _belief(self, fitted: Fitted, user: int | None) -> Belief:
        """The joint Gaussian over one user's utilities, or over those of people at large."""

    @abstractmethod
    def _utilities(self, fitted: Fitted, users: IntArray | None, X: Any) -> Normal:
        """Means (n,) or (k, n), up to a constant; variances of utilities less the mean utility
        of the items of the fit."""

    def _means(self, fitted: Fitted, users: IntArray | None, X: Any) -> FloatArray:
        """The means alone, for models that have them without the variances."""
        return self._utilities(fitted, users, X).mean

    @abstractmethod
    def _probabilities(
        self,
        fitted: Fitted,
        pairs: IntArray,
        users: IntArray | None,
        X: Any,
        z: FloatArray | None = None,
        time: FloatArray | None = None,
    ) -> OutcomeProbabilities:
        """Of answers to pairs (k, 2); users: (k,).

        z: (q, k) values of the effects, or None at equal sides and covariates. time: (k,) days at
        which the answers were given, which matters where utilities drift.
        """

    def _spread(self, fitted: Fitted) -> FloatArray | None:
        """(n,) standard deviations of utilities between people; None in a pooled model."""
        return None

    def _effects(self, fitted: Fitted) -> tables.Estimates:
        """Effects of the order shown and of covariates, where the data have them."""
        return tables.NO_EFFECTS

    def _answers_of_raters(self, fitted: Fitted) -> RaterAnswers:
        """Every answer with its user and its cavity: what the other answers predict."""
        raise UntoldError(f"{type(self).__name__} does not judge raters: use MultiUserGP")

    @abstractmethod
    def _add(self, fitted: Fitted, answers: Comparisons, reconverge: bool | None) -> Any:
        """`learned` after more answers, under the same hyperparameters."""

    @abstractmethod
    def _refit(self, fitted: Fitted, data: Comparisons) -> Any:
        """`learned` of `data`, some of the answers so far, under the same hyperparameters."""

    @abstractmethod
    def _relearn(self, fitted: Fitted) -> Any:
        """`learned` with hyperparameters learned again from all comparisons."""

    @property
    def takes_choices(self) -> bool:
        """Whether the model takes rankings and choices whole; else as the pairs that they hold."""
        return True

    def _comparisons(self, data: Any) -> Comparisons:
        """Comparisons, a file or a data frame as this model takes them."""
        found: Comparisons = data if isinstance(data, Comparisons) else as_comparisons(data)
        return found if self.takes_choices else found.as_pairs()

    def _answers(self, fitted: Fitted, given: Answers, user: Any, to_add: bool) -> Comparisons:
        """Answers to add to those of the fit, or to withdraw, as they stand among those."""
        return self._comparisons(as_answers(fitted.learned.data, given, user))

    def _data(self, fitted: Fitted) -> Comparisons:
        """The comparisons, with users where the model tells them apart."""
        return fitted.learned.data

    def _users(self, fitted: Fitted, users: Any) -> IntArray | None:
        """(k,) positions of users; None for people at large."""
        if users is None:
            return None
        return np.atleast_1d(fitted.learned.data.user_index(users))

    # Fitted attributes

    @property
    def comparisons_(self) -> Comparisons:
        """The comparisons of the fit and of every `tell` since."""
        return self._data(self._fitted())

    @property
    def n_elsewhere_(self) -> int:
        """Scanned comparisons that the fit used, of users who are not in `comparisons_`."""
        return self._fitted().learned.n_elsewhere

    @property
    def likelihood_(self) -> Likelihood:
        """The likelihood with learned parameters."""
        return self._fitted().learned.hyper.likelihood

    @property
    def kernel_(self) -> Any:
        """The kernel over items, with learned parameters."""
        return self._fitted().learned.hyper.kernel

    @property
    def report_(self) -> Any:
        """How inference went: sweeps, tolerance, damping, jitter; or chains and their agreement."""
        return self._fitted().learned.report

    @property
    def n_features_in_(self) -> int:
        """The number of features of an item."""
        return self._fitted().columns.n_columns

    @property
    def n_pending_sites_(self) -> int:
        """How many answers had a rank-one update since inference last converged, see `tell`."""
        return int(self._fitted().learned.n_pending_sites)

    @property
    def scale_(self) -> str:
        """What utilities mean, in words: how often the better of two items wins, for example."""
        return tables.describe_scale(self)

    @property
    def raters_(self) -> tables.RaterTable:
        """How reliable each user is, judged by what the other answers predict.

        A pooled model takes taste of one's own for unreliability; one that tells users apart does
        not.
        """
        fitted = self._fitted()
        tables.check_named(fitted.learned.data, "raters_")
        likelihood = fitted.learned.hyper.likelihood
        return tables.rater_table(self._answers_of_raters(fitted), likelihood, fitted.learned.data)

    @property
    def effects_(self) -> tables.Effects:
        """What being shown first and each covariate adds to a utility, with intervals; empty where
        comparisons do not tell. Predictions are at equal sides and covariates."""
        return tables.Effects.of(self._effects(self._fitted()), self.likelihood_)

    # Predictions

    def belief(self, user: Any = None) -> Belief:
        """The joint Gaussian over one user's utilities, or over everybody's: all that `ask` sees.

        user : a name or an index; None for people at large.
        """
        fitted = self._fitted()
        if user is None:
            return self._belief(fitted, None)
        if not self._data(fitted).users:
            raise DataError(
                f"{type(self).__name__} takes everybody together, and was asked about the user "
                f"{user!r}: leave the user out, or use MultiUserGP or CommunityGP"
            )
        return self._belief(fitted, one_user(fitted.learned.data, user))

    def predict(
        self, X: Any = None, *, users: Any = None, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean utilities (n_items,) of everybody, or (n_users, n_items) with users.

        They are relative to the mean utility of the items of the fit, as in `rank`: comparisons do
        not identify the overall level. `belief` has the latent Gaussian.

        X : None for the items of the fit, or (k, d) features of new ones; a row is a new item
            even where an item of the fit has the same features.
        users : a user or a sequence of them, names or indices; None for people at large.
        return_std : also return standard deviations, of the same shape.
        """
        check_arguments(self, "predict", return_std=(return_std, YES_OR_NO))
        fitted = self._fitted()
        asked = self._users(fitted, users)
        var = None
        if not return_std:
            mean = self._means(fitted, asked, X)
        elif asked is None and X is None:
            belief = self._belief(fitted, None)  # so that it is what `rank` shows
            mean, var = belief.mean, belief.contrast_var
        else:
            mean, var = self._utilities(fitted, asked, X)
        known = mean if X is None else self._means(fitted, asked, None)
        relative = mean - known.mean(axis=-1, keepdims=True)
        return relative if var is None else (relative, np.sqrt(np.maximum(var, 0.0)))

    def predict_proba(
        self,
        pairs: Any,
        users: Any = None,
        X: Any = None,
        *,
        ties: bool = False,
        first: Any = None,
        covariates: Mapping[str, Any] | None = None,
    ) -> FloatArray:
        """P(first preferred to second), (k,), given that one of them is: win/(win + loss).

        pairs : (k, 2) item names or indices; with X given, rows of X.
        users : one user for all pairs, or one for each; None for people at large. A model that
            takes everybody together ignores them.
        ties : return (k, 3) instead: win, tie and loss of the first.
        first : +1 where the first of a pair is shown first, −1 where the second is; None, or 0:
            at equal sides. covariates : first minus second, by name; None: equal.
        """
        shown = {"first": (first, NONE | SIDES), "covariates": (covariates, NONE | BY_NAME)}
        check_arguments(self, "predict_proba", ties=(ties, YES_OR_NO), **shown)
        fitted = self._fitted()
        index = fitted.pair_index(pairs, X)
        who = self._users(fitted, users)
        who = None if who is None else predictive.one_user_a_pair(who, len(index))
        z = None
        if first is not None or covariates:
            given = dict(covariates or {}) | ({} if first is None else {ORDER: first})
            z = predictive.effect_values(self._effects(fitted).names, len(index), given)
        return self._probabilities(fitted, index, who, X, z).given_decision(ties)

    def rank(self, user: Any = None, level: float = 0.95, n_samples: int = 4000) -> tables.Ranking:
        """Items from best to worst with intervals, P(best) and rank intervals.

        user : whose; None for people at large: the mean over people, how far people differ from
            it being the column `spread`. level : of the intervals.
        n_samples : joint draws behind P(best) and the rank intervals.
        """
        draws = (n_samples, whole(1, MOST_DRAWS))
        check_arguments(self, "rank", level=(level, between(0.0, 1.0)), n_samples=draws)
        belief, data = self.belief(user), self.comparisons_
        data = data if user is None else data.for_user(user)
        with threads_for(len(belief)):
            spread = self._spread(self._fitted()) if user is None else None
            how = (level, n_samples, as_rng(self.random_state), spread)
            return tables.ranking_of(belief, data.items, tables.Tally.of(data), *how)

    def score(self, data: Comparisons) -> float:
        """Mean log-likelihood of comparisons between known items: higher is better.

        Each comparison is predicted for the user who made it, where the model knows that user, else
        for people at large; with the order shown and the covariates, where the model has such
        effects; and at its own time, where utilities drift.
        Ties count where the likelihood has them. A choice out of several items counts as one
        answer, a ranking of k as its k − 1 choices; their probabilities follow from those of
        the pairs in a set.
        """
        fitted = self._fitted()
        data = data if isinstance(data, Comparisons) else as_comparisons(data)
        item = fitted.learned.data.item_index(data.items)
        place = {name: number for number, name in enumerate(fitted.learned.data.users)}
        known = np.array([place.get(name, -1) for name in data.users], dtype=np.intp)

        def predict(pairs: IntArray, who: IntArray | None, *shown: Any) -> OutcomeProbabilities:
            users = None if who is None or not place else known[who]
            return self._probabilities(fitted, item[pairs], users, None, *shown)

        return predictive.mean_log_predictive(data, self._effects(fitted).names, predict)

    # Asking and telling

    def ask(
        self,
        k: int = 1,
        criterion: str = "variance_ratio",
        *,
        k_items: int = 2,
        user: Any = None,
        rules: Rules | None = None,
        pending: Sequence[tuple[Any, Any]] = (),
        random_state: RandomState = None,
    ) -> list[tuple[Any, ...]]:
        """The k pairs of items, by name, that it is best to compare next.

        criterion : "variance_ratio" (paper 000: close and uncertain), "information_gain" (for
            the whole order), "expected_best" or "thompson" (for the best item), "random".
        k_items : of more than two, sets of so many to choose the best of, each grown from a pair
            by what the choice would teach; `tell` takes `Comparisons.from_choices`.
        user : whose utilities they are to tell about, in a model that tells users apart; None:
            those of people at large.
        rules : what may be asked, a `penchant.ask.Rules`.
        pending : pairs that others are being asked now; they count as expected answers.
        random_state : None to follow the estimator's, with other draws after every tell.
        """
        check_arguments(
            self,
            "ask",
            k=(k, whole(1)),
            k_items=(k_items, whole(2)),
            rules=(rules, NONE | RULES),
            random_state=(random_state, SEED),
        )
        fitted, belief = self._fitted(), self.belief(user)
        data = self._data(fitted)
        rng = rng_for(self.random_state if random_state is None else random_state, data)
        rules = without_last(rules, data, np.reshape(fitted.last_pairs, (-1, 2)).astype(np.intp))
        seen = data if user is None else data.for_user(user)
        pairs = ask(belief, seen, k, criterion, rules, rng, pending)
        return pairs if k_items == 2 else grow_sets(belief, data, pairs, k_items, rules, rng)

    def tell(
        self,
        more: Answers,
        *,
        user: Any = None,
        reconverge: bool | None = None,
        relearn: float | None = None,
    ) -> Self:
        """Add answers without refitting; `undo` takes them back.

        more : comparisons, or (winner, loser) pairs, between known items. Inference always
            converges again after rankings and choices.
        user : who gave them, where `more` does not say and the model tells users apart.
        reconverge : True lets inference converge again, equal to a refit with the same
            hyperparameters. False makes a rank-one update for each answer, much faster. None:
            True where that is quick or many sites are pending; each model documents when.
        relearn : learn the hyperparameters again, as `fit` does, once the comparisons have
            grown by this share since they were last learned; None: never.

        With `raters`, each user's reliability counts as a hyperparameter: it stays as the fit
        learned it, so that a refit, which learns it anew, differs until `relearn`.
        """
        how = (reconverge, NONE | YES_OR_NO)
        check_arguments(self, "tell", reconverge=how, relearn=(relearn, NONE | NOT_NEGATIVE))
        with self._exclusive() as fitted:
            answers = self._answers(fitted, more, user, to_add=True)
            self.likelihood_.check(Rows.pooled(answers).outcomes)
            pairs = tuple(zip(answers.winner.tolist(), answers.loser.tolist(), strict=True))
            learned = self._add(fitted, answers, reconverge)
            after = replace(fitted, learned=learned, last_pairs=pairs)
            total = learned.data.n_comparisons
            if relearn is not None and total >= (1.0 + relearn) * fitted.n_learned:
                after = replace(after, learned=self._relearn(after), n_learned=total)
            self._set_state(after, (*self._history, fitted))
        return self

    def withdraw(self, answers: Answers, *, user: Any = None) -> Self:
        """Remove any answers, whenever they came: equal to a refit without them.

        answers : comparisons, or (winner, loser) pairs, that were fitted or told. user : who
            gave them, where `answers` does not say and the model tells users apart.
        """
        with self._exclusive() as fitted:
            gone = self._answers(fitted, answers, user, to_add=False)
            data = fitted.learned.data.without(gone)
            if not len(data):
                raise DataError("nothing would be left to learn from: fit a new model instead")
            after = replace(fitted, learned=self._refit(fitted, data), last_pairs=())
            self._set_state(after, (*self._history, fitted))
        return self

    def undo(self) -> Self:
        """Take the last `tell` or `withdraw` back, exactly."""
        with self._exclusive():
            if not self._history:
                raise DataError(
                    f"{type(self).__name__}: there is no tell to undo (a fit or a load forgets "
                    f"them, and at most {UNDO_DEPTH} are kept); withdraw takes back any answer"
                )
            *earlier, last = self._history
            self._set_state(last, tuple(earlier))
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file; `penchant.load(path)` reads it back."""
        store.save(self, path)

    # The state: one value, changed by one thread at a time

    def _rebuild(self) -> None:  # most models have nothing to add
        """After a load: add what a file leaves to the estimator."""

    def _set_fit(
        self, learned: Any, columns: FeatureColumns, user_columns: FeatureColumns | None = None
    ) -> Self:
        """Take the result of a fit over."""
        users = FeatureColumns(0, None) if user_columns is None else user_columns
        self._set_state(Fitted(learned, columns, users, learned.data.n_comparisons), ())
        return self

    def _set_state(self, fitted: Fitted, history: tuple[Fitted, ...]) -> None:
        self.state_, self._history = fitted, history[-UNDO_DEPTH:]

    def _copy_with(self, learned: Any) -> Self:
        """A copy of this model with another `learned`."""
        model = type(self)(**self.get_params(deep=False))
        model.state_ = replace(self._fitted(), learned=learned, last_pairs=())
        return model

    def _fitted(self) -> Fitted:
        if "state_" not in vars(self):
            raise not_fitted(self)
        return self.state_

    @contextmanager
    def _exclusive(self) -> Iterator[Fitted]:
        """One change of state at a time, with as many BLAS threads as the items are worth."""
        with _MAKING_LOCKS:
            lock = self.__dict__.setdefault("_lock", RLock())
        with lock:
            fitted = self._fitted()
            with threads_for(fitted.learned.data.n_items):
                yield fitted

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}


def warn_unless_converged(report: Report) -> None:
    """Warn, with advice, where inference did not converge."""
    if not report.converged:
        warn(report.advice(), ConvergenceWarning)
