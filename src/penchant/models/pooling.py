"""Answers of people whose names a pooled model keeps: so that it knows which go together."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from penchant.ask import as_answers
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import (
    UNNAMED,
    Answered,
    Edges,
    ItemProblem,
    Learned,
    PathProblem,
    edges_of,
    foreseen,
)
from penchant.models.time import faded_counts
from penchant.numerics.types import IntArray

FURTHER = ("tie", "margin", "first", "time", "covariates", "both_bad")

Answers = Comparisons | Iterable[tuple[Any, Any]]


def answers_to_pool(data: Comparisons, more: Answers, user: Any) -> Comparisons:
    """New answers for a pooled model: without a name they are nobody's."""
    return as_answers(data, more, UNNAMED if _is_unnamed(data, more, user) else user)


def answers_in_pool(data: Comparisons, more: Answers, user: Any, any_person: bool) -> Comparisons:
    """Answers to be taken out of a pool, with their givers.

    Without a name they are nobody's if such are there, else those of the first who gave them.
    any_person: whether it is no matter whose they are.
    """
    if not _is_unnamed(data, more, user):
        return as_answers(data, more, user)
    pooled = data.pooled()
    taken = as_answers(pooled, more)
    pooled.without(taken)  # all of them must be there, whosever they are
    count = np.zeros_like(data.count)
    for row in range(len(taken)):
        rows = _same(data, taken, row)
        if len(rows) > 1 and not any_person:
            raise DataError(
                f"{len(rows)} people gave the answer {taken.items[taken.winner[row]]!r} over "
                f"{taken.items[taken.loser[row]]!r}, and how reliable each is depends on whose is "
                "taken back: give user=…"
            )
        before = np.cumsum(data.count[rows]) - data.count[rows]
        count[rows] = np.clip(taken.count[row] - before, 0, data.count[rows])
    return data._with_count(count)


def foreseen_in_pool(
    learned: Learned[Any], problem: ItemProblem | PathProblem, half_life: float | None
) -> Answered:
    """Every answer to a pair with its giver, and what the other answers say of it.

    problem: of the comparisons that were learned from.
    """
    data, edges = learned.data.single_pairs(), problem.edges
    edge = np.arange(len(data))  # paths have an edge a row
    if isinstance(edges, Edges):
        edge = edges_of(data, edge, edges)
    seen = foreseen(problem, learned.hyper, learned.sites, personal=False)
    givers, times = np.asarray(data.user), faded_counts(data, half_life)
    outcomes = edges.outcomes.part(edge)
    return Answered(givers, seen.mean[edge], seen.var[edge], outcomes, times, data.n_users)


def _is_unnamed(data: Comparisons, more: Answers, user: Any) -> bool:
    """Whether the pool has names and these answers have none."""
    named = isinstance(more, Comparisons) and more.user is not None
    return data.user is not None and user is None and not named


def _same(data: Comparisons, taken: Comparisons, row: int) -> IntArray:
    """The rows that say what one of `taken` says, those without a name first."""
    same = (data.winner == taken.winner[row]) & (data.loser == taken.loser[row])
    for name in FURTHER:
        mine, theirs = getattr(data, name), getattr(taken, name)
        if mine is not None:
            equal = mine == (0 if theirs is None else theirs[row])  # untold: of no side, not bad
            same &= equal if equal.ndim == 1 else equal.all(axis=1)
    nobody = data.user == (data.users.index(UNNAMED) if UNNAMED in data.users else -1)
    return np.concatenate([np.flatnonzero(same & nobody), np.flatnonzero(same & ~nobody)])
