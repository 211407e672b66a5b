"""The sections of a report: each a heading and its HTML."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

import penchant as pc
from penchant.cli import groups, health, html, models
from penchant.cli.evaluation import BASELINE, HeldOut
from penchant.cli.models import Fitted

SHOWN_RANKS = 30
SHOWN_WINS = 20
N_QUESTIONS = 5
MAPPED = 2_000
"""About so many people are on the map; the utilities of all would fill the memory."""
LEVEL = 0.95

Section = tuple[str, str]


@dataclass(frozen=True)
class Findings:
    """What a report is about. held_out: predictions by model, where enough data were there."""

    title: str
    data: pc.Comparisons
    fitted: Fitted
    held_out: dict[str, HeldOut]


def build_page(findings: Findings) -> str:
    """The report as one HTML document."""
    fitted, data = findings.fitted, findings.data
    rows = _above_average(models.ranking(fitted, LEVEL))
    lead = html.paragraph(_lead(rows, data)) + html.paragraph(
        f"Model: {fitted.kind} ({fitted.why}).", "soft"
    )
    sections = [
        ("Ranking", _ranking(rows)),
        *_wins(fitted, rows),
        *_calibration(findings),
        *_communities(fitted),
        ("The data", _data(data)),
        *_questions(fitted),
    ]
    foot = html.paragraph(f"Made by penchant {pc.__version__}.", "soft")
    return html.page(findings.title, lead, sections, foot)


def _above_average(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The ranking with the average item at zero: nobody compared how high all lie together."""
    zero = float(np.mean([row["utility"] for row in rows]))
    shifted = ("utility", "low", "high")
    return [
        row | {name: row[name] - zero for name in shifted if row[name] is not None} for row in rows
    ]


def _lead(rows: list[dict[str, Any]], data: pc.Comparisons) -> str:
    best = rows[0]
    who = f" by {data.n_users:,} people" if data.users else ""
    text = f"{data.n_comparisons:,} comparisons{who} between {data.n_items:,} items. "
    if best["prob_best"] is None:
        return text + f"“{best['item']}” scores highest."
    return text + (
        f"“{best['item']}” comes first; the chance that it really is the best is "
        f"{best['prob_best']:.0%}."
    )


def _ranking(rows: list[dict[str, Any]]) -> str:
    if rows[0]["low"] is None:
        explanation = "Scores by features order the items; how far apart they lie means little."
    else:
        explanation = (
            "Utilities say how much more an item is liked than the average item: at a difference "
            "of 1 the better item wins 84 of 100 comparisons. Where intervals overlap much, the "
            "order is not settled."
        )
    header = ("item", "rank", "utility", f"{LEVEL:.0%} interval", "chance of best", "rank interval")
    listed = html.table("Items from best to worst", [_ranking_row(row) for row in rows], header)
    return html.paragraph(explanation) + _ranking_figure(rows) + listed


def _ranking_row(row: dict[str, Any]) -> tuple[str, ...]:
    place = (str(row["item"]), str(row["rank"]), f"{row['utility']:+.2f}")
    if row["low"] is None:
        return (*place, "–", "–", "–")
    return (
        *place,
        f"{row['low']:+.2f} to {row['high']:+.2f}",
        f"{row['prob_best']:.1%}",
        f"{row['rank_low']} to {row['rank_high']}",
    )


def _ranking_figure(rows: list[dict[str, Any]]) -> str:
    if rows[0]["low"] is None:
        return ""
    ranking = [SimpleNamespace(**row) for row in rows]
    axes = pc.plots.plot_ranking(ranking, top=SHOWN_RANKS)
    top = ", ".join(f"{row['item']} {row['utility']:+.2f}" for row in rows[:3])
    shown = min(SHOWN_RANKS, len(rows))
    return html.figure(
        axes,
        f"Forest plot of the utilities of {shown} items, best on top: {top} and so on; the table "
        "below has all numbers.",
        f"The first {shown} items with {LEVEL:.0%} intervals; beside them the chance of being best "
        "in per cent.",
        "36rem",
    )


def _wins(fitted: Fitted, rows: list[dict[str, Any]]) -> Iterator[Section]:
    if fitted.kind in models.BY_FEATURES or len(rows) < 2:
        return
    items = [row["item"] for row in rows[:SHOWN_WINS]]
    n = len(items)
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    matrix = np.full((n, n), 0.5)
    pairs = [(items[a], items[b]) for a, b in zip(first, second, strict=True)]
    matrix[first, second] = models.probabilities(fitted, pairs)
    alt = (
        f"Matrix of win probabilities between the first {n} items: {items[0]} is preferred to "
        f"{items[1]} with {matrix[0, 1]:.0%}, and to {items[-1]} with {matrix[0, -1]:.0%}."
    )
    caption = (
        f"Chance that the item of the row is preferred to that of the column, for the first {n} "
        "items: purple where the row wins, orange where the column does."
    )
    axes = pc.plots.plot_win_matrix(matrix, items)
    yield "Who beats whom", html.figure(axes, alt, caption, "40rem", dense=True)


