"""The output of a command: data on stdout as a table, JSON or CSV; the rest on stderr."""

import csv
import io
import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from penchant.cli import visible

Row = Mapping[str, Any]
FILE = click.Path(allow_dash=True)
"""A text that shells complete to the name of a file."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula."""


@dataclass(frozen=True)
class Output:
    """Where the results of one command go, and how."""

    command: str
    form: str = "table"
    quiet: bool = False
    spreadsheet: bool = False

    def rows(self, rows: Sequence[Row], formats: Mapping[str, str], **facts: Any) -> None:
        """Write rows: `formats` chooses the columns of the table and how numbers look there.

        JSON carries every entry at full precision, and the `facts` that hold for all rows.
        """
        if self.form == "json":
            self.json(**facts, rows=[dict(row) for row in rows])
        elif self.form == "csv":
            click.echo(_as_csv(rows, self.spreadsheet), nl=False)
        else:
            _print_table(rows, formats)

    def record(self, facts: Row) -> None:
        """Write the record of a command whose result is a file; people read the notes instead."""
        if self.form == "json":
            self.json(**facts)

    def json(self, **content: Any) -> None:
        """Write one JSON object that names the command."""
        tree = _plain({"command": self.command, **content})
        click.echo(json.dumps(tree, ensure_ascii=False, allow_nan=False, indent=2))

    def note(self, text: str) -> None:
        """Tell the person at the terminal something."""
        if not self.quiet:
            click.echo(visible(text), err=True)

    def suggest(self, text: str) -> None:
        """The last line: what to do next."""
        if not self.quiet:
            click.secho(f"next: {text}", bold=True, err=True)

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """A bar on a terminal, nothing elsewhere; yields `advance(done, total)`."""
        if self.quiet or not sys.stderr.isatty():
            yield lambda done, total: None
            return
        # imported here, because most runs show no bar
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        text = TextColumn("{task.description}")
        columns = (SpinnerColumn(), text, BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)


Command = Callable[..., Any]


def command_with(*examples: str) -> Callable[[Command], click.Command]:
    """A command whose help ends with examples."""
    heading = "Example:" if len(examples) == 1 else "Examples:"
    return click.command(epilog="\b\n" + "\n  ".join([heading, *examples]))


def output_options(csv: bool = True) -> Callable[[Command], Command]:
    """Add --json, --csv where rows come out, and -q; the command receives them as `output`."""

    def decorate(function: Command) -> Command:
        @click.option("--json", "as_json", is_flag=True, help="Write JSON (schema: docs/json.md).")
        @click.option("-q", "--quiet", is_flag=True, help="Say nothing but results and warnings.")
        @wraps(function)
        def command(
            *,
            as_json: bool,
            quiet: bool,
            as_csv: bool = False,
            spreadsheet_safe: bool = False,
            **arguments: Any,
        ) -> Any:
            if as_json and (as_csv or spreadsheet_safe):
                raise click.UsageError("--json and --csv exclude each other: choose one")
            form = "json" if as_json else "csv" if as_csv or spreadsheet_safe else "table"
            name = click.get_current_context().info_name or ""
            return function(output=Output(name, form, quiet, spreadsheet_safe), **arguments)

        if not csv:
            return command
        safe = click.option(
            "--spreadsheet-safe",
            is_flag=True,
            help="Write CSV whose names no spreadsheet takes for formulas.",
        )
        return click.option("--csv", "as_csv", is_flag=True, help="Write CSV.")(safe(command))

    return decorate


def target_option(default: str, what: str) -> Callable[[Command], Command]:
    """Add -o for a file to write; a place that cannot be written is an error before any work."""

    def check(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
        path = Path(value).resolve()
        if not path.parent.is_dir():
            raise click.BadParameter(f"{value}: there is no folder {Path(value).parent}")
        if path.exists() and not path.is_file():
            raise click.BadParameter(f"{value} is no plain file: give the path of one")
        if not os.access(path.parent, os.W_OK):
            raise click.BadParameter(f"{value}: the folder {path.parent} cannot be written to")
        return value

    return click.option(
        "-o",
        "--output",
        "target",
        metavar="FILE",
        type=FILE,
        default=default,
        show_default=True,
        callback=check,
        help=f"Where to write the {what}.",
    )


def _plain(value: Any) -> Any:
    """The value as JSON can hold it: NumPy scalars as Python's, infinite and NaN as null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _as_csv(rows: Sequence[Row], spreadsheet: bool) -> str:
    text = io.StringIO()
    columns = list(rows[0]) if rows else []
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        cells = {key: _cell(value) for key, value in row.items()}
        writer.writerow({k: harmless(c) for k, c in cells.items()} if spreadsheet else cells)
    return text.getvalue()


def harmless(cell: Any) -> Any:
    """The cell, with an apostrophe before text that a spreadsheet would run as a formula.

    >>> harmless("=1+1"), harmless(-1.5)
    ("'=1+1", -1.5)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _cell(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return None if _is_unknown(value) else value


def _is_unknown(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _print_table(rows: Sequence[Row], formats: Mapping[str, str]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, form in formats.items():
        table.add_column(
            name.replace("_", " "), justify="right" if form else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(_shown(row.get(name), form) for name, form in formats.items()))
    width = None if sys.stdout.isatty() else 10_000
    # no markup or emoji: an item may be called "[red]" or ":tea:"
    console = Console(file=sys.stdout, width=width, markup=False, emoji=False, highlight=False)
    console.print(table)


def _shown(value: Any, form: str) -> str:
    if _is_unknown(value):
        return "–"
    return format(value, form) if form else visible(str(_cell(value)))
