"""Ballots of numbers and grades: ranks, rankings, Likert grids."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from penchant.data.coding import TRUE_WORDS
from penchant.data.formats.sheet import Ballots, Places, Sheet, ordered
from penchant.data.names import whole_numbers
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
    rankings, users = _by_row(sheet, columns, partial(_position, sheet))
    said = f"{len(rankings):,} ballots of ranks of {len(columns)} items; 1 is best"
    return Ballots(rankings, users, said)


def read_rankings(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A row names a ballot, an item and its position there.

    The ballot is the user's where no other column says whose it is; columns `count` and `tied`,
    as `Comparisons.to_frame` writes them, hold for the whole ballot.
    """
    further = [name for name in ("count", "tied") if name in sheet.columns]
    rankings, users, given = _by_ballot(sheet, columns, further, partial(_position, sheet))
    whose = "user given" if sheet.has_user else f"{columns[0]} = user"
    said = f"{len(rankings):,} rankings; {columns[2]} 1 is best; {whose}"
    tied = [str(cell).strip().lower() in TRUE_WORDS for cell in given.get("tied", ())]
    count = _counts(sheet, given["count"]) if "count" in given else None
    return Ballots(rankings, users, said, tied or True, count)


def read_grades(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A row names a person, an item and its grade, as tables of ratings do."""
    grade = _grades(sheet, columns[2:])
    rankings, users, _ = _by_ballot(sheet, columns, (), partial(_below_the_best, sheet, grade))
    said = f"{len(rankings):,} people's grades; {columns[0]} = user; {columns[2]} {_scale(grade)}"
    return Ballots(rankings, users, said)


Place = Callable[[str, int, str], float]
"""What a column, a row's number and a cell say of where an item stands, the lowest first."""


def _by_row(sheet: Sheet, columns: Sequence[str], place: Place) -> tuple[list[Places], list[Any]]:
    """Rankings out of a row for each ballot and a column for each item, and whose they are."""
    rankings, users = [], []
    for row, user, cells in sheet.rows(columns):
        with sheet.bad:
            places = {
                _item(column): place(column, row, cell)
                for column, cell in zip(columns, cells, strict=True)
                if cell
            }
            if len(places) > 1:
                rankings.append(ordered(places))
                users.append(user)
    return rankings, users


def _by_ballot(
    sheet: Sheet, columns: Sequence[str], further: Sequence[str], place: Place
) -> tuple[list[Places], list[Any], dict[str, list[Any]]]:
    """Rankings out of a row for each ballot and item, whose they are, and their further cells."""
    ballots: dict[str, dict[str, float]] = {}
    about: dict[str, tuple[Any, ...]] = {}
    for line, (row, user, (ballot, item, cell)) in enumerate(sheet.rows(columns)):
        with sheet.bad:
            if not ballot or not item:
                raise sheet.wrong(columns[1 if ballot else 0], row, "", "not be empty")
            who = user if sheet.has_user else ballot
            told = (who, *(sheet.columns[name][line] for name in further))
            if about.get(ballot, told) != told:
                raise sheet.wrong(columns[0], row, ballot, "have one user, count and tied alone")
            if item in ballots.get(ballot, ()):
                raise sheet.wrong(columns[1], row, item, f"occur once in {columns[0]} {ballot!r}")
            where = place(columns[2], row, cell)
            ballots.setdefault(ballot, {})[item] = where
            about[ballot] = told
    users = [who for who, *_ in about.values()]
    given = {name: [values[1 + k] for values in about.values()] for k, name in enumerate(further)}
    rankings = [ordered(places) for places in ballots.values()]
    return rankings, users if sheet.has_user else whole_numbers(users), given


def _counts(sheet: Sheet, cells: Sequence[Any]) -> list[int]:
    for cell in cells:
        if not re.fullmatch(r"0*[1-9][0-9]{0,14}", (cell or "").strip()):
            raise DataError(f"{sheet.name}: a count is {cell!r}: it must be a whole number above 0")
    return [int(cell) for cell in cells]


def read_ratings(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A column an item, a cell its grade; an empty cell was not graded."""
    grade = _grades(sheet, columns)
    rankings, users = _by_row(sheet, columns, partial(_below_the_best, sheet, grade))
    said = f"{len(rankings):,} people's grades of {len(columns)} items: {_scale(grade)}"
    return Ballots(rankings, users, said)


def _grades(sheet: Sheet, columns: Sequence[str]) -> dict[str, float]:
    """Return the grade behind each cell: a number, or a place on a known scale of words."""
    cells = {cell.casefold() for *_, line in sheet.rows(columns) for cell in line if cell}
    scale = max(_SCALES, key=lambda words: len(cells.intersection(words)))
    words = {word: float(scale.index(word)) for word in cells.intersection(scale)}
    matches = {cell: _GRADE.fullmatch(cell) for cell in cells}
    numbers = {cell: float(match[1]) for cell, match in matches.items() if match}
    return words if len(words) > len(numbers) else numbers


def _below_the_best(
    sheet: Sheet, grade: Mapping[str, float], column: str, row: int, cell: str
) -> float:
    """A grade as a place: the lower, the better."""
    found = grade.get(cell.casefold())
    if found is None:
        raise sheet.wrong(
            column,
            row,
            cell,
            "be a grade: a number, more is better, or a word of a usual scale (strongly disagree "
            "… strongly agree)",
        )
    return -found


def _scale(grade: Mapping[str, float]) -> str:
    """The grades that occur, the worst first, as a line tells them."""
    steps = {grade[cell]: cell for cell in sorted(grade, reverse=True)}  # 5 rather than 5.0
    shown = [steps[step] for step in sorted(steps)]
    return " < ".join(shown if len(shown) <= 7 else [*shown[:3], "…", *shown[-3:]])


def _item(column: str) -> str:
    match = BRACKETS.fullmatch(column)
    return match[2].strip() if match else column.strip()


def _position(sheet: Sheet, column: str, row: int, cell: str) -> float:
    number = _RANK.fullmatch(cell)
    if number is None or int(number[1]) < 1:
        raise sheet.wrong(column, row, cell, "be a rank: 1, 2, 3, …, 1 the best")
    return float(number[1])
