"""Answers as people give them: order shown, choices, raters, time; before and after.

What was taken for granted before is beside what is modelled now: sides and covariates ignored,
choices broken into pairs, people taken for one, utilities that stand still.
"""

from collections.abc import Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from penchant.datasets.folder import data_at
from penchant.datasets.football import load_football
from penchant.plots.style import BLUE, GREY, axes, legend_beside, tidy
from penchant.reproduce.answers_choices import choices_beside_pairs
from penchant.reproduce.answers_effects import effects_beside_none
from penchant.reproduce.answers_raters import coverage_rows, rater_rows
from penchant.reproduce.answers_time import TimeRow, football_rows, simulated_rows
from penchant.reproduce.page import Claim, Page

_ABOUT = (
    "Simulated answers with known truth, and football seasons. *Coverage* is the share of nominal "
    "intervals that hold the truth; *calibration error* the mean distance between stated and "
    "observed shares of new answers. *Before*: what a model of plain pairs makes of the same "
    "answers. Claims are this project's own aims, not a paper's."
)
_WIDE_ENOUGH = {0.90: (0.86, 0.94), 0.95: (0.92, 0.97)}
"""Coverage that an interval of this level should have, give or take what simulations tell."""


class BeforeAfter(NamedTuple):
    """A task: nominal level, coverage without and with its model, and calibration errors."""

    task: str
    level: float
    before: float
    after: float
    error_before: float = float("nan")
    error_after: float = float("nan")

    @property
    def holds(self) -> bool:
        """Whether intervals now are what they say."""
        low, high = _WIDE_ENOUGH[self.level]
        return low <= self.after <= high


def run(
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
) -> str:
    """The page; `quick` simulates few studies and foretells one season."""
    page = Page("Answers as people give them", _ABOUT, quick, out)
    with data_at(data):
        rows = [*_effects(page), *_choices(page), *_pooled(page)]
        _raters(page)
        _time(page)
    _before_and_after(page, rows)
    return page.text()


def _effects(page: Page) -> list[BeforeAfter]:
    n_draws = 3 if page.quick else 20
    with page.part(f"Order shown and a covariate: 2,000 battles of 12 items, {n_draws} draws"):
        rows = effects_beside_none(n_draws)
        what = ("utilities", "effects", "log_likelihood", "calibration_error")
        head = ["model", "order and length", "utilities covered (95 %)", "effects covered (95 %)"]
        page.table(
            [*head, "log-likelihood", "calibration error"],
            [[r["model"], r["order and length"], *(_measured(r, w) for w in what)] for r in rows],
        )
    by_way = {(row["model"], row["order and length"]): row for row in rows}
    found = []
    for model in dict.fromkeys(row["model"] for row in rows):
        before, after = (by_way[model, way] for way in ("ignored", "modelled"))
        values = (before["utilities"], after["utilities"])
        errors = (before["calibration_error"], after["calibration_error"])
        found.append(BeforeAfter(f"order and length, {model}", 0.95, *values, *errors))
    return found


def _choices(page: Page) -> list[BeforeAfter]:
    n_draws = 2 if page.quick else 60
    with page.part(f"Choices and rankings: 150 sets of 5 out of 60 items, {n_draws} draws"):
        rows = choices_beside_pairs(n_draws)
        what = ("answers", "taken as", "prior")
        page.table(
            [*what, "differences covered (90 %)", "log-likelihood of a new choice"],
            [
                [*(r[w] for w in what), _measured(r, "coverage"), _measured(r, "log_likelihood", 4)]
                for r in rows
            ],
        )
        page.say(
            "*Exact*: the same model by importance sampling, its variance known, chosen by the "
            "exact evidence, or integrated over; what misses there is no fault of the cliques."
        )
    coverage = {(r["answers"], r["prior"], r["taken as"]): r["coverage"] for r in rows}
    kinds = [(answers, prior) for answers, prior, way in coverage if way == "cliques"]
    return [
        BeforeAfter(
            f"{answers}, prior {prior}",
            0.90,
            coverage[answers, prior, "pairs"],
            coverage[answers, prior, "cliques"],
        )
        for answers, prior in kinds
    ]


def _pooled(page: Page) -> list[BeforeAfter]:
    n_studies = 8 if page.quick else 100
    with page.part(f"Everybody together where people differ: {n_studies} studies each"):
        rows = coverage_rows(n_studies)
        page.table(
            ["answers", "taken for independent", "as by default"],
            [[row.task, f"{row.independent:.3f}", f"{row.clustered:.3f}"] for row in rows],
        )
    return [BeforeAfter(row.task, 0.95, row.independent, row.clustered) for row in rows]


