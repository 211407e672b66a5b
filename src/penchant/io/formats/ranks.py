"""Ranks, 1 the best: a column an item (`ranks`), or a row an item of a ballot (`rankings`)."""

import re
from collections.abc import Sequence
from functools import partial

from penchant.data import TRUE_WORDS
from penchant.errors import DataError
from penchant.io.formats.ballots import (
    Ballots,
    Sheet,
    ballot_shape,
    bracketed,
    one_each,
    read_grid,
    read_long,
)
from penchant.io.formats.top import CHOICE
from penchant.io.recognise import ITEM_WORDS, letters

_RANK = re.compile(r"#?\s*([0-9]{1,9})(?:\.0)?\s*(?:st|nd|rd|th)?")
_BALLOT = ("ballot", "ranking", "list", "id", "user", "voter", "judge", "rater", "respondent")
_POSITION = ("position", "rank", "place")


def _position(sheet: Sheet, column: str, row: int, cell: str) -> float:
    number = _RANK.fullmatch(cell)
    if number is None or int(number[1]) < 1:
        raise sheet.wrong(column, row, cell, "be a rank: 1, 2, 3, …, 1 the best")
    return float(number[1])


def asks_ranks(grid: Sequence[str]) -> bool:
    """Whether the columns of a grid ask for ranks of items, rather than for a first choice."""
    of_choices = all(CHOICE.search(name) for name in grid)
    return not of_choices and any(re.search(r"\brank", name, re.IGNORECASE) for name in grid)


@ballot_shape(
    "ranks",
    "a row is a ballot, a column an item, a cell its rank (1 is best)",
    "user, and one for each item",
    bracketed,
    grid=asks_ranks,
    least=2,
    takes_all=True,
)
def _read_ranks(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A column an item, a cell its rank; an empty cell was not ranked."""
    rankings, users = read_grid(sheet, columns, partial(_position, sheet))
    said = f"{len(rankings):,} ballots of ranks of {len(columns)} items; 1 is best"
    return Ballots(rankings, users, said)


def _long_columns(names: Sequence[str], user: str | None) -> list[str]:
    found = one_each(names, (_BALLOT, ITEM_WORDS, _POSITION))
    if not found and user is not None:
        found = one_each(names, ((letters(user),), ITEM_WORDS, _POSITION))
    return found


@ballot_shape(
    "rankings",
    "a row names a ballot, an item and its position there",
    "ballot, item, position",
    _long_columns,
    least=3,
    is_long=True,
    count="count",
)
def _read_rankings(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A row names a ballot, an item and its position there.

    The ballot is the user's where no other column says whose it is; columns `count` and `tied`,
    as `Comparisons.to_frame` writes them, hold for the whole ballot.
    """
    extra = [name for name in ("count", "tied") if name in sheet.columns]
    has_user = sheet.user_column not in (None, *columns)
    place = partial(_position, sheet)
    rankings, users, given = read_long(sheet, columns, place, extra, has_user)
    whose = "user given" if has_user else f"{columns[0]} = user"
    said = f"{len(rankings):,} rankings; {columns[2]} 1 is best; {whose}"
    tied = [str(cell).strip().lower() in TRUE_WORDS for cell in given.get("tied", ())]
    count = None
    if "count" in given:
        for cell in given["count"]:
            if not re.fullmatch(r"0*[1-9][0-9]{0,14}", (cell or "").strip()):
                raise DataError(
                    f"{sheet.name}: a count is {cell!r}: it must be a whole number above 0"
                )
        count = [int(cell) for cell in given["count"]]
    return Ballots(rankings, users, said, tied or True, count)
