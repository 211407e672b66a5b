"""Comparisons, the data type of all models: columns, constructors and transformations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from importlib import import_module
from typing import Any, Literal, Self, overload

import numpy as np
from scipy import sparse

from penchant.data import summary
from penchant.data.build import build, code_columns
from penchant.data.choices import (
    Rankings,
    joined_rankings,
    merge_choices,
    merge_rankings,
    merge_scores,
    without_rankings,
)
from penchant.data.names import Encoder, Lookup, Names
from penchant.data.split import WholeAnswers, folds, hold_out
from penchant.data.table import ArrayRecord, Table, components
from penchant.errors import DataError
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import BoolArray, FloatArray, IntArray

_COLUMNS = tuple(f.name for f in fields(Table))


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons(ArrayRecord):
    """Distinct comparisons between items, each with the number of times it was made.

    Make one with `from_pairs`, `from_rankings`, `from_scores`, `from_frame` or
    `read_comparisons`; these check everything once. Rows are the m distinct combinations of
    all columns, sorted; a count of 2 means that the row occurred twice.

    Attributes
    ----------
    winner, loser : (m,) item indices; in a tie the smaller index stands first.
    count : (m,) how often the row occurred.
    user : (m,) user indices, or None where there is no user column.
    tie : (m,) whether the two items came out equal.
    margin : (m,) by how much the winner's score exceeded the loser's, or None.
    first : (m,) +1 where the winner was shown first, −1 the loser, 0 not known; or None.
    time : (m,) days, or None.
    covariates : (m, q) further numbers, odd in the pair (winner minus loser), or None; their
        names are `covariate_names`.
    both_bad : (m,) whether a tie means that both items were bad; None where no row says so.
    items, users : the names, in index order; items that were never compared are there too.
    rankings : rankings and choices of three items or more as whole answers, or None. The columns
        above hold their pairs too: `as_pairs` drops the rankings and keeps the pairs,
        `single_pairs` returns the pairs that belong to no ranking.
    source : how a file was read, in a line; "" for other comparisons.

    >>> data = Comparisons.from_pairs(["tea", "tea", "milk"], ["milk", "milk", "water"])
    >>> data.items
    ('milk', 'tea', 'water')
    >>> data.winner.tolist(), data.loser.tolist(), data.count.tolist()
    ([0, 1], [2, 0], [1, 2])
    """

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

    @classmethod
    def from_pairs(
        cls,
        winner: Iterable[Any],
        loser: Iterable[Any],
        *,
        user: Iterable[Any] | None = None,
        tie: Iterable[Any] | None = None,
        count: Iterable[Any] | None = None,
        margin: Iterable[Any] | None = None,
        first: Iterable[Any] | None = None,
        covariates: Any = None,
        time: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        users: Iterable[Any] | None = None,
    ) -> Self:
        """Build from columns with one entry per comparison.

        `first` is +1 where the winner was shown first, −1 where the loser was, 0 where it is not
        known. `covariates` are winner minus loser: (m, q) numbers, or a dictionary of columns by
        name. `time` holds dates or numbers of days. `tie` is true or false, or "both bad".
        `items` and `users` name the whole universe in index order (`items=range(n)` where ids
        are indices already); without them the names that occur are taken, sorted.

        >>> data = Comparisons.from_pairs([0, 2], [1, 1], user=["ann", "bob"], items=range(4))
        >>> data.n_items, data.users, data.user.tolist()
        (4, ('ann', 'bob'), [0, 1])
        """
        given = dict(locals())
        del given["cls"]
        rows = code_columns(**given)
        return cls.from_table(*build(rows), covariate_names=rows.covariate_names)

    @classmethod
    def from_rankings(
        cls,
        rankings: Iterable[Iterable[Any]],
        *,
        users: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
    ) -> Self:
        """Build from rankings, each best first; they are kept as rankings.

        A ranking of three items or more is one answer: the models of utilities take it as its
        k − 1 choices (Plackett and Luce), and `split` never cuts it. An entry that is itself a
        list, tuple or set is a group of tied items: a choice of all of them at once. `users`
        holds one name per ranking: the person who made it. The columns hold its pairs.

        >>> data = Comparisons.from_rankings([["tea", ["milk", "water"]]])
        >>> len(data.rankings)
        1
        >>> [(data.items[w], data.items[l]) for w, l in zip(data.winner, data.loser)]
        [('milk', 'water'), ('tea', 'milk'), ('tea', 'water')]
        >>> data.tie.tolist()
        [True, False, False]
        """
        return cls.from_table(*merge_rankings(rankings, users, items))

    @classmethod
    def from_choices(
        cls,
        chosen: Iterable[Any] | None,
        sets: Iterable[Iterable[Any]],
        *,
        worst: Iterable[Any] | None = None,
        user: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
    ) -> Self:
        """Build from choices out of sets: the best of k, the worst of k, or both.

        chosen : one entry a choice, the item that was taken; a list, tuple or set of several
            where several were. None: only the worst is told.
        sets : one a choice, all items that were shown, with the chosen one.
        worst : likewise, what was put last.
        user : who made each choice.

        >>> data = Comparisons.from_choices(["tea"], [["milk", "tea", "water"]])
        >>> [(data.items[w], data.items[l]) for w, l in zip(data.winner, data.loser)]
        [('tea', 'milk'), ('tea', 'water')]
        """
        return cls.from_table(*merge_choices(chosen, worst, sets, user, items))

    @classmethod
    def from_table(
        cls,
        table: Table,
        items: Names,
        users: Names,
        rankings: Rankings | None = None,
        covariate_names: Sequence[str] = (),
    ) -> Self:
        """Wrap rows that are checked, merged and sorted; add the pairs of `rankings` to them."""
        if rankings is not None:
            broken = rankings.pairs()
            table = table.join(broken).merge() if len(table.winner) else broken
        return cls(
            **vars(table),
            items=items,
            users=users,
            covariate_names=tuple(covariate_names),
            rankings=rankings,
        )

    @classmethod
    def from_scores(cls, scores: Iterable[float], *, groups: Iterable[Any] | None = None) -> Self:
        """Build from one score per item: all pairs within a group, with the margin.

        Items are named by their position 0 … n−1; equal scores are ties.

        >>> data = Comparisons.from_scores([3.0, 1.0, 1.0, 9.0], groups=["q", "q", "q", "r"])
        >>> data.winner.tolist(), data.loser.tolist(), data.margin.tolist(), data.n_items
        ([0, 0, 1], [1, 2, 2], [2.0, 2.0, 0.0], 4)
        """
        return cls.from_table(*merge_scores(scores, groups))

    @staticmethod
    def from_frame(
        frame: Any,
        *,
        winner: str | None = None,
        loser: str | None = None,
        user: str | None = None,
        tie: str | None = None,
        count: str | None = None,
        margin: str | None = None,
        first: str | None = None,
        time: str | None = None,
        covariates: Sequence[str] = (),
        shape: str | None = None,
        skip_bad: bool = False,
    ) -> "Comparisons":
        """Build from a pandas or polars data frame or a pyarrow table, as `read_comparisons`
        does from a file.

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"winner": ["tea", "tea"], "loser": ["milk", "water"]})
        >>> Comparisons.from_frame(frame).items
        ('milk', 'tea', 'water')
        """
        options = dict(locals())
        # `penchant.io` is a layer above: it is loaded by name, when a frame is to be read
        return import_module("penchant.io").read_frame(**options)

    @property
    def n_items(self) -> int:
        """Number of items, compared or not."""
        return len(self.items)

    @property
    def n_users(self) -> int:
        """Number of users; 0 where there is no user column."""
        return len(self.users)

    @property
    def n_comparisons(self) -> int:
        """Number of comparisons made: the sum of the counts."""
        return int(self.count.sum())

    def __len__(self) -> int:
        """Number of distinct rows."""
        return len(self.winner)

    def __repr__(self) -> str:
        who = f", {self.n_users} users" if self.users else ""
        return f"<Comparisons: {self.n_comparisons} between {self.n_items} items{who}>"

    def describe(self) -> str:
        """Return a summary in a few lines: counts, ties, groups, extremes.

        >>> print(Comparisons.from_pairs(["tea", "tea"], ["milk", "water"]).describe())
        2 comparisons (2 distinct) between 3 items
        ties: 0 (0%)
        groups connected by comparisons: 1
        most compared: tea (2); least compared: milk (1)
        """
        return summary.in_words(self._table(), self.items, self.users, self.rankings, self.source)

    def to_frame(self) -> Any:
        """Return a pandas data frame by name, which `from_frame` reads back.

        It has one row per distinct comparison; where there are rankings or choices, one row per
        item of an answer: ballot, user, item, position, count, and whether equal positions are
        ties.

        >>> Comparisons.from_pairs(["tea"], ["milk"], count=[2]).to_frame().to_dict("list")
        {'winner': ['tea'], 'loser': ['milk'], 'tie': [False], 'count': [2]}
        """
        if self.rankings is not None:
            single = self.single_pairs()._table()
            return summary.long_frame(single, self.rankings, self.items, self.users)
        return summary.frame(self._table(), self.items, self.users, self.covariate_names)

    def _repr_html_(self) -> str:
        """Return the summary and the first rows as HTML, for notebooks."""
        return summary.in_html(self.describe(), self._table(), self.items, self.users)

    @property
    def tie_words(self) -> Any:
        """(m,) ties as `from_pairs` takes them: true, false, or "both bad".

        >>> data = Comparisons.from_pairs(["a", "a"], ["b", "c"], tie=["both bad", "no"])
        >>> data.tie_words.tolist()
        ['both bad', False]
        """
        return summary.tie_words(self._table())

    def bad_rates(self) -> dict[Any, float]:
        """Return for each compared item the share of its comparisons that were "both bad".

        >>> Comparisons.from_pairs(["a", "a"], ["b", "c"], tie=["both bad", "no"]).bad_rates()
        {'a': 0.5, 'b': 1.0, 'c': 0.0}
        """
        return summary.bad_rates(self._table(), self.items)

    def compared(self) -> IntArray:
        """Return the sorted indices of the items that occur in a comparison."""
        occurs = np.zeros(self.n_items, dtype=bool)
        occurs[self.winner] = occurs[self.loser] = True
        return np.flatnonzero(occurs)

    def laplacian(self) -> sparse.csr_matrix:
        """Return the (n_items, n_items) Laplacian of the comparison graph, weighted by counts.

        >>> Comparisons.from_pairs([0, 0, 1], [1, 1, 2]).laplacian().toarray().tolist()
        [[2.0, -2.0, 0.0], [-2.0, 3.0, -1.0], [0.0, -1.0, 1.0]]
        """
        return self._table().laplacian(self.n_items)

    def components(self) -> tuple[int, IntArray]:
        """Return how many groups the comparisons connect the items into, and each item's group.

        An item that was never compared is a group of its own.
        """
        return components(self.winner, self.loser, self.n_items)

    def as_pairs(self) -> Self:
        """Return the same comparisons, the pairs of rankings and choices as answers of their own.

        >>> data = Comparisons.from_rankings([["a", "b", "c"]])
        >>> data.rankings is None, data.as_pairs().rankings is None, len(data.as_pairs())
        (False, True, 3)
        """
        return self if self.rankings is None else replace(self, rankings=None)

    def single_pairs(self) -> Self:
        """Return the comparisons of two items that are no part of a ranking or choice.

        >>> data = Comparisons.from_rankings([["a", "b", "c"], ["a", "b"]])
        >>> len(data), len(data.single_pairs())
        (3, 1)
        """
        if self.rankings is None:
            return self
        table, broken = self._table(), self.rankings.pairs()
        if self.first is not None:  # a ranking has no first and second side
            broken = replace(broken, first=np.zeros_like(broken.winner))
        count = self.count.copy()
        count[table.locate(broken)] -= broken.count
        return self.as_pairs()._with_count(count)

    def named_rankings(self, tied: bool) -> list[tuple[list[list[Any]], Any, int]]:
        """Return the rankings by name, each as places, who made it, and how often.

        tied : return those in which items of one place are equal, or those in which they were
            not compared.

        >>> Comparisons.from_choices(["a"], [["a", "b", "c"]]).named_rankings(tied=False)
        [([['a'], ['b', 'c']], None, 1)]
        """
        return [] if self.rankings is None else self.rankings.named(self.items, self.users, tied)

    def pooled(self) -> Self:
        """Return the comparisons of all users together, without the user column.

        >>> data = Comparisons.from_pairs(["a", "a"], ["b", "b"], user=["ann", "bob"])
        >>> data.pooled().count.tolist()
        [2]
        """
        if self.user is None and not self.users:
            return self
        table, rankings = replace(self._table(), user=None).merge(), self.rankings
        rankings = None if rankings is None else replace(rankings, user=None).merge()
        return replace(self, **vars(table), users=(), source="", rankings=rankings)

    def bare(self, keep: Sequence[str] = ()) -> Self:
        """Return the same comparisons without order shown, time, covariates and both bad.

        keep : those of "first", "time", "covariates" and "both_bad" that stay.

        >>> data = Comparisons.from_pairs(["a", "a"], ["b", "b"], first=[1, -1])
        >>> len(data), len(data.bare())
        (2, 1)
        """
        gone = [
            name
            for name in ("first", "time", "covariates", "both_bad")
            if name not in keep and getattr(self, name) is not None
        ]
        if not gone:
            return self
        table = replace(self._table(), **dict.fromkeys(gone)).merge()  # type: ignore[arg-type]
        names = () if "covariates" in gone else self.covariate_names
        return replace(self, **vars(table), covariate_names=names, source="")

    def for_user(self, user: Any) -> Self:
        """Return one user's comparisons, over the same items and without a user column."""
        if self.user is None:
            raise DataError("these comparisons do not tell users apart: there is no user column")
        who = self.user_index(user)
        table = replace(self._table().take(self.user == who), user=None)
        rankings = self.rankings
        if rankings is not None and rankings.user is not None:
            rankings = rankings.take(rankings.user == who)
        rankings = None if rankings is None else replace(rankings, user=None)
        return replace(self, **vars(table), users=(), source="", rankings=rankings)

    def split(
        self,
        fraction: float,
        by: Literal["comparison", "user"] = "comparison",
        random_state: RandomState = None,
    ) -> tuple[Self, Self]:
        """Return (train, test) over the same items and users; test gets `fraction` of the whole.

        `by="comparison"` draws single answers, so a row with a count of 5 may put 1 into
        test and 4 into train; a ranking or choice is one answer and never cut. `by="user"` moves
        whole users.

        >>> data = Comparisons.from_pairs(["a", "b"], ["b", "c"], count=[6, 4])
        >>> train, test = data.split(0.2, random_state=0)
        >>> train.n_comparisons, test.n_comparisons
        (8, 2)
        """
        said = WholeAnswers.of(self)
        user = None if self.user is None else said.user
        out = hold_out(said.count, user, fraction, by, as_rng(random_state))
        return self.with_counts(said.count - out), self.with_counts(out)

    def folds(self, n: int) -> list[tuple[Self, Self]]:
        """Return n pairs (train, test) over the same items and users: every answer is in one test.

        A ranking or choice is one answer and never cut. Each user's answers are spread evenly, and
        the folds do not depend on names or on the order of rows.

        >>> data = Comparisons.from_pairs(["a", "b"], ["b", "c"], count=[6, 4])
        >>> [(train.n_comparisons, test.n_comparisons) for train, test in data.folds(2)]
        [(5, 5), (5, 5)]
        """
        said = WholeAnswers.of(self)
        parts = folds(said, said.keys(self.n_items, self.n_users), n)
        return [(self.with_counts(said.count - part), self.with_counts(part)) for part in parts]

    def with_counts(self, count: IntArray) -> Self:
        """Return the same answers with other counts, single pairs first and then rankings; those
        with a count of 0 are left out."""
        if self.rankings is None:
            return self._with_count(count)
        single = self.single_pairs()
        pairs, rankings = np.split(count, [len(single)])
        return self._of(single._with_count(pairs)._table(), self.rankings.with_count(rankings))

    def extend(self, more: "Comparisons") -> Self:
        """Return these comparisons and `more` together; names that are new go to the end.

        >>> more = Comparisons.from_pairs(["a"], ["z"])
        >>> (Comparisons.from_pairs(["a"], ["b"]) + more).items
        ('a', 'b', 'z')
        """
        theirs = more._in_codes_of(self)
        mine, rows = self._table(), theirs._table()
        if self.rankings is None and theirs.rankings is None:
            mine = mine.join(rows).merge()
        elif len(rows.winner):  # no rows need no columns of the same kind
            mine = (mine if len(self) else rows.take(slice(0, 0))).join(rows).merge()
        rankings = joined_rankings(self.rankings, theirs.rankings)
        names: dict[str, Any] = {"items": theirs.items, "users": theirs.users}
        return replace(self, **vars(mine), **names, source="", rankings=rankings)

    def without(self, answers: "Comparisons") -> Self:
        """Return these comparisons with `answers` taken back; items and users stay.

        >>> data = Comparisons.from_pairs(["a", "b"], ["b", "c"], count=[3, 1])
        >>> less = data.without(Comparisons.from_pairs(["a", "b"], ["b", "c"]))
        >>> less.items, less.n_comparisons
        (('a', 'b', 'c'), 2)
        """
        theirs = answers.single_pairs()._in_codes_of(self)
        pairs = self.single_pairs()._table().without(theirs._table(), theirs.items, theirs.users)
        known = answers._in_codes_of(self)
        return self._of(pairs, without_rankings(self.rankings, known.rankings, known.items))

    def __add__(self, more: object) -> Self:
        return self.extend(more) if isinstance(more, Comparisons) else NotImplemented

    @overload
    def item_index(self, names: str | int) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def item_index(self, names: Iterable[Any]) -> IntArray: ...
    def item_index(self, names: Any) -> int | IntArray:
        """Return the index of an item, or an array of indices for a sequence of them.

        A value that is an item's name means that item; any other integer in range is an index.
        Names win: where items are called by integers, an integer is a name and never an index.

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

    def _of(self, pairs: Table, rankings: Rankings | None = None) -> Self:
        """Return other single pairs and rankings over these items and users."""
        return self.from_table(pairs, self.items, self.users, rankings, self.covariate_names)

    def _with_count(self, count: IntArray) -> Self:
        return self._of(replace(self._table(), count=count).take(count > 0))

    def _in_codes_of(self, other: "Comparisons") -> Self:
        """Return the same rows, not merged, in the codes of `other`; new names follow."""
        if self.covariate_names != other.covariate_names:
            raise DataError(
                f"covariates are {other.covariate_names} here and {self.covariate_names} there: "
                "both sets of comparisons must have the same"
            )
        items, users = Encoder(other.items), Encoder(other.users)
        item_code = items.encode(self.items, "items")
        user_code = users.encode(self.users, "users")
        rankings = self.rankings
        return replace(
            self,
            winner=item_code[self.winner],
            loser=item_code[self.loser],
            user=None if self.user is None else user_code[self.user],
            items=items.names,
            users=users.names,
            rankings=None if rankings is None else rankings.recoded(item_code, user_code),
        )
