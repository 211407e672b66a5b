"""The table that `rank()` returns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log, nan
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from penchant.ask import Belief
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import summarize_ranks
from penchant.likelihoods import Likelihood
from penchant.models import exports
from penchant.models.row_table import RowTable
from penchant.models.validation import between, check_argument
from penchant.numerics.types import FloatArray, IntArray

_LOOK_AHEAD = 16  # items that are first held against the first of a group
ELO = 400.0 / log(10.0)
"""Points on the Elo scale that multiply the odds of winning by e."""


class RankedItem(NamedTuple):
    """One row of a ranking: an item, its utility with interval, and how sure its place is.

    utility: above the average item. low, high: its interval.
    comparisons, wins: how often it was compared, and preferred; a tie is half a win. win_rate:
    their ratio, NaN where it was never compared. group: from 1; items of one group cannot be told
    from its first, see `Ranking`. spread: standard deviation of the utility between people, where
    the ranking is of people at large and the model tells them apart; else None.
    """

    rank: int
    item: Any
    utility: float
    low: float
    high: float
    prob_best: float
    rank_low: int
    rank_high: int
    comparisons: int = 0
    wins: float = 0.0
    win_rate: float = nan
    group: int = 0
    spread: float | None = None


@dataclass(frozen=True, repr=False)
class Ranking(RowTable[RankedItem]):
    """Items from best to worst.

    Rows by position, columns by name; prints as a table.

    Groups: the best item opens the first group, and an item belongs to the group as long as the
    interval of its difference from the group's first item, in the joint posterior, includes zero;
    the first item that is surely lower opens the next group. Two items of one group are not known
    to differ from its first; items of different groups may still overlap with one another.

    scale: what `utility`, `low` and `high` are measured in, "utility" or "elo". per_unit: points on
    the Elo scale of a difference of one, NaN where there are no probabilities.

    >>> row = RankedItem(1, "tea", 0.8, 0.1, 1.5, 0.9, 1, 2, 4, 3.0, 0.75, 1)
    >>> table = Ranking((row,), level=0.95)
    >>> table[0].item, table["utility"]
    ('tea', array([0.8]))
    >>> print(table)
    rank  item  utility  95 % interval   P(best)  rank interval  comparisons  wins  win rate  group
       1  tea     +0.80  [+0.10, +1.50]    0.900            1–2            4     3      0.75      1
    """

    level: float
    scale: str = "utility"
    per_unit: float = nan

    row_type = RankedItem
    left = (1, 3)

    def to_elo(self, anchor: float = 1000.0, item: Any = None) -> "Ranking":
        """The same ranking on a scale as Elo's: 400 points are odds of ten to one.

        anchor : where the average item lies; or, with `item`, that item.

        The better of two items that lie one unit of utility apart wins (ties aside) with the
        probability p that the likelihood gives; that difference becomes 400 log10(p/(1 − p))
        points. Under a logistic likelihood this holds at every difference, under the probit it is
        a point of the curve: chances of differences far from one are a little off.

        >>> row = RankedItem(1, "tea", 0.8, 0.1, 1.5, 0.9, 1, 2)
        >>> elo = Ranking((row, row._replace(item="milk", utility=0.0)), 0.95, per_unit=ELO)
        >>> [round(row.utility) for row in elo.to_elo(item="milk")]
        [1139, 1000]
        """
        check_argument("Ranking.to_elo", "anchor", anchor, between(-1e9, 1e9))
        if self.scale == "elo":
            raise DataError("this ranking is on the Elo scale already: convert that of utilities")
        if self.per_unit != self.per_unit:
            raise DataError(
                "this ranking has no Elo scale: its model gives scores and no probabilities; "
                "fit a gp model"
            )
        names = [row.item for row in self.rows]
        if item is not None and item not in names:
            raise DataError(f"item is {item!r}: it must be one of the {len(names)} ranked items")
        zero = float(np.mean(self["utility"])) if item is None else self[names.index(item)].utility
        return replace(self, rows=self._moved(zero, self.per_unit, anchor), scale="elo")

    def above_average(self) -> "Ranking":
        """The same ranking with the average item at zero: nobody compared how high all lie."""
        return replace(self, rows=self._moved(float(np.mean(self["utility"])), 1.0, 0.0))

    def _moved(self, zero: float, factor: float, anchor: float) -> tuple[RankedItem, ...]:
        return tuple(
            row._replace(
                **{
                    name: anchor + factor * (getattr(row, name) - zero)
                    for name in ("utility", "low", "high")
                },
                spread=None if row.spread is None else factor * row.spread,
            )
            for row in self.rows
        )

    def to_polars(self) -> Any:
        """A polars data frame, one row an item."""
        import polars

        return polars.DataFrame(self.to_dicts(), infer_schema_length=None)

    def to_markdown(self) -> str:
        """A Markdown table."""
        return exports.to_markdown(self._cells())

    def to_latex(self) -> str:
        """A LaTeX tabular; it needs no package."""
        return exports.to_latex(self._cells())

    def to_excel(self, path: str | PathLike[str]) -> None:
        """Write an .xlsx file, one row an item; needs openpyxl."""
        exports.to_excel(self.to_dicts(), RankedItem._fields, path)

    def _cells(self) -> list[list[str]]:
        interval = f"{100 * self.level:.3g} % interval"
        header = ["rank", "item", self.scale, interval, "P(best)", "rank interval"]
        form = ".0f" if self.scale == "elo" else "+.2f"
        rows = [
            [
                str(row.rank),
                str(row.item),
                f"{row.utility:{form}}",
                f"[{row.low:{form}}, {row.high:{form}}]",
                f"{row.prob_best:.3f}",
                f"{row.rank_low}–{row.rank_high}",
                str(row.comparisons),
                f"{row.wins:g}",
                "–" if row.win_rate != row.win_rate else f"{row.win_rate:.2f}",
                str(row.group) if row.group else "–",
                *([] if row.spread is None else [f"{row.spread:{form.lstrip('+')}}"]),
            ]
            for row in self.rows
        ]
        last = ["spread"] if self.rows and self.rows[0].spread is not None else []
        return [[*header, "comparisons", "wins", "win rate", "group", *last], *rows]


class Tally(NamedTuple):
    """(n,) how often each item was compared, and how often it won, ties counting half."""

    compared: FloatArray
    wins: FloatArray

    @classmethod
    def of(cls, data: Comparisons) -> "Tally":
        """Of all comparisons."""
        return cls.counted(data, data.count.astype(float), data.n_items)

    @classmethod
    def counted(cls, answers: Any, count: FloatArray, n_items: int) -> "Tally":
        """Of answers with `winner`, `loser` and `tie`, each given `count` times."""
        winner, loser = answers.winner, answers.loser
        half = np.zeros(len(winner)) if answers.tie is None else 0.5 * answers.tie
        won = np.bincount(winner, (1.0 - half) * count, n_items)
        shared = np.bincount(loser, half * count, n_items)
        met = np.bincount(winner, count, n_items) + np.bincount(loser, count, n_items)
        return cls(met.astype(np.float64), (won + shared).astype(np.float64))

    def of_item(self, i: int) -> dict[str, Any]:
        """What a ranking's row says of an item."""
        compared, wins = float(self.compared[i]), float(self.wins[i])
        rate = wins / compared if compared > 0.0 else nan
        return {"comparisons": round(compared), "wins": round(wins, 1), "win_rate": rate}


