"""Comparisons, the data type of all models: columns, constructors and transformations."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from html import escape
from importlib import import_module
from typing import Any, Literal, Self, overload

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from penchant.data.build import build, code_columns
from penchant.data.choices import (
    Rankings,
    joined_rankings,
    merge_choices,
    merge_rankings,
    merge_scores,
)
from penchant.data.names import Encoder, Lookup, Names
from penchant.data.split import WholeAnswers, folds, hold_out
from penchant.data.table import Table, make_read_only, same_fields
from penchant.errors import DataError
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import BoolArray, FloatArray, IntArray

_COLUMNS = tuple(f.name for f in fields(Table))
_SHOWN_ROWS = 10  # rows of a table in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Comparisons:
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

    def __post_init__(self) -> None:
        make_read_only(self, _COLUMNS)

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
        columns = {
            "winner": winner,
            "loser": loser,
            "user": user,
            "tie": tie,
            "count": count,
            "margin": margin,
            "first": first,
            "time": time,
        }
        rows = code_columns(columns, items=items, users=users, covariates=covariates)
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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Comparisons):
            return NotImplemented
        return same_fields(self, other)

    __hash__ = None  # type: ignore[assignment]

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
        total = self.n_comparisons
        people = "1 user" if self.n_users == 1 else f"{self.n_users} users"
        who = f" by {people}" if self.users else ""
        lines = [f"{total} comparisons ({len(self)} distinct) between {self.n_items} items{who}"]
        if self.source:
            lines.append(f"read as: {self.source}")
        if self.user is not None:
            per_user = np.bincount(self.user, weights=self.count, minlength=self.n_users)
            lines.append(
                f"comparisons per user: {per_user.min():.0f} to {per_user.max():.0f}, "
                f"median {np.median(per_user):g}"
            )
        if (orders := self.rankings) is not None:
            low, high = int(orders.size.min()), int(orders.size.max())
            size = f"{low}" if low == high else f"{low} to {high}"
            lines.append(
                f"of them in rankings and choices: {orders.pairs().count.sum()}; rankings and "
                f"choices: {orders.count.sum()} ({len(orders)} distinct) of {size} items"
            )
        ties = int(self.count[self.tie].sum())
        lines.append(f"ties: {ties} ({ties / max(total, 1):.0%})")
        if self.both_bad is not None:
            bad, rates = int(self.count[self.both_bad].sum()), self.bad_rates()
            worst = max(rates, key=lambda item: rates[item])
            lines.append(
                f"both bad: {bad} ({bad / total:.0%}); most often with {worst} ({rates[worst]:.0%})"
            )
        used = self.compared()
        n_groups = len(np.unique(self.components()[1][used]))
        lines.append(f"groups connected by comparisons: {n_groups}")
        if len(used) < self.n_items:
            lines.append(f"items never compared: {self.n_items - len(used)}")
        times = np.bincount(self.winner, self.count, self.n_items)
        times += np.bincount(self.loser, self.count, self.n_items)
        most, least = int(times.argmax()), int(times.argmin())
        lines.append(
            f"most compared: {self.items[most]} ({times[most]:.0f}); "
            f"least compared: {self.items[least]} ({times[least]:.0f})"
        )
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return a pandas data frame by name, which `from_frame` reads back.

        It has one row per distinct comparison; where there are rankings or choices, one row per
        item of an answer: ballot, user, item, position, count, and whether equal positions are
        ties.

        >>> Comparisons.from_pairs(["tea"], ["milk"], count=[2]).to_frame().to_dict("list")
        {'winner': ['tea'], 'loser': ['milk'], 'tie': [False], 'count': [2]}
        """
        try:
            import pandas as pd
        except ImportError:
            raise DataError(
                "to_frame needs pandas: install it, or use the columns themselves"
            ) from None
        if self.rankings is not None:
            return pd.DataFrame(_long_columns(self))
        columns: dict[str, Any] = {}
        if self.user is not None:
            columns["user"] = [self.users[u] for u in self.user]
        columns["winner"] = [self.items[i] for i in self.winner]
        columns["loser"] = [self.items[i] for i in self.loser]
        columns |= {"tie": self.tie_words, "count": self.count}
        for name in ("margin", "first", "time"):
            if getattr(self, name) is not None:
                columns[name] = getattr(self, name)
        for k, name in enumerate(self.covariate_names):
            if name in columns:
                raise DataError(
                    f"a covariate is called {name!r}, as a column of the table is: rename it"
                )
            columns[name] = self.covariates[:, k]  # type: ignore[index]
        return pd.DataFrame(columns)

    def _repr_html_(self) -> str:
        """Return the summary and the first rows as HTML, for notebooks."""
        lines = "<br>".join(escape(line) for line in self.describe().splitlines())
        head = ["user"] * (self.user is not None) + ["winner", "loser", "tie", "count"]
        rows = []
        for i in range(min(len(self), _SHOWN_ROWS)):
            cells = [] if self.user is None else [self.users[self.user[i]]]
            cells += [self.items[self.winner[i]], self.items[self.loser[i]]]
            cells += ["tie" if self.tie[i] else "", self.count[i]]
            rows.append("".join(f"<td>{escape(str(cell))}</td>" for cell in cells))
        if len(self) > _SHOWN_ROWS:
            rows.append(f'<td colspan="{len(head)}">… and {len(self) - _SHOWN_ROWS} more</td>')
        header = "".join(f"<th>{name}</th>" for name in head)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        table = f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div><p>{lines}</p>{table}</div>"

    @property
    def tie_words(self) -> Any:
        """(m,) ties as `from_pairs` takes them: true, false, or "both bad".

        >>> data = Comparisons.from_pairs(["a", "a"], ["b", "c"], tie=["both bad", "no"])
        >>> data.tie_words.tolist()
        ['both bad', False]
        """
        if self.both_bad is None:
            return self.tie
        words = self.tie.astype(object)
        words[self.both_bad] = "both bad"
        return words

    def bad_rates(self) -> dict[Any, float]:
        """Return for each compared item the share of its comparisons that were "both bad".

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

        >>> Comparisons.from_pairs([0, 0, 1], [1, 1, 2]).laplacian().toarray().tolist()
        [[2.0, -2.0, 0.0], [-2.0, 3.0, -1.0], [0.0, -1.0, 1.0]]
        """
        weight, n = self.count.astype(np.float64), self.n_items
        met = sparse.coo_matrix((weight, (self.winner, self.loser)), shape=(n, n))
        met = met + met.T
        return sparse.csr_matrix(sparse.diags(np.asarray(met.sum(axis=1)).ravel()) - met)

    def components(self) -> tuple[int, IntArray]:
        """Return how many groups the comparisons connect the items into, and each item's group.

        An item that was never compared is a group of its own.
        """
        return components(self.winner, self.loser, self.n_items)

    def as_pairs(self) -> Self:
        """Return the same comparisons as pairs: those of rankings and choices count as separate
        answers.

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
        count = WholeAnswers.of(self).count
        parts = folds(self, n)
        return [(self.with_counts(count - part), self.with_counts(part)) for part in parts]

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
        single, orders = self.single_pairs(), self.rankings
        theirs = answers.single_pairs()._in_codes_of(self)
        rows = theirs._table().merge()
        theirs = replace(theirs, **vars(rows))
        count = _count_left(
            single.count,
            single._table().locate(rows),
            rows.count,
            theirs._sentence,
            "by the same user and with the same tie, margin and covariates",
        )
        left = single._with_count(count)._table()
        known = answers if answers.rankings is None else answers._in_codes_of(self)
        said = joined_rankings(None, known.rankings)
        if said is None:
            return self._of(left, orders)
        count = _count_left(
            np.zeros(0, dtype=np.intp) if orders is None else orders.count,
            np.full(len(said), -1) if orders is None else orders.locate(said),
            said.count,
            lambda row: (
                "the ranking or choice of "
                f"{[known.items[i] for i in said.item[said.start[row] : said.start[row + 1]]]!r}"
            ),
            "whole and by the same user",
        )
        return self._of(left, None if orders is None else orders.with_count(count))

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

    def _sentence(self, row: int) -> str:
        """Return one row in words."""
        who = "" if self.user is None else f"{self.users[self.user[row]]!r} said: "
        verb = "tied with" if self.tie[row] else "beat"
        return f"{who}{self.items[self.winner[row]]!r} {verb} {self.items[self.loser[row]]!r}"


def _count_left(
    count: IntArray, at: IntArray, times: IntArray, say: Callable[[int], str], alike: str
) -> IntArray:
    """Return the counts after the answers at `at` are taken back, `times` times each.

    say : describes an answer that did not occur so often. alike : what has to be equal.
    """
    there = np.where(at < 0, 0, count[at] if len(count) else 0)
    for row in np.flatnonzero(times > there)[:1]:
        raise DataError(
            f"{say(int(row))} is to be taken back {times[row]} times, but occurred {there[row]} "
            f"times: take back only what was said, {alike}"
        )
    left = count.copy()
    left[at] -= times
    return left


def _long_columns(data: Comparisons) -> dict[str, list[Any]]:
    """Return one row for each item of a ranking, choice or pair: ballot, user, item, position."""
    single = data.single_pairs()
    if not (single.margin is None and single.first is None and single.covariates is None):
        raise DataError(
            "rankings beside pairs with a margin, sides or covariates make no one table: make one "
            "of single_pairs(), or of as_pairs()"
        )
    ballots = [
        (places, who, count, tied)
        for tied in (True, False)
        for places, who, count in data.named_rankings(tied)
    ]
    for row in range(len(single)):
        names = [data.items[i] for i in (single.winner[row], single.loser[row])]
        who = None if single.user is None else data.users[single.user[row]]
        places = [names] if single.tie[row] else [[name] for name in names]
        ballots.append((places, who, int(single.count[row]), True))
    lines = [
        (number, who, name, place, count, tied)
        for number, (places, who, count, tied) in enumerate(ballots, start=1)
        for place, names in enumerate(places, start=1)
        for name in names
    ]
    heads = ("ballot", "user", "item", "position", "count", "tied")
    columns = {
        head: list(cells) for head, cells in zip(heads, zip(*lines, strict=True), strict=True)
    }
    if data.user is None:
        del columns["user"]
    return columns


def components(winner: IntArray, loser: IntArray, n: int) -> tuple[int, IntArray]:
    """Return the number of connected groups and the group of each of the n items."""
    if n * n < len(winner):  # then some pairs occur many times, and once is enough
        met = np.zeros(n * n, dtype=bool)
        met[winner * n + loser] = True
        winner, loser = np.divmod(np.flatnonzero(met), n)
    edges = sparse.coo_matrix((np.ones(len(winner)), (winner, loser)), shape=(n, n))
    n_groups, labels = csgraph.connected_components(edges, directed=False)
    return int(n_groups), labels.astype(np.intp)


_EXAMPLES = 3  # items or groups that a warning names


def check_connected(data: Comparisons) -> str | None:
    """Return a warning where comparisons do not connect all compared items, else None.

    >>> check_connected(Comparisons.from_pairs(["a", "b"], ["b", "c"])) is None
    True
    >>> check_connected(Comparisons.from_pairs(["a", "x"], ["b", "y"]))
    "the comparisons fall into 2 groups of items that were never compared with each other (of
    2 and 2 items, for example 'a' and 'x'): the order within a group is learned, the order
    between groups comes from the prior alone; compare items across groups, or give features
    or relations that link them"
    """
    _, labels = data.components()
    used = data.compared()
    groups, first, size = np.unique(labels[used], return_index=True, return_counts=True)
    if len(groups) < 2:
        return None
    largest = np.argsort(-size, kind="stable")[:_EXAMPLES]
    sizes = [str(size[g]) for g in largest] + (["…"] if len(groups) > _EXAMPLES else [])
    examples = [repr(data.items[used[first[g]]]) for g in largest]
    return (
        f"the comparisons fall into {len(groups)} groups of items that were never compared with "
        f"each other (of {' and '.join(sizes)} items, for example {' and '.join(examples)}): the "
        "order within a group is learned, the order between groups comes from the prior alone; "
        "compare items across groups, or give features or relations that link them"
    )


def check_never_compared(data: Comparisons) -> str | None:
    """Return a warning where some items occur in no comparison, else None.

    >>> check_never_compared(Comparisons.from_pairs([0], [1], items=range(3)))
    '1 of 3 items was never compared (for example 2): its utility comes from the prior alone;
    compare it, or give features or relations that link it to the others'
    """
    never = np.setdiff1d(np.arange(data.n_items), data.compared())
    if not len(never):
        return None
    one = len(never) == 1
    examples = ", ".join(repr(data.items[i]) for i in never[:_EXAMPLES])
    return (
        f"{len(never)} of {data.n_items} items {'was' if one else 'were'} never compared (for "
        f"example {examples}): {'its utility comes' if one else 'their utilities come'} from the "
        f"prior alone; compare {'it' if one else 'them'}, or give features or relations that link "
        f"{'it' if one else 'them'} to the others"
    )


def check_all_ties(data: Comparisons) -> str | None:
    """Return a warning where every comparison is a tie, else None.

    >>> check_all_ties(Comparisons.from_pairs(["a"], ["b"], tie=[True]))
    'every comparison is a tie: nothing tells the items apart, so the ranking is arbitrary; check
    how ties are marked, or ask for a choice where items are close'
    """
    if not data.tie.all():
        return None
    return (
        "every comparison is a tie: nothing tells the items apart, so the ranking is arbitrary; "
        "check how ties are marked, or ask for a choice where items are close"
    )
