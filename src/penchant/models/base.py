"""What every model of utilities promises, and all that follows from it alone.

A model adds how it fits, what it believes of a user, and how its one state changes with
answers. Predictions, rankings, questions and files are written here, once.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from penchant.ask import (
    Belief,
    Rules,
    as_answers,
    ask,
    grow_sets,
    one_user,
    rng_for,
    without_last,
)
from penchant.communities import ChainState
from penchant.communities import Watch as SweepWatch
from penchant.data import Comparisons
from penchant.errors import ConvergenceWarning, DataError, UntoldError, warn
from penchant.gp import Answered, Normal, Report, Rows, Watch
from penchant.io import as_comparisons
from penchant.likelihoods import Likelihood, Outcomes
from penchant.models.features import FeatureColumns, check_row_pairs, n_rows, one_user_a_pair
from penchant.models.outcomes import Estimates, OutcomeProbabilities, as_z, mean_log_prob
from penchant.models.parameters import (
    BY_NAME,
    NONE,
    NOT_NEGATIVE,
    SEED,
    SIDES,
    YES_OR_NO,
    Constraint,
    between,
    check_arguments,
    check_parameters,
    whole,
)
from penchant.models.store import save
from penchant.models.tables import (
    Effects,
    Ranking,
    RaterTable,
    Tally,
    check_named,
    ranking_of,
    rater_table,
)
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for
from penchant.numerics.types import FloatArray, IntArray

if TYPE_CHECKING:

    class BaseEstimator:
        """What the base of scikit-learn, which is untyped, brings."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Parameters by name."""
            raise NotImplementedError

        def set_params(self, **params: Any) -> Self:
            """Change parameters by name."""
            raise NotImplementedError

        def __sklearn_tags__(self) -> Any: ...

else:
    from sklearn.base import BaseEstimator as BaseEstimator

UNDO_DEPTH = 50
"""How many `tell`s can be taken back by `undo`; each keeps its posterior in memory until then."""
MOST_DRAWS = 10_000_000
"""Of the utilities behind P(best): 0.3 GB of ranks for 8 items."""
RULES = Constraint("a penchant.ask.Rules", lambda value: isinstance(value, Rules))
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