def ranking_of(
    belief: Belief,
    items: Sequence[Any],
    tally: Tally,
    level: float,
    n_samples: int,
    rng: np.random.Generator,
    spread: FloatArray | None = None,
) -> Ranking:
    """Sort the items by mean utility and say how sure each place is.

    Utilities and their intervals are relative to the average item: comparisons do not identify the
    common level of all utilities.
    """
    ranks = summarize_ranks(belief, level, n_samples, rng)
    deviations = float(ndtri(0.5 + 0.5 * level))
    reach = deviations * np.sqrt(belief.contrast_var)
    mean = belief.mean - belief.mean.mean()
    order = np.argsort(-mean, kind="stable")
    group = groups_of(belief, order, deviations)
    rows = tuple(
        RankedItem(
            rank=place,
            item=items[i],
            utility=float(mean[i]),
            low=float(mean[i] - reach[i]),
            high=float(mean[i] + reach[i]),
            prob_best=float(ranks.prob_best[i]),
            rank_low=int(ranks.rank_low[i]),
            rank_high=int(ranks.rank_high[i]),
            **tally.of_item(i),
            group=int(group[place - 1]),
            spread=None if spread is None else float(spread[i]),
        )
        for place, i in enumerate(order, start=1)
    )
    return Ranking(rows, level, per_unit=elo_per_unit(belief.likelihood))


def groups_of(belief: Belief, order: IntArray, deviations: float) -> IntArray:
    """(n,) the group of each place: a group ends before the first item whose difference from the
    group's first item is surely not zero, by so many standard deviations."""
    group = np.ones(len(order), dtype=np.intp)
    first, ahead = 0, _LOOK_AHEAD
    while first < len(order) - 1:
        others = order[first + 1 : first + 1 + ahead]
        mean, var = belief.difference(np.full(len(others), order[first]), others)
        apart = np.flatnonzero(mean > deviations * np.sqrt(np.maximum(var, 0.0)))
        if len(apart):
            first, ahead = first + 1 + int(apart[0]), _LOOK_AHEAD
            group[first:] += 1
        elif first + 1 + len(others) == len(order):
            break
        else:
            ahead *= 4
    return group


def elo_per_unit(likelihood: Likelihood) -> float:
    """Points on the Elo scale of a difference of one: 400 log10 of the odds of winning there.

    >>> from penchant.likelihoods import Logit, Probit
    >>> round(elo_per_unit(Logit()), 1), round(elo_per_unit(Probit()), 1)
    (173.7, 289.8)
    """
    one, known = np.ones(1), np.zeros(1)
    win, loss = likelihood.prob(one, known)[0], likelihood.prob(-one, known)[0]
    return float(ELO * np.log(win / loss)) if loss > 0.0 else nan
