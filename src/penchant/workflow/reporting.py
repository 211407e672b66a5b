"""The report: one HTML page, written section by section."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isnan
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

import penchant
from penchant import plots
from penchant.data import Comparisons, check_all_ties, check_connected, check_never_compared
from penchant.errors import DataError
from penchant.io import as_comparisons, whole_file
from penchant.metrics import calibration
from penchant.models import RankedItem, Ranking
from penchant.workflow import html, models
from penchant.workflow.evaluation import BASELINE, BradleyTerry, hold_out

FEWEST = 50
"""With fewer comparisons that are not ties, nothing is held out: the scores would be noise."""
TITLE = "What is preferred"
LEVEL = 0.95
SHOWN_WINS = 20
SHOWN_RATERS = 200
JUDGED_RATERS = 20_000
"""With more people than this the table of raters is left out: judging them all takes long."""
SHOWN_PATHS = 6
N_TIMES = 60
"""Times at which a path is drawn."""
SHOWN_COMMUNITIES = 6
N_QUESTIONS = 5
MAPPED = 2_000
"""About so many people are on the map; the utilities of all would fill the memory."""
SECONDS_A_DAY = 86_400

Section = tuple[str, str]
"""A heading and its HTML."""


def report(
    data_or_model: Any,
    path: str | PathLike[str],
    X: Any = None,
    *,
    title: str = TITLE,
    random_state: int = 0,
    **about: Any,
) -> Path:
    """Write a report as one HTML page that needs no other files, and return its path.

    The page has the ranking with intervals, who beats whom, whether predictions can be trusted
    (by holding out a fifth), communities of taste, the state of the data, and what to ask next.

    data_or_model : comparisons, or a file or data frame of them, to which a model is chosen and
        fitted; or a fitted model.
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
    if not hasattr(data_or_model, "fit"):
        material = models.Material(as_comparisons(data_or_model), X, **about)
        _, why, unfitted = models.choose_model(material.data, X, random_state=random_state, **about)
        model = material.fit(unfitted)
    else:
        model, why = models.as_model(data_or_model), "as it was fitted"
        material = models.Material(_learned_from(model), X, **about)
    return write_report(material, model, why, Path(path), title)


def write_report(material: models.Material, model: Any, why: str, path: Path, title: str) -> Path:
    """Write the report on a fitted model; why: the reason for the choice of the model."""
    data, name = material.data, models.name_of(model)
    ranking = model.rank(level=LEVEL)
    lead = html.paragraph(lead_sentences(ranking, data))
    lead += html.paragraph(f"Model: {name} ({why}).", "soft")
    parts = [
        ("Ranking", leaderboard(model, ranking)),
        *win_probabilities(model, ranking),
        ("Can it be trusted?", held_out_check(material, model)),
        *drift_over_time(model, ranking, data),
        *community_sections(model),
        *effect_table(model),
        *rater_table(model, data.n_users),
        ("The data", state_of(data)),
        *questions_next(model),
    ]
    foot = html.paragraph(f"Made by penchant {penchant.__version__}.", "soft")
    with whole_file(path) as file:
        file.write(html.page(title, lead, parts, foot).encode())
    return path


def _learned_from(model: Any) -> Comparisons:
    try:
        if isinstance(model, models.Scorer):
            return model.comparisons_
        # with the users, which a pooled model's `comparisons_` leaves out
        return model.state_.learned.data
    except AttributeError:
        raise DataError(
            f"this {models.name_of(model)} model is not fitted, or does not know the comparisons "
            "that it was fitted to: give the comparisons instead of the model"
        ) from None


def _not_given(model: Any, material: models.Material) -> list[str]:
    """Names of the arguments of `fit` that the model had and the report has not."""
    if isinstance(model, models.Scorer):
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


