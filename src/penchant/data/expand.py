"""Rankings, choices and scores as comparisons."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.data.coding import code_strictly, read_numbers
from penchant.data.names import Names, as_column, python_scalar
from penchant.data.rankings import Rankings, all_pairs
from penchant.data.table import Table
from penchant.errors import DataError
from penchant.numerics.types import IntArray


class Given(NamedTuple):
    """What was said about several items at once, before it is merged.

    names, place: the items of all orders, one order after the other, and where each stands.
    size: (r,) how many items each order holds.
    """

    names: Any
    place: IntArray
    size: IntArray

    @classmethod
    def of(cls, rankings: Sequence[Iterable[Any]] | NDArray[Any]) -> "Given":
        """From rankings, best first; a list, tuple or set inside is one place."""
        if isinstance(rankings, np.ndarray) and rankings.ndim == 2:
            n, k = rankings.shape
            return cls(rankings.ravel(), np.tile(np.arange(k), n), np.full(n, k, dtype=np.intp))
        parts = [_flatten(ranking, number) for number, ranking in enumerate(rankings)]
        place = np.array([p for _, places in parts for p in places], dtype=np.intp)
        size = np.array([len(names) for names, _ in parts], dtype=np.intp)
        return cls([name for names, _ in parts for name in names], place, size)


class Orders(NamedTuple):
    """Rankings as data: single pairs, and what is said of three items or more at once."""

    pairs: Table
    rankings: Rankings | None
    items: Names
    users: Names


def merge_rankings(
    rankings: Iterable[Iterable[Any]],
    users: Iterable[Any] | None,
    items: Iterable[Any] | None,
    *,
    count: IntArray | None = None,
    tied: bool | Sequence[bool] = True,
) -> Orders:
    """Return the distinct orders in the rankings; one of two items is a pair.

    count: (r,) how often each was given. tied: whether items of one place were said to be equal,
    in all or in each; else they were not compared.

    >>> orders = merge_rankings([["a", ("b", "c")], ["c", "a"]], None, None)
    >>> orders.pairs.winner.tolist(), orders.rankings.item.tolist(), orders.rankings.place.tolist()
    ([2], [0, 1, 2], [0, 1, 1])
    """
    rankings = rankings if isinstance(rankings, np.ndarray) else list(rankings)
    given = Given.of(rankings)
    start = np.append(0, np.cumsum(given.size))
    codes, names = code_strictly(
        given.names,
        items,
        "items",
        lambda i: f"ranking {np.searchsorted(start[1:], i, side='right')}",
    )
    order, first, second = all_pairs(given.size)
    _refuse_repeats(order, codes[first], codes[second], names)
    equal = np.broadcast_to(np.asarray(tied, dtype=bool), given.size.shape)
    tie = given.place[first] == given.place[second]
    if not (~tie | equal[order]).any():
        raise DataError(
            "the rankings hold no pair of items: at least one must rank two items or more"
        )
    who, known = _who(users, len(rankings))
    n = np.ones(len(given.size), dtype=np.intp) if count is None else count
    everything = Rankings(codes, given.place, start, n, who, equal)
    last = np.zeros(len(given.size), dtype=np.intp)
    np.maximum.at(last, np.repeat(np.arange(len(last)), given.size), given.place)
    is_order = (given.size > 2) & (last > 0)
    small, whole = everything.take(~is_order), everything.take(is_order)
    pairs = _no_rows(who) if small is None else small.pairs()
    return Orders(pairs, None if whole is None else whole.merge(), names, known)


def merge_choices(
    chosen: Iterable[Any] | None,
    worst: Iterable[Any] | None,
    sets: Iterable[Iterable[Any]],
    user: Iterable[Any] | None,
    items: Iterable[Any] | None,
) -> Orders:
    """Return the orders behind choices: what was taken, the others, what was put last."""
    shown = [list(_members_of_set(s, number)) for number, s in enumerate(sets)]
    best = _taken(chosen, shown, "chosen")
    last = _taken(worst, shown, "worst")
    if chosen is None and worst is None:
        raise DataError("a choice needs what was chosen: give chosen=, worst= or both")
    rankings = []
    for number, (first, names, final) in enumerate(zip(best, shown, last, strict=True)):
        ends = [*first, *final]
        twice = [name for name in first if name in final]
        if twice:
            raise DataError(f"choice {number} has {twice[0]!r} both as the best and as the worst")
        others = [name for name in names if name not in ends]
        places = [place for place in (first, others, final) if place]
        if len(places) < 2:
            raise DataError(
                f"choice {number} takes {first or final!r} out of {names!r}: something must be "
                "left that was not taken; drop the choice or name the whole set"
            )
        rankings.append(places)
    return merge_rankings(rankings, user, items, tied=False)


def _taken(taken: Iterable[Any] | None, shown: list[list[Any]], what: str) -> list[list[Any]]:
    """What was taken in each choice; none where that is not told."""
    if taken is None:
        return [[] for _ in shown]
    given = [list(map(python_scalar, _members(entry))) for entry in as_column(taken, what)]
    if len(given) != len(shown):
        raise DataError(
            f"{what} has {len(given)} entries for {len(shown)} sets: it must name what was taken "
            "of each set"
        )
    for number, (names, those) in enumerate(zip(shown, given, strict=True)):
        for name in those:
            if name not in names:
                raise DataError(
                    f"{what}[{number}] is {name!r}, which is not in its set {names!r}: a set must "
                    "name everything that was shown, with what was taken"
                )
    return given


def _members_of_set(shown: Any, number: int) -> Iterable[Any]:
    if isinstance(shown, str | bytes) or not isinstance(shown, Iterable):
        raise DataError(f"sets[{number}] is {shown!r}: it must hold the items that were shown")
    return map(python_scalar, shown)


def _who(users: Iterable[Any] | None, n: int) -> tuple[IntArray | None, Names]:
    if users is None:
        return None, ()
    who = as_column(users, "users")
    if len(who) != n:
        raise DataError(
            f"users has {len(who)} entries for {n} rankings: it must name the one "
            "person who made each ranking"
        )
    return code_strictly(who, None, "users", lambda i: f"users[{i}]")


def _no_rows(user: IntArray | None) -> Table:
    none = np.empty(0, dtype=np.intp)
    return Table(none, none, none, None if user is None else none, none.astype(bool), None)


def _flatten(ranking: Iterable[Any], number: int) -> tuple[list[Any], list[int]]:
    if isinstance(ranking, str | bytes) or not isinstance(ranking, Iterable):
        raise DataError(
            f"ranking {number} is {ranking!r}: a ranking must be a sequence of items, best first"
        )
    names: list[Any] = []
    places: list[int] = []
    place = 0
    for entry in ranking:
        tied = list(_members(entry))
        names += tied
        places += [place] * len(tied)
        place += bool(tied)
    return names, places


def _members(entry: Any) -> Sequence[Any]:
    return list(entry) if isinstance(entry, list | tuple | set | frozenset) else [entry]


def _refuse_repeats(ranking: IntArray, first: IntArray, second: IntArray, names: Names) -> None:
    repeated = np.flatnonzero(first == second)
    if len(repeated):
        where = repeated[0]
        raise DataError(
            f"ranking {ranking[where]} names {names[first[where]]!r} more than once: an item can "
            "have one place only; drop the repetition"
        )


def merge_scores(scores: Iterable[float], groups: Iterable[Any] | None) -> tuple[Table, Names]:
    """Return the comparisons between all scores of a group, and the items 0 … n−1."""
    given = as_column(scores, "scores")
    values = read_numbers(given)
    if not np.isfinite(values).all():
        where = int(np.flatnonzero(~np.isfinite(values))[0])
        raise DataError(
            f"scores[{where}] is {given[where]!r}: every score must be a finite number; drop the "
            "item or give it a score"
        )
    group = np.zeros(len(values), dtype=np.intp)
    if groups is not None:
        column = as_column(groups, "groups")
        if len(column) != len(values):
            raise DataError(
                f"groups has {len(column)} entries for {len(values)} scores: it must name the "
                "group of each score"
            )
        group, _ = code_strictly(column, None, "groups", lambda i: f"groups[{i}]")
    order = np.argsort(group, kind="stable")
    _, first, second = all_pairs(np.bincount(group))
    if not len(first):
        raise DataError("no group holds two scores: a comparison needs two items")
    first, second = order[first], order[second]
    swap = values[second] > values[first]
    winner, loser = np.where(swap, second, first), np.where(swap, first, second)
    margin = values[winner] - values[loser]
    count = np.ones(len(winner), dtype=np.intp)
    rows = Table(winner, loser, count, None, margin == 0, margin)
    return rows.merge(), tuple(range(len(values)))
