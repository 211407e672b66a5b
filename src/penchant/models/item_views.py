"""What a fitted model of everybody together tells: of items, old and new, at any time."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import (
    Answered,
    Learned,
    Normal,
    PathPosterior,
    Posterior,
    TimedPosterior,
    effect_names,
)
from penchant.models.contract import UtilityModel
from penchant.models.effects import Estimates
from penchant.models.item_learning import ItemLearning
from penchant.models.new_nodes import posterior_of_new_nodes
from penchant.models.odds import Odds
from penchant.models.pooling import foreseen_in_pool
from penchant.models.ranking import Ranking
from penchant.models.state import Fitted
from penchant.models.time import as_days
from penchant.models.validation import YES_OR_NO, check_arguments
from penchant.numerics.types import FloatArray, IntArray


class ItemViews(UtilityModel):
    """A model whose fit is a `Learned` of items or of their paths, read off in all ways."""

    @property
    def posterior_(self) -> Posterior:
        """The posterior over the items' utilities."""
        posterior: Posterior = self._fitted().learned.posterior
        return posterior

    @property
    def log_evidence_(self) -> float:
        """log p(answers | hyperparameters)."""
        return float(self._fitted().learned.log_evidence)

    def predict(
        self,
        X: Any = None,
        *,
        users: Any = None,
        return_std: bool = False,
        relations: Mapping[str, Any] | None = None,
        at: Any = None,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Mean utilities (n,) above the average item of the fit, and their standard deviations if
        asked.

        X : None for the training items, or (k, d) features of new ones; a row is a new item
            even where a training item has the same features.
        users : one row for each, all the same: everybody is taken together.
        relations : for new items in a relational model, the graphs over the training items
            followed by the new ones.
        at : a date, where utilities drift; None: that of the last comparison.
        """
        then = self._as_of(at)
        if relations is None:
            return UtilityModel.predict(then, X, users=users, return_std=return_std)
        check_arguments(self, "predict", return_std=(return_std, YES_OR_NO))
        fitted = self._fitted()
        posterior = posterior_of_new_nodes(fitted.learned, fitted.columns, X, relations)
        if at is not None and isinstance(posterior, PathPosterior):
            (posterior,) = posterior.when(as_days([at]))
        known = posterior.universe.take(np.arange(fitted.learned.data.n_items))
        mean, var = posterior.relative_to(posterior.at(known))
        return (mean, np.sqrt(var)) if return_std else mean

    def predict_proba(
        self,
        pairs: Any,
        users: Any = None,
        X: Any = None,
        *,
        ties: bool = False,
        first: Any = None,
        covariates: Mapping[str, Any] | None = None,
        at: Any = None,
    ) -> FloatArray:
        """P(first preferred to second), (k,), given that one of them is.

        pairs : (k, 2) item names or indices; with X given, rows of X. users : ignored, everybody
            is taken together. ties : return (k, 3) instead: win, tie and loss of the first.
        first : +1 where the first of a pair is shown first, −1 where the second is; None, or 0:
            at equal sides. covariates : first minus second, by name; None: equal.
        at : where utilities drift, a date for all pairs, or one for each; None: that of the
            last comparison.
        """
        how: dict[str, Any] = {"ties": ties, "first": first, "covariates": covariates}
        then = self._as_of(at, several=True)
        return UtilityModel.predict_proba(then, pairs, users, X, **how)

    def rank(
        self, user: Any = None, level: float = 0.95, n_samples: int = 4000, at: Any = None
    ) -> Ranking:
        """Items from best to worst with intervals, P(best) and rank intervals.

        user : whose; None for people at large. level : of the intervals.
        n_samples : joint draws behind P(best) and the rank intervals.
        at : a date, where utilities drift; None: that of the last comparison.
        """
        return UtilityModel.rank(self._as_of(at), user, level, n_samples)

    def paths(self, times: Any) -> tuple[FloatArray, FloatArray]:
        """Mean utilities (k, n_items) and their standard deviations at k times, drift given.

        They are relative to the average item at each time, as in `rank`.
        """
        self._as_of(0.0)
        each = self._fitted().learned.posterior.when(np.atleast_1d(as_days(times)))
        mean = np.array([then.mean - then.mean.mean() for then in each])
        return mean, np.sqrt([then.contrast_var for then in each])

    def _as_of(self, at: Any, several: bool = False) -> Self:
        """The model as of another time; several: or of a time for each difference."""
        learned: Learned[Any] = self._fitted().learned
        if at is None:
            return self
        if not isinstance(learned.posterior, PathPosterior):
            raise DataError(f"at={at!r} needs utilities that drift: fit with drift='ou'")
        days = as_days(at)
        if not days.ndim:
            (then,) = learned.posterior.when(days[None])
        elif several:
            then = learned.posterior.each(days)
        else:
            raise DataError(f"at holds {len(days)} times: it must be one; see paths for several")
        return self._with(replace(learned, posterior=then))

    def _odds_as_made(
        self,
        fitted: Fitted,
        pairs: IntArray,
        users: IntArray | None,
        z: FloatArray | None,
        time: FloatArray | None,
    ) -> Odds:
        if time is not None and isinstance(fitted.learned.posterior, PathPosterior):
            fitted = self._as_of(time, several=True)._fitted()
        return self._odds(fitted, pairs, users, None, z)

    def _seen(self, fitted: Fitted) -> Comparisons:
        return fitted.pooled

    def _users(self, fitted: Fitted, users: Any) -> IntArray | None:
        return None if users is None else np.zeros(np.size(users), dtype=np.intp)

    def _at(self, fitted: Fitted, X: Any) -> Posterior:
        posterior: Posterior = fitted.learned.posterior
        return posterior.at(None if X is None else fitted.columns.new_items(X))

    def _believed(self, fitted: Fitted, user: int | None) -> Posterior:
        posterior: Posterior = fitted.learned.posterior
        return posterior

    def _utilities(self, fitted: Fitted, users: IntArray | None, X: Any) -> Normal:
        posterior = self._at(fitted, X)
        var = posterior.relative_to(fitted.learned.posterior).var
        return Normal(_for_all(posterior.mean, users), _for_all(var, users))

    def _means(self, fitted: Fitted, users: IntArray | None, X: Any) -> FloatArray:
        return _for_all(self._at(fitted, X).mean, users)

    def _odds(
        self,
        fitted: Fitted,
        pairs: IntArray,
        users: IntArray | None,
        X: Any,
        z: FloatArray | None = None,
    ) -> Odds:
        if isinstance(known := fitted.learned.posterior, TimedPosterior):
            known.check(len(pairs))  # also where X has items that are alike at all times
        posterior = self._at(fitted, X)
        return Odds.of(posterior.likelihood, posterior.difference(pairs[:, 0], pairs[:, 1], z))

    def _effects(self, fitted: Fitted) -> Estimates | None:
        posterior: Posterior = fitted.learned.posterior
        if isinstance(posterior, PathPosterior):
            names = effect_names(fitted.learned.data)
            return Estimates(names, *posterior.shown_effects) if names else None
        return Estimates.of(posterior.effects, posterior.lower)

    def _answered(self, fitted: Fitted) -> Answered:
        learning, learned = ItemLearning.of(self), fitted.learned
        problem = learning.problem_after(learned, learned.data)
        return foreseen_in_pool(learned, problem, learning.half_life)


def _for_all(numbers: FloatArray, users: IntArray | None) -> FloatArray:
    """The same row for each of the users, where there are any."""
    return numbers if users is None else np.tile(numbers, (len(users), 1))
