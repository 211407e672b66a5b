"""First choices: the columns of a ballot name the first choice, the second, …"""

import re
from collections.abc import Sequence

from penchant.errors import DataError
from penchant.io.formats.ballots import Ballots, Sheet, ballot_shape

CHOICE = re.compile(
    r"\b(?:choice|rank|top|pick|preference|place)[\s_#]*([0-9]{1,3})\b|"
    r"\b([0-9]{1,3})\s*(?:st|nd|rd|th)?[\s_]*(?:choice|pick|preference|place)\b|"
    r"\b(first|second|third|fourth|fifth)(?:[\s_]+(?:choice|pick|preference|place)\b|$)",
    re.IGNORECASE,
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def _columns(names: Sequence[str], user: str | None) -> list[str]:
    return [name for name in names if CHOICE.search(name)]


@ballot_shape(
    "top",
    "a row is a ballot, its columns name the first choice, the second, …",
    "user, choice 1, choice 2 …",
    _columns,
    grid=lambda grid: all(CHOICE.search(name) for name in grid),
    least=2,
)
def _read(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    columns = sorted(columns, key=_choice_number)
    rankings, users = [], []
    for _, user, cells in sheet.rows(columns):
        named = [[cell] for cell in cells if cell]
        if len(named) > 1:
            rankings.append(named)
            users.append(user)
    said = (
        f"{len(rankings):,} ballots of up to {len(columns)} choices; items that a ballot does not "
        "name are not compared by it"
    )
    return Ballots(rankings, users, said)


def _choice_number(column: str) -> int:
    match = CHOICE.search(column)
    if match is None:
        raise DataError(f"column {column!r} does not tell which choice it is: first, second, …")
    word = match[1] or match[2]
    return int(word) if word else 1 + _ORDINALS.index(match[3].casefold())
