"""Rankings and choices as whole answers: an order of places, each with one or several items.

A full ranking has one item in every place. The best of k is one item before the others, the worst
of k is the others before one item, and best–worst is one item, the others, one item. A place with
several items is a choice of all of them at once. `gp.rows` splits an order into its choices, one
for every place but the last.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.data.build import code_strictly, read_numbers
from penchant.data.names import Names, as_column, python_scalar
from penchant.data.table import ArrayRecord, Table, count_left
from penchant.errors import DataError
from penchant.numerics.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class ChoiceStages:
    """Choices of one size: of the k items, those marked were taken first.

    item: (G, k) ascending; chosen: (G, k); count: (G,); user: (G,) or None.
    """

    item: IntArray
    chosen: BoolArray
    count: IntArray
    user: IntArray | None


@dataclass(frozen=True, eq=False)
class Rankings(ArrayRecord):
    """Distinct orders of three items or more, each with the number of times it was given.

    item, place: (N,) the items of all orders, one order after the other, best first; place counts
    from 0 in each. start: (r + 1,) where each order begins. count: (r,). user: (r,) or None.
    tied: (r,) whether items of one place were said to be equal; else they were not compared.
    """

    item: IntArray
    place: IntArray
    start: IntArray
    count: IntArray
    user: IntArray | None
    tied: BoolArray

    def __len__(self) -> int:
        return len(self.count)

    @property
    def size(self) -> IntArray:
        """(r,) how many items each order holds."""
        return np.diff(self.start)

    def merge(self) -> "Rankings":
        """Merge equal orders, adding their counts, and sort them by content."""
        size, parts = self.size, []
        for k in np.unique(size):
            rows = np.flatnonzero(size == k)
            item, place = self._of_size(rows, int(k))
            order = np.lexsort((item, place), axis=1)
            item, place = (np.take_along_axis(a, order, axis=1) for a in (item, place))
            who = np.zeros(len(rows), dtype=np.intp) if self.user is None else self.user[rows]
            said = np.column_stack([who, item, place, self.tied[rows]])
            distinct, count = _added_up(said, self.count[rows])
            parts.append(_of_rows(distinct, count, int(k), self.user is None))
        return _concatenated(parts) if parts else self

    def _of_size(self, rows: IntArray, k: int) -> tuple[IntArray, IntArray]:
        """(len(rows), k) items and places of orders of k items."""
        where = self.start[rows, None] + np.arange(k)
        return self.item[where], self.place[where]

    def take(self, rows: IntArray | BoolArray) -> "Rankings | None":
        """Return some of the orders, or None where none is selected."""
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows
        if not len(rows):
            return None
        size = self.size[rows]
        start = np.append(0, np.cumsum(size))
        where = np.repeat(self.start[rows] - start[:-1], size) + np.arange(start[-1])
        user = None if self.user is None else self.user[rows]
        count, tied = self.count[rows], self.tied[rows]
        return Rankings(self.item[where], self.place[where], start, count, user, tied)

    def with_count(self, count: IntArray) -> "Rankings | None":
        """Return the orders with other counts, without those of count 0."""
        return replace(self, count=count).take(count > 0)

    def recoded(self, item_code: IntArray, user_code: IntArray) -> "Rankings":
        """Return the same orders with other codes of items and users."""
        user = None if self.user is None else user_code[self.user]
        return replace(self, item=item_code[self.item], user=user)

    def locate(self, others: "Rankings") -> IntArray:
        """Return for each of `others` the equal order here, or −1."""
        known = {key: row for row, key in enumerate(self._keys())}
        return np.array([known.get(key, -1) for key in others._keys()], dtype=np.intp)

    def _keys(self) -> Iterator[tuple[int, bool, bytes, bytes]]:
        for row in range(len(self)):
            where = slice(self.start[row], self.start[row + 1])
            who = -1 if self.user is None else int(self.user[row])
            said = self.item[where].tobytes(), self.place[where].tobytes()
            yield who, bool(self.tied[row]), *said

    def named(
        self, items: Names, users: Names, tied: bool
    ) -> list[tuple[list[list[Any]], Any, int]]:
        """Return places, user and count of the orders with `tied` as given, by name."""
        found = []
        for row in np.flatnonzero(self.tied == tied):
            where = slice(self.start[row], self.start[row + 1])
            places: list[list[Any]] = [[] for _ in range(self.place[where][-1] + 1)]
            for item, place in zip(self.item[where], self.place[where], strict=True):
                places[place].append(items[item])
            who = None if self.user is None else users[self.user[row]]
            found.append((places, who, int(self.count[row])))
        return found

    def pairs(self) -> Table:
        """Return all pairs of items of different places, and of equal places where tied."""
        order, first, second = all_pairs(self.size)
        tie = self.place[first] == self.place[second]
        told = ~tie | self.tied[order]
        order, first, second, tie = (a[told] for a in (order, first, second, tie))
        user = None if self.user is None else self.user[order]
        winner, loser = self.item[first], self.item[second]
        return Table(winner, loser, self.count[order], user, tie, None).merge()

    def stages(self) -> list[ChoiceStages]:
        """Return the choices of the orders: each place out of itself and all later places.

        Equal choices are merged; there is one entry for each size of set and number chosen.
        """
        found: dict[tuple[int, int], list[IntArray]] = {}
        for k in np.unique(self.size):
            rows = np.flatnonzero(self.size == k)
            item, place = self._of_size(rows, int(k))
            for at in range(int(place.max(initial=0))):
                left = place >= at
                shape = np.stack([left.sum(axis=1), (place == at).sum(axis=1)], axis=1)
                # the last place of an order is no choice: nothing else is left
                for n, t in np.unique(shape[shape[:, 0] > shape[:, 1]], axis=0):
                    some = np.flatnonzero((shape == (n, t)).all(axis=1))
                    kept = left[some]
                    names = item[some][kept].reshape(-1, n)
                    chosen = (place[some] == at)[kept].reshape(-1, n)
                    by_item = np.argsort(names, axis=1)
                    who = np.zeros(len(some)) if self.user is None else self.user[rows[some]]
                    parts = (np.take_along_axis(a, by_item, axis=1) for a in (names, chosen))
                    columns = [who, *parts, self.count[rows[some]]]
                    found.setdefault((n, t), []).append(np.column_stack(columns).astype(np.intp))
        return [
            _stages(np.concatenate(said), n, self.user is None)
            for (n, _), said in sorted(found.items())
        ]


def _added_up(rows: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct rows, and the sum of the counts of each."""
    distinct, same = np.unique(rows, axis=0, return_inverse=True)
    total = np.zeros(len(distinct), dtype=np.intp)
    np.add.at(total, same.ravel(), count)
    return distinct, total


