"""`penchant predict` and `penchant ask`: probabilities of pairs, and which to compare next."""

from dataclasses import replace
from typing import Any

import click
import numpy as np

import penchant as pc
from penchant.cli.output import FILE, Output, command_with, output_options, target_option
from penchant.cli.source import (
    FittedModel,
    SourceOptions,
    as_of,
    at_option,
    find_user,
    read_table,
    refuse_beside,
    source_argument,
)
from penchant.data import Lookup
from penchant.io import write_parquet
from penchant.workflow.encoding import Encoded, as_names
from penchant.workflow.models import questions, tells_people_apart

PAIR_FORMATS = {"first": "", "second": "", "user": "", "probability": ".3f"}
TIE_FORMATS = {"win": ".3f", "tie": ".3f", "loss": ".3f"}
EVERYBODY = "all"
ITEM_FORMATS = {"item": "", "utility": "+.2f", "sd": ".2f"}


@command_with(
    'penchant predict votes.csv --pair "item 01" "item 02"',
    "penchant predict model.penchant pairs.csv --csv",
    "penchant predict votes.csv --model gp --items items.csv --new-items items.csv",
    "penchant predict votes.csv --model multi-user --users all -o tastes.parquet",
)
@source_argument
@click.argument("pairs_file", metavar="[PAIRS]", required=False, type=FILE)
@click.option("--pair", "pairs", nargs=2, multiple=True, metavar="A B", help="Repeatable.")
@click.option("--user", metavar="NAME", help="Predict for this person.")
@click.option(
    "--new-items", metavar="FILE", type=FILE, help="Table of items to predict utilities for."
)
@click.option("--ties", is_flag=True, help="Write win, tie and loss of the first too.")
@at_option
@target_option("predictions.parquet", "utilities that --users all asks for, as Parquet")
@output_options()
def predict_command(
    source: SourceOptions,
    pairs_file: str | None,
    pairs: tuple[tuple[str, str], ...],
    user: str | None,
    new_items: str | None,
    ties: bool,
    at: Any,
    output: Output,
    target: str,
) -> None:
    """Tell how likely the first of two items is preferred to the second, given a decision.

    SOURCE is a saved model, or comparisons to fit first. PAIRS is a table whose first two columns
    name the items; a column called user says who is asked. With --new-items, items that the model
    has never seen are placed by their features, and without pairs their utilities are written.
    --users all writes what every item is worth to every user to the file of -o.
    """
    if source.users == EVERYBODY:
        if pairs_file is not None or pairs or new_items is not None or user is not None:
            raise click.UsageError("--users all writes what all items are worth: give no pairs")
        refuse_beside("--users all", "ties", "at", "as_csv", "spreadsheet_safe")
        source = replace(source, users=None)
        _write_everybody(fitted := source.fitted(output), target)
        output.note(f"wrote {target}")
        output.record({"model": fitted.name, "file": target})
        output.suggest(f"penchant rank {source.spelled}")
        return
    if pairs_file is None and not pairs and new_items is None:
        raise click.UsageError("nothing to predict: give PAIRS, --pair A B or --new-items FILE")
    refuse_beside("a prediction without --users all", "target")
    if pairs_file is None and not pairs:
        refuse_beside("--new-items without pairs", "ties")
    named = [] if new_items else [name for pair in pairs for name in pair]
    fitted = source.fitted(output, user=user, items=named)
    who = find_user(fitted.data.users, user)
    new = None if new_items is None else _new_items(fitted, new_items)
    if new is not None and pairs_file is None and not pairs:
        output.rows(_utilities(fitted, new, who, at), ITEM_FORMATS, model=fitted.name)
    else:
        questions = _questions(fitted, pairs_file, pairs, who)
        rows = [
            {"first": a, "second": b, "user": who, "probability": win / (win + loss)}
            | ({"win": win, "tie": tie, "loss": loss} if ties else {})
            for (a, b, who), (win, tie, loss) in zip(
                questions, _probabilities(fitted, questions, new, at), strict=True
            )
        ]
        shown = PAIR_FORMATS | (TIE_FORMATS if ties else {})
        if not any(who for *_, who in questions):
            shown = {name: form for name, form in shown.items() if name != "user"}
        output.rows(rows, shown, model=fitted.name)
    output.suggest(f"penchant ask {source.spelled}")


def _write_everybody(fitted: FittedModel, target: str) -> None:
    """A table of user, item, mean and sd."""
    data, model = fitted.data, fitted.model
    if fitted.name not in ("multi-user", "community"):
        raise pc.DataError(
            f"--users all: the model {fitted.name} takes everybody together; fit one of many users "
            "with --model multi-user or community"
        )
    if model.n_elsewhere_:
        raise pc.DataError(
            f"--users all: {model.n_elsewhere_:,} comparisons of this model are of users who are "
            "not in its file; penchant fit --engine … --predictions FOLDER writes everybody"
        )
    mean, sd = model.predict(users=list(data.users), return_std=True)
    columns = {
        "user": np.repeat(np.arange(data.n_users), data.n_items),
        "item": np.tile(np.arange(data.n_items), data.n_users),
        "mean": mean.ravel(),
        "sd": sd.ravel(),
    }
    write_parquet(target, columns, {"user": data.users, "item": data.items})


