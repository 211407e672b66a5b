"""Comparisons, the data type of everything else: how they are made, taken apart, put together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np

from penchant.data.build import build
from penchant.data.coding import code_columns
from penchant.data.combine import found_again, found_rankings, recoded
from penchant.data.comparison_columns import ComparisonColumns
from penchant.data.expand import Orders, merge_choices, merge_rankings, merge_scores
from penchant.data.names import Encoder
from penchant.data.rankings import joined_rankings
from penchant.data.reading import ReadRows, Wish, read_frame
from penchant.data.split import WholeAnswers, folds, hold_out
from penchant.data.sql import Further
from penchant.errors import DataError
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import FloatArray, IntArray


class Comparisons(ComparisonColumns):
    """Distinct comparisons between items, each with the number of times it was made.

    Make one with `from_pairs`, `from_rankings`, `from_scores`, `from_frame` or
    `read_comparisons`; these check everything once. Rows are the m distinct combinations of
    all that is told about a comparison, sorted; a count of 2 means that the row occurred twice.

    Attributes
    ----------
    winner, loser : (m,) item indices; in a tie the smaller index stands first.
    count : (m,) how often the row occurred.
    user : (m,) user indices, or None where nobody is told apart.
    tie : (m,) whether the two items came out equal.
    margin : (m,) by how much the winner's score exceeded the loser's, or None.
    first : (m,) +1 where the winner was shown first, −1 the loser, 0 not known; or None.
    time : (m,) days, or None.
    covariates : (m, q) further numbers, odd in the pair (winner minus loser), or None; their
        names are `covariate_names`.
    both_bad : (m,) of ties, whether both items were found bad; or None where nobody says so.
    items, users : the names, in index order; items that were never compared are there too.
    rankings : rankings and choices of three items or more, whole, or None. The rows above hold
        their pairs too, broken apart: `as_pairs` forgets that they belong together, and
        `single_pairs` is what was said beside them.
    source : how they were read, in a line; "" where they were not.

    >>> data = Comparisons.from_pairs(["tea", "tea", "milk"], ["milk", "milk", "water"])
    >>> data.items
    ('milk', 'tea', 'water')
    >>> data.winner.tolist(), data.loser.tolist(), data.count.tolist()
    ([0, 1], [2, 0], [1, 2])
    """

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

        `first` is +1 where the winner was shown first, −1 where the loser was, 0 where nobody
        knows. `covariates` are winner minus loser: (m, q) numbers, or a dictionary of columns by
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
        return cls.from_table(*build(rows), _covariate_names(covariates, rows.covariates))

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
        return cls.from_orders(merge_rankings(rankings, users, items))

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
        return cls.from_orders(merge_choices(chosen, worst, sets, user, items))

    @classmethod
    def from_orders(cls, orders: Orders) -> Self:
        """Wrap single pairs and rankings that are checked and merged already."""
        return cls._assembled(orders.pairs, orders.rankings, orders.items, orders.users)

    @classmethod
    def from_scores(cls, scores: Iterable[float], *, groups: Iterable[Any] | None = None) -> Self:
        """Build from one score per item: all pairs within a group, with the margin.

        Items are named by their position 0 … n−1; equal scores are ties.

        >>> data = Comparisons.from_scores([3.0, 1.0, 1.0, 9.0], groups=["q", "q", "q", "r"])
        >>> data.winner.tolist(), data.loser.tolist(), data.margin.tolist(), data.n_items
        ([0, 0, 1], [1, 2, 2], [2.0, 2.0, 0.0], 4)
        """
        table, item_names = merge_scores(scores, groups)
        return cls.from_table(table, item_names, ())

    @classmethod
    def from_frame(
        cls,
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
    ) -> Self:
        """Build from a pandas or polars data frame or a pyarrow table, as `read_comparisons`
        does from a file.

        >>> import pandas as pd
        >>> frame = pd.DataFrame({"winner": ["tea", "tea"], "loser": ["milk", "water"]})
        >>> Comparisons.from_frame(frame).items
        ('milk', 'tea', 'water')
        """
        columns = {"winner": winner, "loser": loser, "user": user, "tie": tie, "count": count}
        wish = Wish(columns, shape, Further(time, margin, first, tuple(covariates)), skip_bad)
        return cls.from_found(read_frame(frame, wish), wish)

    @classmethod
    def from_found(cls, found: ReadRows, wish: Wish) -> Self:
        """Wrap what was read from a file or a data frame."""
        rows = (found.table, found.rankings, found.items, found.users)
        return replace(cls._assembled(*rows, wish.further.covariates), source=found.said)

    def pooled(self) -> Self:
        """Return the same comparisons without telling users apart.

        >>> data = Comparisons.from_pairs(["a", "a"], ["b", "b"], user=["ann", "bob"])
        >>> data.pooled().count.tolist()
        [2]
        """
        if self.user is None and not self.users:
            return self
        pooled = self._of(replace(self._table(), user=None).merge(), self.items, ())
        if self.rankings is None:
            return pooled
        return replace(pooled, rankings=replace(self.rankings, user=None).merge())

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
        plain = replace(self._table(), **dict.fromkeys(gone)).merge()  # type: ignore[arg-type]
        names = () if "covariates" in gone else self.covariate_names
        pairs = self.from_table(plain, self.items, self.users, names)
        return replace(pairs, rankings=self.rankings)

    def for_user(self, user: Any) -> Self:
        """Return one user's comparisons, over the same items and without a user column."""
        if self.user is None:
            raise DataError("these comparisons do not tell users apart: there is no user column")
        who = self.user_index(user)
        mine = self._of(replace(self._table().take(self.user == who), user=None), self.items, ())
        if self.rankings is None or self.rankings.user is None:
            return mine
        rankings = self.rankings.take(self.rankings.user == who)
        return replace(mine, rankings=None if rankings is None else replace(rankings, user=None))

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

        A ranking or choice is one answer and never cut. Everybody's answers are spread evenly, and
        neither names nor the order of rows change who is where.

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
        table, orders = single._with_count(pairs)._table(), self.rankings.with_count(rankings)
        return self._whole(table, orders, self.items, self.users)

    def extend(self, more: "Comparisons") -> Self:
        """Return these comparisons and `more` together; names that are new go to the end.

        >>> more = Comparisons.from_pairs(["a"], ["z"])
        >>> (Comparisons.from_pairs(["a"], ["b"]) + more).items
        ('a', 'b', 'z')
        """
        items, users = Encoder(self.items), Encoder(self.users)
        theirs, orders = recoded(self, more, items, users)
        if self.rankings is None and orders is None:
            return self._of(self._table().join(theirs).merge(), items.names, users.names)
        table = self._table() if len(self) else theirs.take(slice(0, 0))
        table = table.join(theirs).merge() if len(theirs.winner) else table
        both = self._of(table, items.names, users.names)
        return replace(both, rankings=joined_rankings(self.rankings, orders))

    def without(self, answers: "Comparisons") -> Self:
        """Return these comparisons with `answers` taken back; items and users stay.

        >>> data = Comparisons.from_pairs(["a", "b"], ["b", "c"], count=[3, 1])
        >>> less = data.without(Comparisons.from_pairs(["a", "b"], ["b", "c"]))
        >>> less.items, less.n_comparisons
        (('a', 'b', 'c'), 2)
        """
        if answers.rankings is None and self.rankings is None:
            return self._with_count(self.count - found_again(self, answers))
        single, orders = self.single_pairs(), self.rankings
        left = single._with_count(single.count - found_again(single, answers.single_pairs()))
        if orders is not None:
            orders = orders.with_count(orders.count - found_rankings(self, answers))
        elif answers.rankings is not None:
            found_rankings(self, answers)
        return self._whole(left._table(), orders, self.items, self.users)

    def __add__(self, more: object) -> Self:
        return self.extend(more) if isinstance(more, Comparisons) else NotImplemented


def _covariate_names(given: Any, covariates: FloatArray | None) -> tuple[str, ...]:
    if covariates is None:
        return ()
    if isinstance(given, Mapping):
        return tuple(map(str, given))
    return tuple(f"x{k + 1}" for k in range(covariates.shape[1]))
