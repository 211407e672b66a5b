"""Which model, why, and what it says: one face for all models of the command line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import penchant as pc
from penchant.cli.crowd import rank_communities
from penchant.cli.features import Encoding, FloatArray, named
from penchant.cli.study import Study, as_names

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
FEW_ANSWERS = 3
"""People who made fewer comparisons each cannot be told apart."""
MANY_ANSWERS = 2
"""Comparisons a person makes per item from which on a taste of their own predicts better than
that of a community: so it is on the cars data (4.5 of them) and not on simulated tastes (1)."""
MANY_ITEMS = 300
"""With fewer, threads of the linear algebra wait for each other longer than they work."""
MANY_PEOPLE = 5_000
FOR_MANY_PEOPLE: dict[str, Any] = {"sampler": "blocked", "n_sweeps": 20, "n_chains": 1}
"""With more people than that, reassigning them one after another takes longer than it is worth, and
so many votes settle early: ten million by 200,000 people did in three sweeps."""
CROWD = 200
"""So many people, evenly picked, stand for everybody where probabilities are averaged."""


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
    settings: Mapping[str, Any] = field(default_factory=dict)  # to fit the same again


class Choice(NamedTuple):
    """A model and the reason for it."""

    kind: str
    why: str


def choose(study: Study, asked: str) -> Choice:
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
    return Choice(asked, "as you asked")


def _choose_by_data(study: Study) -> Choice:
    data = study.data
    if study.relations:
        return Choice("gp", "there are relations between items, and this model uses them")
    if data.user is None:
        why = "nothing says who made which comparison, so everybody is taken together"
        return Choice("gp", why)
    if data.n_users == 1:
        return Choice("gp", "there is one person")
    if study.user_features is not None:
        return Choice("multi-user", "people are described by features")
    made = float(np.median(np.bincount(data.user, data.count)))
    said = f"{data.n_users:,} people made about {made:.0f} comparisons each"
    if made < FEW_ANSWERS:
        return Choice("gp", f"{said}, too few to tell them apart")
    if data.n_users < FEW_PEOPLE:
        why = f"{data.n_users} people are too few to fall into communities"
        return Choice("multi-user", why)
    each = f"{said} between {data.n_items:,} items"
    if made >= MANY_ANSWERS * data.n_items:
        return Choice("multi-user", f"{each}, enough to know every person")
    return Choice("community", f"{each}, enough to know groups of people")


def fit(kind: str, study: Study, settings: Mapping[str, Any]) -> Fitted:
    """Fit a model of that kind; settings of the estimator go beyond those that suit the data."""
    data = study.data
    chosen = {**suited(kind, data), **settings}
    known = parameters(kind)
    if unknown := set(chosen) - set(known):
        raise pc.DataError(
            f"--set {min(unknown)}: a {kind} model has no such setting; it has {', '.join(known)}"
        )
    model = getattr(pc, MODELS[kind])(**chosen)
    threads = 1 if data.n_items < MANY_ITEMS else None
    with threadpool_limits(threads, user_api="blas"):
        if kind == "gp":
            model.fit(study.X, data.pooled() if data.users else data, study.relations)
        elif kind in FOR_PEOPLE:
            items = named(study.X, study.item_encoding)
            model.fit(items, data, named(study.user_features, study.user_encoding))
        else:
            model.fit(study.X, data)
    return Fitted(
        kind, model, data.items, data.users, study.X, study.item_encoding, settings=chosen
    )


def parameters(kind: str) -> list[str]:
    """Names of the settings that the estimator has."""
    return list(getattr(pc, MODELS[kind])().get_params(deep=False))


def suited(kind: str, data: pc.Comparisons) -> dict[str, Any]:
    """Settings of the estimator that follow from the data."""
    settings: dict[str, Any] = {}
    if kind not in BY_FEATURES:
        settings["likelihood"] = "ties" if data.tie.any() else "probit"
    if kind in FOR_PEOPLE:
        settings["progress"] = False
    return settings | spared(kind, data)


def spared(kind: str, data: pc.Comparisons) -> dict[str, Any]:
    """Settings that spare time where there are very many people."""
    return FOR_MANY_PEOPLE if kind == "community" and data.n_users > MANY_PEOPLE else {}


def probabilities(
    fitted: Fitted, pairs: Any, users: Any | None = None, X: FloatArray | None = None
) -> FloatArray:
    """P(first preferred to second), (k,), given that one is: ties are shared out.

    pairs : (k, 2) names of items, or with X its rows.
    users : who is asked, one a pair; None for somebody picked at random.
    """
    if fitted.kind in BY_FEATURES:
        raise pc.DataError(
            f"a {fitted.kind} model gives scores and no probabilities: fit --model gp for them"
        )
    pairs = [(first, second) for first, second in pairs]
    turned = [(second, first) for first, second in pairs]
    wins, losses = (_proba(fitted, oriented, users, X) for oriented in (pairs, turned))
    return wins / (wins + losses)


def _proba(
    fitted: Fitted, pairs: list[tuple[Any, Any]], users: Any | None, X: FloatArray | None
) -> FloatArray:
    predict = fitted.model.predict_proba
    features = {} if X is None else {"X": X}
    if fitted.kind == "gp":
        return np.asarray(predict(pairs, **features))
    if users is not None:
        return np.asarray(predict(pairs, users, **features))
    crowd = fitted.users[:: max(1, len(fitted.users) // CROWD)]
    everyone = [user for user in crowd for _ in pairs]
    each = predict(pairs * len(crowd), everyone, **features)
    return np.asarray(each.reshape(len(crowd), len(pairs)).mean(axis=0))


def find_user(kind: str, users: tuple[Any, ...], name: str | None) -> Any | None:
    """The user of a kind of model whom a text on the command line names."""
    if name is None:
        return None
    if kind not in FOR_PEOPLE:
        raise pc.DataError(
            "--user: this model takes everybody together; fit --model multi-user or community to "
            "look at one person"
        )
    (user,) = as_names([name], users)
    if user not in users:
        raise pc.DataError(
            f"--user {name}: nobody of that name made a comparison; the {len(users)} users are "
            f"{', '.join(map(str, users[:3]))} …"
        )
    return user


def ranking(fitted: Fitted, level: float, user: Any | None = None) -> list[dict[str, Any]]:
    """Rows from best to worst; what a model cannot tell is None."""
    if fitted.kind in BY_FEATURES:
        return _rank_scores(fitted)
    if fitted.kind == "community":
        index = None if user is None else fitted.users.index(user)
        return rank_communities(fitted.model, fitted.items, level, index)
    who = {} if user is None else {"user": user}
    rows: list[dict[str, Any]] = fitted.model.rank(**who, level=level).to_dicts()
    return rows


def _rank_scores(fitted: Fitted) -> list[dict[str, Any]]:
    scores = fitted.model.predict(fitted.X)
    unknown = dict.fromkeys(("low", "high", "prob_best", "rank_low", "rank_high"))
    return [
        {"rank": place, "item": fitted.items[i], "utility": float(scores[i]), **unknown}
        for place, i in enumerate(np.argsort(-scores, kind="stable"), start=1)
    ]


def questions(
    fitted: Fitted,
    n_questions: int,
    criterion: str = "variance_ratio",
    user: Any | None = None,
) -> list[dict[str, Any]]:
    """The pairs to compare next (fewer where there are not so many), and what is expected."""
    if fitted.kind in BY_FEATURES:
        raise pc.DataError(
            f"a {fitted.kind} model does not know how sure it is: fit --model gp to ask questions"
        )
    n = len(fitted.items)
    k = min(n_questions, n * (n - 1) // 2)
    pairs = fitted.model.ask(k, criterion, user=user)
    people = None if user is None else [user] * k
    return [
        {"first": a, "second": b, "probability": float(p)}
        for (a, b), p in zip(pairs, probabilities(fitted, pairs, people), strict=True)
    ]
