"""Pair questions: a column a question "tea or milk?", a cell the answer."""

import re
from collections.abc import Sequence

from penchant.errors import DataError
from penchant.io.formats.ballots import Ballots, Places, Sheet, ballot_shape
from penchant.io.words import FIRST_WON, SECOND_WON, TIE, read_words

_QUESTION = re.compile(
    r"(?:.*(?::|\bprefer|\brather|\bbetter|\blike)\s*,?\s+)?"
    r"(.+?)\s+(?:or|vs\.?|versus)\s+(.+?)\s*\?*",
    re.IGNORECASE | re.DOTALL,
)


def _columns(names: Sequence[str], user: str | None) -> list[str]:
    return [name for name in names if _QUESTION.fullmatch(name)]


@ballot_shape(
    "questions",
    "a row is a person, a column a question 'X or Y?', a cell the answer",
    "user, and questions such as 'tea or milk?'",
    _columns,
)
def _read(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """An empty cell was not asked."""
    spelling: dict[str, str] = {}  # "Tea or milk?" and "Milk or tea?" speak of the same two
    asked = []
    for column in columns:
        match = _QUESTION.fullmatch(column)
        if match is None:
            raise DataError(f"{sheet.name}: column {column!r} is no question 'X or Y?'")
        asked.append([spelling.setdefault(i.strip().casefold(), i.strip()) for i in match.groups()])
    rankings: list[Places] = []
    users = []
    for row, user, cells in sheet.rows(columns):
        with sheet.one_row():
            given = []
            for column, cell, (one, two) in zip(columns, cells, asked, strict=True):
                side = _answer(cell, one, two) if cell else None
                if cell and side is None:
                    raise sheet.wrong(column, row, cell, f"be {one!r}, {two!r} or a tie")
                if side == TIE:
                    given.append([[one, two]])
                elif side is not None:
                    given.append([[one], [two]] if side == FIRST_WON else [[two], [one]])
            rankings += given
            users += [user] * len(given)
    ties = sum(len(order) == 1 for order in rankings)
    said = f"{len(rankings):,} answers to {len(columns)} questions 'X or Y?'; {ties:,} ties"
    return Ballots(rankings, users, said)


def _answer(cell: str, one: str, two: str) -> int | None:
    for side, name in ((FIRST_WON, one), (SECOND_WON, two)):
        if cell.casefold() == name.casefold():
            return side
    return read_words([cell], one, two).side.get(cell)
