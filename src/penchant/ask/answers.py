"""Answers as they come in, and a fitted estimator's way back to before them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from penchant.ask.rules import Rules
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import IntArray

UNDO_DEPTH = 50
"""How many `tell`s can be taken back; each keeps its posterior in memory until then."""


def as_answers(data: Comparisons, more: Comparisons | Iterable[tuple[Any, Any]]) -> Comparisons:
    """New answers over the items of `data`: comparisons, or (winner, loser) pairs.

    Answers by named users join pooled data without their names.

    >>> data = Comparisons.from_pairs(["tea"], ["milk"], items=["tea", "milk", "water"])
    >>> as_answers(data, [("water", "tea")]).winner.tolist()
    [2]
    """
    if not isinstance(more, Comparisons):
        index = data.pair_index(more)
        names = [[data.items[i] for i in column] for column in index.T]
        return Comparisons.from_pairs(*names, items=data.items)
    if data.user is None and more.user is not None:
        more = more.pooled()
    return Comparisons.from_pairs(
        [more.items[i] for i in more.winner],
        [more.items[i] for i in more.loser],
        user=None if more.user is None else [more.users[i] for i in more.user],
        tie=more.tie,
        count=more.count,
        margin=more.margin,
        items=data.items,
    )


def remember(estimator: Any) -> None:
    """Keep what the estimator has learned, so that `restore` can bring it back exactly.

    Learned attributes are never changed in place, so keeping them is keeping references.
    """
    learned = {name: value for name, value in vars(estimator).items() if name.endswith("_")}
    estimator._told = (*getattr(estimator, "_told", ()), learned)[-UNDO_DEPTH:]


def restore(estimator: Any) -> None:
    """Put the estimator back to before its last `tell`."""
    told = getattr(estimator, "_told", ())
    if not told:
        raise DataError(
            f"{type(estimator).__name__}: there is no tell to undo (a fit or a load forgets them, "
            f"and at most {UNDO_DEPTH} are kept)"
        )
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)
    for name, value in told[-1].items():
        setattr(estimator, name, value)
    estimator._told = told[:-1]


def rng_for(random_state: RandomState, data: Comparisons) -> np.random.Generator:
    """A generator for the next question: with a seed, the same until an answer comes in.

    >>> data = Comparisons.from_pairs([0], [1])
    >>> bool(rng_for(3, data).random() == rng_for(3, data).random())
    True
    """
    if isinstance(random_state, int | np.integer):
        return np.random.default_rng([int(random_state), data.n_comparisons])
    return as_rng(random_state)


def without_last(rules: Rules | None, data: Comparisons, told: IntArray) -> Rules:
    """The rules, with the pairs (k, 2) told last to be avoided too."""
    rules = rules or Rules()
    last = tuple((data.items[a], data.items[b]) for a, b in told)
    return replace(rules, avoid=rules.avoid + last)
