"""A report: what was found, in one HTML page. Each section is a heading and its HTML."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import penchant
from penchant.data import Comparisons
from penchant.data.files import whole_file
from penchant.errors import DataError
from penchant.metrics import calibration
from penchant.models.ranking import RankedItem, Ranking
from penchant.plots.calibration import plot_calibration
from penchant.plots.communities import plot_membership_map
from penchant.plots.evidence import plot_evidence
from penchant.plots.ranking import plot_ranking
from penchant.plots.win_matrix import plot_win_matrix, win_matrix
from penchant.workflow import health, html
from penchant.workflow.choosing import choose_model
from penchant.workflow.evaluation import BASELINE, BradleyTerry, HeldOut, hold_out
from penchant.workflow.models import Material, as_model, name_of
from penchant.workflow.rows import groups, questions
from penchant.workflow.scorer import Scorer

SHOWN_RANKS = 30
SHOWN_WINS = 20
N_QUESTIONS = 5
FEWEST = 50
"""With fewer comparisons, ties aside, a held-out fifth says nothing."""
MAPPED = 2_000
"""About so many people are on the map; the utilities of all would fill the memory."""
LEVEL = 0.95
TITLE = "What is preferred"

Section = tuple[str, str]


@dataclass(frozen=True)
class Findings:
    """What a report is about: a fitted model, and what it learned from.

    held_out: predictions by model; empty where nothing could be held out, and why.
    """

    material: Material
    model: Any
    why: str
    held_out: dict[str, HeldOut]
    why_not: str = ""

    @property
    def name(self) -> str:
        """What the model is called."""
        return name_of(self.model)


def report(
    data_or_model: Any,
    path: str | PathLike[str],
    X: Any = None,
    *,
    title: str = TITLE,
    random_state: int = 0,
    **about: Any,
) -> Path:
    """Write what is known into one HTML page that needs nothing else, and return its path.

    The page has the ranking with intervals, who beats whom, whether predictions can be trusted
    (by holding out a fifth), communities of taste, the state of the data, and what to ask next.

    data_or_model : comparisons, to which a model is chosen and fitted; or a fitted model.
    X, about : features, and what else `fit` takes (relations=, user_features=, user_relations=);
        beside a fitted model those that it was fitted with, without which it cannot be checked
        on held-out comparisons.

    >>> import penchant as pc, tempfile
    >>> data = pc.datasets.simulate_pairs([0.0, 1.0, 2.0], 80, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = pc.report(data, f"{folder}/report.html", title="Three items")
    ...     "<h1>Three items</h1>" in page.read_text(encoding="utf-8")
    True
    """
    if isinstance(data_or_model, Comparisons):
        material = Material(data_or_model, X, **about)
        _, why, unfitted = choose_model(data_or_model, X, random_state=random_state, **about)
        findings = check(material, material.fit(unfitted), why)
    else:
        model = as_model(data_or_model)
        findings = check(Material(_learned_from(model), X, **about), model, "as it was fitted")
    target = Path(path)
    with whole_file(target) as file:
        file.write(build_page(findings, title).encode())
    return target


def check(material: Material, model: Any, why: str) -> Findings:
    """Hold out a fifth, and let the model and the baseline predict it from the rest."""
    data = material.data
    if data.count[~data.tie].sum() < FEWEST:
        too_few = "There are too few comparisons to hold some out and check predictions on them."
        return Findings(material, model, why, {}, too_few)
    if missing := _not_given(model, material):
        why_not = f"The model was fitted with {' and '.join(missing)}, which the report was not "
        return Findings(material, model, why, {}, why_not + "given: it was not checked.")
    train, test = data.split(0.2, random_state=0)
    again = clone(model)
    if "progress" in again.get_params(deep=False):
        again.set_params(progress=False)
    contestants = {name_of(model): again, BASELINE: BradleyTerry()}
    known = material.only(train)
    held_out = {name: hold_out(each, known, test) for name, each in contestants.items()}
    return Findings(material, model, why, held_out)


def _learned_from(model: Any) -> Comparisons:
    try:
        data: Comparisons = model.comparisons_
    except AttributeError:
        raise DataError(
            f"this {name_of(model)} model is not fitted, or does not know the comparisons that it "
            "was fitted to: give the comparisons instead of the model"
        ) from None
    return data


def _not_given(model: Any, material: Material) -> list[str]:
    """What a model was fitted with beside comparisons and the caller has left out."""
    if isinstance(model, Scorer):
        return [] if material.X is not None else ["features (X)"]
    knows_people = model.state_.user_columns.n_columns > 0
    links_people = "relation=" in repr(getattr(model, "user_kernel_", None))
    had = {
        "features (X)": (model.n_features_in_ > 0, material.X),
        "relations": ("relation=" in repr(model.kernel_), material.relations),
        "features of people (user_features)": (knows_people, material.user_features),
        "relations between people (user_relations)": (links_people, material.user_relations),
    }
    return [name for name, (used, given) in had.items() if used and given is None]


def build_page(findings: Findings, title: str) -> str:
    """The report as one HTML document."""
    model, data = findings.model, findings.material.data
    ranking = _above_average(model.rank(level=LEVEL))
    lead = html.paragraph(_lead(ranking, data)) + html.paragraph(
        f"Model: {findings.name} ({findings.why}).", "soft"
    )
    sections = [
        ("Ranking", _ranking(ranking)),
        *_wins(model, ranking),
        ("Can it be trusted?", _trust(findings)),
        *_communities(model),
        ("The data", _data(data)),
        *_questions(model),
    ]
    foot = html.paragraph(f"Made by penchant {penchant.__version__}.", "soft")
    return html.page(title, lead, sections, foot)


def _above_average(ranking: Ranking) -> Ranking:
    """The ranking with the average item at zero: nobody compared how high all lie together."""
    zero = float(np.mean(ranking["utility"]))
    shifted = (
        row._replace(utility=row.utility - zero, low=row.low - zero, high=row.high - zero)
        for row in ranking
    )
    return Ranking(tuple(shifted), ranking.level)


def _knows_how_sure(ranking: Ranking) -> bool:
    return not isnan(ranking[0].low)


def _lead(ranking: Ranking, data: Comparisons) -> str:
    best = ranking[0]
    who = f" by {data.n_users:,} people" if data.users else ""
    text = f"{data.n_comparisons:,} comparisons{who} between {data.n_items:,} items. "
    if not _knows_how_sure(ranking):
        return text + f"“{best.item}” scores highest."
    return text + (
        f"“{best.item}” comes first; the chance that it really is the best is {best.prob_best:.0%}."
    )


def _ranking(ranking: Ranking) -> str:
    explanation = (
        "Utilities say how much more an item is liked than the average item: at a difference of 1 "
        "the better item wins 84 of 100 comparisons. Where intervals overlap much, the order is "
        "not settled."
    )
    if not _knows_how_sure(ranking):
        explanation = "Scores by features order the items; how far apart they lie means little."
    header = ("item", "rank", "utility", f"{LEVEL:.0%} interval", "chance of best", "rank interval")
    listed = html.table("Items from best to worst", [_ranking_row(row) for row in ranking], header)
    return html.paragraph(explanation) + _ranking_figure(ranking) + listed


def _ranking_row(row: RankedItem) -> tuple[str, ...]:
    place = (str(row.item), str(row.rank), f"{row.utility:+.2f}")
    if isnan(row.low):
        return (*place, "–", "–", "–")
    return (
        *place,
        f"{row.low:+.2f} to {row.high:+.2f}",
        f"{row.prob_best:.1%}",
        f"{row.rank_low} to {row.rank_high}",
    )


def _ranking_figure(ranking: Ranking) -> str:
    if not _knows_how_sure(ranking):
        return ""
    top = ", ".join(f"{row.item} {row.utility:+.2f}" for row in ranking[:3])
    shown = min(SHOWN_RANKS, len(ranking))
    return html.figure(
        plot_ranking(ranking, top=SHOWN_RANKS),
        f"Forest plot of the utilities of {shown} items, best on top: {top} and so on; the table "
        "below has all numbers.",
        f"The first {shown} items with {LEVEL:.0%} intervals; beside them the chance of being best "
        "in per cent.",
        "36rem",
    )


def _wins(model: Any, ranking: Ranking) -> Iterator[Section]:
    if not _knows_how_sure(ranking) or len(ranking) < 2:
        return
    items = [row.item for row in ranking[:SHOWN_WINS]]
    n, matrix = len(items), win_matrix(model, items)
    alt = (
        f"Matrix of win probabilities between the first {n} items: {items[0]} is preferred to "
        f"{items[1]} with {matrix[0, 1]:.0%}, and to {items[-1]} with {matrix[0, -1]:.0%}."
    )
    caption = (
        f"Chance that the item of the row is preferred to that of the column, for the first {n} "
        "items: purple where the row wins, orange where the column does."
    )
    figure = html.figure(plot_win_matrix(matrix, items), alt, caption, "40rem", dense=True)
    yield "Who beats whom", figure


def _trust(findings: Findings) -> str:
    if not findings.held_out:
        return html.paragraph(findings.why_not)
    held_out = findings.held_out[findings.name]
    n_test = int(held_out.count.sum())
    body = html.paragraph(
        f"A fifth of the comparisons ({n_test:,}) was held out, predicted from the rest, and then "
        f"looked at. The baseline, {BASELINE}, takes everybody together and knows no features."
    )
    body += html.table(
        "Predictions of held-out comparisons",
        [
            (name, *result.scores().cells(result.accuracy_error()))
            for name, result in findings.held_out.items()
        ],
        ("model", "share foreseen", "log loss (less is better)", "calibration error"),
    )
    if held_out.is_probability:
        found = calibration(held_out.prob, counts=held_out.count)
        body += html.figure(
            plot_calibration(found),
            f"Calibration plot: the mean distance between predicted and observed shares is "
            f"{found.error:.3f}.",
            "On the diagonal, what is given 70 % happens 7 times in 10. Lines are two standard "
            "errors; the area of a point is the number of predictions.",
            "26rem",
        )
    return body


def _communities(model: Any) -> Iterator[Section]:
    if not hasattr(model, "membership_"):
        return
    if model.draws_ is None:
        learned = model.support_.sentence
    else:
        learned = ", ".join(f"{k} with {p:.0%}" for k, p in model.community_counts_.items())
    body = html.paragraph(
        "People who judge alike form a community. How many there are is learned from the answers: "
        f"{learned}."
    )
    if not model.has_communities_:
        body += html.paragraph("One taste for everybody explains the answers best.", "warning")
    rows = [_community_row(group) for group in groups(model)]
    header = ("community", "people", "likes most", "likes least", "more than others")
    body += html.table("Who they are", rows, header) + _map(model) + _search(model)
    yield "Communities of taste", body


def _community_row(group: dict[str, Any]) -> tuple[str, ...]:
    listed = ("; ".join(map(str, group[key])) for key in ("likes", "dislikes", "more_than_others"))
    return (f"community {group['group']}", f"{group['size']:,.0f}", *listed)


def _map(model: Any) -> str:
    some = slice(None, None, max(1, len(model.membership_) // MAPPED))  # evenly picked
    people = model.comparisons_.users[some]
    return html.figure(
        plot_membership_map(model.predict(users=people), model.membership_[some]),
        f"Map of {len(people):,} people, each community in its colour and shape; people near each "
        "other like the same items.",
        "Every point is a person; who is near likes the same. Paler points are less sure to belong "
        "where they are.",
        "30rem",
    )


def _search(model: Any) -> str:
    if not model.chains_:  # a search that ended is nothing to look at
        return ""
    return html.figure(
        plot_evidence(model),
        "Log probability of the sampled communities against sweeps of the sampler.",
        "How the search for communities went: chains that level off at the same height have "
        "settled.",
        "30rem",
    )


def _data(data: Comparisons) -> str:
    body = "".join(html.paragraph(text, "warning") for text in health.concerns(data))
    return body + html.table("What was there", health.facts(data), ("what", "how many"))


def _questions(model: Any) -> Iterator[Section]:
    if isinstance(model, Scorer):
        return
    rows = questions(model, N_QUESTIONS)
    listed = [(f"{row['first']} or {row['second']}?", f"{row['probability']:.0%}") for row in rows]
    yield (
        "What to ask next",
        html.paragraph(
            "These comparisons would teach the model most. A chance near one half means that it "
            "cannot tell yet."
        )
        + html.table("Next questions", listed, ("question", "chance of the first")),
    )