def _stages(said: IntArray, k: int, is_pooled: bool) -> ChoiceStages:
    """Rows of user, k items, k marks and a count, merged."""
    distinct, count = _added_up(said[:, :-1], said[:, -1])
    item, chosen = distinct[:, 1 : k + 1], distinct[:, k + 1 :].astype(bool)
    return ChoiceStages(item, chosen, count, None if is_pooled else distinct[:, 0])


def _of_rows(said: IntArray, count: IntArray, k: int, is_pooled: bool) -> Rankings:
    item, place = said[:, 1 : k + 1].ravel(), said[:, k + 1 : 2 * k + 1].ravel()
    start = np.arange(0, k * len(said) + 1, k)
    user, tied = None if is_pooled else said[:, 0].copy(), said[:, -1].astype(bool)
    return Rankings(item, place, start, count, user, tied)


def _concatenated(parts: "list[Rankings]") -> Rankings:
    size = np.concatenate([part.size for part in parts])
    item, place, count, tied = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("item", "place", "count", "tied")
    )
    users = [part.user for part in parts if part.user is not None]
    user = np.concatenate(users) if users else None
    return Rankings(item, place, np.append(0, np.cumsum(size)), count, user, tied)


def joined_rankings(one: Rankings | None, two: Rankings | None) -> Rankings | None:
    """Return both together, merged."""
    parts = [part for part in (one, two) if part is not None]
    if len({part.user is None for part in parts}) > 1:
        raise DataError(
            "only one of the two sets of comparisons has a user for its rankings: both or neither "
            "must; build both alike, or drop users with pooled()"
        )
    return _concatenated(parts).merge() if parts else None


def without_rankings(
    orders: Rankings | None, answers: Rankings | None, items: Names
) -> Rankings | None:
    """Return the orders with `answers` taken back; the names are for messages."""
    if answers is None:
        return orders
    others = answers.merge()

    def in_words(row: int) -> str:
        where = slice(others.start[row], others.start[row + 1])
        return f"the ranking or choice of {[items[i] for i in others.item[where]]!r}"

    count = np.zeros(0, dtype=np.intp) if orders is None else orders.count
    at = np.full(len(others), -1) if orders is None else orders.locate(others)
    left = count_left(count, at, others.count, in_words, "whole and by the same user")
    return None if orders is None else orders.with_count(left)


