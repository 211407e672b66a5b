"""What shape a table has: the one recognition of files, data frames and the command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penchant.data.columns import (
    ITEM_STEMS,
    OUTCOME_SPELLINGS,
    SCORE_STEMS,
    SPELLINGS,
    VAGUE_OUTCOMES,
    all_sides,
    choose_columns,
    find_roles,
    find_sides,
    refuse_double_roles,
)
from penchant.data.source import Source, find_column, listed, plain
from penchant.errors import DataError

# What `shape=` can say: how the rows of a table are meant.
SHAPES = {
    "pairs": "a row names the winner and the loser",
    "outcome": "a row names two items and says which won, in a word or by its name",
    "points": "as outcome, in numbers: 1 the first won, 0 (or less) the second, 0.5 a tie",
    "numbered": "as outcome, by number: 1 or 2 (or 0 or 1, or below and above 0) tells which won",
    "scores": "a row names two items and the score of each",
    "marks": "a row names two items and marks the one that won with 1, the other with 0",
    "rankings": "a row names a ballot, an item and its position there",
    "ranks": "a row is a ballot, a column an item, a cell its rank (1 is best)",
    "ratings": "a row is a person, a column an item, a cell its grade (more is better)",
    "grades": "a row names a person, an item and its grade (more is better)",
    "questions": "a row is a person, a column a question 'X or Y?', a cell the answer",
    "best-worst": "a row names the best and the worst of the items in its other columns",
    "top": "a row is a ballot, its columns name the first choice, the second, …",
    "approvals": "a row is a person, a cell lists all the items that they like",
}
WANTED = {
    "pairs": "winner, loser",
    "outcome": "item_a, item_b, winner",
    "points": "item_a, item_b, outcome",
    "numbered": "item_a, item_b, outcome",
    "scores": "item_a, item_b, score_a, score_b",
    "marks": "item_a, item_b, winner_item_a, winner_item_b",
    "rankings": "ballot, item, position",
    "ranks": "user, and one for each item",
    "ratings": "user, and one for each item",
    "grades": "user, item, rating",
    "questions": "user, and questions such as 'tea or milk?'",
    "best-worst": "best, worst, item_1, item_2, item_3 …",
    "top": "user, choice 1, choice 2 …",
    "approvals": "user, and one whose name holds 'like' or 'approve'",
}
"""Names of columns that make a table of each shape."""
_MEANT = {word for words in SPELLINGS.values() for word in words}
ROW_BY_ROW = ("pairs", "outcome", "points", "numbered", "scores", "marks")


@dataclass(frozen=True)
class Reading:
    """A shape, and the columns that play a role in it."""

    shape: str
    columns: Mapping[str, str]
    guessed: frozenset[str] = frozenset()  # roles that nobody asked for


def check_shape(shape: str | None) -> None:
    """Raise where `shape` is not the name of one."""
    if shape is not None and shape not in SHAPES:
        known = "; ".join(f"{name!r}: {meaning}" for name, meaning in SHAPES.items())
        raise DataError(f"shape is {shape!r}: it must be one of {known}")


def recognise(source: Source, asked: Mapping[str, str | None], shape: str | None) -> Reading | None:
    """Return how each row of the table is one comparison, or None where it does not look so."""
    names = source.names
    for name in source.unusable:
        if name in asked.values() or plain(name) in _MEANT:
            raise DataError(
                f"column {name!r} of {source.name} holds lists or other values that cannot be a "
                "name: names must be text or numbers"
            )
    sides = _item_columns(source, names, shape)
    pair = find_roles(names, asked, ("winner", "loser"), table=source.name)
    if shape == "pairs" or (shape is None and len(pair) == 2):
        return _pairs(source, names, asked, shape)
    if shape in (None, *ROW_BY_ROW) and sides:
        found = _battles(source, names, asked, sides, shape)
        if found is not None:
            return found
    if shape in ROW_BY_ROW:
        raise DataError(
            f"{source.name} cannot be read as shape={shape!r} ({SHAPES[shape]}): its columns are "
            f"{listed(names)}, and it wants {WANTED[shape]}"
        )
    if shape is None and sides and sides[0].casefold() in _THIRD:
        third = [name for name in names if name.casefold() == _THIRD[sides[0].casefold()]]
        if third:
            raise DataError(
                f"{source.name} can be read in two ways: {sides[0]!r} was preferred to "
                f"{sides[1]!r} in every row (shape='pairs'), which leaves {third[0]!r} out, or a "
                "row names choices from the best down (shape='top'): say which"
            )
        return _pairs(source, names, asked, shape)
    return None


_THIRD = {"a": "c", "first": "third"}
"""Columns that make a pair only as long as no third one follows."""


def _item_columns(
    source: Source, names: Sequence[str], shape: str | None
) -> tuple[str, str] | None:
    """Return the two columns that name the items of a row, where two do."""
    known = find_sides(names, ITEM_STEMS)
    if known or not (_outcomes(names) or shape in ROW_BY_ROW):
        return known
    scores = find_sides(names, SCORE_STEMS) or ()
    found = [pair for pair in all_sides(names) if pair != scores]
    if len(found) > 1:
        raise DataError(
            f"{source.name} has {len(found)} pairs of columns that may name the items, such as "
            f"{found[0][0]!r} and {found[0][1]!r} or {found[1][0]!r} and {found[1][1]!r}: call the "
            "right ones item_a and item_b"
        )
    return found[0] if found else None


def unrecognised(source: Source, asked: Mapping[str, str | None]) -> DataError:
    """What to say about a table that nothing fits."""
    try:
        choose_columns(source.names, asked, guess=True, table=source.name)
    except DataError as error:
        return DataError(f"{error}; or say its shape=, one of {', '.join(map(repr, SHAPES))}")
    return DataError(f"{source.name} is not recognised: say its shape=")


def _pairs(
    source: Source,
    names: Sequence[str],
    asked: Mapping[str, str | None],
    shape: str | None,
) -> Reading:
    columns = choose_columns(names, asked, guess=True, table=source.name)
    outcomes = [name for name in _outcomes(names) if name not in columns.values()]
    if shape is None and outcomes and all_sides([columns["winner"], columns["loser"]]):
        raise DataError(
            f"{source.name}: winner={columns['winner']!r} and loser={columns['loser']!r} would "
            f"make the first the winner of every row, but column {outcomes[0]!r} seems to tell who "
            "won: leave winner= and loser= out, or say shape='pairs' if they are right"
        )
    return _reading("pairs", columns, asked)


def _battles(
    source: Source,
    names: Sequence[str],
    asked: Mapping[str, str | None],
    sides: tuple[str, str],
    shape: str | None,
) -> Reading | None:
    """Two items a row, and a column of outcomes or two of scores."""
    further = find_roles(names, asked, ("user", "tie", "count"), table=source.name)
    columns = {"winner": sides[0], "loser": sides[1], **further}
    others = [name for name in names if name not in sides]
    for kind, scores in (
        ("scores", find_sides(others, SCORE_STEMS)),
        ("marks", find_sides(others, [f"winner{stem}" for stem in ITEM_STEMS])),
    ):
        if scores and shape in (None, kind) and not asked.get("winner"):
            columns |= {"score": scores[0], "other score": scores[1]}
            return _reading(kind, {r: c for r, c in columns.items() if r != "tie"}, asked)
    if shape in ("scores", "marks"):
        return None
    wanted = asked.get("winner")
    found = [name for name in _outcomes(names) if name not in columns.values()]
    if wanted is not None:
        found = [find_column(wanted, "outcome", names, source.name)]
    if len(found) > 1:
        readings = " or ".join(f"winner={name!r}" for name in found)
        raise DataError(
            f"{source.name} has {len(found)} columns that may tell who won, {listed(found)}: say "
            f"which, as in {readings}"
        )
    if not found:
        return None
    columns["outcome"] = found[0]
    return _reading(shape or "outcome", columns, asked)


def _outcomes(names: Sequence[str]) -> list[str]:
    clear, vague = (
        [name for name in names if plain(name) in spellings]
        for spellings in (OUTCOME_SPELLINGS, VAGUE_OUTCOMES)
    )
    return clear or vague


def _reading(shape: str, columns: dict[str, str], asked: Mapping[str, str | None]) -> Reading:
    refuse_double_roles(columns)
    guessed = frozenset(role for role in columns if role in SPELLINGS and not asked.get(role))
    return Reading(shape, columns, guessed)
