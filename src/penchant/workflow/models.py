"""The models by their short names: the one place where they are told apart."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import signature
from typing import Any, Self

from penchant.data import Comparisons
from penchant.errors import DataError

KINDS = {
    "gp": "preference_gp.PreferenceGP",
    "multi-user": "multi_user_gp.MultiUserGP",
    "community": "community_gp.CommunityGP",
    "rank-rls": "rankers.RankRLS",
    "kpc-rank": "rankers.KPCRank",
}
"""Every model that can be asked for by name, and its estimator, imported when first needed."""


@dataclass(frozen=True, eq=False)
class Material:
    """Everything that a model can learn from.

    X : (n_items, d), user_features : (n_users, e), in the order of the data, or None.
    relations, user_relations : {"name": graph} between the items, and between people, or None.
    """

    data: Comparisons
    X: Any = None
    relations: Mapping[str, Any] | None = None
    user_features: Any = None
    user_relations: Mapping[str, Any] | None = None

    def only(self, data: Comparisons) -> Self:
        """The same items and people, other comparisons."""
        return replace(self, data=data)

    def fit(self, model: Any) -> Any:
        """Fit a model to as much of this as it takes."""
        takes = signature(model.fit).parameters
        further = {
            name: value
            for name in ("relations", "user_features", "user_relations")
            if (value := getattr(self, name)) is not None and name in takes
        }
        return model.fit(self.X, self.data, **further)


def estimator_called(name: str) -> type[Any]:
    """The estimator of a short name."""
    if name not in KINDS:
        raise DataError(f"there is no model called {name!r}: the names are {', '.join(KINDS)}")
    module, estimator = KINDS[name].split(".")
    cls: type[Any] = getattr(import_module(f"penchant.models.{module}"), estimator)
    return cls


def tells_people_apart(name: str) -> bool:
    """Whether a model needs to know who said what."""
    return "user_features" in signature(estimator_called(name).fit).parameters


def knows_only_features(name: str) -> bool:
    """Whether a model knows items by nothing else."""
    return not hasattr(estimator_called(name), "belief")


def settings_of(name: str) -> list[str]:
    """Names of the settings that a model has."""
    return list(estimator_called(name)().get_params(deep=False))


def build(name: str, data: Comparisons, settings: Mapping[str, Any] | None = None) -> Any:
    """An estimator with settings that suit the data, and those given on top."""
    known, given = settings_of(name), dict(settings or {})
    if unknown := set(given) - set(known):
        raise DataError(
            f"{min(unknown)}: a {name} model has no such setting; it has {', '.join(known)}"
        )
    estimator = estimator_called(name)
    # ties inside a ranking that is taken whole are no answers of their own
    whole = getattr(estimator(**given), "takes_choices", False)
    ties = (data.single_pairs() if whole else data).tie.any()
    suited = {"likelihood": "ties" if ties else "probit", "progress": False}
    chosen = {key: value for key, value in suited.items() if key in known}
    return as_model(estimator(**{**chosen, **given}))


def as_model(estimator: Any) -> Any:
    """An estimator that can rank and predict: itself, or one that only scores, given that face."""
    if hasattr(estimator, "rank"):
        return estimator
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise DataError(
            f"{estimator!r} is no model: give an estimator such as PreferenceGP(), or one of the "
            f"names {', '.join(KINDS)}"
        )
    from penchant.workflow.scorer import Scorer

    return Scorer(estimator)


def name_of(model: Any) -> str:
    """What a model is called: its short name, or that of its class."""
    estimator = type(getattr(model, "estimator", model)).__name__
    return next((name for name, at in KINDS.items() if at.endswith(f".{estimator}")), estimator)
