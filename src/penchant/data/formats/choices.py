"""Ballots of names: pair questions, best and worst, first choices, lists of what is liked."""

import re
from collections.abc import Sequence

from penchant.data.formats.sheet import Ballots, Places, Sheet
from penchant.data.outcomes import FIRST_WON, SECOND_WON, TIE, read_words
from penchant.data.source import listed
from penchant.errors import DataError

QUESTION = re.compile(
    r"(?:.*(?::|\bprefer|\brather|\bbetter|\blike)\s*,?\s+)?"
    r"(.+?)\s+(?:or|vs\.?|versus)\s+(.+?)\s*\?*",
    re.IGNORECASE | re.DOTALL,
)
CHOICE = re.compile(
    r"\b(?:choice|rank|top|pick|preference|place)[\s_#]*([0-9]{1,3})\b|"
    r"\b([0-9]{1,3})\s*(?:st|nd|rd|th)?[\s_]*(?:choice|pick|preference|place)\b|"
    r"\b(first|second|third|fourth|fifth)(?:[\s_]+(?:choice|pick|preference|place)\b|$)",
    re.IGNORECASE,
)
APPROVAL = re.compile(
    r"\b(?:select|choose|check|tick|mark)\s+all\b|\ball (?:that|you)\b", re.IGNORECASE
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def read_questions(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A column a question 'X or Y?', a cell its answer; an empty cell was not asked."""
    spelling: dict[str, str] = {}  # "Tea or milk?" and "Milk or tea?" speak of the same two
    asked = []
    for column in columns:
        match = QUESTION.fullmatch(column)
        if match is None:
            raise DataError(f"{sheet.name}: column {column!r} is no question 'X or Y?'")
        asked.append([spelling.setdefault(i.strip().casefold(), i.strip()) for i in match.groups()])
    rankings: list[Places] = []
    users = []
    for row, user, cells in sheet.rows(columns):
        with sheet.bad:
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


def read_best_worst(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """The best, the worst, and in further columns all that was shown."""
    rankings, users = [], []
    for row, user, (best, worst, *cells) in sheet.rows(columns):
        with sheet.bad:
            shown = [item for item in cells if item]
            for column, item in zip(columns, (best, worst), strict=False):
                if not item or (shown and item not in shown):
                    among = f", one of {listed(shown)}" if shown else ""
                    raise sheet.wrong(column, row, item, f"name an item that was shown{among}")
            if best == worst:
                raise sheet.wrong(columns[1], row, worst, "differ from the best")
            others = [item for item in shown if item not in (best, worst)]
            rankings.append([[best], others, [worst]] if others else [[best], [worst]])
            users.append(user)
    said = f"{len(rankings):,} choices of a best and a worst item"
    return Ballots(rankings, users, said, tied=False)


def read_top(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A row names a first choice, a second, …"""
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


def read_approvals(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A cell lists what a person likes, out of all that anybody lists."""
    if len(columns) != 1:
        raise DataError(
            f"{sheet.name} has {len(columns)} columns of lists, {listed(columns)}: it must have "
            "one; make a table of each"
        )
    cells = [cell for *_, (cell,) in sheet.rows(columns)]
    mark = next((m for m in ";|" if any(m in cell for cell in cells)), ",")
    lists = [dict.fromkeys(i.strip() for i in cell.split(mark) if i.strip()) for cell in cells]
    known = sorted({item for liked in lists for item in liked})
    rankings, users = [], []
    for user, liked in zip(sheet.users, lists, strict=True):
        others = [item for item in known if item not in liked]
        if liked and others:
            rankings.append([list(liked), others])
            users.append(user)
    said = f"{len(cells):,} lists of what is liked among {len(known)} items"
    return Ballots(rankings, users, said, tied=False)