def all_pairs(size: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return (block, i, j) with i < j for all pairs of positions within consecutive blocks."""
    start = np.cumsum(size) - size
    parts = [(np.empty(0, dtype=np.intp),) * 3]
    for n in np.unique(size[size > 1]):  # blocks of one size share their pattern of pairs
        blocks = np.flatnonzero(size == n)
        i, j = ((start[blocks, None] + position).ravel() for position in np.triu_indices(n, 1))
        parts.append((np.repeat(blocks, n * (n - 1) // 2), i, j))
    block, first, second = map(np.concatenate, zip(*parts, strict=True))
    return block, first, second


class Orders(NamedTuple):
    """Single pairs, orders of three items or more, and names: the arguments of
    `Comparisons.from_table`."""

    pairs: Table
    items: Names
    users: Names
    rankings: Rankings | None


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
    listed, place, size = _listed(rankings)
    start = np.append(0, np.cumsum(size))
    numbers = np.repeat(np.arange(len(size)), size)
    codes, names = code_strictly(listed, items, "items", lambda i: f"ranking {numbers[i]}")
    order, first, second = all_pairs(size)
    for pair in np.flatnonzero(codes[first] == codes[second])[:1]:
        raise DataError(
            f"ranking {order[pair]} names {names[codes[first[pair]]]!r} more than once: an item "
            "can have one place only; drop the repetition"
        )
    equal = np.broadcast_to(np.asarray(tied, dtype=bool), size.shape)
    tie = place[first] == place[second]
    told = ~tie | equal[order]
    if not told.any():
        raise DataError(
            "the rankings hold no pair of items: at least one must rank two items or more"
        )
    who, known = _who(users, len(rankings))
    n = np.ones(len(size), dtype=np.intp) if count is None else count
    last = np.zeros(len(size), dtype=np.intp)
    np.maximum.at(last, numbers, place)
    is_order = (size > 2) & (last > 0)
    whole = Rankings(codes, place, start, n, who, equal).take(is_order)
    single = told & ~is_order[order]
    order, first, second, tie = (a[single] for a in (order, first, second, tie))
    user = None if who is None else who[order]
    pairs = Table(codes[first], codes[second], n[order], user, tie, None).merge()
    return Orders(pairs, names, known, None if whole is None else whole.merge())


def merge_choices(
    chosen: Iterable[Any] | None,
    worst: Iterable[Any] | None,
    sets: Iterable[Iterable[Any]],
    user: Iterable[Any] | None,
    items: Iterable[Any] | None,
) -> Orders:
    """Return choices as orders: the chosen items, the others, the worst items."""
    shown = []
    for number, names in enumerate(sets):
        _refuse_no_list(names, f"sets[{number}]", "it must hold the items that were shown")
        shown.append(list(map(python_scalar, names)))
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
    """Return the items taken in each choice; empty lists where `taken` is None."""
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


def _listed(rankings: Sequence[Iterable[Any]] | NDArray[Any]) -> tuple[Any, IntArray, IntArray]:
    """Return the items of all rankings in one list, their places, and (r,) sizes."""
    if isinstance(rankings, np.ndarray) and rankings.ndim == 2:
        n, k = rankings.shape
        return rankings.ravel(), np.tile(np.arange(k), n), np.full(n, k, dtype=np.intp)
    names: list[Any] = []
    place: list[int] = []
    start = [0]
    for number, ranking in enumerate(rankings):
        must = "a ranking must be a sequence of items, best first"
        _refuse_no_list(ranking, f"ranking {number}", must)
        groups = [tied for entry in ranking if (tied := _members(entry))]
        names += [name for tied in groups for name in tied]
        place += [where for where, tied in enumerate(groups) for _ in tied]
        start.append(len(names))
    return names, np.array(place, dtype=np.intp), np.diff(start).astype(np.intp)


def _refuse_no_list(value: Any, name: str, must: str) -> None:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise DataError(f"{name} is {value!r}: {must}")


def _members(entry: Any) -> Sequence[Any]:
    return list(entry) if isinstance(entry, list | tuple | set | frozenset) else [entry]


def merge_scores(scores: Iterable[float], groups: Iterable[Any] | None) -> Orders:
    """Return the comparisons between all scores of a group; the items are 0 … n−1."""
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
    return Orders(rows.merge(), tuple(range(len(values))), (), None)
