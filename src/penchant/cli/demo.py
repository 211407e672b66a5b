"""`penchant demo`: a simulated study from beginning to end."""

import csv
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy import sparse

import penchant as pc
from penchant.cli.output import Output, command_with, output_options
from penchant.cli.predict import ASK_FORMATS
from penchant.cli.rank import RANK_FORMATS
from penchant.cli.source import SourceOptions, fit_and_tell
from penchant.workflow import models
from penchant.workflow.reporting import write_report

N_USERS, N_ITEMS, N_TASTES = 40, 30, 3
SHOWN = 10
N_QUESTIONS = 5
PERSONS = ("multi-user", "every person, learned together")
COMMUNITIES = ("community", "groups of people who judge alike")


@command_with("penchant demo")
@click.option(
    "--folder", default="penchant-demo", show_default=True, help="Where files and report go."
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Same seed, same study.",
)
@output_options(csv=False)
def demo_command(folder: str, seed: int, output: Output) -> None:
    """Simulate a study, learn from it, and write a report.

    40 people of three tastes judge 30 items with features and links. The tables are written to a
    folder and read back as yours would be. Two models learn from them: one of each person, and one
    of communities of taste. The ranking is that of the second, as in the report. The truth is
    known, so the results are compared with it.
    """
    place = Path(folder)
    settings = {"random_state": seed}
    truth = pc.datasets.simulate_study(N_USERS, N_ITEMS, N_TASTES, random_state=seed)
    source = write_study(truth, place)
    output.note(f"wrote a simulated study to {place}: votes.csv, items.csv, links.csv")

    material = source.read(output.note)
    personal = fit_and_tell(material, PERSONS, output, settings)
    communal = fit_and_tell(material, COMMUNITIES, output, settings)
    communal.save(str(place / "model.penchant"))
    report = place / "report.html"
    with output.progress("checking on held-out comparisons"):
        write_report(material, communal.model, communal.why, report, "A simulated study")
    output.note(f"wrote {report}")

    learned = personal.model.predict(users=personal.data.users)
    own = zip(learned, truth.utilities[truth.tastes], strict=True)
    members = np.array([row["community"] for row in models.members(communal.model)])
    results = {
        "ranking": communal.model.rank().to_dicts(),
        "person_agreement": float(np.mean([pc.metrics.kendall_tau(*pair) for pair in own])),
        "communities": _cross_table(members, truth.tastes),
        "adjusted_rand": pc.metrics.adjusted_rand(members, truth.tastes),
        "questions": models.questions(communal.model, N_QUESTIONS),
    }
    if output.form == "json":
        output.json(folder=folder, report=str(report), **results)
    else:
        _show(results, output)
    output.suggest(f"open {report} in a browser; then: penchant rank {source.comparisons}")


def _show(results: dict[str, Any], output: Output) -> None:
    click.echo("\nThe ranking of people at large, as in the report:\n")
    output.rows(results["ranking"][:SHOWN], RANK_FORMATS)
    click.echo(
        f"\nEach person's own ranking agrees with the truth: Kendall's tau is "
        f"{results['person_agreement']:.2f} on average."
    )
    click.echo(
        "\nCommunities found, against the true tastes (adjusted Rand index "
        f"{results['adjusted_rand']:.2f}; 1 is perfect):\n"
    )
    tastes = results["communities"]
    output.rows(tastes, {name: "" if name == "community" else "d" for name in tastes[0]})
    click.echo("\nWhat to ask next:\n")
    output.rows(results["questions"], ASK_FORMATS)
    click.echo()


def write_study(truth: Any, folder: Path) -> SourceOptions:
    """Write the tables of a simulated study as a person would have them."""
    folder.mkdir(parents=True, exist_ok=True)
    data = truth.comparisons
    items, users = np.array(data.items), np.array(data.users)
    votes = np.column_stack([users[data.user], items[data.winner], items[data.loser]])
    names = [f"feature {k + 1}" for k in range(truth.item_features.shape[1])]
    features = zip(items, truth.item_features, strict=True)
    first, second = sparse.triu(truth.links, 1).nonzero()
    tables = {
        "votes.csv": [("user", "winner", "loser"), *np.repeat(votes, data.count, axis=0)],
        "items.csv": [("item", *names), *((name, *map(str, row)) for name, row in features)],
        "links.csv": [("from", "to"), *zip(items[first], items[second], strict=True)],
    }
    for name, rows in tables.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
    similar = (("similar", "undirected", str(folder / "links.csv")),)
    return SourceOptions(str(folder / "votes.csv"), str(folder / "items.csv"), relations=similar)


def _cross_table(members: Any, tastes: Any) -> list[dict[str, Any]]:
    """How many people of each true taste are in each community that was found."""
    return [
        {"community": int(number)}
        | {f"taste {k + 1}": int(np.sum(tastes[members == number] == k)) for k in range(N_TASTES)}
        for number in np.unique(members)
    ]
