"""The table that `rank()` returns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple, overload

import numpy as np
from scipy.special import ndtri

from penchant.ask import Belief
from penchant.data import Comparisons
from penchant.gp.posterior import summarize_ranks
from penchant.numerics.types import FloatArray


class RankedItem(NamedTuple):
    """One row of a ranking: an item, its utility with interval, and how sure its place is.

    low, high: interval of the utility, the open common level of all utilities left out.
    comparisons, wins: how often it was compared, and preferred; a tie is half a win.
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


@dataclass(frozen=True)
class Ranking(Sequence[RankedItem]):
    """Items from best to worst.

    Rows by position, columns by name; prints as a table.

    >>> table = Ranking((RankedItem(1, "tea", 0.8, 0.1, 1.5, 0.9, 1, 2, 4, 3.0),), level=0.95)
    >>> table[0].item, table["utility"]
    ('tea', array([0.8]))
    >>> print(table)
    rank  item  utility  95 % interval   P(best)  rank interval  comparisons  wins
       1  tea     +0.80  [+0.10, +1.50]    0.900            1–2            4     3
    """

    rows: tuple[RankedItem, ...]
    level: float

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, key: int) -> RankedItem: ...
    @overload
    def __getitem__(self, key: slice) -> "Ranking": ...
    @overload
    def __getitem__(self, key: str) -> np.ndarray[Any, Any]: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str):
            return np.array([getattr(row, key) for row in self.rows])
        if isinstance(key, slice):
            return Ranking(self.rows[key], self.level)
        return self.rows[key]

    def __iter__(self) -> Iterator[RankedItem]:
        return iter(self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Rows as plain dictionaries."""
        return [row._asdict() for row in self.rows]

    def to_pandas(self) -> Any:
        """A pandas data frame, one row an item."""
        import pandas

        return pandas.DataFrame(self.to_dicts(), columns=list(RankedItem._fields))

    def to_polars(self) -> Any:
        """A polars data frame, one row an item."""
        import polars

        return polars.DataFrame(self.to_dicts())

    def to_markdown(self) -> str:
        """A Markdown table."""
        header, *rows = self._cells()
        lines = [header, ["---"] * len(header), *rows]
        return "\n".join(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
        )

    def _repr_html_(self) -> str:
        header, *rows = self._cells()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _cells(self) -> list[list[str]]:
        """Header and rows as text."""
        interval = f"{100 * self.level:.3g} % interval"
        header = ["rank", "item", "utility", interval, "P(best)", "rank interval"]
        rows = [
            [
                str(row.rank),
                str(row.item),
                f"{row.utility:+.2f}",
                f"[{row.low:+.2f}, {row.high:+.2f}]",
                f"{row.prob_best:.3f}",
                f"{row.rank_low}–{row.rank_high}",
                str(row.comparisons),
                f"{row.wins:g}",
            ]
            for row in self.rows
        ]
        return [[*header, "comparisons", "wins"], *rows]

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        lines = (
            "  ".join(
                cell.ljust(width) if i in (1, 3) else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        )
        return "\n".join(lines)

    __repr__ = __str__


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


def ranking_of(
    belief: Belief,
    items: Sequence[Any],
    tally: Tally,
    level: float,
    n_samples: int,
    rng: np.random.Generator,
) -> Ranking:
    """Sort the items by mean utility and say how sure each place is.

    Intervals are those of a utility relative to the average item: comparisons leave the common
    level of all utilities open, and that uncertainty is nobody's question.
    """
    ranks = summarize_ranks(belief, level, n_samples, rng)
    reach = float(ndtri(0.5 + 0.5 * level)) * np.sqrt(belief.contrast_var)
    mean = belief.mean
    order = np.argsort(-mean, kind="stable")
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
            comparisons=round(float(tally.compared[i])),
            wins=round(float(tally.wins[i]), 1),
        )
        for place, i in enumerate(order, start=1)
    )
    return Ranking(rows, level)