def held_out_check(material: models.Material, model: Any) -> str:
    """Hold out a fifth, and let the model and the baseline predict it from the rest."""
    data = material.data
    if data.count[~data.tie].sum() < FEWEST:
        return html.paragraph(
            "There are too few comparisons to hold some out and check predictions on them."
        )
    if missing := _not_given(model, material):
        return html.paragraph(
            f"The model was fitted with {' and '.join(missing)}, which the report was not given: "
            "it was not checked."
        )
    train, test = data.split(0.2, random_state=0)
    again = clone(model)
    if "progress" in again.get_params(deep=False):
        again.set_params(progress=False)
    known = replace(material, data=train)
    own, baseline = (hold_out(each, known, test) for each in (again, BradleyTerry()))
    body = html.paragraph(
        f"A fifth of the comparisons ({int(own.count.sum()):,}) was held out, predicted from the "
        f"rest, and then looked at. The baseline, {BASELINE}, takes everybody together and knows "
        "no features."
    )
    body += html.table(
        "Predictions of held-out comparisons",
        [(models.name_of(model), *own.cells()), (BASELINE, *baseline.cells())],
        ("model", "accuracy", "log loss (less is better)", "calibration error"),
    )
    if own.is_probability:
        found = calibration(own.prob, counts=own.count)
        body += html.figure(
            plots.plot_calibration(found),
            f"Calibration plot: the mean distance between predicted and observed shares is "
            f"{found.error:.3f}.",
            "On the diagonal, what is given 70 % happens 7 times in 10. Lines are two standard "
            "errors; the area of a point is the number of predictions.",
            "26rem",
        )
    return body


def lead_sentences(ranking: Ranking, data: Comparisons) -> str:
    """The number of comparisons, and the best item."""
    best = ranking[0]
    who = f" by {data.n_users:,} people" if data.users else ""
    text = f"{data.n_comparisons:,} comparisons{who} between {data.n_items:,} items. "
    if not _knows_how_sure(ranking):
        return f"{text}“{best.item}” scores highest."
    chance = f"{best.prob_best:.0%}"
    return f"{text}“{best.item}” comes first; the chance that it really is the best is {chance}."


def leaderboard(model: Any, ranking: Ranking) -> str:
    """All items with intervals on one scale."""
    if not _knows_how_sure(ranking):
        note = "Scores by features order the items; how far apart they lie means little."
        scores = [(str(r.item), str(r.rank), f"{r.utility:+.2f}", *_tallied(r)) for r in ranking]
        columns = ("item", "rank", "score", "comparisons", "win rate")
        return html.paragraph(note) + html.table("Items from best to worst", scores, columns, True)
    text = html.paragraph(model.scale_) if len(ranking) > 1 else ""
    text += html.paragraph(
        f"Intervals hold an item’s utility with {LEVEL:.0%} probability. Items of one group cannot "
        "be told from the first of it; the next group begins with the first item that is surely "
        "lower."
    )
    if people := models.about_people(model):
        text += html.paragraph(people)
    span = (float(ranking["low"].min()), float(ranking["high"].max()))
    rows = [
        (
            str(row.item),
            str(row.rank),
            html.interval(row, span),
            f"{row.prob_best:.1%}",
            f"{row.rank_low} to {row.rank_high}",
            str(row.group),
            *_tallied(row),
        )
        for row in ranking
    ]
    header = ["item", "rank", "utility", "P(best)", "rank interval", "group"]
    header += ["comparisons", "win rate"]
    return text + html.table("Items from best to worst", rows, header, sortable=True)


def _tallied(row: RankedItem) -> tuple[str, str]:
    return f"{row.comparisons:,}", "–" if isnan(row.win_rate) else f"{row.win_rate:.0%}"


def _knows_how_sure(ranking: Ranking) -> bool:
    return not isnan(ranking[0].low)


def win_probabilities(model: Any, ranking: Ranking) -> Iterator[Section]:
    """The matrix of win probabilities between the first items."""
    if not _knows_how_sure(ranking) or len(ranking) < 2:
        return
    items = [row.item for row in ranking[:SHOWN_WINS]]
    n, matrix = len(items), plots.win_matrix(model, items)
    alt = (
        f"Matrix of win probabilities between the first {n} items: {items[0]} is preferred to "
        f"{items[1]} with {matrix[0, 1]:.0%}, and to {items[-1]} with {matrix[0, -1]:.0%}."
    )
    caption = (
        f"Chance that the item of the row is preferred to that of the column, for the first {n} "
        "items: purple where the row wins, orange where the column does."
    )
    figure = html.figure(plots.plot_win_matrix(matrix, items), alt, caption, "40rem", dense=True)
    yield "Who beats whom", figure


