"""The models by their short names: the one place where they are told apart."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.models.community_gp import CommunityGP
from penchant.models.contract import UtilityModel
from penchant.models.kpc_rank import KPCRank
from penchant.models.multi_user_gp import MultiUserGP
from penchant.models.preference_gp import PreferenceGP
from penchant.models.rank_rls import RankRLS
from penchant.models.ranking import RankedItem, Ranking, Tally
from penchant.numerics.types import FloatArray

KINDS: dict[str, type[Any]] = {
    "gp": PreferenceGP,
    "multi-user": MultiUserGP,
    "community": CommunityGP,
    "rank-rls": RankRLS,
    "kpc-rank": KPCRank,
}
"""Every model that can be asked for by name."""
BRIEF: dict[str, dict[str, Any]] = {"community": {"n_sweeps": 60, "n_chains": 1}}
"""Settings with which a model predicts nearly as well in a fraction of the time, for fits that are
only scored: on the cars data a log loss of 0.320 in 6 s a fit, against 0.316 in 14 s."""
FOR_MANY: dict[str, dict[str, Any]] = {
    "community": {"sampler": "blocked", "n_sweeps": 20, "n_chains": 1}
}
"""Settings for very many people, whose votes settle early: ten million by 200,000 people did in
three sweeps."""
MANY_PEOPLE = 5_000
"""With more people, reassigning them one after another takes longer than it is worth."""


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that a model can learn from.

    X : (n_items, d), user_features : (n_users, e), in the order of the data, or None.
    relations : {"name": graph} between the items, or None.
    """

    data: Comparisons
    X: Any = None
    relations: Mapping[str, Any] | None = None
    user_features: Any = None

    def only(self, data: Comparisons) -> Self:
        """The same items and people, other comparisons."""
        return replace(self, data=data)

    def fit(self, model: Any) -> Any:
        """Fit a model to as much of this as it takes."""
        takes = signature(model.fit).parameters
        further = {
            name: value
            for name in ("relations", "user_features")
            if (value := getattr(self, name)) is not None and name in takes
        }
        return model.fit(self.X, self.data, **further)


def tells_people_apart(name: str) -> bool:
    """Whether a model needs to know who said what."""
    return "user_features" in signature(KINDS[name].fit).parameters


def knows_only_features(name: str) -> bool:
    """Whether a model knows items by nothing else."""
    return not issubclass(KINDS[name], UtilityModel)


def settings_of(name: str) -> list[str]:
    """Names of the settings that the model of a short name has."""
    if name not in KINDS:
        raise DataError(f"there is no model called {name!r}: the names are {', '.join(KINDS)}")
    return list(KINDS[name]().get_params(deep=False))


def build(name: str, data: Comparisons, settings: Mapping[str, Any] | None = None) -> Any:
    """An estimator with settings that suit the data, and those given on top."""
    known, given = settings_of(name), dict(settings or {})
    if unknown := set(given) - set(known):
        raise DataError(
            f"{min(unknown)}: a {name} model has no such setting; it has {', '.join(known)}"
        )
    suited = {"likelihood": "ties" if data.tie.any() else "probit", "progress": False}
    chosen = {key: value for key, value in suited.items() if key in known}
    return as_model(KINDS[name](**{**chosen, **spared(name, data), **given}))


def spared(name: str, data: Comparisons, only_scored: bool = False) -> dict[str, Any]:
    """Settings that spare time: where there are very many people, or a fit is only scored."""
    brief = BRIEF.get(name, {}) if only_scored else {}
    return brief | (FOR_MANY.get(name, {}) if data.n_users > MANY_PEOPLE else {})


def as_model(estimator: Any) -> Any:
    """An estimator that can rank and predict: itself, or one that only scores, given that face."""
    if isinstance(estimator, UtilityModel | Scorer):
        return estimator
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise DataError(
            f"{estimator!r} is no model: give an estimator such as PreferenceGP(), or one of the "
            f"names {', '.join(KINDS)}"
        )
    return Scorer(estimator)


def name_of(model: Any) -> str:
    """What a model is called: its short name, or that of its class."""
    estimator = type(getattr(model, "estimator", model))
    return next((name for name, kind in KINDS.items() if kind is estimator), estimator.__name__)


class Scorer(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A model that scores items by their features and does not know how sure it is.

    It ranks and predicts as the others do, and says what it cannot.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, data: Comparisons) -> Self:
        """Learn to score the rows of X."""
        if X is None:
            raise DataError(
                f"a {name_of(self)} model ranks items by their features, and there are none: give "
                "X, or use a gp model"
            )
        fitted = self.estimator.fit(X, data)
        # kept with the estimator, so that its file knows the items too
        fitted.comparisons_ = data.pooled() if data.users else data
        fitted.scores_ = fitted.predict(X)
        return self

    @property
    def comparisons_(self) -> Comparisons:
        """The data that were fitted, everybody's together."""
        data: Comparisons = self.estimator.comparisons_
        return data

    def predict(
        self, X: Any = None, *, users: Any = None, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Scores (n,) of the items, or of new ones; how sure they are is unknown, NaN."""
        scores: FloatArray = self.estimator.scores_ if X is None else self.estimator.predict(X)
        return (scores, np.full(len(scores), np.nan)) if return_std else scores

    def predict_proba(self, pairs: Any, users: Any = None, X: Any = None) -> FloatArray:
        """There are no probabilities."""
        raise DataError(
            f"a {name_of(self)} model gives scores and no probabilities: fit a gp model for them"
        )

    def ask(self, k: int = 1, criterion: str = "", *, user: Any = None) -> list[tuple[Any, Any]]:
        """There is nothing to choose questions by."""
        raise DataError(
            f"a {name_of(self)} model does not know how sure it is: fit a gp model to ask questions"
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
                comparisons=round(float(tally.compared[i])),
                wins=round(float(tally.wins[i]), 1),
            )
            for place, i in enumerate(np.argsort(-scores, kind="stable"), start=1)
        )
        return Ranking(rows, level)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the estimator, with the comparisons that it was fitted to, to one file."""
        self.estimator.save(path)