def _calibration(findings: Findings) -> Iterator[Section]:
    if not findings.held_out:
        yield (
            "Can it be trusted?",
            html.paragraph(
                "There are too few comparisons to hold some out and check the predictions on them."
            ),
        )
        return
    held_out = findings.held_out[findings.fitted.kind]
    n_test = int(held_out.count.sum())
    rows = [(kind, *_scores(result)) for kind, result in findings.held_out.items()]
    body = html.paragraph(
        f"A fifth of the comparisons ({n_test:,}) was held out, predicted from the rest, and then "
        f"looked at. The baseline, {BASELINE}, takes everybody together and knows no features."
    )
    body += html.table(
        "Predictions of held-out comparisons",
        rows,
        ("model", "share foreseen", "log loss (less is better)", "calibration error"),
    )
    if held_out.is_probability:
        calibration = pc.metrics.calibration(held_out.prob, counts=held_out.count)
        body += html.figure(
            pc.plots.plot_calibration(calibration),
            f"Calibration plot: the mean distance between predicted and observed shares is "
            f"{calibration.error:.3f}.",
            "On the diagonal, what is given 70 % happens 7 times in 10. Lines are two standard "
            "errors; the area of a point is the number of predictions.",
            "26rem",
        )
    yield "Can it be trusted?", body


def _communities(fitted: Fitted) -> Iterator[Section]:
    if fitted.kind != "community":
        return
    model = fitted.model
    numbers = ", ".join(f"{k} with {p:.0%}" for k, p in model.community_counts_.items())
    body = html.paragraph(
        "People who judge alike form a community. How many there are is learned from the answers: "
        f"{numbers}."
    )
    if not model.has_communities_:
        body += html.paragraph("One taste for everybody explains the answers best.", "warning")
    rows = [_community_row(group) for group in groups.describe(fitted)]
    header = ("community", "people", "likes most", "likes least", "more than others")
    body += html.table("Who they are", rows, header)
    some = slice(None, None, max(1, len(fitted.users) // MAPPED))  # evenly picked
    people = fitted.users[some]
    body += html.figure(
        pc.plots.plot_membership_map(model.predict(list(people)), model.membership_[some]),
        f"Map of {len(people):,} people, each community in its colour and shape; people near each "
        "other like the same items.",
        "Every point is a person; who is near likes the same. Paler points are less sure to belong "
        "where they are.",
        "30rem",
    )
    traces = {f"chain {k}": trace for k, trace in enumerate(model.diagnostics_.log_joint, start=1)}
    search = pc.plots.plot_evidence(traces, xlabel="sweep")
    search.set_ylabel("log probability")
    body += html.figure(
        search,
        "Log probability of the sampled communities against sweeps of the sampler.",
        "How the search for communities went: chains that level off at the same height have "
        "settled.",
        "30rem",
    )
    yield "Communities of taste", body


def _community_row(group: dict[str, Any]) -> tuple[str, ...]:
    listed = ("; ".join(map(str, group[key])) for key in ("likes", "dislikes", "more_than_others"))
    return (f"community {group['group']}", f"{group['size']:,.0f}", *listed)


def _data(data: pc.Comparisons) -> str:
    body = "".join(html.paragraph(text, "warning") for text in health.concerns(data))
    return body + html.table("What was there", health.facts(data), ("what", "how many"))


def _questions(fitted: Fitted) -> Iterator[Section]:
    if fitted.kind in models.BY_FEATURES:
        return
    rows = models.questions(fitted, N_QUESTIONS)
    listed = [(f"{row['first']} or {row['second']}?", f"{row['probability']:.0%}") for row in rows]
    yield (
        "What to ask next",
        html.paragraph(
            "These comparisons would teach the model most. A chance near one half means that it "
            "cannot tell yet."
        )
        + html.table("Next questions", listed, ("question", "chance of the first")),
    )


def _scores(held_out: HeldOut) -> Iterator[str]:
    accuracy, *others = held_out.scores().values()
    yield f"{accuracy:.3f} ± {held_out.accuracy_error():.3f}"
    for value in others:
        yield "–" if value is None else f"{value:.3f}"
