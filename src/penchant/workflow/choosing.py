"""Which model suits the data, and why."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from penchant.data import Comparisons, as_comparisons
from penchant.workflow.models import Material, build

FEW_PEOPLE = 10
"""Fewer people cannot be told to fall into communities."""
FEW_ANSWERS = 3
"""People who made fewer comparisons each cannot be told apart."""
MANY_ANSWERS = 2
"""Comparisons a person makes per item from which on a taste of their own predicts better than
that of a community: so it is on the cars data (4.5 of them) and not on simulated tastes (1)."""


class Choice(NamedTuple):
    """A model by its short name, the reason for it, and an estimator that is yet to be fitted."""

    name: str
    why: str
    model: Any

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


def choose_model(
    data: Comparisons,
    *,
    relations: Mapping[str, Any] | None = None,
    user_features: Any = None,
    user_relations: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Choice:
    """The model that suits what there is to learn from, with settings that suit it too.

    data : comparisons, or a file or data frame of them.
    relations, user_features, user_relations : as they will be given to `fit`, or None.
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
    name, why = choose(Material(data, None, relations, user_features, user_relations))
    return Choice(name, why, build(name, data, settings))


def choose(material: Material) -> tuple[str, str]:
    """The short name of the model that suits, and why."""
    data = material.data
    if material.relations:
        return "gp", "there are relations between items, and this model uses them"
    if data.user is None:
        return "gp", "nothing says who made which comparison, so everybody is taken together"
    if data.n_users == 1:
        return "gp", "there is one person"
    if material.user_features is not None:
        return "multi-user", "people are described by features"
    if material.user_relations:
        return "multi-user", "there are relations between people, and this model uses them"
    made = float(np.median(np.bincount(data.user, data.count)))
    said = f"{data.n_users:,} people made about {made:.0f} comparisons each"
    if made < FEW_ANSWERS:
        return "gp", f"{said}, too few to tell them apart"
    if data.n_users < FEW_PEOPLE:
        return "multi-user", f"{data.n_users} people are too few to fall into communities"
    each = f"{said} between {data.n_items:,} items"
    if made >= MANY_ANSWERS * data.n_items:
        return "multi-user", f"{each}, enough to know every person"
    return "community", f"{each}, enough to know groups of people"
