"""Which model suits the data, and why."""

import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from penchant.data import Comparisons, as_comparisons
from penchant.models.features import named_relations
from penchant.models.validation import in_order
from penchant.numerics.types import IntArray
from penchant.workflow.models import Material, build, spared

FEW_PEOPLE = 10
"""Fewer people cannot be told to fall into communities."""
FEW_ANSWERS = 3
"""People who made fewer comparisons each cannot be told apart."""
TRIED_PEOPLE, TRIED_ITEMS, TRIED_ANSWERS = 60, 100, 1_500
"""Size of the sample on which models are tried: seconds, where `evaluate` may take minutes."""
AS_GOOD = 0.005
"""In log-likelihood: of models this close the simplest is taken."""
HELD_OUT = 0.25
"""Share of the sample's comparisons that are foreseen from the others."""


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
    learn from some people's answers, and foresee the rest of these.

    data : comparisons, or a file or data frame of them.
    X, relations, user_features, user_relations : as they will be given to `fit`, or None.
    settings : of the estimator, such as random_state=0.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"], user=["ann", "bob"])
    >>> choice = pc.choose_model(data, random_state=0)
    >>> print(choice)
    gp: 2 people made about 1 comparisons each, too few to tell them apart
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
    said = f"{data.n_users:,} people made about {made:.0f} comparisons each"
    if made < FEW_ANSWERS:
        return "gp", f"{said}, too few to tell them apart"
    sample = _sampled(material, data.user)
    train, test = sample.data.split(HELD_OUT, random_state=0)
    if test.tie.all() or not len(train):
        return "gp", f"{said}, too few of them decided to try another model"
    candidates = ["gp", "multi-user", "community"][: 2 if data.n_users < FEW_PEOPLE else 3]
    scores = {name: _tried(name, sample.only(train), test) for name in candidates}
    best = next(name for name in scores if scores[name] >= max(scores.values()) - AS_GOOD)
    found = ", ".join(f"{name} {-score:.3f}" for name, score in scores.items())
    return best, f"{said}, and of a sample it foresees as much as any (log loss: {found})"


def _tried(name: str, train: Material, test: Comparisons) -> float:
    """Mean log-likelihood of held-out answers of a sample under one model."""
    settings = {**spared(name, train.data, only_scored=True), "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a trial: what the choice has to say it says itself
        return float(train.fit(build(name, train.data, settings)).score(test))


def _sampled(material: Material, giver: IntArray) -> Material:
    """Some people, some of their answers about the items that they compared most, and these items
    with what links them."""
    data, rng = material.data, np.random.default_rng(0)
    people = np.sort(rng.permutation(data.n_users)[:TRIED_PEOPLE])
    rows = np.flatnonzero(np.isin(giver, people))
    pairs = np.column_stack([data.winner, data.loser])[rows]
    met = np.bincount(pairs.ravel(), np.repeat(data.count[rows], 2), data.n_items)
    # pair by pair, so that what is kept was compared with something else that is
    common = pairs[np.argsort(-met[pairs].min(axis=1), kind="stable")].ravel()
    _, first = np.unique(common, return_index=True)
    known = common[np.sort(first)[:TRIED_ITEMS]]
    rows = rows[np.isin(pairs, known).all(axis=1)]
    rows = np.sort(rng.permutation(rows)[:TRIED_ANSWERS])
    items = np.unique(np.concatenate([data.winner[rows], data.loser[rows]]))
    item, user = (np.empty(n, dtype=np.intp) for n in (data.n_items, data.n_users))
    item[items], user[people] = np.arange(len(items)), np.arange(len(people))
    sample = Comparisons.from_pairs(
        item[data.winner[rows]],
        item[data.loser[rows]],
        user=user[giver[rows]],
        tie=data.tie[rows],
        count=data.count[rows],
        items=range(len(items)),
        users=range(len(people)),
    )
    X = None if material.X is None else _rows(in_order(material.X, data.items, "items"), items)
    links = named_relations(material.relations, data.items, "items")
    between = {name: link.weights[items][:, items] for name, link in links.items()}
    return Material(sample, X, between or None)


def _rows(X: Any, items: IntArray) -> Any:
    """Some rows of features, without their names."""
    return X[items] if sparse.issparse(X) else np.asarray(X)[items]
