"""Tables whose rows are ballots: the cells of such a table, and the list of its shapes.

A shape is a file beside this one. Its reader carries `@ballot_shape`, which names help texts and
the test of columns by which it is recognised.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from penchant.data import whole_numbers
from penchant.errors import DataError, DataWarning, warn
from penchant.io.recognise import (
    SHAPES,
    WANTED,
    ReadOptions,
    find_column,
    find_roles,
    letters,
    listed,
)
from penchant.io.source import Source

Places = list[list[Any]]
"""Groups of tied items, best first."""

_BRACKETS = re.compile(r"(.*?)\s*\[([^\[\]]+)\]\s*", re.DOTALL)  # How good is it? [tea]
_MOST_BALLOTS = 1_000_000  # they are Python lists
_SHOWN_BAD = 5  # bad rows that a warning spells out


class BadCell(DataError):
    """A cell that cannot be read, in a row that can be left out."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


@dataclass(frozen=True)
class Ballots:
    """Rankings, best first, and who made each; `said` tells in a few words how they were read.

    tied: whether items of one place were said to be equal; else they were not compared.
    count: how often each was given, None for once.
    """

    rankings: list[Places]
    users: list[Any]
    said: str
    tied: bool | list[bool] = True
    count: list[int] | None = None


@dataclass(frozen=True)
class Sheet:
    """The cells of a table as text, column by column, and the person behind each row.

    user_column: where people are named, or None. is_asked: whether `shape=` was given.
    skip_bad: whether bad rows are left out and kept in `bad`. numbers: of the rows, where some are
    repeated.
    """

    name: str
    columns: Mapping[str, Sequence[str | None]]
    users: list[Any]
    first_row: int
    user_column: str | None = None
    is_asked: bool = False
    skip_bad: bool = False
    numbers: Sequence[int] | None = None
    bad: list[BadCell] = field(default_factory=list)

    def rows(self, names: Sequence[str]) -> list[tuple[int, Any, tuple[str, ...]]]:
        """Return for each row its number, its user, and the cells of some columns, "" if empty."""
        cells = zip(*(self.columns[name] for name in names), strict=True)
        return [
            (self.number(row), user, tuple((cell or "").strip() for cell in line))
            for row, (user, line) in enumerate(zip(self.users, cells, strict=True))
        ]

    def number(self, line: int) -> int:
        """Return how a person counts a row."""
        return line + self.first_row if self.numbers is None else self.numbers[line]

    def take(self, lines: Sequence[int]) -> Self:
        """Return some of the rows, or some several times."""
        return replace(
            self,
            columns={name: [cells[k] for k in lines] for name, cells in self.columns.items()},
            users=[self.users[k] for k in lines],
            numbers=[self.number(k) for k in lines],
        )

    def wrong(self, column: str, row: int, cell: str, must: str) -> DataError:
        """Return what to raise about a cell."""
        return BadCell(f"{self.name}: column {column!r} row {row} is {cell!r}: it must {must}", row)

    @contextmanager
    def one_row(self) -> Iterator[None]:
        """Skip a row with a bad cell: goes around all that is done with the row."""
        try:
            yield
        except BadCell as error:
            if not self.skip_bad:
                raise
            self.bad.append(error)


Columns = Callable[[Sequence[str], str | None], list[str]]
Reader = Callable[[Sheet, Sequence[str]], Ballots]


@dataclass(frozen=True)
class BallotShape:
    """A shape of tables of ballots.

    columns : the columns whose names fit, out of all names and the one said to name people.
    read : the ballots in a sheet, from those columns.
    grid : whether columns called "Question [item]" are of this shape; None: they never are.
    least : how many columns it needs. takes_all : whether `shape=` may mean all columns, where no
    name fits. is_long : whether a row is one item of a ballot. count : its own column of counts.
    """

    name: str
    columns: Columns
    read: Reader
    grid: Callable[[Sequence[str]], bool] | None = None
    least: int = 1
    takes_all: bool = False
    is_long: bool = False
    count: str | None = None


_SHAPES: dict[str, BallotShape] = {}


