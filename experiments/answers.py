"""Answers as people give them: order shown, choices, raters, time; before and after.

Each model is compared with one that ignores it: sides and covariates left out, choices broken into
pairs, people pooled, utilities constant over time.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from experiments import FloatArray
from experiments.answers_choices import choices_beside_pairs
from experiments.answers_time import KICKSCORE, TimeRow, football_rows, simulated_rows
from experiments.page import Claim, Need, Page
from penchant.data import Comparisons
from penchant.datasets import load_football
from penchant.metrics import calibration
from penchant.models import MultiUserGP, PreferenceGP
from penchant.plots.style import BLUE, GREY, axes, legend_beside, tidy

DATA = ("football",)
"""Folders of the public data that a full run needs."""

# The order shown and covariates: ignored, and modelled beside utilities.
#
# Battles of 12 items whose utilities have unit variance. Some items stand first more often than
# others, the first of two gains .25 and a covariate .3 a standard deviation. Items that win by
# their place or length are not better.

N_ITEMS, N_BATTLES, N_NEW, N_USERS = 12, 2_000, 2_000, 40
TRUTH = {"shown first": 0.25, "length": 0.3}
Z_95 = 1.959963984540054


class DrawnBattles(NamedTuple):
    """True utilities (n,), battles to learn from, and new ones."""

    f: FloatArray
    data: Comparisons
    new: Comparisons


def effects_beside_none(n_draws: int = 20, seed: int = 0) -> list[dict[str, Any]]:
    """One row for each model and whether it knows how battles were shown.

    utilities, effects: share of nominal 95 % intervals that cover the truth, utilities relative to
    the average item. log_likelihood, calibration_error: of new battles, predicted as shown.
    """
    seen: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for draw in range(n_draws):
        for name, n_users in (("PreferenceGP", 0), ("MultiUserGP", N_USERS)):
            drawn = _draw(np.random.default_rng([seed, draw, n_users]), n_users)
            bare = drawn._replace(data=drawn.data.bare(), new=drawn.new.bare())
            for way, each in (("ignored", bare), ("modelled", drawn)):
                seen.setdefault((name, way), []).append(_judged(name, each))
    rows = []
    for (name, way), values in seen.items():
        mean, error = np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / np.sqrt(n_draws)
        row: dict[str, Any] = {"model": name, "order and length": way}
        for k, what in enumerate(("utilities", "effects", "log_likelihood", "calibration_error")):
            row |= {what: float(mean[k]), f"{what}_se": float(error[k])}
        rows.append(row)
    return rows


def _draw(rng: np.random.Generator, n_users: int) -> DrawnBattles:
    f = rng.standard_normal(N_ITEMS)
    own = np.sqrt(0.5) * rng.standard_normal((max(n_users, 1), N_ITEMS)) * (n_users > 0)
    leaning = rng.uniform(0.05, 0.95, N_ITEMS)  # how much an item likes to stand first
    sets = [_battles(f + own, leaning, m, n_users, rng) for m in (N_BATTLES, N_NEW)]
    return DrawnBattles(f, *sets)


def _battles(
    f: FloatArray, leaning: FloatArray, m: int, n_users: int, rng: np.random.Generator
) -> Comparisons:
    user = rng.integers(len(f), size=m)
    a = rng.integers(N_ITEMS, size=m)
    b = (a + 1 + rng.integers(N_ITEMS - 1, size=m)) % N_ITEMS
    swap = rng.random(m) > leaning[a] / (leaning[a] + leaning[b])
    a, b = np.where(swap, b, a), np.where(swap, a, b)
    x = rng.standard_normal(m)
    g = f[user, a] - f[user, b] + TRUTH["shown first"] + TRUTH["length"] * x
    won = rng.random(m) < ndtr(g)
    return Comparisons.from_pairs(
        np.where(won, a, b),
        np.where(won, b, a),
        first=np.where(won, 1, -1),
        covariates={"length": np.where(won, x, -x)},
        user=user if n_users else None,
        items=range(N_ITEMS),
        users=range(n_users) if n_users else None,
    )


_MODELS: Mapping[str, type[PreferenceGP] | type[MultiUserGP]] = {
    "PreferenceGP": PreferenceGP,
    "MultiUserGP": MultiUserGP,
}


def _judged(name: str, drawn: DrawnBattles) -> tuple[float, ...]:
    model = _MODELS[name](random_state=0).fit(None, drawn.data)
    belief, new = model.belief(), drawn.new
    off = (belief.mean - belief.mean.mean()) - (drawn.f - drawn.f.mean())
    utilities = np.mean(np.abs(off) <= Z_95 * np.sqrt(belief.contrast_var))
    effects = [e.low <= TRUTH[e.name] <= e.high for e in model.effects_]
    shown: dict[str, Any] = {}
    if new.first is not None and new.covariates is not None:
        shown = {"first": new.first, "covariates": {"length": new.covariates[:, 0]}}
    pairs = np.column_stack([new.winner, new.loser])
    prob = model.predict_proba(pairs, new.user, **shown)
    error = calibration(prob, counts=new.count).error
    return float(utilities), float(np.mean(effects or np.nan)), model.score(new), float(error)


# Pooled intervals when people differ, and raters told from tastes: simulated, with known truth.

N_PEOPLE = 60
Study = tuple[FloatArray, Comparisons]


class CoverageRow(NamedTuple):
    """How often nominal 95 % intervals of pooled utilities hold the truth: with answers taken for
    independent, and as they are by default; and how many studies were simulated."""

    task: str
    independent: float
    clustered: float
    studies: int


class RaterRow(NamedTuple):
    """Mean reliability of a group of raters, lowest and highest."""

    group: str
    reliability: float
    low: float
    high: float


def coverage_rows(n_studies: int = 100) -> list[CoverageRow]:
    """60 people × 30 pairs, and 60 full rankings of 20 items, all of whom differ; and none."""
    tasks: dict[str, Callable[[np.random.Generator], Study]] = {
        "60 people × 30 pairs": lambda rng: pairs_study(rng, spread=0.5),
        "60 full rankings": lambda rng: rankings_study(rng, spread=0.5),
        "60 people × 30 pairs, all alike": lambda rng: pairs_study(rng, spread=0.0),
    }
    rows = []
    for number, (task, make) in enumerate(tasks.items()):
        hits: dict[bool, list[float]] = {False: [], True: []}
        for study in range(n_studies):
            truth, data = make(np.random.default_rng([number, study]))
            for how, found in hits.items():
                found.append(_covered(PreferenceGP(clustered=how), truth, data))
        independent, clustered = (float(np.mean(found)) for found in hits.values())
        rows.append(CoverageRow(task, independent, clustered, n_studies))
    return rows


def pairs_study(
    rng: np.random.Generator, spread: float, n_answers: int = 30, n_items: int = 10
) -> Study:
    """What pooling estimates, and pairs answered by people whose tastes spread around it."""
    f = rng.standard_normal(n_items)
    own = f + spread * rng.standard_normal((N_PEOPLE, n_items))
    user = np.repeat(np.arange(N_PEOPLE), n_answers)
    a = rng.integers(n_items, size=len(user))
    b = (a + rng.integers(1, n_items, size=len(user))) % n_items
    won = own[user, a] - own[user, b] + rng.standard_normal(len(user)) > 0
    winner, loser = np.where(won, a, b), np.where(won, b, a)
    data = Comparisons.from_pairs(winner, loser, user=user, items=range(n_items))
    return f / np.sqrt(1.0 + 2.0 * spread**2), data


def rankings_study(rng: np.random.Generator, spread: float, n_items: int = 20) -> Study:
    """The same of people who rank all items, as the pairs of their rankings."""
    f = rng.standard_normal(n_items)
    own = f + np.sqrt(0.5 + spread**2) * rng.standard_normal((N_PEOPLE, n_items))
    order, (first, second) = np.argsort(-own, axis=1), np.triu_indices(n_items, 1)
    user = np.repeat(np.arange(N_PEOPLE), len(first))
    data = Comparisons.from_pairs(
        order[:, first].ravel(), order[:, second].ravel(), user=user, items=range(n_items)
    )
    return f / np.sqrt(1.0 + 2.0 * spread**2), data


def _covered(model: PreferenceGP, truth: FloatArray, data: Comparisons) -> float:
    belief = model.fit(None, data).belief()
    error = belief.mean - belief.mean.mean() - truth + truth.mean()
    return float(np.mean(np.abs(error) < 1.96 * np.sqrt(belief.contrast_var)))


def rater_rows(seed: int = 0) -> list[RaterRow]:
    """20 people, 10 of the opposite taste and 10 who click at random, 30 answers each."""
    rng = np.random.default_rng(seed)
    f = 2.0 * rng.standard_normal(8)
    groups = np.repeat(["majority", "minority", "random clickers"], [20, 10, 10])
    taste = np.repeat([1.0, -1.0, 0.0], [20, 10, 10])
    user = np.repeat(np.arange(40), 30)
    a = rng.integers(8, size=len(user))
    b = (a + rng.integers(1, 8, size=len(user))) % 8
    won = taste[user] * (f[a] - f[b]) + rng.standard_normal(len(user)) > 0
    winner, loser = np.where(won, a, b), np.where(won, b, a)
    data = Comparisons.from_pairs(winner, loser, user=user, items=range(8))
    table = MultiUserGP(raters="lapse", progress=False, random_state=0).fit(None, data).raters_
    found = {row.user: row.reliability for row in table}
    rows = []
    for group in dict.fromkeys(groups.tolist()):
        mine = np.array([found[u] for u in np.flatnonzero(groups == group)])
        rows.append(RaterRow(group, float(mine.mean()), float(mine.min()), float(mine.max())))
    return rows


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


def run(quick: bool = False, out: str | PathLike[str] | None = None) -> str:
    """The page; `quick` simulates few studies and predicts one season."""
    page = Page("Answers as people give them", _ABOUT, quick, out)
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
    apart = Need("most reliable clicker", clickers.high, "<", minority.low)
    page.claim(Claim("an unusual taste is not unreliability", found, (apart,), why))


def _time(page: Page) -> None:
    n_leagues, n_weeks, n_seasons = (1, 40, 1) if page.quick else (2, 120, 3)
    with page.part(f"Simulated leagues that drift: {n_leagues}, {n_weeks} weeks each"):
        _predicted_games(page, simulated_rows(n_leagues, n_weeks))
    with page.part(f"Football: {n_seasons} seasons, each week by week from the five before"):
        _predicted_games(page, football_rows(n_seasons, page.load(load_football)))


def _predicted_games(page: Page, rows: Sequence[TimeRow]) -> None:
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
    league, others = rows[0].league, [row for row in rows if row.error]
    peers = [row for row in others if row.model == KICKSCORE]
    ratings = [row for row in others if row.model != KICKSCORE]
    page.claim(_no_worse(f"drift foretells no worse than ratings ({league})", ratings))
    page.claim(_no_worse(f"drift foretells no worse than kickscore ({league})", peers))


def _no_worse(claim: str, others: Sequence[TimeRow]) -> Claim:
    if not others:
        return Claim(claim, "–", (), "the package is not installed where this ran")
    best = max(others, key=lambda row: row.less_ours)
    found = f"{best.model} {best.less_ours:+.4f} ± {best.error:.4f} on {best.games:,} games"
    needs = tuple(Need(f"{r.model} less ours", r.less_ours, "≤", 2.0 * r.error) for r in others)
    return Claim(claim, found, needs, "level within two standard errors counts as no worse")


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
        outside = [row.task for row in mine if not low <= row.after <= high]
        why = f"outside {low:.2f} to {high:.2f}: {'; '.join(outside) or 'none'}"
        needs = (
            Need("lowest", min(r.after for r in mine), "≥", low),
            Need("highest", max(r.after for r in mine), "≤", high),
        )
        page.claim(Claim(f"{level:.0%} intervals cover about as much", found, needs, why))


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
