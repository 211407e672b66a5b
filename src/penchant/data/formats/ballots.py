"""Tables whose rows are ballots: which of their shapes a table has, and its cells."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penchant.data.columns import SPELLINGS, bare, find_roles
from penchant.data.formats.choices import (
    APPROVAL,
    CHOICE,
    QUESTION,
    read_approvals,
    read_best_worst,
    read_questions,
    read_top,
)
from penchant.data.formats.grids import (
    BRACKETS,
    read_grades,
    read_rankings,
    read_ranks,
    read_ratings,
)
from penchant.data.formats.sheet import BadRows, Ballots, Sheet
from penchant.data.names import whole_numbers
from penchant.data.recognise import WANTED
from penchant.data.source import Source, find_column, listed
from penchant.errors import DataError, DataWarning, warn

_BEST, _WORST = ("best", "most"), ("worst", "least")
_SHOWN = re.compile(
    r"(item|option|alternative|product|shown|candidate)[ _#]*([0-9]+|[a-z])", re.IGNORECASE
)
_ITEMS = ("item", "option", "candidate", "alternative", "product", "name", "choice")
_LONG = {
    "rankings": (
        ("ballot", "ranking", "list", "id", "user", "voter", "judge", "rater", "respondent"),
        _ITEMS,
        ("position", "rank", "place"),
    ),
    "grades": (
        (*SPELLINGS["user"], "reviewer", "customer", "participant"),
        (*_ITEMS, "movie", "film", "book", "song", "track", "artist", "title"),
        ("rating", "grade", "stars", "score"),
    ),
}
"""Shapes of a row for each ballot and item: words for the ballot, the item and its place."""
_READERS: dict[str, Callable[[Sheet, Sequence[str]], Ballots]] = {
    "rankings": read_rankings,
    "grades": read_grades,
    "ranks": read_ranks,
    "ratings": read_ratings,
    "questions": read_questions,
    "best-worst": read_best_worst,
    "top": read_top,
    "approvals": read_approvals,
}
_MOST_BALLOTS = 1_000_000
_SHOWN_BAD = 5  # bad rows that a warning spells out
_LEAST = dict.fromkeys(("top", "ratings", "ranks", "best-worst"), 2) | dict.fromkeys(_LONG, 3)
"""Columns that a shape needs, where it needs more than one."""


def read_ballots(
    con: Any,
    source: Source,
    asked: Mapping[str, str | None],
    shape: str | None,
    skip_bad: bool = False,
) -> Ballots | None:
    """Return the ballots in a table, or None where it does not look like any.

    skip_bad : leave out rows with a cell that cannot be used, and warn.
    """
    names = source.names
    user = find_roles(names, asked, ("user",), table=source.name).get("user")
    said_user = user if asked.get("user") else None
    found = {shape: _used(shape, names, said_user)} if shape else _recognised(names, said_user)
    if not found:
        return None
    if len(found) > 1:
        readings = " or ".join(f"shape={name!r}" for name in found)
        raise DataError(f"{source.name} can be read in {len(found)} ways: say {readings}")
    ((kind, columns),) = found.items()
    count = None
    if asked.get("count") and kind not in _LONG:
        count = find_column(asked["count"] or "", "count", names, source.name)
    elif asked.get("count") and (kind, asked["count"]) != ("rankings", "count"):
        raise DataError(
            f"{source.name} is read as shape={kind!r}, a row for each item of a ballot, and "
            f"count={asked['count']!r} cannot tell how often the whole was given: leave it out; "
            "rankings may have a column called 'count'"
        )
    columns = [name for name in columns if name not in (user, count) or kind in _LONG]
    if len(columns) < _LEAST.get(kind, 1):
        raise DataError(
            f"{source.name} has no columns for shape={kind!r}: its columns are {listed(names)}, "
            f"and it wants {WANTED[kind]}"
        )
    sheet = replace(_sheet(con, source, user), bad=BadRows(skip_bad))
    if kind == "rankings" and user is not None and user not in columns:
        sheet = replace(sheet, has_user=True)
    sheet = sheet if count is None else _repeated(sheet, count)
    if kind == "ratings" and shape is None:
        _refuse_permutations(sheet, columns)
    ballots = _READERS[kind](sheet, columns)
    _tell_of_bad_rows(sheet.bad, ballots)
    return _with_integers(ballots, source)


def _repeated(sheet: Sheet, count: str) -> Sheet:
    """Every row as often as its count says."""
    lines: list[int] = []
    for line, (row, _, (cell,)) in enumerate(sheet.rows([count])):
        with sheet.bad:
            if not re.fullmatch(r"0*[1-9][0-9]{0,14}(\.0*)?", cell):
                raise sheet.wrong(count, row, cell, "be a whole number of at least 1")
            if len(lines) + float(cell) > _MOST_BALLOTS:
                raise DataError(
                    f"{sheet.name}: the counts in {count!r} add up to more than {_MOST_BALLOTS:,} "
                    "ballots: they must be fewer; is the column something else, such as an id?"
                )
            lines += [line] * int(float(cell))
    return sheet.take(lines)


def _tell_of_bad_rows(bad: BadRows, ballots: Ballots) -> None:
    """Warn of rows that were left out; raise where no other is there."""
    said = {error.row: str(error) for error in bad.found}  # a row that counts twice is bad once
    if not said:
        return
    listed_rows = "\n  ".join(list(said.values())[:_SHOWN_BAD])
    if not ballots.rankings:
        raise DataError(f"no row is usable. {listed_rows}")
    more = f"\n  … and {len(said) - _SHOWN_BAD} more" if len(said) > _SHOWN_BAD else ""
    warn(
        f"{len(said)} rows cannot be used:\n  {listed_rows}{more}\nThey were left out.", DataWarning
    )


def _refuse_permutations(sheet: Sheet, columns: Sequence[str]) -> None:
    """Raise where grades that nobody called so are 1 … k in every row: ranks look like that."""
    places = set(map(str, range(1, len(columns) + 1)))
    given = [[cell for cell in cells if cell] for *_, cells in sheet.rows(columns)]
    distinct = all(len(set(row)) == len(row) and set(row) <= places for row in given)
    if distinct and any(len(row) == len(columns) for row in given):
        raise DataError(
            f"{sheet.name} can be read in two ways: every row of {listed(columns[:3])} … holds "
            f"each of 1 to {len(columns)} once, as ranks do (1 the best) and grades may (more is "
            "better). Say shape='ranks' or shape='ratings'"
        )


def _with_integers(ballots: Ballots, source: Source) -> Ballots:
    """Names of items are whole numbers where all are, unless the table says they are text."""
    names = [name for ranking in ballots.rankings for tied in ranking for name in tied]
    is_text = any(c.cells != "text" and not c.is_integer for c in source.columns)
    meaning = dict(zip(names, names if is_text else whole_numbers(names), strict=True))
    rankings = [[[meaning[name] for name in tied] for tied in r] for r in ballots.rankings]
    return replace(ballots, rankings=rankings)


def _sheet(con: Any, source: Source, user: str | None) -> Sheet:
    columns = [column for column in source.columns if column.name]
    cells = ", ".join(column.text for column in columns)
    rows = con.execute(f"SELECT {cells} FROM {source.sql}").fetchall()
    by_name = {c.name: [row[k] for row in rows] for k, c in enumerate(columns)}
    who: list[Any] = list(range(1, len(rows) + 1))
    if user is not None:
        who = by_name[user]
        if source[user].cells == "text" or source[user].is_integer:
            who = whole_numbers([(name or "").strip() for name in who])
    return Sheet(source.name, by_name, who, source.first_row)


def _recognised(names: Sequence[str], user: str | None) -> dict[str, list[str]]:
    """Return every shape that the columns' names speak of, with its columns."""
    grid = [name for name in names if BRACKETS.fullmatch(name)]
    if len(grid) >= _LEAST["ratings"]:
        if all(CHOICE.search(name) for name in grid):
            return {"top": grid}
        asks_ranks = any(re.search(r"\brank", name, re.IGNORECASE) for name in grid)
        return {"ranks" if asks_ranks else "ratings": grid}
    kinds = [kind for kind in _READERS if kind not in ("ranks", "ratings", "approvals")]
    found = {kind: _used(kind, names, user) for kind in kinds}
    found["approvals"] = [name for name in names if APPROVAL.search(name)]
    return {kind: used for kind, used in found.items() if len(used) >= _LEAST.get(kind, 1)}


