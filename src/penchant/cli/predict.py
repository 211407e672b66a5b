"""`penchant predict`: probabilities of preference, and utilities of new items."""

from typing import Any

import click
import numpy as np

import penchant as pc
from penchant.cli import models
from penchant.cli.features import FloatArray
from penchant.cli.models import Fitted
from penchant.cli.options import FILE, Source, source_argument
from penchant.cli.output import Output, output_options
from penchant.cli.study import as_names
from penchant.cli.tables import read_table

PAIR_FORMATS = {"first": "", "second": "", "user": "", "probability": ".3f"}
ITEM_FORMATS = {"item": "", "utility": "+.2f", "sd": ".2f"}


@click.command(
    epilog="""\b
    Examples:
      penchant predict votes.csv --pair "item 01" "item 02"
      penchant predict model.penchant pairs.csv --csv
      penchant predict votes.csv --model gp --items items.csv --new-items items.csv
    """
)
@source_argument
@click.argument("pairs_file", metavar="[PAIRS]", required=False, type=FILE)
@click.option("--pair", "pairs", nargs=2, multiple=True, metavar="A B", help="Repeatable.")
@click.option("--user", metavar="NAME", help="Predict for this person.")
@click.option(
    "--new-items", metavar="FILE", type=FILE, help="Table of items to predict utilities for."
)
@output_options()
def command(
    source: Source,
    pairs_file: str | None,
    pairs: tuple[tuple[str, str], ...],
    user: str | None,
    new_items: str | None,
    output: Output,
) -> None:
    """Tell how likely the first of two items is preferred to the second.

    SOURCE is a saved model, or comparisons to fit first. PAIRS is a table whose first two columns
    name the items; a column called user says who is asked. With --new-items, items that the model
    has never seen are placed by their features, and without pairs their utilities are written.
    """
    if pairs_file is None and not pairs and new_items is None:
        raise click.UsageError("nothing to predict: give PAIRS, --pair A B or --new-items FILE")
    named = [] if new_items else [name for pair in pairs for name in pair]
    fitted = source.fitted(output, user=user, items=named)
    who = models.find_user(fitted.kind, fitted.users, user)
    new = _new_items(fitted, new_items)
    if new is not None and pairs_file is None and not pairs:
        names, X = new
        output.rows(_utilities(fitted, names, X, who), ITEM_FORMATS, model=fitted.kind)
    else:
        questions = _questions(fitted, pairs_file, pairs, who)
        probability = _probabilities(fitted, questions, new)
        rows = [
            {"first": a, "second": b, "user": who, "probability": float(p)}
            for (a, b, who), p in zip(questions, probability, strict=True)
        ]
        shown = PAIR_FORMATS
        if not any(who for *_, who in questions):
            shown = {name: form for name, form in PAIR_FORMATS.items() if name != "user"}
        output.rows(rows, shown, model=fitted.kind)
    output.suggest(f"penchant ask {source.spelled}")


def _questions(
    fitted: Fitted, path: str | None, pairs: tuple[tuple[str, str], ...], user: Any | None
) -> list[tuple[Any, Any, Any]]:
    """(first, second, who) of every question, by name."""
    questions: list[tuple[Any, Any, Any]] = [(a, b, user) for a, b in pairs]
    if path is not None:
        table = read_table(path)
        if len(table.columns) < 2:
            raise pc.DataError(f"{table.source} has one column: pairs need two, an item in each")
        first, second = list(table.columns.values())[:2]
        who = table.columns.get("user", [user] * len(table))
        questions += zip(first, second, who, strict=True)
    ends = [as_names([row[end] for row in questions], fitted.items) for end in (0, 1)]
    people = [None if who is None else as_names([who], fitted.users)[0] for *_, who in questions]
    return list(zip(*ends, people, strict=True))


def _new_items(fitted: Fitted, path: str | None) -> tuple[list[Any], FloatArray] | None:
    """Names and features of the items in a table."""
    if path is None:
        return None
    if fitted.item_encoding is None or fitted.kind == "community":
        raise pc.DataError(
            "--new-items: this model does not place items by features, so nothing connects new "
            "items to the old ones; fit --model gp or multi-user with --items FILE"
        )
    table = read_table(path)
    features = fitted.item_encoding.encode(table)
    return as_names(table.columns[fitted.item_encoding.id_column], fitted.items), features


def _utilities(
    fitted: Fitted, names: list[Any], X: FloatArray, user: Any | None
) -> list[dict[str, Any]]:
    """What new items are worth to one person, or to everybody on average."""
    sd: Any = [None] * len(names)
    if fitted.kind in models.BY_FEATURES:
        utility = fitted.model.predict(X)
    elif fitted.kind == "gp":
        utility, sd = fitted.model.predict(X, return_std=True)
    elif user is None:
        utility = fitted.model.predict(X=X).mean(axis=0)
    else:
        (utility,), (sd,) = fitted.model.predict([user], X=X, return_std=True)
    return [
        {"item": name, "utility": float(u), "sd": s}
        for name, u, s in zip(names, utility, sd, strict=True)
    ]


def _probabilities(
    fitted: Fitted,
    questions: list[tuple[Any, Any, Any]],
    new: tuple[list[Any], FloatArray] | None,
) -> FloatArray:
    pairs = [(first, second) for first, second, _ in questions]
    asked = [user for *_, user in questions]
    who = None if all(user is None for user in asked) else asked
    if new is None:
        return models.probabilities(fitted, pairs, who)
    names, X = [*fitted.items, *new[0]], np.concatenate([fitted.X, new[1]])
    row = {name: k for k, name in enumerate(names)}  # of a name in both, the new row counts
    unknown = [name for pair in pairs for name in pair if name not in row]
    if unknown:
        raise pc.DataError(
            f"unknown item {unknown[0]!r}: it is neither among the {len(fitted.items)} items of "
            f"the model nor among the {len(new[0])} new ones"
        )
    return models.probabilities(fitted, [(row[a], row[b]) for a, b in pairs], who, X)
