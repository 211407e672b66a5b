"""What is held of comparisons: their columns and names, and all that is read off them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self, overload

import numpy as np
from scipy import sparse

from penchant.data.describe import describe, to_frame, to_html
from penchant.data.graph import components, laplacian
from penchant.data.names import Lookup, Names
from penchant.data.rankings import Rankings
from penchant.data.table import Table
from penchant.numerics.types import BoolArray, FloatArray, IntArray

_COLUMNS = tuple(f.name for f in fields(Table))


@dataclass(frozen=True, eq=False, repr=False)
class ComparisonColumns:
    """Columns of distinct comparisons with the names that they speak of; see `Comparisons`."""

    winner: IntArray
    loser: IntArray
    count: IntArray
    user: IntArray | None
    tie: BoolArray
    margin: FloatArray | None
    items: Names
    users: Names
    first: IntArray | None = None
    time: FloatArray | None = None
    covariates: FloatArray | None = None
    covariate_names: tuple[str, ...] = ()
    both_bad: BoolArray | None = None
    source: str = field(default="", compare=False)
    rankings: Rankings | None = None

    def __post_init__(self) -> None:
        for column in _COLUMNS:
            values = getattr(self, column)
            if values is not None:
                frozen = values.view()
                frozen.flags.writeable = False
                object.__setattr__(self, column, frozen)

    @classmethod
    def from_table(
        cls, table: Table, items: Names, users: Names, covariate_names: Sequence[str] = ()
    ) -> Self:
        """Wrap rows that are checked, merged and sorted already."""
        return cls(**vars(table), items=items, users=users, covariate_names=tuple(covariate_names))

    @classmethod
    def _assembled(
        cls,
        pairs: Table,
        rankings: Rankings | None,
        items: Names,
        users: Names,
        covariate_names: Sequence[str] = (),
    ) -> Self:
        """Single pairs and rankings together; the columns hold the pairs of both."""
        if rankings is None:
            return cls.from_table(pairs, items, users, covariate_names)
        broken = rankings.pairs()
        table = broken if not len(pairs.winner) else pairs.join(broken).merge()
        return replace(cls.from_table(table, items, users, covariate_names), rankings=rankings)

    @property
    def n_items(self) -> int:
        """Number of items, compared or not."""
        return len(self.items)

    @property
    def n_users(self) -> int:
        """Number of users; 0 where nobody is told apart."""
        return len(self.users)

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons made: the sum of the counts."""
        return int(self.count.sum())

    def __len__(self) -> int:
        """Number of distinct rows."""
        return len(self.winner)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComparisonColumns):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, f.name), getattr(other, f.name))
            for f in fields(self)
            if f.compare
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        who = f", {self.n_users} users" if self.users else ""
        return f"<Comparisons: {self.n_comparisons} between {self.n_items} items{who}>"

    def describe(self) -> str:
        """Return a few lines that tell what is there: counts, ties, groups, extremes.

        >>> from penchant.data import Comparisons
        >>> print(Comparisons.from_pairs(["tea", "tea"], ["milk", "water"]).describe())
        2 comparisons (2 distinct) between 3 items
        ties: 0 (0%)
        groups connected by comparisons: 1
        most compared: tea (2); least compared: milk (1)
        """
        return describe(self)

    def to_frame(self) -> Any:
        """Return a pandas data frame with names: one row per distinct comparison, one column per
        thing that is told; `from_frame` reads it back. Where there are rankings or choices, one row
        per item of an answer: ballot, user, item, position, count, and whether equal positions
        are ties.

        >>> from penchant.data import Comparisons
        >>> Comparisons.from_pairs(["tea"], ["milk"], count=[2]).to_frame().to_dict("list")
        {'winner': ['tea'], 'loser': ['milk'], 'tie': [False], 'count': [2]}
        """
        return to_frame(self)

    def _repr_html_(self) -> str:
        return to_html(self)

    @property
    def told_ties(self) -> Any:
        """(m,) what `from_pairs` takes as `tie`: true, false, or "both bad" where that was said.

        >>> from penchant.data import Comparisons
        >>> data = Comparisons.from_pairs(["a", "a"], ["b", "c"], tie=["both bad", "no"])
        >>> data.told_ties.tolist()
        ['both bad', False]
        """
        if self.both_bad is None:
            return self.tie
        words = self.tie.astype(object)
        words[self.both_bad] = "both bad"
        return words

    def bad_rates(self) -> dict[Any, float]:
        """Return the share of each item's comparisons in which both were found bad; only of items
        that were compared.

        >>> from penchant.data import Comparisons
        >>> Comparisons.from_pairs(["a", "a"], ["b", "c"], tie=["both bad", "no"]).bad_rates()
        {'a': 0.5, 'b': 1.0, 'c': 0.0}
        """
        bad = np.zeros(len(self)) if self.both_bad is None else self.both_bad * self.count
        ends = np.concatenate([self.winner, self.loser])
        times = np.bincount(ends, np.tile(self.count, 2), self.n_items)
        rate = np.bincount(ends, np.tile(bad, 2), self.n_items) / np.maximum(times, 1.0)
        return {self.items[i]: float(rate[i]) for i in self.compared()}

    def compared(self) -> IntArray:
        """Return the sorted indices of the items that occur in a comparison."""
        occurs = np.zeros(self.n_items, dtype=bool)
        occurs[self.winner] = occurs[self.loser] = True
        return np.flatnonzero(occurs)

    def laplacian(self) -> sparse.csr_matrix:
        """Return the (n_items, n_items) Laplacian of the comparison graph, weighted by counts.

        >>> from penchant.data import Comparisons
        >>> Comparisons.from_pairs([0, 0, 1], [1, 1, 2]).laplacian().toarray().tolist()
        [[2.0, -2.0, 0.0], [-2.0, 3.0, -1.0], [0.0, -1.0, 1.0]]
        """
        return laplacian(self.winner, self.loser, self.count, self.n_items)

    def components(self) -> tuple[int, IntArray]:
        """Return how many groups the comparisons connect the items into, and each item's group.

        An item that was never compared is a group of its own.
        """
        return components(self.winner, self.loser, self.n_items)

    def as_pairs(self) -> Self:
        """Return the same comparisons as pairs alone: rankings and choices are broken apart, and
        their pairs are taken for separate answers.

        >>> from penchant.data import Comparisons
        >>> data = Comparisons.from_rankings([["a", "b", "c"]])
        >>> data.rankings is None, data.as_pairs().rankings is None, len(data.as_pairs())
        (False, True, 3)
        """
        return self if self.rankings is None else replace(self, rankings=None)

    def single_pairs(self) -> Self:
        """Return the comparisons of two items that are no part of a ranking or choice.

        >>> from penchant.data import Comparisons
        >>> data = Comparisons.from_rankings([["a", "b", "c"], ["a", "b"]])
        >>> len(data), len(data.single_pairs())
        (3, 1)
        """
        if self.rankings is None:
            return self
        table, broken = self._table(), self.rankings.pairs()
        if self.first is not None:  # nobody knows the sides of a ranking
            broken = replace(broken, first=np.zeros_like(broken.winner))
        count = self.count.copy()
        count[table.locate(broken)] -= broken.count
        return self.as_pairs()._with_count(count)

    def named_rankings(self, tied: bool) -> list[tuple[list[list[Any]], Any, int]]:
        """Return the rankings by name, each as places, who made it, and how often.

        tied : those in which items of one place were said to be equal, or the others.

        >>> from penchant.data import Comparisons
        >>> Comparisons.from_choices(["a"], [["a", "b", "c"]]).named_rankings(tied=False)
        [([['a'], ['b', 'c']], None, 1)]
        """
        return [] if self.rankings is None else self.rankings.named(self.items, self.users, tied)

    @overload
    def item_index(self, names: str | int) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def item_index(self, names: Iterable[Any]) -> IntArray: ...
    def item_index(self, names: Any) -> int | IntArray:
        """Return the index of an item, or an array of indices for a sequence of them.

        A value that is an item's name means that item; any other integer in range is an index.
        Names win: where items are called by integers, an integer is a name and never an index.

        >>> from penchant.data import Comparisons
        >>> data = Comparisons.from_pairs(["a", "b"], ["b", "c"])
        >>> data.item_index("c"), data.item_index(["b", 0]).tolist()
        (2, [1, 0])
        """
        return self._item_lookup.index(names)

    @overload
    def user_index(self, names: str | int) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def user_index(self, names: Iterable[Any]) -> IntArray: ...
    def user_index(self, names: Any) -> int | IntArray:
        """Return the index of a user, or an array of indices for a sequence; see `item_index`."""
        return self._user_lookup.index(names)

    def pair_index(self, pairs: Any) -> IntArray:
        """Return (k, 2) item indices for k pairs of names or indices.

        >>> from penchant.data import Comparisons
        >>> Comparisons.from_pairs(["a"], ["b"]).pair_index([("b", "a"), (0, 1)]).tolist()
        [[1, 0], [0, 1]]
        """
        return self._item_lookup.pairs(pairs)

    @cached_property
    def _item_lookup(self) -> Lookup:
        return Lookup(self.items, "item")

    @cached_property
    def _user_lookup(self) -> Lookup:
        return Lookup(self.users, "user")

    def _table(self) -> Table:
        return Table(**{column: getattr(self, column) for column in _COLUMNS})

    def _of(self, table: Table, items: Names, users: Names) -> Self:
        return self.from_table(table, items, users, self.covariate_names)

    def _whole(self, pairs: Table, rankings: Rankings | None, items: Names, users: Names) -> Self:
        return self._assembled(pairs, rankings, items, users, self.covariate_names)

    def _with_count(self, count: IntArray) -> Self:
        table = replace(self._table(), count=count).take(count > 0)
        return self._of(table, self.items, self.users)