def _used(kind: str, names: Sequence[str], user: str | None) -> list[str]:
    """Return the columns whose names fit a shape; user: the one that was said to name people."""
    if kind in ("ranks", "ratings"):
        return [name for name in names if BRACKETS.fullmatch(name)] or list(names)
    if kind in _LONG:
        words, *others = _LONG[kind]
        said = () if user is None else (bare(user),)
        ways = (said, words) if kind == "grades" else (words, said)  # whose grades, or which ballot
        return next(filter(None, (_named_each(names, (way, *others)) for way in ways)), [])
    if kind == "best-worst":
        ends = _named_each(names, (_BEST, _WORST))
        shown = [name for name in names if _SHOWN.fullmatch(name.strip())]
        return ends + shown if len(ends) == 2 else []
    fits = {"questions": QUESTION.fullmatch, "top": CHOICE.search, "approvals": APPROVAL.search}
    fitting = [name for name in names if fits[kind](name)]
    return fitting or (list(names) if kind == "approvals" else [])


def _named_each(names: Sequence[str], groups: Sequence[Sequence[str]]) -> list[str]:
    """Return one column for each group of words, or nothing where one group has none."""
    found: list[str] = []
    for words in groups:
        fitting = [n for n in names if n not in found and _speaks_of(n, words)]
        found += fitting[:1]
    return found if len(found) == len(groups) else []


def _speaks_of(name: str, words: Sequence[str]) -> bool:
    plain = bare(name)
    return plain in words or plain.removesuffix("id") in words or name.casefold() in words
