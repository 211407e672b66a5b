"""The cells of a table of ballots, and the rankings that are read from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from penchant.errors import DataError

Places = list[list[Any]]
"""Groups of tied items, best first."""


class BadCell(DataError):
    """A cell that says nothing, in a row that can be left out."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message)
        self.row = row


@dataclass
class BadRows:
    """What is done about a cell that says nothing, `with` this around all that is done with a row.

    skipped: the row is left out, and its error kept here; else the error is raised.
    """

    skipped: bool = False
    found: list[BadCell] = field(default_factory=list)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not (self.skipped and isinstance(error, BadCell)):
            return False
        self.found.append(error)
        return True


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
    """The cells of a table as text, column by column, and the person behind each row."""

    name: str
    columns: Mapping[str, Sequence[str | None]]
    users: list[Any]
    first_row: int
    numbers: Sequence[int] | None = None  # of the rows, where some were left out or repeated
    has_user: bool = False
    bad: BadRows = field(default_factory=BadRows)

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


def ordered(place: Mapping[str, float]) -> Places:
    """Return items by their place, the lowest first; equal places are tied.

    >>> ordered({"tea": 2, "milk": 1, "water": 2})
    [['milk'], ['tea', 'water']]
    """
    groups: dict[float, list[str]] = {}
    for item, where in place.items():
        groups.setdefault(where, []).append(item)
    return [groups[where] for where in sorted(groups)]