def _questions(
    fitted: FittedModel, path: str | None, pairs: tuple[tuple[str, str], ...], user: Any | None
) -> list[tuple[Any, Any, Any]]:
    """(first, second, who) of every question, by name."""
    questions: list[tuple[Any, Any, Any]] = [(a, b, user) for a, b in pairs]
    if path is not None:
        table = read_table(path)
        if len(table.columns) < 2:
            raise pc.DataError(f"{table.source} has one column: pairs need two, an item in each")
        first, second = list(table.columns.values())[:2]
        who = table.columns.get("user", [user] * len(table))
        if "user" in table.columns:
            if user is not None:
                raise click.UsageError(
                    f"--user: the column user of {table.source} says who is asked"
                )
            if not tells_people_apart(fitted.name):
                raise pc.DataError(
                    f"{table.source} says who is asked, but {fitted.name} takes everybody "
                    "together: leave out the column user, or fit --model multi-user or community"
                )
        questions += zip(first, second, who, strict=True)
    ends = [as_names([row[end] for row in questions], fitted.data.items) for end in (0, 1)]
    named = iter(as_names([who for *_, who in questions if who is not None], fitted.data.users))
    people = [None if who is None else next(named) for *_, who in questions]
    return list(zip(*ends, people, strict=True))


def _new_items(fitted: FittedModel, path: str) -> Encoded:
    """The items in a table, encoded as those of the model were."""
    if fitted.X is None:
        raise pc.DataError(
            "--new-items: this model does not place items by features, so nothing connects new "
            "items to the old ones; fit it with --items FILE"
        )
    new = fitted.X.like(read_table(path))
    return replace(new, names=tuple(as_names(new.names, fitted.data.items)))


def _utilities(
    fitted: FittedModel, new: Encoded, user: Any | None, at: Any
) -> list[dict[str, Any]]:
    """Utilities of new items, of one person or of people at large."""
    how = {"users": user, "return_std": True, **as_of(fitted, at)}
    utility, sd = fitted.model.predict(new.values, **how)
    return [
        {"item": name, "utility": float(u), "sd": float(s)}
        for name, u, s in zip(new.names, np.ravel(utility), np.ravel(sd), strict=True)
    ]


def _probabilities(
    fitted: FittedModel, questions: list[tuple[Any, Any, Any]], new: Encoded | None, at: Any
) -> list[list[float]]:
    """(win, tie, loss) of every question; questions with and without a user are predicted apart."""
    pairs: list[tuple[Any, Any]] = [(first, second) for first, second, _ in questions]
    X = None
    if new is not None and fitted.X is not None:
        X = fitted.X.joined(new)
        pairs = Lookup(X.names, "item").pairs(pairs).tolist()
    found = np.empty((len(pairs), 3))
    for is_named in (True, False):
        some = [k for k, (*_, who) in enumerate(questions) if (who is not None) == is_named]
        if some:
            who = [questions[k][2] for k in some] if is_named else None
            how = {"ties": True, **as_of(fitted, at)}
            found[some] = fitted.model.predict_proba([pairs[k] for k in some], who, X, **how)
    return found.tolist()


ASK_FORMATS = {"first": "", "second": "", "probability": ".3f"}
CRITERIA = ("variance_ratio", "information_gain", "expected_best", "thompson", "random")


@command_with(
    "penchant ask votes.csv -k 5",
    "penchant ask votes.csv --criterion expected_best --csv",
    "penchant ask votes.csv --set-size 4",
)
@source_argument
@click.option(
    "-k", "n_questions", type=click.IntRange(1), default=5, show_default=True, help="How many."
)
@click.option(
    "--criterion",
    type=click.Choice(CRITERIA),
    default=CRITERIA[0],
    show_default=True,
    help="What a question should be good for.",
)
@click.option(
    "--set-size",
    type=click.IntRange(2),
    default=2,
    show_default=True,
    help="Items to choose the best of.",
)
@click.option("--user", metavar="NAME", help="What to ask this person.")
@output_options()
def ask_command(
    source: SourceOptions,
    n_questions: int,
    criterion: str,
    set_size: int,
    user: str | None,
    output: Output,
) -> None:
    """Say which comparisons would teach the model most, best first.

    SOURCE is a saved model, or comparisons to fit first. variance_ratio and information_gain learn
    the whole ranking, expected_best and thompson find the best item. probability is the chance
    that the first would be preferred. With --set-size, each row is a set to choose the best of.
    """
    fitted = source.fitted(output, user=user)
    who = find_user(fitted.data.users, user)
    rows = questions(fitted.model, n_questions, criterion, who, set_size)
    sets = {f"item_{i + 1}": "" for i in range(set_size)}
    output.rows(
        rows, ASK_FORMATS if set_size == 2 else sets, model=fitted.name, criterion=criterion
    )
    output.suggest("add the answers to your file, then fit again")