class UtilityModel(BaseEstimator, ABC):
    """A model of what is preferred: utilities with uncertainty, of everybody or of each user.

    A fit is one `Fitted`: it is built aside and assigned last.
    """

    random_state: RandomState
    state_: Fitted

    @abstractmethod
    def fit(
        self,
        X: Any,
        data: Comparisons,
        relations: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn from comparisons.

        X : (n_items, d) features, by name or in the order of `data.items`; or None.
        relations : {"name": graph} between the items: a symmetric (n_items, n_items) matrix,
            dense or sparse, or what `kernels.directed` and `kernels.bipartite` make.
        """

    # What a model says of itself

    @abstractmethod
    def _believed(self, fitted: Fitted, user: int | None) -> Belief:
        """The joint Gaussian over one user's utilities, or over everybody's."""

    @abstractmethod
    def _utilities(self, fitted: Fitted, users: IntArray | None, X: Any) -> Normal:
        """Means (n,) of everybody's utilities, or (k, n) of some users', up to a level; variances
        of the utilities less the average item's of the fit."""

    def _means(self, fitted: Fitted, users: IntArray | None, X: Any) -> FloatArray:
        """The means alone, for models that have them without the variances."""
        return self._utilities(fitted, users, X).mean

    @abstractmethod
    def _odds(
        self,
        fitted: Fitted,
        pairs: IntArray,
        users: IntArray | None,
        X: Any,
        z: FloatArray | None = None,
    ) -> OutcomeProbabilities:
        """Of answers to pairs (k, 2); users: (k,), or None for everybody's; z: (q, k) of the
        effects, or None at equal sides and covariates."""

    def _odds_as_made(
        self,
        fitted: Fitted,
        pairs: IntArray,
        users: IntArray | None,
        z: FloatArray | None,
        time: FloatArray | None,
    ) -> OutcomeProbabilities:
        """Of answers that were given at these times, (k,) days, which matter where utilities
        drift."""
        return self._odds(fitted, pairs, users, None, z)

    def _spread(self, fitted: Fitted) -> FloatArray | None:
        """(n,) standard deviations of utilities between people; None in a pooled model."""
        return None

    def _effects(self, fitted: Fitted) -> Estimates | None:
        """Of the order shown and of covariates, where they are known."""
        return None

    def _answered(self, fitted: Fitted) -> Answered:
        """Every answer with its giver, and what the other answers say of it."""
        raise UntoldError(f"{type(self).__name__} does not judge raters: use MultiUserGP")

    @abstractmethod
    def _told(self, fitted: Fitted, answers: Comparisons, reconverge: bool | None) -> Any:
        """What is known after more answers, under the hyperparameters there are."""

    @abstractmethod
    def _without(self, fitted: Fitted, data: Comparisons) -> Any:
        """What is known after only `data`, some of the answers so far."""

    @abstractmethod
    def _relearned(self, fitted: Fitted) -> Any:
        """What is known after learning the hyperparameters again, from all comparisons."""

    @property
    def takes_choices(self) -> bool:
        """Whether rankings and choices are taken whole; else as the pairs that they hold."""
        return True

    def _taken(self, data: Comparisons) -> Comparisons:
        """Comparisons as this model takes them."""
        return data if self.takes_choices else data.as_pairs()

    def _given(
        self, fitted: Fitted, more: Comparisons | Iterable[tuple[Any, Any]], user: Any
    ) -> Comparisons:
        """More answers, as they join those so far."""
        return self._taken(as_answers(fitted.learned.data, more, user))

    def _given_before(
        self, fitted: Fitted, answers: Comparisons | Iterable[tuple[Any, Any]], user: Any
    ) -> Comparisons:
        """Answers to take back, as they stand among those so far."""
        return self._taken(as_answers(fitted.learned.data, answers, user))

    def _seen(self, fitted: Fitted) -> Comparisons:
        """The comparisons as the model takes them."""
        data: Comparisons = fitted.learned.data
        return data

    def _users(self, fitted: Fitted, users: Any) -> IntArray | None:
        """(k,) positions of users; None for people at large."""
        if users is None:
            return None
        return np.atleast_1d(fitted.learned.data.user_index(users))

    def _known_users(self, fitted: Fitted, data: Comparisons) -> IntArray | None:
        """(n_users,) who the users of `data` are here, −1 for somebody unknown; None if nobody is
        told apart."""
        known: Comparisons = fitted.learned.data
        if data.user is None or not known.users:
            return None
        place = {name: number for number, name in enumerate(known.users)}
        return np.array([place.get(name, -1) for name in data.users], dtype=np.intp)

    # What was learned

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
    def n_pending_sites_(self) -> int:
        """How many answers were told but only absorbed, see `tell`."""
        return int(self._fitted().learned.n_unsettled)

    @property
    def scale_(self) -> str:
        """What utilities mean, in words: how often the better of two items wins, for example."""
        said = describe_scale(self)
        return f"{said} {describe_personal_scale(self)}" if self.comparisons_.users else said

    @property
    def raters_(self) -> RaterTable:
        """How reliable everybody who answered is: judged by what the other answers foresee.

        A model of everybody together takes taste of one's own for unreliability; one that tells
        users apart does not.
        """
        fitted = self._fitted()
        check_named(fitted.learned.data, "raters_")
        likelihood = fitted.learned.hyper.likelihood
        return rater_table(self._answered(fitted), likelihood, fitted.learned.data)

    @property
    def effects_(self) -> Effects:
        """What being shown first and each covariate adds to a utility, with intervals; empty where
        comparisons do not tell. Predictions are at equal sides and covariates."""
        fitted = self._fitted()
        return Effects.of(self._effects(fitted), self.likelihood_)

    # Predictions

    def belief(self, user: Any = None) -> Belief:
        """The joint Gaussian over one user's utilities, or over everybody's: all that `ask` sees.

        user : a name or an index; None for people at large.
        """
        fitted = self._fitted()
        if user is None:
            return self._believed(fitted, None)
        if not self._seen(fitted).users:
            raise DataError(
                f"{type(self).__name__} takes everybody together, and was asked about the user "
                f"{user!r}: leave the user out, or use MultiUserGP or CommunityGP"
            )
        return self._believed(fitted, one_user(fitted.learned.data, user))

    def predict(
        self, X: Any = None, *, users: Any = None, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean utilities (n_items,) of everybody, or (n_users, n_items) with users.

        They are those that `rank` shows: how far above the average item of the fit, for
        comparisons tell nothing of the level of all. `belief` has the latent Gaussian.

        X : None for the items of the fit, or (k, d) features of new ones; a row is a new item
            even where an item of the fit has the same features.
        users : a user or a sequence of them, names or indices; None for people at large.
        return_std : also return standard deviations, of the same shape.
        """
        check_arguments(self, "predict", return_std=(return_std, YES_OR_NO))
        fitted = self._fitted()
        asked = self._users(fitted, users)
        if not return_std:
            return self._above_average(fitted, asked, X, self._means(fitted, asked, X))
        if asked is None and X is None:
            belief = self._believed(fitted, None)  # so that it is what `rank` shows
            mean, var = belief.mean, belief.contrast_var
        else:
            mean, var = self._utilities(fitted, asked, X)
        return self._above_average(fitted, asked, X, mean), np.sqrt(np.maximum(var, 0.0))

    def _above_average(
        self, fitted: Fitted, users: IntArray | None, X: Any, mean: FloatArray
    ) -> FloatArray:
        """Means less the average one of the items of the fit."""
        known = mean if X is None else self._means(fitted, users, None)
        above: FloatArray = mean - known.mean(axis=-1, keepdims=True)
        return above

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
        who = None if who is None else one_user_a_pair(who, len(index))
        effects = self._effects(fitted)
        z = as_z(() if effects is None else effects.names, len(index), first, covariates)
        return self._odds(fitted, index, who, X, z).given_decision(ties)

    def rank(self, user: Any = None, level: float = 0.95, n_samples: int = 4000) -> Ranking:
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
            rng = as_rng(self.random_state)
            spread = self._spread(self._fitted()) if user is None else None
            return ranking_of(belief, data.items, Tally.of(data), level, n_samples, rng, spread)

    def score(self, data: Comparisons) -> float:
        """Mean log-likelihood of comparisons between known items: higher is better.

        Each comparison is predicted for the user who made it, where the model knows that user, else
        for people at large; with the order shown and the covariates, where the model has such
        effects; and at its own time, where utilities drift.
        Ties count where the likelihood has them. A choice out of several items counts as one
        answer, a ranking of k as its k − 1 choices; their probabilities follow from those of
        the pairs in a set, see `models.outcomes`.
        """
        fitted, data = self._fitted(), as_comparisons(data)
        item = fitted.learned.data.item_index(data.items)
        known, effects = self._known_users(fitted, data), self._effects(fitted)

        def odds(
            pairs: IntArray,
            who: IntArray | None,
            z: FloatArray | None,
            time: FloatArray | None,
        ) -> OutcomeProbabilities:
            givers = None if who is None or known is None else known[who]
            return self._odds_as_made(fitted, item[pairs], givers, z, time)

        return mean_log_prob(data, odds, None if effects is None else effects.names)

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
        data = self._seen(fitted)
        rng = rng_for(self.random_state if random_state is None else random_state, data)
        rules = without_last(rules, data, np.reshape(fitted.told, (-1, 2)).astype(np.intp))
        seen = data if user is None else data.for_user(user)
        pairs = ask(belief, seen, k, criterion, rules, rng, pending)
        return pairs if k_items == 2 else grow_sets(belief, data, pairs, k_items, rules, rng)

    def tell(
        self,
        more: Comparisons | Iterable[tuple[Any, Any]],
        *,
        user: Any = None,
        reconverge: bool | None = None,
        relearn: float | None = None,
    ) -> Self:
        """Learn from more answers without a refit; `undo` takes them back.

        more : comparisons, or (winner, loser) pairs, between known items; rankings and choices
            are always settled.
        user : who gave them, where `more` does not say and the model tells users apart.
        reconverge : True settles everything, equal to a refit with the same hyperparameters; False
            only absorbs the answers, much faster. None: as soon as it is quick, or there is
            much to settle. What a model does exactly is in its own documentation.
        relearn : learn the hyperparameters again, as `fit` does, once the comparisons have
            grown by this share since they were last learned; None: never.

        With `raters`, how reliable everybody is counts as a hyperparameter: it stays as the fit
        learned it, so that a refit, which learns it anew, differs until `relearn`.
        """
        how = {
            "reconverge": (reconverge, NONE | YES_OR_NO),
            "relearn": (relearn, NONE | NOT_NEGATIVE),
        }
        check_arguments(self, "tell", **how)
        with self._alone() as fitted:
            answers = self._given(fitted, more, user)
            tie = answers.tie if answers.tie.any() else None
            outcomes = Outcomes(tie, answers.margin)
            is_pairs = answers.rankings is None
            self.likelihood_.check(outcomes if is_pairs else Rows.pooled(answers).outcomes)
            pairs = zip(answers.winner.tolist(), answers.loser.tolist(), strict=True)
            after = replace(
                fitted, learned=self._told(fitted, answers, reconverge), told=tuple(pairs)
            )
            total = after.learned.data.n_comparisons
            if relearn is not None and total >= (1.0 + relearn) * fitted.n_learned:
                after = replace(after, learned=self._relearned(after), n_learned=total)
            self._remember(fitted, after)
        return self

    def withdraw(
        self, answers: Comparisons | Iterable[tuple[Any, Any]], *, user: Any = None
    ) -> Self:
        """Take any answers back, whenever they came: equal to a refit without them.

        answers : comparisons, or (winner, loser) pairs, that were fitted or told. user : who
            gave them, where `answers` does not say and the model tells users apart.
        """
        with self._alone() as fitted:
            taken = self._given_before(fitted, answers, user)
            data = fitted.learned.data.without(taken)
            if not len(data):
                raise DataError("nothing would be left to learn from: fit a new model instead")
            after = replace(fitted, learned=self._without(fitted, data), told=())
            self._remember(fitted, after)
        return self

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

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file; `penchant.load(path)` reads it back."""
        save(self, path)

    # The state: one value, changed by one at a time

    def _check(self) -> None:
        check_parameters(self)

    def _rebuild(self) -> None:  # most models have nothing to add
        """After a load: add what a file leaves to the estimator."""

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


def warn_unless_converged(report: Report) -> None:
    """Inference that did not converge says so, and what to try."""
    if not report.converged:
        warn(report.advice(), ConvergenceWarning)


def describe_scale(model: Any) -> str:
    """What utilities mean, by an example that the model itself computes.

    A fixed sentence would be wrong for most: ties, lapses, other links and differences between
    people all change how often the better item wins.
    """
    items, utility = model.comparisons_.items, model.predict()
    best = int(np.argmax(utility))
    above = utility[best] - utility
    distance = np.abs(above - 1.0)
    distance[best] = np.inf
    other = int(np.argmin(distance))
    win, tie, loss = model.predict_proba([(items[best], items[other])], ties=True)[0]
    said = (
        "Utilities say how much more an item is liked than the average item. For example, "
        f"“{items[best]}” lies {above[other]:.2f} above “{items[other]}”: it is expected to win "
        f"{100 * win / (win + loss):.0f} of 100 "
    )
    if tie > 0.0:
        said += f"comparisons that are decided, and {100 * tie:.0f} of 100 end in a tie."
    else:
        said += "comparisons between the two."
    return said


def describe_personal_scale(model: Any) -> str:
    """What a difference means within one person's own utilities."""
    likelihood, one, sure = model.likelihood_, np.ones(1), np.zeros(1)
    win, loss = (float(likelihood.prob(g, sure)[0]) for g in (one, -one))
    return (
        "That is of people at large, whose tastes differ: at a difference of 1 in their own "
        f"utilities a person prefers the better item {100 * win / (win + loss):.0f} times of 100."
    )


@contextmanager
def progress_bar(title: str, shown: bool) -> Iterator[Watch | None]:
    """A callback for each evaluation of the evidence; None where no terminal shows it."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TextColumn("evaluation {task.fields[n]}, log evidence {task.fields[value]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, n=0, value="…")

        def watch(n_evaluations: int, value: float) -> None:
            bar.update(task, n=n_evaluations, value=f"{value:,.1f}")

        yield watch


@contextmanager
def sweep_progress(n_sweeps: int, shown: bool) -> Iterator[SweepWatch]:
    """A callback for each of `n_sweeps` sweeps; it draws nothing where there is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not shown or not console.is_terminal:  # some versions end a bar that is disabled by a line
        yield lambda state: None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("sampling communities", total=n_sweeps)

        def watch(state: ChainState) -> None:
            told = f"chain {state.seed[-1] + 1}: {len(state.utilities)} communities"
            bar.update(task, advance=1, description=told)

        yield watch