def ballot_shape(
    name: str, meaning: str, wanted: str, columns: Columns, **more: Any
) -> Callable[[Reader], Reader]:
    """Make the function below, which reads a shape, known to `shape=`, recognition and help."""

    def register(read: Reader) -> Reader:
        _SHAPES[name] = BallotShape(name, columns, read, **more)
        SHAPES[name], WANTED[name] = meaning, wanted
        return read

    return register


def read_ballots(con: Any, source: Source, options: ReadOptions) -> Ballots | None:
    """Return the ballots in a table, or None where it does not look like any."""
    names, asked, shape = source.names, options.columns, options.shape
    user = find_roles(names, asked, ("user",), source.name).get("user")
    said_user = user if asked.get("user") else None
    if shape:
        fitting = _SHAPES[shape].columns(names, said_user)
        found = {shape: fitting or (names if _SHAPES[shape].takes_all else [])}
    else:
        found = _recognised(names, said_user)
    if not found:
        return None
    if len(found) > 1:
        readings = " or ".join(f"shape={name!r}" for name in found)
        raise DataError(f"{source.name} can be read in {len(found)} ways: say {readings}")
    ((name, columns),) = found.items()
    kind, count = _SHAPES[name], None
    if asked.get("count") and not kind.is_long:
        count = find_column(asked["count"] or "", "count", names, source.name)
    elif asked.get("count") not in (None, "", kind.count):
        raise DataError(
            f"{source.name} is read as shape={name!r}, a row for each item of a ballot, and "
            f"count={asked['count']!r} cannot tell how often the whole was given: leave it out; "
            "rankings may have a column called 'count'"
        )
    columns = [c for c in columns if c not in (user, count) or kind.is_long]
    if len(columns) < kind.least:
        raise DataError(
            f"{source.name} has no columns for shape={name!r}: its columns are {listed(names)}, "
            f"and it wants {WANTED[name]}"
        )
    sheet = _sheet(con, source, user, options)
    sheet = sheet if count is None else _repeated(sheet, count)
    ballots = kind.read(sheet, columns)
    _tell_of_bad_rows(sheet.bad, ballots)
    return _with_integers(ballots, source)


def _recognised(names: Sequence[str], user: str | None) -> dict[str, list[str]]:
    """Return every shape that fits the columns' names, with its columns."""
    grid = bracketed(names)
    if len(grid) > 1:
        return {s.name: grid for s in _SHAPES.values() if s.grid is not None and s.grid(grid)}
    found = {name: shape.columns(names, user) for name, shape in _SHAPES.items()}
    return {name: used for name, used in found.items() if len(used) >= _SHAPES[name].least}


def bracketed(names: Sequence[str], user: str | None = None) -> list[str]:
    """The columns called "Question [item]", as survey tools export grids."""
    return [name for name in names if _BRACKETS.fullmatch(name)]


def one_each(names: Sequence[str], groups: Sequence[Sequence[str]]) -> list[str]:
    """Return one column for each group of words, or nothing where one group has none."""
    found: list[str] = []
    for words in groups:
        fitting = [n for n in names if n not in found and _speaks_of(n, words)]
        found += fitting[:1]
    return found if len(found) == len(groups) else []


def _speaks_of(name: str, words: Sequence[str]) -> bool:
    plain = letters(name)
    return plain in words or plain.removesuffix("id") in words or name.casefold() in words


def _sheet(con: Any, source: Source, user: str | None, options: ReadOptions) -> Sheet:
    columns = [column for column in source.columns if column.name]
    cells = ", ".join(column.text for column in columns)
    rows = con.execute(f"SELECT {cells} FROM {source.sql}").fetchall()
    by_name = {c.name: [row[k] for row in rows] for k, c in enumerate(columns)}
    who: list[Any] = list(range(1, len(rows) + 1))
    if user is not None:
        who = by_name[user]
        if source[user].cells == "text" or source[user].is_integer:
            who = whole_numbers([(name or "").strip() for name in who])
    is_asked = options.shape is not None
    return Sheet(source.name, by_name, who, source.first_row, user, is_asked, options.skip_bad)


