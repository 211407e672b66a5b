"""The models by their short names: build one, choose one, show what it says as rows of tables.

This is the one place where models are told apart by name.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import signature
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

import penchant as pc
from penchant.data import Comparisons, WholeAnswers
from penchant.errors import DataError
from penchant.io import as_comparisons
from penchant.models import RankedItem, Ranking, Tally, in_order, named_relations
from penchant.numerics.types import FloatArray, IntArray

KINDS = {
    "gp": "PreferenceGP",
    "multi-user": "MultiUserGP",
    "community": "CommunityGP",
    "rank-rls": "RankRLS",
    "kpc-rank": "KPCRank",
}
"""Short name → name of the estimator in `penchant`."""


@dataclass(frozen=True, eq=False)
class Material:
    """The arguments of `fit`: comparisons, features and relations.

    X : (n_items, d), user_features : (n_users, e), in the order of the data, or None.
    relations, user_relations : {"name": graph} between the items, and between people, or None.
    """

    data: Comparisons
    X: Any = None
    relations: Mapping[str, Any] | None = None
    user_features: Any = None
    user_relations: Mapping[str, Any] | None = None

    def fit(self, model: Any) -> Any:
        """Fit a model with the arguments that its `fit` has."""
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
    return getattr(pc, KINDS[name])


def tells_people_apart(name: str) -> bool:
    """Whether a model learns each user's own utilities."""
    return "user_features" in signature(estimator_called(name).fit).parameters


def knows_only_features(name: str) -> bool:
    """Whether a model scores items by their features alone."""
    return not hasattr(estimator_called(name), "belief")


def settings_of(name: str) -> list[str]:
    """The names of a model's constructor parameters."""
    return list(estimator_called(name)().get_params(deep=False))


def build(name: str, data: Comparisons, settings: Mapping[str, Any] | None = None) -> Any:
    """An unfitted estimator. `settings` override the defaults that suit the data."""
    known, given = settings_of(name), dict(settings or {})
    if unknown := set(given) - set(known):
        raise DataError(
            f"{min(unknown)}: a {name} model has no such setting; it has {', '.join(known)}"
        )
    estimator = estimator_called(name)
    # a tie inside a ranking is part of the ranking where the model takes rankings whole
    takes_rankings = getattr(estimator(**given), "takes_choices", False)
    ties = (data.single_pairs() if takes_rankings else data).tie.any()
    suited = {"likelihood": "ties" if ties else "probit", "progress": False}
    chosen = {key: value for key, value in suited.items() if key in known}
    return as_model(estimator(**{**chosen, **given}))


def as_model(estimator: Any) -> Any:
    """The estimator, inside a `Scorer` where it has no `rank` of its own."""
    if hasattr(estimator, "rank"):
        return estimator
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise DataError(
            f"{estimator!r} is no model: give an estimator such as PreferenceGP(), or one of the "
            f"names {', '.join(KINDS)}"
        )
    return Scorer(estimator)


def name_of(model: Any) -> str:
    """The short name of a model, or else the name of its class."""
    estimator = type(getattr(model, "estimator", model)).__name__
    return next((name for name, known in KINDS.items() if known == estimator), estimator)


def about_people(model: Any) -> str:
    """Why intervals are wider than the number of answers suggests, where they are."""
    about = getattr(getattr(model, "report_", None), "about_people", str)
    return " ".join(about().split())


