"""A report: what was found, in one HTML page."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from sklearn.base import clone

import penchant
from penchant.data import Comparisons, as_comparisons, whole_file
from penchant.errors import DataError
from penchant.metrics import calibration
from penchant.plots import plot_calibration
from penchant.workflow import html, sections
from penchant.workflow.choosing import choose_model
from penchant.workflow.evaluation import BASELINE, BradleyTerry, HeldOut, hold_out
from penchant.workflow.models import Material, as_model, name_of
from penchant.workflow.scorer import Scorer

FEWEST = 50
"""With fewer comparisons, ties aside, a held-out fifth says nothing."""
LEVEL = sections.LEVEL
TITLE = "What is preferred"


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
        data = as_comparisons(data_or_model)
        material = Material(data, X, **about)
        _, why, unfitted = choose_model(data, X, random_state=random_state, **about)
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
        if isinstance(model, Scorer):
            return model.comparisons_
        # with who answered, which a pooled model's `comparisons_` leaves out
        data: Comparisons = model.state_.learned.data
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
    ranking = model.rank(level=LEVEL).above_average()
    lead = html.paragraph(sections.lead(ranking, data)) + html.paragraph(
        f"Model: {findings.name} ({findings.why}).", "soft"
    )
    parts = [
        ("Ranking", sections.leaderboard(model, ranking)),
        *sections.wins(model, ranking),
        ("Can it be trusted?", _trust(findings)),
        *sections.drift(model, ranking, data),
        *sections.communities(model),
        *sections.effects(model),
        *sections.raters(model, data.n_users),
        ("The data", sections.state_of(data)),
        *sections.questions_next(model),
    ]
    foot = html.paragraph(f"Made by penchant {penchant.__version__}.", "soft")
    return html.page(title, lead, parts, foot)


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
        ("model", "accuracy", "log loss (less is better)", "calibration error"),
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