def _repeated(sheet: Sheet, count: str) -> Sheet:
    """Repeat every row by its count."""
    lines: list[int] = []
    for line, (row, _, (cell,)) in enumerate(sheet.rows([count])):
        with sheet.one_row():
            if not re.fullmatch(r"0*[1-9][0-9]{0,14}(\.0*)?", cell):
                raise sheet.wrong(count, row, cell, "be a whole number of at least 1")
            if len(lines) + float(cell) > _MOST_BALLOTS:
                raise DataError(
                    f"{sheet.name}: the counts in {count!r} add up to more than {_MOST_BALLOTS:,} "
                    "ballots: they must be fewer; is the column something else, such as an id?"
                )
            lines += [line] * int(float(cell))
    return sheet.take(lines)


def _tell_of_bad_rows(bad: Sequence[BadCell], ballots: Ballots) -> None:
    """Warn about the rows that were left out; raise where none is left."""
    said = {error.row: str(error) for error in bad}  # a row that counts twice is bad once
    if not said:
        return
    listed_rows = "\n  ".join(list(said.values())[:_SHOWN_BAD])
    if not ballots.rankings:
        raise DataError(f"no row is usable. {listed_rows}")
    more = f"\n  … and {len(said) - _SHOWN_BAD} more" if len(said) > _SHOWN_BAD else ""
    warn(
        f"{len(said)} rows cannot be used:\n  {listed_rows}{more}\nThey were left out.", DataWarning
    )


def _with_integers(ballots: Ballots, source: Source) -> Ballots:
    """Names of items are whole numbers where all are, unless the table says they are text."""
    names = [name for ranking in ballots.rankings for tied in ranking for name in tied]
    is_text = any(c.cells != "text" and not c.is_integer for c in source.columns)
    meaning = dict(zip(names, names if is_text else whole_numbers(names), strict=True))
    rankings = [[[meaning[name] for name in tied] for tied in r] for r in ballots.rankings]
    return replace(ballots, rankings=rankings)


Place = Callable[[str, int, str], float]
"""What a column, a row's number and a cell say of where an item stands, the lowest first."""


def read_grid(sheet: Sheet, columns: Sequence[str], place: Place) -> tuple[list[Places], list[Any]]:
    """Rankings out of a row for each ballot and a column for each item, and whose they are."""
    rankings, users = [], []
    for row, user, cells in sheet.rows(columns):
        with sheet.one_row():
            places = {
                _item(column): place(column, row, cell)
                for column, cell in zip(columns, cells, strict=True)
                if cell
            }
            if len(places) > 1:
                rankings.append(_ordered(places))
                users.append(user)
    return rankings, users


def read_long(
    sheet: Sheet,
    columns: Sequence[str],
    place: Place,
    extra: Sequence[str] = (),
    has_user: bool = False,
) -> tuple[list[Places], list[Any], dict[str, list[Any]]]:
    """Rankings out of a row for each ballot and item, whose they are, and their cells in `extra`
    columns, which must be the same in all rows of a ballot.

    has_user : the sheet's users made the ballots; else each ballot is a user's name.
    """
    ballots: dict[str, dict[str, float]] = {}
    about: dict[str, tuple[Any, ...]] = {}
    for line, (row, user, (ballot, item, cell)) in enumerate(sheet.rows(columns)):
        with sheet.one_row():
            if not ballot or not item:
                raise sheet.wrong(columns[1 if ballot else 0], row, "", "not be empty")
            who = user if has_user else ballot
            told = (who, *(sheet.columns[name][line] for name in extra))
            if about.get(ballot, told) != told:
                raise sheet.wrong(columns[0], row, ballot, "have one user, count and tied alone")
            if item in ballots.get(ballot, ()):
                raise sheet.wrong(columns[1], row, item, f"occur once in {columns[0]} {ballot!r}")
            where = place(columns[2], row, cell)
            ballots.setdefault(ballot, {})[item] = where
            about[ballot] = told
    users = [who for who, *_ in about.values()]
    given = {name: [values[1 + k] for values in about.values()] for k, name in enumerate(extra)}
    rankings = [_ordered(places) for places in ballots.values()]
    return rankings, users if has_user else whole_numbers(users), given


def _item(column: str) -> str:
    match = _BRACKETS.fullmatch(column)
    return match[2].strip() if match else column.strip()


def _ordered(place: Mapping[str, float]) -> Places:
    """Return items by their place, the lowest first; equal places are tied."""
    groups: dict[float, list[str]] = {}
    for item, where in place.items():
        groups.setdefault(where, []).append(item)
    return [groups[where] for where in sorted(groups)]