def _raters(page: Page) -> None:
    with page.part("Raters: 20 people, 10 of the opposite taste, 10 who click at random"):
        rows = rater_rows()
        page.table(
            ["group", "mean reliability", "lowest", "highest"],
            [[r.group, f"{r.reliability:.2f}", f"{r.low:.2f}", f"{r.high:.2f}"] for r in rows],
        )
    by_group = {row.group: row for row in rows}
    minority, clickers = by_group["minority"], by_group["random clickers"]
    found = f"minority {minority.low:.2f} and above, clickers {clickers.high:.2f} and below"
    why = "one draw; the least reliable of the minority against the most reliable clicker"
    told_apart = clickers.high < minority.low
    page.claim(Claim("an unusual taste is not unreliability", found, told_apart, why))


def _time(page: Page) -> None:
    n_leagues, n_weeks, n_seasons = (1, 40, 1) if page.quick else (2, 120, 3)
    with page.part(f"Simulated leagues that drift: {n_leagues}, {n_weeks} weeks each"):
        _foretold(page, simulated_rows(n_leagues, n_weeks))
    with page.part(f"Football: {n_seasons} seasons, each week by week from the five before"):
        _foretold(page, football_rows(n_seasons, page.load(load_football)))


def _foretold(page: Page, rows: Sequence[TimeRow]) -> None:
    page.table(
        ["model", "log-likelihood of the next games", "less ours", "seconds"],
        [
            [
                row.model,
                f"{row.log_likelihood:.4f}",
                f"{row.less_ours:+.4f} ± {row.error:.4f}" if row.error else "–",
                f"{row.seconds:.1f}",
            ]
            for row in rows
        ],
    )
    others = [row for row in rows if row.error]
    best = max(others, key=lambda row: row.less_ours)
    said = f"{best.model} {best.less_ours:+.4f} ± {best.error:.4f} on {best.games:,} games"
    no_worse = best.less_ours <= 2.0 * best.error
    why = "the best of the others less ours; level within two standard errors counts as no worse"
    league = rows[0].league
    page.claim(Claim(f"drift foretells no worse than ratings ({league})", said, no_worse, why))


def _before_and_after(page: Page, rows: Sequence[BeforeAfter]) -> None:
    page.say("## Before and after")
    page.table(
        ["task", "nominal", "coverage before", "after", "calibration error before", "after"],
        [
            [
                row.task,
                f"{row.level:.2f}",
                *(f"{share:.3f}" for share in (row.before, row.after)),
                *("–" if np.isnan(e) else f"{e:.4f}" for e in (row.error_before, row.error_after)),
            ]
            for row in rows
        ],
    )
    page.figure(_drawn(rows), "answers_coverage", "Coverage of intervals, before and after.")
    for level, (low, high) in _WIDE_ENOUGH.items():
        mine = [row for row in rows if row.level == level]
        found = f"{min(r.after for r in mine):.3f} to {max(r.after for r in mine):.3f}"
        found += f" over {len(mine)} tasks; before {min(r.before for r in mine):.3f} to "
        found += f"{max(r.before for r in mine):.3f}"
        outside = [row.task for row in mine if not row.holds]
        why = f"outside {low:.2f} to {high:.2f}: {'; '.join(outside) or 'none'}"
        page.claim(Claim(f"{level:.0%} intervals cover about as much", found, not outside, why))


def _drawn(rows: Sequence[BeforeAfter]) -> Any:
    ax = axes(None, width=6.0, height=0.8 + 0.2 * len(rows))
    for place, row in enumerate(rows):
        ax.plot([row.before, row.after], [place, place], color=GREY, linewidth=1, zorder=1)
        ax.scatter(row.before, place, color=GREY, s=14, label=None if place else "before")
        ax.scatter(row.after, place, color=BLUE, s=14, label=None if place else "after")
        ax.plot(row.level, place, "|", color="black", markersize=8)
    ax.set_yticks(range(len(rows)), [row.task for row in rows], fontsize=6)
    ax.invert_yaxis()
    ax.set_xlabel("share of intervals that hold the truth; a bar is what they promise")
    legend_beside(ax)
    tidy(ax)
    return ax.figure


def _measured(row: dict[str, Any], what: str, digits: int = 3) -> str:
    if np.isnan(row[what]):
        return "–"
    return f"{row[what]:.{digits}f} ± {row[f'{what}_se']:.{digits}f}"