class Scorer:
    """Gives `rank` and `predict` to an estimator that scores items by their features.

    Such an estimator has no uncertainty: standard deviations and intervals are NaN.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, as scikit-learn's `clone` needs them."""
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
        # stored in the estimator, so that its file has the names of the items
        fitted.comparisons_ = data.pooled() if data.users else data
        fitted.scores_ = fitted.predict(X)
        return self

    @property
    def _name(self) -> str:
        return type(self.estimator).__name__

    @property
    def comparisons_(self) -> Comparisons:
        """The comparisons that were fitted, without users."""
        return self.estimator.comparisons_

    def predict(
        self, X: Any = None, *, users: Any = None, return_std: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Scores (n,) of the fitted items, or of the rows of X, minus the fitted items' mean.

        The standard deviations are NaN.
        """
        known: FloatArray = self.estimator.scores_
        scores = (known if X is None else self.estimator.predict(X)) - known.mean()
        return (scores, np.full(len(scores), np.nan)) if return_std else scores

    def predict_proba(
        self, pairs: Any, users: Any = None, X: Any = None, *, ties: bool = False
    ) -> FloatArray:
        """Raise a DataError: scores are not probabilities."""
        raise DataError(f"{self._name} gives scores and no probabilities: fit a gp model for them")

    def ask(self, k: int = 1, criterion: str = "", *, user: Any = None) -> list[tuple[Any, Any]]:
        """Raise a DataError: questions are chosen by uncertainty."""
        raise DataError(
            f"{self._name} does not know how sure it is: fit a gp model to ask questions"
        )

    def rank(self, user: Any = None, level: float = 0.95) -> Ranking:
        """Items from best to worst; intervals and probabilities are NaN."""
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
        """Write the estimator and its comparisons to one file."""
        self.estimator.save(path)


# Which model suits the data, and why.

FEW_PEOPLE = 10
"""Communities are not tried with fewer people."""
FEW_ANSWERS = 3
"""Models of single people are not tried where the median person made fewer comparisons."""
TRIED_PEOPLE, TRIED_ITEMS, TRIED_ANSWERS = 60, 100, 3_000
"""Size of the trial's sample: fits take seconds, where `evaluate` may take minutes. More people are
in it where so many made fewer answers."""
FOLDS = 5
"""Parts of the sample; each is predicted from the others."""
CLEAR, AS_GOOD = 2.0, 0.005
"""A model must predict better than a simpler one by so many standard errors, and by so much
log-likelihood an answer, to be chosen."""


class Choice(NamedTuple):
    """The short name of a model, the reason for it, and the unfitted estimator."""

    name: str
    why: str
    model: Any

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def choose_model(
    data: Comparisons,
    X: Any = None,
    *,
    relations: Mapping[str, Any] | None = None,
    user_features: Any = None,
    user_relations: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Choice:
    """Choose a model and its settings by the data.

    The shape of the data decides some cases. In the others, the candidates are cross-validated on
    a sample of people, and a model is chosen over a simpler one if it predicts better by two
    standard errors. Names and the order of rows change nothing.

    data : comparisons, or a file or data frame of them.
    X, relations, user_features, user_relations : as they will be given to `fit`, or None.
    settings : of the estimator, such as random_state=0.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"], user=["ann", "bob"])
    >>> choice = pc.choose_model(data, random_state=0)
    >>> print(choice)
    gp: half of the 2 people made 1 comparison or fewer, too few to tell them apart
    >>> choice.model.fit(None, data).rank()[0].item
    'tea'
    """
    data = as_comparisons(data)
    name, why = choose(Material(data, X, relations, user_features, user_relations))
    return Choice(name, why, build(name, data, settings))


def choose(material: Material) -> tuple[str, str]:
    """The short name of the model that suits, and the reason; see `choose_model`."""
    data = material.data
    if data.user is None:
        return "gp", "nothing says who made which comparison, so everybody is taken together"
    if data.n_users == 1:
        return "gp", "there is one person"
    if material.user_features is not None:
        return "multi-user", "people are described by features"
    if material.user_relations:
        return "multi-user", "there are relations between people, and this model uses them"
    made = float(np.median(np.bincount(data.user, data.count, data.n_users)))
    if made < FEW_ANSWERS:
        few = f"{made:g} comparison{'s' * (made != 1)} or fewer"
        return "gp", f"half of the {data.n_users:,} people made {few}, too few to tell them apart"
    said = f"{data.n_users:,} people made {data.n_comparisons / data.n_users:.1f} comparisons each"
    said += " on average"
    sample = trial_sample(material)
    parts = [
        (train, test)
        for train, test in sample.data.folds(FOLDS)
        if not (train.tie.all() or test.tie.all())
    ]
    if len(parts) < 2:
        return "gp", f"{said}, too few of them decided to try another model"
    candidates = ["gp", "multi-user", "community"][: 2 if data.n_users < FEW_PEOPLE else 3]
    scores = {
        name: np.array([_score(name, replace(sample, data=train), test) for train, test in parts])
        for name in candidates
    }
    best, reason = candidates[0], "no other model foresees clearly more of a sample"
    for name in candidates[1:]:
        gains = scores[name] - scores[best]
        gain, error = gains.mean(), gains.std(ddof=1) / np.sqrt(len(gains))
        if gain > max(CLEAR * error, AS_GOOD):
            reason = f"of a sample it foresees more than {best} by {gain:.3f} ± {error:.3f}"
            best = name
    found = ", ".join(f"{name} {-score.mean():.3f}" for name, score in scores.items())
    return best, f"{said}, and {reason} (log loss: {found})"


def _score(name: str, train: Material, test: Comparisons) -> float:
    """Mean log-likelihood of held-out answers under one model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit on all data will warn
        return float(train.fit(build(name, train.data, {"random_state": 0})).score(test))


def trial_sample(
    material: Material,
    n_people: int | None = None,
    n_items: int = TRIED_ITEMS,
    n_answers: int = TRIED_ANSWERS,
) -> Material:
    """Some people, their answers about the items that they compared most, and these items.

    n_people : None for as many as made n_answers, and 60 at least. Answers keep their order,
    covariates and times; items keep their features and relations.
    """
    data = material.data
    said = WholeAnswers.of(data)
    items, users, answers = said.keys(data.n_items, data.n_users)
    people = np.argsort(users, kind="stable")
    made = np.bincount(said.user, said.count, data.n_users)[people]
    enough = int(np.searchsorted(np.cumsum(made), n_answers)) + 1
    people = people[: n_people or max(TRIED_PEOPLE, enough)]
    asked = np.isin(said.user, people)
    met = np.bincount(said.item, (said.count * asked)[said.answer], data.n_items)
    # answer by answer, so that each sampled item was compared with another sampled one
    least = np.full(len(asked), np.inf)
    np.minimum.at(least, said.answer, met[said.item])
    order = np.lexsort((answers, -least))
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    seen = np.full(data.n_items, len(order))  # the place of the first answer that holds an item
    np.minimum.at(seen, said.item, np.where(asked, place, len(order))[said.answer])
    known = np.lexsort((items, seen))[:n_items]
    known = known[seen[known] < len(order)]
    kept = asked.copy()
    np.logical_and.at(kept, said.answer, np.isin(said.item, known))
    rank = np.argsort(np.argsort(np.where(kept, answers, np.uint64(2**64 - 1)), kind="stable"))
    kept &= rank < n_answers
    sample = data.with_counts(np.where(kept, said.count, 0))
    held, people = sample.compared(), np.sort(people)
    X = None
    if material.X is not None:
        rows = in_order(material.X, data.items, "items")
        X = rows[held] if sparse.issparse(rows) else np.asarray(rows)[held]
    links = named_relations(material.relations, data.items, "items")
    between = {name: link.weights[held][:, held] for name, link in links.items()}
    return Material(_among(sample, held, people), X, between or None)


def _among(data: Comparisons, items: IntArray, users: IntArray) -> Comparisons:
    """The same answers over some items and users, given in ascending order."""
    item, user = (np.zeros(n, dtype=np.intp) for n in (data.n_items, data.n_users))
    item[items], user[users] = np.arange(len(items)), np.arange(len(users))
    orders = data.rankings
    return replace(
        data,
        winner=item[data.winner],
        loser=item[data.loser],
        user=None if data.user is None else user[data.user],
        items=tuple(data.items[i] for i in items),
        users=tuple(data.users[u] for u in users),
        rankings=None if orders is None else orders.recoded(item, user),
    )


# Rows of tables: questions, communities, members, directions of disagreement.

SHOWN = 3
"""Items listed for a community or a direction."""


def questions(
    model: Any, k: int, criterion: str = "variance_ratio", user: Any = None, k_items: int = 2
) -> list[dict[str, Any]]:
    """The k pairs to compare next, with P(first preferred); or sets of `k_items`, an item a column.

    There are fewer where there are not so many pairs.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> (row,) = questions(pc.PreferenceGP(optimize=None).fit(None, data), 1)
    >>> row["first"], row["second"], round(row["probability"], 2)
    ('milk', 'water', 0.5)
    """
    n = model.comparisons_.n_items
    k = min(k, n * (n - 1) // 2)
    if k_items > 2:
        sets = model.ask(k, criterion, k_items=k_items, user=user)
        return [{f"item_{i + 1}": name for i, name in enumerate(items)} for items in sets]
    pairs = model.ask(k, criterion, user=user)
    return [
        {"first": a, "second": b, "probability": float(p)}
        for (a, b), p in zip(pairs, model.predict_proba(pairs, user), strict=True)
    ]


def groups(model: Any) -> list[dict[str, Any]]:
    """Size and preferences of each community, the largest first."""
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
