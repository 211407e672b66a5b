"""Grades, more is better: a column an item (`ratings`), or a row an item of a person (`grades`)."""

import re
from collections.abc import Mapping, Sequence
from functools import partial

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
from penchant.io.formats.ranks import asks_ranks
from penchant.io.formats.top import CHOICE
from penchant.io.recognise import ITEM_WORDS, SPELLINGS, letters, listed

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
_PERSON = (*SPELLINGS["user"], "reviewer", "customer", "participant")
_THING = (*ITEM_WORDS, "movie", "film", "book", "song", "track", "artist", "title")
_GRADE_WORDS = ("rating", "grade", "stars", "score")


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
    if (found := grade.get(cell.casefold())) is not None:
        return -found
    must = (
        "be a grade: a number, more is better, or a word of a usual scale (strongly disagree … "
        "strongly agree)"
    )
    raise sheet.wrong(column, row, cell, must)


def _scale(grade: Mapping[str, float]) -> str:
    """The grades that occur, the worst first, as a line tells them."""
    steps = {grade[cell]: cell for cell in sorted(grade, reverse=True)}  # 5 rather than 5.0
    shown = [steps[step] for step in sorted(steps)]
    return " < ".join(shown if len(shown) <= 7 else [*shown[:3], "…", *shown[-3:]])


def _is_grid(grid: Sequence[str]) -> bool:
    return not asks_ranks(grid) and not all(CHOICE.search(name) for name in grid)


@ballot_shape(
    "ratings",
    "a row is a person, a column an item, a cell its grade (more is better)",
    "user, and one for each item",
    bracketed,
    grid=_is_grid,
    least=2,
    takes_all=True,
)
def _read_ratings(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A column an item, a cell its grade; an empty cell was not graded."""
    if not sheet.is_asked:
        _refuse_permutations(sheet, columns)
    grade = _grades(sheet, columns)
    rankings, users = read_grid(sheet, columns, partial(_below_the_best, sheet, grade))
    said = f"{len(rankings):,} people's grades of {len(columns)} items: {_scale(grade)}"
    return Ballots(rankings, users, said)


def _refuse_permutations(sheet: Sheet, columns: Sequence[str]) -> None:
    """Raise where grades are 1 … k in every row and `shape=` is not given: they may be ranks."""
    places = set(map(str, range(1, len(columns) + 1)))
    given = [[cell for cell in cells if cell] for *_, cells in sheet.rows(columns)]
    distinct = all(len(set(row)) == len(row) and set(row) <= places for row in given)
    if distinct and any(len(row) == len(columns) for row in given):
        raise DataError(
            f"{sheet.name} can be read in two ways: every row of {listed(columns[:3])} … holds "
            f"each of 1 to {len(columns)} once, as ranks do (1 the best) and grades may (more is "
            "better). Say shape='ranks' or shape='ratings'"
        )


def _long_columns(names: Sequence[str], user: str | None) -> list[str]:
    found = [] if user is None else one_each(names, ((letters(user),), _THING, _GRADE_WORDS))
    return found or one_each(names, (_PERSON, _THING, _GRADE_WORDS))


@ballot_shape(
    "grades",
    "a row names a person, an item and its grade (more is better)",
    "user, item, rating",
    _long_columns,
    least=3,
    is_long=True,
)
def _read_grades(sheet: Sheet, columns: Sequence[str]) -> Ballots:
    """A row names a person, an item and its grade, as tables of ratings do."""
    grade = _grades(sheet, columns[2:])
    rankings, users, _ = read_long(sheet, columns, partial(_below_the_best, sheet, grade))
    said = f"{len(rankings):,} people's grades; {columns[0]} = user; {columns[2]} {_scale(grade)}"
    return Ballots(rankings, users, said)
