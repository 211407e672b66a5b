"""Which model suits the data, and why."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from penchant.data import Comparisons, WholeAnswers
from penchant.io import as_comparisons
from penchant.models import in_order, named_relations
from penchant.numerics.types import FloatArray, IntArray
from penchant.workflow.models import Material, build

FEW_PEOPLE = 10
"""With fewer people, communities are not tried."""
FEW_ANSWERS = 3
"""With fewer comparisons each, models of single people are not tried."""
TRIED_PEOPLE, TRIED_ITEMS, TRIED_ANSWERS = 60, 100, 1_500
"""Size of the sample on which models are tried: seconds, where `evaluate` may take minutes."""
FOLDS = 5
"""Parts of the sample, each of which is predicted from the others."""
CLEAR, AS_GOOD = 2.0, 0.005
"""Standard errors, and log-likelihood an answer, by which a model must predict better than a
simpler one to be chosen."""


class Choice(NamedTuple):
    """A model by its short name, the reason for it, and an estimator that is yet to be fitted."""

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
    """The model that suits what there is to learn from, with settings that suit it too.

    What the data cannot tell by their shape a trial does: the models that come into question
    are cross-validated on some people's whole answers. A model is taken over a simpler one where
    it predicts better by two standard errors. Names and the order of rows change nothing.

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
    """The short name of the model that suits, and why."""
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
    sample = _sampled(material)
    parts = [(train, test) for train, test in sample.data.folds(FOLDS) if _is_usable(train, test)]
    if len(parts) < 2:
        return "gp", f"{said}, too few of them decided to try another model"
    candidates = ["gp", "multi-user", "community"][: 2 if data.n_users < FEW_PEOPLE else 3]
    scores = {
        name: np.array([_tried(name, sample.only(train), test) for train, test in parts])
        for name in candidates
    }
    best, reason = candidates[0], "no other model foresees clearly more of a sample"
    for name in candidates[1:]:
        gain, error = _gain(scores[name], scores[best])
        if gain > max(CLEAR * error, AS_GOOD):
            reason = f"of a sample it foresees more than {best} by {gain:.3f} ± {error:.3f}"
            best = name
    found = ", ".join(f"{name} {-score.mean():.3f}" for name, score in scores.items())
    return best, f"{said}, and {reason} (log loss: {found})"


def _is_usable(train: Comparisons, test: Comparisons) -> bool:
    return not (train.tie.all() or test.tie.all())


def _gain(one: FloatArray, other: FloatArray) -> tuple[float, float]:
    """Mean gain in log-likelihood of one model over another, by fold, and its standard error."""
    gain = one - other
    return float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(gain)))


def _tried(name: str, train: Material, test: Comparisons) -> float:
    """Mean log-likelihood of held-out answers of a sample under one model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a trial: what the choice has to say it says itself
        return float(train.fit(build(name, train.data, {"random_state": 0})).score(test))


def _sampled(material: Material) -> Material:
    """Some people, some of their answers about the items that they compared most, and these items
    with what links them; everything known about an answer is kept."""
    data = material.data
    said = WholeAnswers.of(data)
    items, users, answers = said.keys(data.n_items, data.n_users)
    people = np.argsort(users, kind="stable")[:TRIED_PEOPLE]
    asked = np.isin(said.user, people)
    met = np.bincount(said.item, (said.count * asked)[said.answer], data.n_items)
    # answer by answer, so that what is kept was compared with something else that is
    least = np.full(len(asked), np.inf)
    np.minimum.at(least, said.answer, met[said.item])
    order = np.lexsort((answers, -least))
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    seen = np.full(data.n_items, len(order))  # the place of the first answer that holds an item
    np.minimum.at(seen, said.item, np.where(asked, place, len(order))[said.answer])
    known = np.lexsort((items, seen))[:TRIED_ITEMS]
    known = known[seen[known] < len(order)]
    kept = asked.copy()
    np.logical_and.at(kept, said.answer, np.isin(said.item, known))
    rank = np.argsort(np.argsort(np.where(kept, answers, np.uint64(2**64 - 1)), kind="stable"))
    kept &= rank < TRIED_ANSWERS
    sample = data.with_counts(np.where(kept, said.count, 0))
    held, people = sample.compared(), np.sort(people)
    X = None if material.X is None else _rows(in_order(material.X, data.items, "items"), held)
    links = named_relations(material.relations, data.items, "items")
    between = {name: link.weights[held][:, held] for name, link in links.items()}
    return Material(_among(sample, held, people), X, between or None)


def _among(data: Comparisons, items: IntArray, users: IntArray) -> Comparisons:
    """The same answers, with no items and users but those that are given in ascending order."""
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


def _rows(X: Any, items: IntArray) -> Any:
    """Some rows of features, without their names."""
    return X[items] if sparse.issparse(X) else np.asarray(X)[items]
