"""Rankings and scores as comparisons: every pair within a ranking or a group."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.data.coding import code_strictly, read_numbers
from penchant.data.names import Names, as_column
from penchant.data.table import Table
from penchant.errors import DataError
from penchant.numerics.types import BoolArray, IntArray


class Rankings(NamedTuple):
    """Comparisons from rankings: one entry per pair, and the ranking that it came from."""

    winner: IntArray
    loser: IntArray
    tie: BoolArray
    ranking: IntArray
    items: Names


def expand_rankings(
    rankings: Sequence[Iterable[Any]] | NDArray[Any], items: Iterable[Any] | None = None
) -> Rankings:
    """Return all pairs within each ranking (best first; a list, tuple or set inside is tied).

    >>> pairs = expand_rankings([["a", ("b", "c")]])
    >>> pairs.winner.tolist(), pairs.loser.tolist(), pairs.items
    ([0, 0, 1], [1, 2, 2], ('a', 'b', 'c'))
    >>> pairs.tie.tolist()
    [False, False, True]
    """
    flat: Any
    if isinstance(rankings, np.ndarray) and rankings.ndim == 2:
        size = np.full(len(rankings), rankings.shape[1], dtype=np.intp)
        flat, place = rankings.ravel(), np.tile(np.arange(rankings.shape[1]), len(rankings))
    else:
        parts = [_flatten(ranking, number) for number, ranking in enumerate(rankings)]
        size = np.array([len(names) for names, _ in parts], dtype=np.intp)
        flat = [name for names, _ in parts for name in names]
        place = np.array([p for _, places in parts for p in places], dtype=np.intp)
    end = np.cumsum(size)
    codes, names = code_strictly(
        flat, items, "items", lambda i: f"ranking {np.searchsorted(end, i, side='right')}"
    )
    ranking, first, second = _all_pairs(size)
    _refuse_repeats(ranking, codes[first], codes[second], names)
    if not len(first):
        raise DataError(
            "the rankings hold no pair of items: at least one must rank two items or more"
        )
    return Rankings(codes[first], codes[second], place[first] == place[second], ranking, names)


def merge_rankings(
    rankings: Iterable[Iterable[Any]], users: Iterable[Any] | None, items: Iterable[Any] | None
) -> tuple[Table, Names, Names]:
    """Return the distinct comparisons in the rankings, the items and the users."""
    rankings = rankings if isinstance(rankings, np.ndarray) else list(rankings)
    pairs = expand_rankings(rankings, items)
    count = np.ones(len(pairs.winner), dtype=np.intp)
    rows = Table(pairs.winner, pairs.loser, count, None, pairs.tie, None)
    if users is None:
        return rows.merge(), pairs.items, ()
    who = as_column(users, "users")
    if len(who) != len(rankings):
        raise DataError(
            f"users has {len(who)} entries for {len(rankings)} rankings: it must name the one "
            "person who made each ranking"
        )
    code, names = code_strictly(who, None, "users", lambda i: f"users[{i}]")
    return replace(rows, user=code[pairs.ranking]).merge(), pairs.items, names


def _flatten(ranking: Iterable[Any], number: int) -> tuple[list[Any], list[int]]:
    if isinstance(ranking, str | bytes) or not isinstance(ranking, Iterable):
        raise DataError(
            f"ranking {number} is {ranking!r}: a ranking must be a sequence of items, best first"
        )
    names: list[Any] = []
    places: list[int] = []
    for place, entry in enumerate(ranking):
        tied = list(_members(entry))
        names += tied
        places += [place] * len(tied)
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
    _, first, second = _all_pairs(np.bincount(group))
    if not len(first):
        raise DataError("no group holds two scores: a comparison needs two items")
    first, second = order[first], order[second]
    swap = values[second] > values[first]
    winner, loser = np.where(swap, second, first), np.where(swap, first, second)
    margin = values[winner] - values[loser]
    count = np.ones(len(winner), dtype=np.intp)
    rows = Table(winner, loser, count, None, margin == 0, margin)
    return rows.merge(), tuple(range(len(values)))


def _all_pairs(size: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return (block, i, j) with i < j for all pairs of positions within consecutive blocks."""
    start = np.cumsum(size) - size
    parts = list(_pairs_by_size(size, start))
    if not parts:
        empty = np.empty(0, dtype=np.intp)
        return empty, empty, empty
    block, first, second = (np.concatenate(part) for part in zip(*parts, strict=True))
    return block, first, second


def _pairs_by_size(size: IntArray, start: IntArray) -> Iterator[tuple[NDArray[np.intp], ...]]:
    for n in np.unique(size[size > 1]):  # blocks of one size share their pattern of pairs
        blocks = np.flatnonzero(size == n)
        i, j = np.triu_indices(n, 1)
        yield (
            np.repeat(blocks, len(i)),
            (start[blocks, None] + i).ravel(),
            (start[blocks, None] + j).ravel(),
        )
