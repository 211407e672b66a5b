"""Rankings and choices, whole: who put what before what else among several items at once.

Everything that is said about a set at once is an order of places. A full ranking has one item in
a place; the best of k is one item before the others, the worst of k the others before one, best
and worst one before the others before one. A place that several items share is a choice of them
all at once: `gp.rows` takes an order as the choices, one a place, that it consists of.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from penchant.data.names import Names
from penchant.data.table import Table
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
class Rankings:
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

    def __post_init__(self) -> None:
        for field in fields(self):
            values = getattr(self, field.name)
            if values is not None:
                frozen = values.view()
                frozen.flags.writeable = False
                object.__setattr__(self, field.name, frozen)

    def __len__(self) -> int:
        return len(self.count)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rankings):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def size(self) -> IntArray:
        """(r,) how many items each order holds."""
        return np.diff(self.start)

    def merge(self) -> "Rankings":
        """Equal orders as one with a count, in an order that depends on what they say alone."""
        size, parts = self.size, []
        for k in np.unique(size):
            rows = np.flatnonzero(size == k)
            item, place = self._of_size(rows, int(k))
            order = np.lexsort((item, place), axis=1)
            item, place = (np.take_along_axis(a, order, axis=1) for a in (item, place))
            who = np.zeros(len(rows), dtype=np.intp) if self.user is None else self.user[rows]
            said = np.column_stack([who, item, place, self.tied[rows]])
            distinct, same = np.unique(said, axis=0, return_inverse=True)
            count = np.zeros(len(distinct), dtype=np.intp)
            np.add.at(count, same.ravel(), self.count[rows])
            parts.append(_of_rows(distinct, count, int(k), self.user is None))
        return _concatenated(parts) if parts else self

    def _of_size(self, rows: IntArray, k: int) -> tuple[IntArray, IntArray]:
        """(len(rows), k) items and places of orders of k items."""
        where = self.start[rows, None] + np.arange(k)
        return self.item[where], self.place[where]

    def take(self, rows: IntArray | BoolArray) -> "Rankings | None":
        """Some of the orders; None where that is none."""
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
        """The orders that are given at least once now."""
        return replace(self, count=count).take(count > 0)

    def recoded(self, item_code: IntArray, user_code: IntArray) -> "Rankings":
        """The same with other numbers for items and users."""
        user = None if self.user is None else user_code[self.user]
        return replace(self, item=item_code[self.item], user=user)

    def locate(self, others: "Rankings") -> IntArray:
        """For each of the others the order here that says the same, or −1."""
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
        """Places, user and count of the orders whose equal places are ties, or of the others."""
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
        """Every pair of items of different places, and of equal ones where they were tied."""
        order, first, second = all_pairs(self.size)
        tie = self.place[first] == self.place[second]
        told = ~tie | self.tied[order]
        order, first, second, tie = (a[told] for a in (order, first, second, tie))
        user = None if self.user is None else self.user[order]
        winner, loser = self.item[first], self.item[second]
        return Table(winner, loser, self.count[order], user, tie, None).merge()

    def stages(self) -> list[ChoiceStages]:
        """The choices that the orders consist of: each place out of it and all later ones.

        Equal ones are one with a count; one entry for each size of set and of what was taken.
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


def _stages(said: IntArray, k: int, is_pooled: bool) -> ChoiceStages:
    """Rows of user, k items, k marks and a count, merged."""
    distinct, same = np.unique(said[:, :-1], axis=0, return_inverse=True)
    count = np.zeros(len(distinct), dtype=np.intp)
    np.add.at(count, same.ravel(), said[:, -1])
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
    """Both together, merged."""
    parts = [part for part in (one, two) if part is not None]
    if len({part.user is None for part in parts}) > 1:
        raise DataError(
            "only one of the two sets of comparisons has a user for its rankings: both or neither "
            "must; build both alike, or drop users with pooled()"
        )
    return _concatenated(parts).merge() if parts else None


def all_pairs(size: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return (block, i, j) with i < j for all pairs of positions within consecutive blocks."""
    start = np.cumsum(size) - size
    parts = list(_pairs_by_size(size, start))
    if not parts:
        empty = np.empty(0, dtype=np.intp)
        return empty, empty, empty
    block, first, second = (np.concatenate(part) for part in zip(*parts, strict=True))
    return block, first, second


def _pairs_by_size(size: IntArray, start: IntArray) -> Iterator[tuple[IntArray, ...]]:
    for n in np.unique(size[size > 1]):  # blocks of one size share their pattern of pairs
        blocks = np.flatnonzero(size == n)
        i, j = np.triu_indices(n, 1)
        yield (
            np.repeat(blocks, len(i)),
            (start[blocks, None] + i).ravel(),
            (start[blocks, None] + j).ravel(),
        )
