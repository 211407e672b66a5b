"""New answers as comparisons over a model's items and users."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from penchant.ask.choose import Rules
from penchant.data import Comparisons, merge_rankings
from penchant.errors import DataError
from penchant.gp import UNNAMED
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import IntArray


def as_answers(
    data: Comparisons, more: Comparisons | Iterable[tuple[Any, Any]], user: Any = None
) -> Comparisons:
    """New answers over the items of `data`: comparisons, or (winner, loser) pairs.

    Pairs are taken as made without an order and at equal covariates.

    user : who gave them, a name or an index, where `more` does not say. Data without users drop the
        users of `more`.

    >>> data = Comparisons.from_pairs(["tea"], ["milk"], items=["tea", "milk", "water"])
    >>> as_answers(data, [("water", "tea")]).winner.tolist()
    [2]
    """
    if isinstance(more, Comparisons) and more.rankings is not None:
        return _with_rankings(data, more, user)
    if isinstance(more, Comparisons):
        columns: dict[str, Any] = {
            "tie": more.tie_words,
            "count": more.count,
            "margin": more.margin,
            "first": more.first,
            "time": more.time,
        }
        if more.covariates is not None:
            names = more.covariate_names
            columns["covariates"] = dict(zip(names, more.covariates.T, strict=True))
        winner, loser = ([more.items[i] for i in column] for column in (more.winner, more.loser))
    else:
        columns, names = {}, data.covariate_names
        winner, loser = ([data.items[i] for i in column] for column in data.pair_index(more).T)
        if names:
            columns["covariates"] = {name: np.zeros(len(winner)) for name in names}
    givers = _users(data, more, user, len(winner))
    return Comparisons.from_pairs(winner, loser, user=givers, items=data.items, **columns)


def _with_rankings(data: Comparisons, more: Comparisons, user: Any) -> Comparisons:
    """The single pairs and the rankings of `more`, over the items of `data`."""
    rankings = [
        (places, giver, count, tied)
        for tied in (True, False)
        for places, giver, count in more.named_rankings(tied)
    ]
    places, givers, count, tied = (list(column) for column in zip(*rankings, strict=True))
    users = _users(data, more, user, len(rankings))
    if users is not None and more.user is not None:
        users = givers
    merged = merge_rankings(
        places, users, data.items, count=np.array(count, dtype=np.intp), tied=tied
    )
    answers = Comparisons.from_table(*merged)
    single = more.single_pairs()
    return as_answers(data, single, user) + answers if len(single) else answers


def _users(data: Comparisons, more: Any, user: Any, n_rows: int) -> list[Any] | None:
    """Who gave each answer, by name; None where the data have no users."""
    if data.user is None:
        if user is not None:
            raise DataError(
                f"user={user!r}: the comparisons so far have no users, so the name would be lost: "
                "leave it out, or fit on comparisons with users"
            )
        return None
    if isinstance(more, Comparisons) and more.user is not None:
        return [more.users[i] for i in more.user]
    if user is None:
        raise DataError(
            "these answers do not say who gave them, and the model tells users apart: give "
            "user=…, or comparisons with a user for each"
        )
    try:
        index = data.user_index(user)
    except DataError:  # a name that is not known yet is somebody new
        return [user] * n_rows
    return [data.users[_single(index, user)]] * n_rows


def one_user(data: Comparisons, user: Any) -> int:
    """The index of a single user, given by name or index.

    >>> data = Comparisons.from_pairs(["tea", "milk"], ["milk", "tea"], user=["ann", "bob"])
    >>> one_user(data, "bob")
    1
    """
    return _single(data.user_index(user), user)


def _single(index: int | IntArray, user: Any) -> int:
    if np.ndim(index):
        raise DataError(f"user={user!r}: it must be one user, by name or index")
    return int(index)


def rng_for(random_state: RandomState, data: Comparisons) -> np.random.Generator:
    """The generator for the next question: with a seed, it changes with every answer.

    >>> data = Comparisons.from_pairs([0], [1])
    >>> bool(rng_for(3, data).random() == rng_for(3, data).random())
    True
    """
    if isinstance(random_state, int | np.integer):
        return np.random.default_rng([int(random_state), data.n_comparisons])
    return as_rng(random_state)


def without_last(rules: Rules | None, data: Comparisons, told: IntArray) -> Rules:
    """The rules, which also avoid the pairs (k, 2) that were answered last.

    >>> data = Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> len(without_last(None, data, np.array([[0, 1]])).avoid)
    1
    """
    rules = rules or Rules()
    last = tuple((data.items[a], data.items[b]) for a, b in told)
    return replace(rules, avoid=rules.avoid + last)


def is_unnamed(data: Comparisons, more: Any, user: Any) -> bool:
    """Whether the comparisons have users and these answers to them have none."""
    named = isinstance(more, Comparisons) and more.user is not None
    return data.user is not None and user is None and not named


def answers_in_pool(
    data: Comparisons,
    more: Comparisons | Iterable[tuple[Any, Any]],
    user: Any,
    any_person: bool,
) -> Comparisons:
    """Answers to withdraw from a pool, with their users.

    Answers without a user are matched to answers without one first, then to the first user who
    gave them. any_person: whether it does not matter whose they are.
    """
    if not is_unnamed(data, more, user):
        return as_answers(data, more, user)
    pooled = data.pooled()
    taken = as_answers(pooled, more)
    pooled.without(taken)  # all of them must be there, whoever gave them
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


def _same(data: Comparisons, taken: Comparisons, row: int) -> IntArray:
    """The rows equal to one row of `taken`, those without a user first."""
    same = (data.winner == taken.winner[row]) & (data.loser == taken.loser[row])
    for name in ("tie", "margin", "first", "time", "covariates", "both_bad"):
        mine, theirs = getattr(data, name), getattr(taken, name)
        if mine is not None:
            equal = mine == (0 if theirs is None else theirs[row])  # not given: of no side, not bad
            same &= equal if equal.ndim == 1 else equal.all(axis=1)
    nobody = data.user == (data.users.index(UNNAMED) if UNNAMED in data.users else -1)
    return np.concatenate([np.flatnonzero(same & nobody), np.flatnonzero(same & ~nobody)])
