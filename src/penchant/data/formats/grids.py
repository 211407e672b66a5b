"""Ballots of numbers and grades: ranks, rankings, Likert grids."""

import re
from collections.abc import Sequence
from typing import Any

from penchant.data.coding import TRUE_WORDS
from penchant.data.formats.sheet import Ballots, Sheet, ordered
from penchant.data.names import whole_numbers
from penchant.data.source import listed
from penchant.errors import DataError

BRACKETS = re.compile(r"(.*?)\s*\[([^\[\]]+)\]\s*", re.DOTALL)  # How good is it? [tea]

_RANK = re.compile(r"#?\s*([0-9]{1,9})(?:\.0)?\s*(?:st|nd|rd|th)?")
_GRADE = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)(?:\s*[-–:=(].*)?", re.DOTALL)  # also "5 - very good"
_SCALES = (
    ("strongly disagree", "disagree", "neutral", "agree", "strongly agree"),
    ("strongly disagree", "disagree", "neither agree nor disagree", "agree", "strongly agree"),
    ("strongly dislike", "dislike", "neutral", "like", "strongly like"),
    ("hate", "dislike", "neutral", "like", "love"),
    ("very bad", "bad", "neutral", "good", "very good"),
    ("very poor", "poor", "fair", "good", "very good", "excellent"),
    ("never", "rarely", "sometimes", "often", "always"),
    ("very dissatisfied", "dissatisfied", "neutral", "satisfied", "very satisfied"),
    ("very unimportant", "unimportant", "neutral", "important", "very important"),
    ("not at all", "slightly", "moderately", "very", "extremely"),
    ("no", "maybe", "yes"),
)


def read_ranks(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A column an item, a cell its rank; an empty cell was not ranked."""
    rankings, users = [], []
    for row, user, cells in sheet.rows(columns):
        place = {
            _item(column): _position(sheet, column, row, cell)
            for column, cell in zip(columns, cells, strict=True)
            if cell
        }
        if len(place) > 1:
            rankings.append(ordered(place))
            users.append(user)
    said = f"{len(rankings):,} ballots of ranks of {len(columns)} items; 1 is best"
    return Ballots(rankings, users, said)


def read_rankings(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A row names a ballot, an item and its position there.

    The ballot is the user's where no other column says whose it is; columns `count` and `tied`,
    as `Comparisons.to_frame` writes them, hold for the whole ballot.
    """
    ballots: dict[str, dict[str, float]] = {}
    about: dict[str, tuple[Any, ...]] = {}
    further = [name for name in ("count", "tied") if name in sheet.columns]
    for line, (row, user, (ballot, item, cell)) in enumerate(sheet.rows(columns)):
        who = user if sheet.has_user else ballot
        told = (who, *(sheet.columns[name][line] for name in further))
        if about.setdefault(ballot, told) != told:
            raise sheet.wrong(columns[0], row, ballot, "have one user, count and tied alone")
        if not ballot or not item:
            raise sheet.wrong(columns[1 if ballot else 0], row, "", "not be empty")
        place = ballots.setdefault(ballot, {})
        if item in place:
            raise sheet.wrong(columns[1], row, item, f"occur once in {columns[0]} {ballot!r}")
        place[item] = _position(sheet, columns[2], row, cell)
    rankings = [ordered(place) for place in ballots.values()]
    users = [who for who, *_ in about.values()]
    users = users if sheet.has_user else whole_numbers(users)
    whose = "user given" if sheet.has_user else f"{columns[0]} = user"
    said = f"{len(rankings):,} rankings; {columns[2]} 1 is best; {whose}"
    given = {name: [values[1 + k] for values in about.values()] for k, name in enumerate(further)}
    tied = [str(cell).strip().lower() in TRUE_WORDS for cell in given.get("tied", ())]
    count = _counts(sheet, given["count"]) if "count" in given else None
    return Ballots(rankings, users, said, tied or True, count)


def _counts(sheet: Sheet, cells: Sequence[Any]) -> list[int]:
    for cell in cells:
        if not re.fullmatch(r"0*[1-9][0-9]{0,14}", (cell or "").strip()):
            raise DataError(f"{sheet.name}: a count is {cell!r}: it must be a whole number above 0")
    return [int(cell) for cell in cells]


def read_ratings(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A column an item, a cell its grade; an empty cell was not graded."""
    lines = sheet.rows(columns)
    grade = _grades(sheet, columns, {c.casefold() for *_, line in lines for c in line if c})
    rankings, users = [], []
    for _, user, line in lines:
        given = {
            _item(column): -grade[cell.casefold()]
            for column, cell in zip(columns, line, strict=True)
            if cell
        }
        if len(given) > 1:
            rankings.append(ordered(given))
            users.append(user)
    scale = " < ".join(sorted(grade, key=grade.__getitem__)[:7])
    return Ballots(
        rankings, users, f"{len(rankings):,} people's grades of {len(columns)} items: {scale}"
    )


def _grades(sheet: Sheet, columns: Sequence[str], cells: set[str]) -> dict[str, float]:
    """Return the grade behind each cell: a number, or a place on a known scale of words."""
    for scale in _SCALES:
        if cells <= set(scale):
            return {word: float(scale.index(word)) for word in cells}
    numbers = {cell: _GRADE.fullmatch(cell) for cell in cells}
    for cell, number in sorted(numbers.items()):
        if number is None:
            raise DataError(
                f"{sheet.name}: {cell!r} in one of {listed(columns[:3])} … is no grade that is "
                "known: grades must be numbers, more is better, or words of a usual scale "
                "(strongly disagree … strongly agree)"
            )
    return {cell: float(number[1]) for cell, number in numbers.items() if number}


def _item(column: str) -> str:
    match = BRACKETS.fullmatch(column)
    return match[2].strip() if match else column.strip()


def _position(sheet: Sheet, column: str, row: int, cell: str) -> float:
    number = _RANK.fullmatch(cell)
    if number is None or int(number[1]) < 1:
        raise sheet.wrong(column, row, cell, "be a rank: 1, 2, 3, …, 1 the best")
    return float(number[1])
