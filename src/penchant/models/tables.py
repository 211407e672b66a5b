"""The tables that models return: rankings, effects, raters, shares of the prior; and what utilities
mean, in words."""

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from math import floor, log, log10, nan
from os import PathLike
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, overload

import numpy as np
from scipy.special import ndtri

from penchant import gp, kernels
from penchant.ask import Belief
from penchant.data import Comparisons
from penchant.errors import DataError, UntoldError
from penchant.io import whole_file
from penchant.likelihoods import Gaussian, Likelihood, Raters
from penchant.models.defaults import difference_variance
from penchant.models.parameters import between, check_argument
from penchant.numerics.types import FloatArray, IntArray

RowT = TypeVar("RowT", bound=tuple[Any, ...])
"""A named tuple."""


@dataclass(frozen=True, repr=False)
class RowTable(Sequence[RowT]):
    """Rows by position, columns by name; prints as a table.

    row_type: the named tuple of a row; left: the columns that are printed left-aligned.
    """

    rows: tuple[RowT, ...]

    row_type: ClassVar[Any]
    left: ClassVar[tuple[int, ...]]

    @abstractmethod
    def cells(self) -> list[list[str]]:
        """Header and rows as text, for print and for reports."""

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, key: int) -> RowT: ...
    @overload
    def __getitem__(self, key: slice) -> Self: ...
    @overload
    def __getitem__(self, key: str) -> np.ndarray[Any, Any]: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str):
            return np.array([getattr(row, key) for row in self.rows])
        if isinstance(key, slice):
            return replace(self, rows=self.rows[key])
        return self.rows[key]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Rows as plain dictionaries."""
        return [dict(zip(self.row_type._fields, row, strict=True)) for row in self.rows]

    def to_pandas(self) -> Any:
        """A pandas data frame, one row for each."""
        import pandas

        return pandas.DataFrame(self.to_dicts(), columns=list(self.row_type._fields))

    def _repr_html_(self) -> str:
        header, *rows = ([escape(cell) for cell in line] for line in self.cells())
        head = "".join(f"<th>{cell}</th>" for cell in header)
        body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __str__(self) -> str:
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return "\n".join(
            "  ".join(
                cell.ljust(width) if i in self.left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        )

    def __repr__(self) -> str:
        return str(self)


_LATEX = str.maketrans(
    {letter: f"\\{letter}" for letter in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")  # what no spreadsheet can hold
_LOOK_AHEAD = 16  # items that are first compared with the first of a group
ELO = 400.0 / log(10.0)
"""Points on the Elo scale that multiply the odds of winning by e."""


class RankedItem(NamedTuple):
    """One row of a ranking: an item, its utility with interval, and how certain its place is.

    utility: relative to the average item. low, high: its interval.
    comparisons, wins: how often it was compared, and preferred; a tie is half a win. win_rate:
    their ratio, NaN where it was never compared. group: from 1; the items of a group do not differ
    significantly from its first, see `Ranking`. spread: standard deviation of the utility between
    people, where the ranking is of people at large and the model has users; else None.
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
        return self._rescaled(zero, self.per_unit, anchor, "elo")

    def above_average(self) -> "Ranking":
        """The same ranking with the average item at zero."""
        return self._rescaled(float(np.mean(self["utility"])), 1.0, 0.0, self.scale)

    def _rescaled(self, zero: float, unit: float, anchor: float, scale: str) -> "Ranking":
        rows = tuple(
            row._replace(
                utility=anchor + unit * (row.utility - zero),
                low=anchor + unit * (row.low - zero),
                high=anchor + unit * (row.high - zero),
                spread=None if row.spread is None else unit * row.spread,
            )
            for row in self.rows
        )
        return replace(self, rows=rows, scale=scale)

    def to_polars(self) -> Any:
        """A polars data frame, one row an item."""
        import polars

        return polars.DataFrame(self.to_dicts(), infer_schema_length=None)

    def to_markdown(self) -> str:
        """A Markdown table."""
        header, *rows = ([_one_line(cell).replace("|", "\\|") for cell in c] for c in self.cells())
        lines = [header, ["---"] * len(header), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def to_latex(self) -> str:
        """A LaTeX tabular, items left-aligned; it needs no package."""
        cells = self.cells()
        texts = ([_one_line(cell).translate(_LATEX) for cell in line] for line in cells)
        header, *rows = (" & ".join(line) + r" \\" for line in texts)
        columns = "rl" + "r" * (len(cells[0]) - 2)
        lines = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", header, r"\hline", *rows]
        return "\n".join([*lines, r"\hline", r"\end{tabular}"])

    def to_excel(self, path: str | PathLike[str]) -> None:
        """Write an .xlsx file, one row an item, with numbers as numbers; needs openpyxl."""
        try:
            from openpyxl import Workbook  # type: ignore[import-untyped]
        except ImportError:
            raise DataError(
                "to_excel needs openpyxl, which is not installed: install it, or write a file that "
                "spreadsheets open with to_pandas().to_csv(path)"
            ) from None
        book = Workbook()
        for line, row in enumerate((RankedItem._fields, *self.rows), start=1):
            for place, value in enumerate(row, start=1):
                if isinstance(value, float) and value != value:
                    continue
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                text = value if is_number else _CONTROL.sub("", str(value))
                cell = book.active.cell(line, place, text)
                cell.data_type = "n" if is_number else "s"  # no name is taken for a formula
        book.active.freeze_panes = "A2"
        with whole_file(path) as file:
            book.save(file)

    def cells(self) -> list[list[str]]:
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


def _one_line(cell: str) -> str:
    return " ".join(cell.split())


class Tally(NamedTuple):
    """(n,) how often each item was compared, and how often it won, ties counting half."""

    compared: FloatArray
    wins: FloatArray

    @classmethod
    def of(cls, data: Comparisons) -> "Tally":
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
        """The columns of an item's row in a ranking."""
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
    """Sort the items by mean utility, with intervals and probabilities of their places.

    Utilities and their intervals are relative to the average item: comparisons do not identify the
    common level of all utilities.
    """
    ranks = gp.summarize_ranks(belief, level, n_samples, rng)
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
    """(n,) the group of each place: a group ends before the first item that differs from the
    group's first item by so many standard deviations."""
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


LEVEL = 0.95
"""Of the intervals of effects and raters."""


class Estimates(NamedTuple):
    """Effects by name, their means and variances, (q,) each."""

    names: tuple[str, ...]
    mean: FloatArray
    var: FloatArray

    @classmethod
    def of(cls, effects: gp.EffectPosterior | None, lower: FloatArray) -> "Estimates":
        """From the posterior of effects and utilities; lower: the factor of the utilities'."""
        if effects is None:
            return NO_EFFECTS
        return cls(effects.names, effects.mean, np.diagonal(effects.covariance(lower)))


NO_EFFECTS = Estimates((), np.zeros(0), np.zeros(0))


class Effect(NamedTuple):
    """What one unit of a covariate, or being shown first, adds to a utility.

    low, high: its interval. prob_first: the probability that the first of two equal items wins,
    given a decision; None for a covariate.
    """

    name: str
    estimate: float
    low: float
    high: float
    prob_first: float | None


@dataclass(frozen=True, repr=False)
class Effects(RowTable[Effect]):
    """Effects of order and covariates; empty where comparisons have neither.

    >>> print(Effects((Effect("shown first", 0.25, 0.2, 0.3, 0.6),), 0.95))
    effect       estimate  95 % interval     P(first wins)
    shown first    +0.250  [+0.200, +0.300]          0.600
    """

    level: float

    row_type = Effect
    left = (0, 2)

    @classmethod
    def of(cls, found: Estimates, likelihood: Likelihood, level: float = LEVEL) -> "Effects":
        reach = float(ndtri(0.5 + 0.5 * level)) * np.sqrt(found.var)
        win, loss = (likelihood.prob(sign * found.mean, found.var) for sign in (1.0, -1.0))
        columns = (found.mean, found.mean - reach, found.mean + reach, win / (win + loss))
        numbers = np.column_stack(columns).tolist()
        rows = (
            Effect(name, estimate, low, high, prob if name == gp.ORDER else None)
            for name, (estimate, low, high, prob) in zip(found.names, numbers, strict=True)
        )
        return cls(tuple(rows), level)

    def cells(self) -> list[list[str]]:
        header = ["effect", "estimate", f"{100 * self.level:.3g} % interval", "P(first wins)"]
        cells = [header]
        for row in self.rows:
            # two significant digits of the estimate and of the interval's half, at least
            least = min(abs(n) for n in (row.estimate, row.high - row.estimate, 1.0) if n)
            decimals = max(3, 1 - floor(log10(least)))
            numbers = (row.estimate, row.low, row.high)
            estimate, low, high = (f"{number:+.{decimals}f}" for number in numbers)
            first = "" if row.prob_first is None else f"{row.prob_first:.3f}"
            cells.append([row.name, estimate, f"[{low}, {high}]", first])
        return cells

    def __str__(self) -> str:
        if not self.rows:
            return "no order shown and no covariates are known"
        return super().__str__()


MEASURED = {
    "lapse": "Reliability is the share of a person's answers that are not given at random.",
    "noise": "Reliability is how sharply a person tells items apart; 1 is typical.",
}
OWN = (
    "Each person's answers are compared with what the model predicts for that person, so that a "
    "taste of their own does not count as unreliable; indifference to all items does."
)
COMMON = (
    "Each person's answers are compared with the common ranking, so that a taste of their own "
    "counts as unreliable; MultiUserGP tells the two apart."
)
WEIGHED = "Answers of unreliable people count less in the ranking."
EQUAL = "The ranking weighs all people's answers equally."


class Rater(NamedTuple):
    """One row: a user, the number of answers, and the reliability with its interval."""

    user: Any
    answers: int
    reliability: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class RaterTable(RowTable[Rater]):
    """Raters from the least reliable to the most.

    With kind "lapse" reliability is the share of answers that are not given at random; with
    "noise" it is how sharply items are told apart, 1 being typical. about: what it means in this
    model, in words. Rows by position, columns by name; prints as a table.

    >>> print(RaterTable((Rater("ann", 30, 0.97, 0.9, 0.99),), "lapse"))
    user  answers  reliability  95 % interval
    ann        30         0.97  [0.90, 0.99]
    """

    kind: str
    level: float = LEVEL
    about: str = ""

    row_type = Rater
    left = (0, 3)

    def cells(self) -> list[list[str]]:
        header = ["user", "answers", "reliability", f"{100 * self.level:.3g} % interval"]
        return [header] + [
            [str(user), str(answers), f"{reliability:.2f}", f"[{low:.2f}, {high:.2f}]"]
            for user, answers, reliability, low, high in self.rows
        ]


def rater_table(
    answered: gp.RaterAnswers, likelihood: Likelihood, data: Comparisons, level: float = LEVEL
) -> RaterTable:
    """Estimate the reliability of every user with answers."""
    if isinstance(likelihood, Gaussian):
        raise UntoldError(
            "raters_ needs answers that are right or wrong, and likelihood='gaussian' has margins: "
            "fit with 'probit', 'logit' or 'ties' to judge raters"
        )
    judged = gp.rater_levels(answered, likelihood)
    low, high = judged.quantile(0.5 * (1.0 - level)), judged.quantile(0.5 * (1.0 + level))
    reliability, kind = judged.mean, "noise"
    if not isinstance(likelihood, Raters) or likelihood.kind == "lapse":
        reliability, low, high, kind = 1.0 - reliability, 1.0 - high, 1.0 - low, "lapse"
    pairs = data.single_pairs()
    answers = np.bincount(np.asarray(pairs.user), pairs.count, answered.n_raters)
    order = np.argsort(reliability, kind="stable")
    numbers = np.column_stack([reliability, low, high]).tolist()
    rows = tuple(
        Rater(data.users[u], round(float(answers[u])), *numbers[u]) for u in order if answers[u]
    )
    held_against = OWN if answered.personal else COMMON
    used = WEIGHED if isinstance(likelihood, Raters) else EQUAL
    return RaterTable(rows, kind, level, f"{MEASURED[kind]} {held_against} {used}")


def check_named(data: Comparisons, what: str) -> None:
    """Raise where comparisons have no users."""
    if data.user is None:
        raise UntoldError(
            f"{what} needs to know who gave each answer, and these comparisons do not say: give "
            "user=… for each, or leave it out"
        )


def describe_scale(model: Any) -> str:
    """What utilities mean, by an example that the model itself computes.

    A fixed sentence would be wrong for most: ties, lapses, other links and differences between
    people all change how often the better item wins.
    """
    items, utility = model.comparisons_.items, model.predict()
    best = int(np.argmax(utility))
    above = utility[best] - utility
    distance = np.abs(above - 1.0)
    distance[best] = np.inf
    other = int(np.argmin(distance))
    win, tie, loss = model.predict_proba([(items[best], items[other])], ties=True)[0]
    said = (
        "Utilities say how much more an item is liked than the average item. For example, "
        f"“{items[best]}” lies {above[other]:.2f} above “{items[other]}”: it is expected to win "
        f"{100 * win / (win + loss):.0f} of 100 "
    )
    if tie > 0.0:
        said += f"comparisons that are decided, and {100 * tie:.0f} of 100 end in a tie."
    else:
        said += "comparisons between the two."
    if not model.comparisons_.users:
        return said
    likelihood, one, known = model.likelihood_, np.ones(1), np.zeros(1)
    win, loss = (float(likelihood.prob(g, known)[0]) for g in (one, -one))
    return (
        f"{said} That is of people at large, whose tastes differ: at a difference of 1 in their "
        f"own utilities a person prefers the better item {100 * win / (win + loss):.0f} times of "
        "100."
    )


class SourceShare(NamedTuple):
    """Share of the prior variance of a random difference, before and after learning."""

    prior: float
    posterior: float


@dataclass(frozen=True)
class SourcesReport(gp.Report):
    """How inference went, and the share of each source in the prior, see `shares`."""

    shares: Mapping[str, SourceShare] = field(default_factory=dict)


def shares(
    start: kernels.Kernel, learned: kernels.Kernel, items: kernels.Inputs
) -> dict[str, SourceShare]:
    """The share of each source, before and after learning; each column adds up to one.

    A source that only learning added has a prior share of zero.

    >>> items = kernels.Inputs(np.arange(4.0)[:, None], index=np.arange(4))
    >>> found = shares(kernels.RBF(), kernels.RBF() + kernels.Independent(), items)
    >>> found["features"].prior, found["item effects"].prior
    (1.0, 0.0)
    """
    before, after = _by_source(start, items), _by_source(learned, items)
    names = dict.fromkeys([*before, *after])
    return {name: SourceShare(before.get(name, 0.0), after.get(name, 0.0)) for name in names}


def _by_source(kernel: kernels.Kernel, items: kernels.Inputs) -> dict[str, float]:
    variance = np.array([difference_variance(part, items) for part in kernel.parts])
    total = float(variance.sum()) or 1.0
    times: Counter[str] = Counter()
    found: dict[str, float] = {}
    for part, share in zip(kernel.parts, (variance / total).tolist(), strict=True):
        name = source_name(part)
        times[name] += 1
        found[name if times[name] == 1 else f"{name} {times[name]}"] = share
    return found


def source_name(kernel: kernels.Kernel) -> str:
    """What a part of a prior is about.

    >>> source_name(kernels.Independent()), source_name(kernels.Linear() * kernels.Independent())
    ('item effects', 'features × item effects')
    """
    if isinstance(kernel, kernels.Product):
        return " × ".join(map(source_name, kernel.kernels))
    if isinstance(kernel, kernels.GraphKernel):
        return kernel.relation
    if isinstance(kernel, kernels.Independent):
        return "item effects"
    if isinstance(kernel, kernels.RBF | kernels.Matern | kernels.Linear):
        return "features"
    if isinstance(kernel, kernels.FreeCovariance | kernels.LowRankCovariance):
        return "learned covariance"
    return type(kernel).__name__
