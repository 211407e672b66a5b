"""The table that `rank()` returns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import Any, NamedTuple, overload

import numpy as np
from scipy.special import ndtri

from penchant.gp import Posterior
from penchant.gp.summary import summarize_ranks


class RankedItem(NamedTuple):
    """One row of a ranking: an item, its utility with interval, and how sure its place is.

    low, high: interval of the utility, the open common level of all utilities left out.
    """

    rank: int
    item: Any
    utility: float
    low: float
    high: float
    prob_best: float
    rank_low: int
    rank_high: int


@dataclass(frozen=True)
class Ranking(Sequence[RankedItem]):
    """Items from best to worst.

    Rows by position, columns by name; prints as a table.

    >>> table = Ranking((RankedItem(1, "tea", 0.8, 0.1, 1.5, 0.9, 1, 2),), level=0.95)
    >>> table[0].item, table["utility"]
    ('tea', array([0.8]))
    >>> print(table)
    rank  item  utility  95 % interval   P(best)  rank interval
       1  tea     +0.80  [+0.10, +1.50]    0.900            1–2
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
        """Rows as plain dictionaries: `pandas.DataFrame(ranking.to_dicts())` works."""
        return [row._asdict() for row in self.rows]

    def __str__(self) -> str:
        width = max([4, *(len(str(row.item)) for row in self.rows)])
        interval = f"{100 * self.level:.3g} % interval"
        lines = [
            f"rank  {'item':<{width}}  utility  {interval:<16}P(best)  rank interval",
        ]
        for row in self.rows:
            bounds = f"[{row.low:+.2f}, {row.high:+.2f}]"
            places = f"{row.rank_low}–{row.rank_high}"
            lines.append(
                f"{row.rank:>4}  {row.item!s:<{width}}  {row.utility:>+7.2f}  {bounds:<16}"
                f"{row.prob_best:>7.3f}  {places:>13}"
            )
        return "\n".join(lines)

    __repr__ = __str__


def ranking_of(
    posterior: Posterior,
    items: Sequence[Any],
    level: float,
    n_samples: int,
    rng: np.random.Generator,
) -> Ranking:
    """Sort the posterior's items by mean utility and say how sure each place is.

    Intervals are those of a utility relative to the average item: comparisons leave the common
    level of all utilities open, and that uncertainty is nobody's question.
    """
    ranks = summarize_ranks(posterior, level, n_samples, rng)
    reach = float(ndtri(0.5 + 0.5 * level)) * np.sqrt(posterior.contrast_var)
    mean = posterior.mean
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
        )
        for place, i in enumerate(order, start=1)
    )
    return Ranking(rows, level)


class RankParameter:
    """Lets an estimator have both a parameter `rank` (a bound) and a method `rank()` (a table).

    scikit-learn sets parameters as attributes, which would hide a method of the same name: this
    descriptor stores what is set and answers reads with the method.
    """

    def table(self, method: Callable[..., Ranking]) -> Callable[..., Ranking]:
        """Decorator: the method that `estimator.rank(...)` calls."""
        self.method = method
        self.__doc__ = method.__doc__
        return method

    def __get__(self, estimator: Any, owner: type) -> Any:
        return self.method if estimator is None else MethodType(self.method, estimator)

    def __set__(self, estimator: Any, bound: int | None) -> None:
        estimator._rank_bound = bound
