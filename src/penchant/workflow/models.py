"""The models by their short names, what they learn from, and what they say as rows of tables.

This is the one place where models are told apart by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature
from os import PathLike
from typing import Any, Self

import numpy as np

import penchant as pc
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.models import RankedItem, Ranking, Tally, in_order
from penchant.numerics.types import FloatArray

KINDS = {
    "gp": "PreferenceGP",
    "multi-user": "MultiUserGP",
    "community": "CommunityGP",
    "rank-rls": "RankRLS",
    "kpc-rank": "KPCRank",
}
"""Every model that can be asked for by name, and its estimator in `penchant`."""


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
    cls: type[Any] = getattr(pc, KINDS[name])
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
    return Scorer(estimator)


def name_of(model: Any) -> str:
    """What a model is called: its short name, or that of its class."""
    estimator = type(getattr(model, "estimator", model)).__name__
    return next((name for name, known in KINDS.items() if known == estimator), estimator)


class Scorer:
    """A model that scores items by their features and does not know how sure it is.

    It ranks and predicts as the others do, and says what it cannot.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what scikit-learn's `clone` needs."""
        return {"estimator": self.estimator}

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


# What models say, as rows of tables: questions, communities, members, disagreements.

SHOWN = 3


def questions(
    model: Any, k: int, criterion: str = "variance_ratio", user: Any = None
) -> list[dict[str, Any]]:
    """The pairs to compare next (fewer where there are not so many), and what is expected.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> (row,) = questions(pc.PreferenceGP(optimize=None).fit(None, data), 1)
    >>> row["first"], row["second"], round(row["probability"], 2)
    ('milk', 'water', 0.5)
    """
    n = model.comparisons_.n_items
    pairs = model.ask(min(k, n * (n - 1) // 2), criterion, user=user)
    return [
        {"first": a, "second": b, "probability": float(p)}
        for (a, b), p in zip(pairs, model.predict_proba(pairs, user), strict=True)
    ]


def sets_to_ask(
    model: Any, k: int, k_items: int, criterion: str = "variance_ratio", user: Any = None
) -> list[dict[str, Any]]:
    """The sets to choose from next, an item a column.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> (row,) = sets_to_ask(pc.PreferenceGP(optimize=None).fit(None, data), 1, 3)
    >>> sorted(row.values()), list(row)
    (['milk', 'tea', 'water'], ['item_1', 'item_2', 'item_3'])
    """
    n = model.comparisons_.n_items
    sets = model.ask(min(k, n * (n - 1) // 2), criterion, k_items=k_items, user=user)
    return [{f"item_{i + 1}": name for i, name in enumerate(items)} for items in sets]


def groups(model: Any) -> list[dict[str, Any]]:
    """What is particular to each community, the largest first."""
    return [
        {
            "community": community.number,
            "size": community.size,
            "share": community.share,
            "likes": [row.item for row in community.ranking[:SHOWN]],
            "dislikes": [row.item for row in community.ranking[::-1][:SHOWN]],
            "more_than_others": list(community.representative[:SHOWN]),
            "drawn_to": [_trait(trait) for trait in community.attributes[:SHOWN]],
            "members": [_trait(trait) for trait in community.user_features[:SHOWN]],
        }
        for community in model.communities_
    ]


def disagreements(model: Any) -> list[dict[str, Any]]:
    """The main directions along which people differ, the widest first."""
    return [
        {
            "direction": direction.number + 1,
            "share": direction.share,
            "toward": list(direction.toward[:SHOWN]),
            "away": list(direction.away[:SHOWN]),
        }
        for direction in model.disagreement()
    ]


def members(model: Any) -> list[dict[str, Any]]:
    """Everybody's most probable community, and how probable it is."""
    best = model.membership_.argmax(axis=1)
    return [
        {"user": user, "community": int(number), "probability": float(row[number])}
        for user, number, row in zip(model.comparisons_.users, best, model.membership_, strict=True)
    ]


def _trait(trait: Any) -> str:
    return f"{'more' if trait.strength > 0 else 'less'} {trait.name}"