def community_sections(model: Any) -> Iterator[Section]:
    """Communities with their rankings side by side, a map, and the sampler's trace if it ran."""
    if not hasattr(model, "membership_"):
        return
    if model.draws_ is None:
        learned = model.support_.sentence
    else:
        learned = ", ".join(f"{k} with {p:.0%}" for k, p in model.supported_counts_.items())
        learned += " (communities that the answers support)"
    body = html.paragraph(
        "People who judge alike form a community. How many there are is learned from the answers: "
        f"{learned}."
    )
    if not model.has_communities_:
        body += html.paragraph("One taste for everybody explains the answers best.", "warning")
        yield "Communities of taste", body
        return
    rows = [
        (
            f"community {group['community']}",
            f"{group['size']:,.0f}",
            *("; ".join(map(str, group[k])) for k in ("likes", "dislikes", "more_than_others")),
        )
        for group in models.groups(model)
    ]
    header = ("community", "people", "likes most", "likes least", "more than others")
    body += html.table("Who they are", rows, header) + _side_by_side(model.communities_)
    some = slice(None, None, max(1, len(model.membership_) // MAPPED))  # evenly picked
    people = model.comparisons_.users[some]
    body += html.figure(
        plots.plot_membership_map(model.predict(users=people), model.membership_[some]),
        f"Map of {len(people):,} people, each community in its colour and shape; people near each "
        "other like the same items.",
        "Every point is a person; who is near likes the same. Paler points are less sure to belong "
        "where they are.",
        "30rem",
    )
    if model.chains_:  # a search that ended is nothing to look at
        body += html.figure(
            plots.plot_evidence(model),
            "Log probability of the sampled communities against sweeps of the sampler.",
            "How the search for communities went: chains that level off at the same height have "
            "settled.",
            "30rem",
        )
    yield "Communities of taste", body


def _side_by_side(found: Sequence[Any]) -> str:
    """Every item in every community, on one scale; the order is that of the largest community."""
    shown = found[:SHOWN_COMMUNITIES]
    rankings = [community.ranking for community in shown]
    by_item = [{row.item: row for row in ranking} for ranking in rankings]
    low = min(float(ranking["low"].min()) for ranking in rankings)
    high = max(float(ranking["high"].max()) for ranking in rankings)
    rows = [
        (str(row.item), *(html.interval(table[row.item], (low, high)) for table in by_item))
        for row in rankings[0]
    ]
    header = ("item", *(f"community {c.number} ({c.share:.0%})" for c in shown))
    left_out = len(found) - len(shown)
    note = f" The {left_out} smallest communities are left out." if left_out else ""
    caption = f"Utilities above each community’s average item, on one scale.{note}"
    return html.table(caption, rows, header, sortable=True)


def effect_table(model: Any) -> Iterator[Section]:
    """Effects of the order shown and of covariates, where the model has them."""
    if found := getattr(model, "effects_", ()):
        header, *rows = found.cells()
        note = (
            "What else moves an answer, on the scale of utilities: an effect of 0.1 is as if the "
            "item were liked 0.1 more. The ranking is at equal sides and covariates."
        )
        table = html.table("Effects", rows, header)
        yield "Order shown and other effects", html.paragraph(note) + table


def rater_table(model: Any, n_people: int = 0) -> Iterator[Section]:
    """The reliability of everybody who answered, unless they are too many."""
    if n_people > JUDGED_RATERS:
        return
    try:
        table = getattr(model, "raters_", ())
    except DataError:  # nobody is named in the data
        return
    if table:
        note = table.about
        if len(table) > SHOWN_RATERS:
            note += f" The first {SHOWN_RATERS} of {len(table):,} people are shown."
        header, *rows = table[:SHOWN_RATERS].cells()
        listed = html.table("People who answered", rows, header, sortable=True)
        yield "Raters", html.paragraph(note) + listed


def drift_over_time(model: Any, ranking: Ranking, data: Comparisons) -> Iterator[Section]:
    """Utilities over time, where they drift: the first items as lines, all as numbers."""
    if getattr(model, "drift", None) is None or data.time is None:
        return
    days = np.linspace(float(data.time.min()), float(data.time.max()), N_TIMES)
    mean, std = model.paths(days)
    place = {item: k for k, item in enumerate(model.comparisons_.items)}
    order = [place[row.item] for row in ranking]
    drawn = order[:SHOWN_PATHS]
    names = [model.comparisons_.items[k] for k in drawn]
    dates = (days * SECONDS_A_DAY).astype("datetime64[s]")
    rise = mean[-1] - mean[0]
    alt = f"Utilities of {len(names)} items over time: {names[0]} moved by {rise[drawn[0]]:+.2f}."
    caption = (
        f"Utilities above the average item at each time, of the first {len(names)} items; bands "
        "are two standard deviations."
    )
    moments = [0, (N_TIMES - 1) // 2, N_TIMES - 1]
    rows = [
        (
            str(model.comparisons_.items[k]),
            *(f"{mean[at, k]:+.2f} ± {2.0 * std[at, k]:.2f}" for at in moments),
            f"{rise[k]:+.2f}",
        )
        for k in order
    ]
    header = ("item", *(str(dates[at].astype("datetime64[D]")) for at in moments), "change")
    note = "± is two standard deviations. The ranking is as of the last comparison."
    drawing = plots.plot_paths(dates, mean[:, drawn], std[:, drawn], names)
    table = html.table("Utilities over time", rows, header, sortable=True)
    yield "Over time", html.figure(drawing, alt, caption, "40rem") + html.paragraph(note) + table


def state_of(data: Comparisons) -> str:
    """Warnings about the data, how they were read, and counts."""
    body = "".join(html.paragraph(text, "warning") for text in concerns(data))
    if data.source:
        body += html.paragraph(f"Read as: {data.source}.", "soft")
    return body + html.table("What was there", facts(data), ("what", "how many"))


def questions_next(model: Any) -> Iterator[Section]:
    """The questions that would teach the model most."""
    if isinstance(model, models.Scorer):
        return
    rows = [
        (f"{row['first']} or {row['second']}?", f"{row['probability']:.0%}")
        for row in models.questions(model, N_QUESTIONS)
    ]
    note = (
        "These comparisons would teach the model most. A chance near one half means that it "
        "cannot tell yet."
    )
    table = html.table("Next questions", rows, ("question", "chance of the first"))
    yield "What to ask next", html.paragraph(note) + table


def facts(data: Comparisons) -> list[tuple[str, str]]:
    """Counts that describe the data, as (what, how many)."""
    ties = int(data.count[data.tie].sum())
    times = np.bincount(data.winner, data.count, data.n_items)
    times += np.bincount(data.loser, data.count, data.n_items)
    _, labels = data.components()
    used = data.compared()
    total, *wins = _wins_of_pairs(data.pooled() if data.users else data)
    rows = [
        ("comparisons", f"{data.n_comparisons:,}"),
        ("distinct comparisons", f"{len(data):,}"),
        ("items", f"{data.n_items:,}"),
        ("items never compared", f"{data.n_items - len(used):,}"),
        ("groups of items connected by comparisons", f"{len(np.unique(labels[used])):,}"),
        ("comparisons an item, least to most", f"{times.min():,.0f} to {times.max():,.0f}"),
        ("ties", f"{ties:,} ({ties / data.n_comparisons:.0%})"),
        ("pairs of items judged more than once", f"{(total > 1).sum():,}"),
        ("of these, judged both ways", f"{(np.minimum(*wins) > 0).sum():,}"),
    ]
    if data.user is not None:
        per_user = np.bincount(data.user, data.count, data.n_users)
        spread = f"{per_user.min():,.0f} to {per_user.max():,.0f}"
        contradicted = np.minimum(*_wins_of_pairs(data, data.user)[1:]).sum()
        rows += [
            ("people", f"{data.n_users:,}"),
            ("comparisons a person, least to most", spread),
            ("times a person contradicted their own answer", f"{contradicted:,.0f}"),
        ]
    return rows


def concerns(data: Comparisons) -> list[str]:
    """Sentences about what limits the conclusions."""
    checks = (check_never_compared, check_connected, check_all_ties)
    found = (message for check in checks if (message := check(data)) is not None)
    return [f"{message[0].upper()}{message[1:]}." for message in found]


def _wins_of_pairs(data: Comparisons, who: Any = 0) -> list[Any]:
    """(k,) answers to each pair of items, wins of one and wins of the other; apart by `who`."""
    low, high = np.minimum(data.winner, data.loser), np.maximum(data.winner, data.loser)
    _, pair = np.unique((who * data.n_items + low) * data.n_items + high, return_inverse=True)
    first, second = (~data.tie & (data.winner == item) for item in (low, high))
    return [np.bincount(pair, data.count * which) for which in (1, first, second)]
