"""Which model, why, and what it says: one face for all models of the command line."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import penchant as pc
from penchant.cli.features import Encoding, FloatArray
from penchant.cli.study import Study

MODELS = {
    "gp": "PreferenceGP",
    "multi-user": "MultiUserGP",
    "community": "CommunityGP",
    "rank-rls": "RankRLS",
    "kpc-rank": "KPCRank",
}
"""Names on the command line, and the estimator behind each."""
FOR_PEOPLE = ("multi-user", "community")
BY_FEATURES = ("rank-rls", "kpc-rank")
FEW_PEOPLE = 10
"""Fewer people cannot be told to fall into communities."""


@dataclass(frozen=True)
class Fitted:
    """A model that has learned, with the names that its numbers stand for."""

    kind: str
    model: Any
    items: tuple[Any, ...]
    users: tuple[Any, ...]
    X: FloatArray | None
    item_encoding: Encoding | None
    why: str = ""


def choose(study: Study, asked: str) -> tuple[str, str]:
    """The model to use and the reason; checks that one that was asked for can be used."""
    data = study.data
    if asked == "auto":
        return _choose_by_data(study)
    if asked in FOR_PEOPLE and data.user is None:
        raise pc.DataError(
            f"--model {asked} learns tastes of people, but no column says who made each "
            "comparison: name it with --column user=NAME, or use --model gp"
        )
    if asked in BY_FEATURES and study.X is None:
        raise pc.DataError(
            f"--model {asked} ranks items by their features: give them with --items FILE, or use "
            "--model gp"
        )
    if study.relations and asked != "gp":
        raise pc.DataError(
            f"--model {asked} does not use relations: leave out --relation, or use --model gp"
        )
    return asked, "as you asked"


def _choose_by_data(study: Study) -> tuple[str, str]:
    data = study.data
    if study.relations:
        return "gp", "there are relations between items, and this model uses them"
    if data.user is None:
        return "gp", "nothing says who made which comparison, so everybody is taken together"
    if data.n_users == 1:
        return "gp", "there is one person"
    if study.user_features is not None:
        return "multi-user", "people are described by features"
    if data.n_users < FEW_PEOPLE:
        return "multi-user", f"{data.n_users} people are too few to fall into communities"
    return "community", f"{data.n_users:,} people made the comparisons, and they may differ"


def fit(kind: str, study: Study, seed: int, advance: Callable[[int, int], None]) -> Fitted:
    """Fit a model of that kind to the study."""
    estimator = getattr(pc, MODELS[kind])
    data, X = study.data, study.X
    if kind == "gp":
        likelihood = "ties" if data.tie.any() else "probit"
        model = estimator(likelihood=likelihood, random_state=seed)
        model.fit(X, data.pooled() if data.users else data, study.relations)
    elif kind in BY_FEATURES:
        model = estimator(random_state=seed).fit(X, data)
    elif kind == "multi-user":
        model = estimator(random_state=seed).fit(X, data, study.user_features)
    else:
        model = estimator(random_state=seed).fit(X, data)
    return Fitted(kind, model, data.items, data.users, X, study.item_encoding)


def probabilities(
    fitted: Fitted,
    pairs: Any,
    users: Any | None = None,
    X: FloatArray | None = None,
) -> FloatArray:
    """P(first preferred to second), (k,), given that one is: ties are shared out.

    pairs : (k, 2) names or indices of items, or with X its rows.
    users : who is asked, one a pair, for models of people.
    """
    if fitted.kind in BY_FEATURES:
        raise pc.DataError(
            f"a {fitted.kind} model gives scores and no probabilities: fit --model gp for them"
        )
    turned = pairs[:, ::-1] if isinstance(pairs, np.ndarray) else [(b, a) for a, b in pairs]
    context = users if fitted.kind in FOR_PEOPLE else X
    wins = fitted.model.predict_proba(pairs, context)
    losses = fitted.model.predict_proba(turned, context)
    result: FloatArray = wins / (wins + losses)
    return result


def ranking(fitted: Fitted, level: float, user: Any | None = None) -> list[dict[str, Any]]:
    """Rows from best to worst; what a model cannot tell is None."""
    if fitted.kind == "gp":
        if user is not None:
            raise pc.DataError(
                "this model takes everybody together: fit --model multi-user or community to "
                "rank for one user"
            )
        rows: list[dict[str, Any]] = fitted.model.rank(level=level).to_dicts()
        return rows
    scores = fitted.model.predict(fitted.X)
    return [
        {
            "rank": place,
            "item": fitted.items[i],
            "utility": float(scores[i]),
            "low": None,
            "high": None,
            "prob_best": None,
            "rank_low": None,
            "rank_high": None,
        }
        for place, i in enumerate(np.argsort(-scores, kind="stable"), start=1)
    ]


def questions(
    fitted: Fitted, n_questions: int, criterion: str = "variance_ratio"
) -> list[dict[str, Any]]:
    """The pairs to compare next, and what is expected of each."""
    if fitted.kind in BY_FEATURES:
        raise pc.DataError(
            f"a {fitted.kind} model does not know how sure it is: fit --model gp to ask questions"
        )
    pairs = fitted.model.ask(n_questions, criterion=criterion)
    return [
        {"first": a, "second": b, "probability": float(p)}
        for (a, b), p in zip(pairs, probabilities(fitted, pairs), strict=True)
    ]
