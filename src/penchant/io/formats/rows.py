"""Tables in which each row is one comparison: a winner and a loser, or two items and an outcome.

Recognition is by the names of columns and, where these leave a choice, by their cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from penchant.errors import DataError
from penchant.io.recognise import (
    ITEM_STEMS,
    OUTCOME_SPELLINGS,
    PAIRED_SPELLINGS,
    SCORE_STEMS,
    SHAPES,
    SHOWN_FIRST,
    SPELLINGS,
    STRENGTH_SPELLINGS,
    VAGUE_OUTCOMES,
    WANTED,
    ReadOptions,
    all_sides,
    choose_columns,
    find_roles,
    find_sides,
    refuse_double_roles,
)
from penchant.io.source import Column, Source, as_number, find_column, listed, literal, plain
from penchant.io.words import (
    FIRST_WON,
    SECOND_WON,
    Vocabulary,
    is_both_bad,
    read_numbers,
    read_scores,
    read_strengths,
    read_words,
)

ROW_BY_ROW = {
    "pairs": ("a row names the winner and the loser", "winner, loser"),
    "outcome": (
        "a row names two items and says which won, in a word or by its name",
        "item_a, item_b, winner",
    ),
    "points": (
        "as outcome, in numbers: 1 the first won, 0 (or less) the second, 0.5 a tie",
        "item_a, item_b, outcome",
    ),
    "numbered": (
        "as outcome, by number: 1 or 2 (or 0 or 1, or below and above 0) tells which won",
        "item_a, item_b, outcome",
    ),
    "scores": ("a row names two items and the score of each", "item_a, item_b, score_a, score_b"),
    "marks": (
        "a row names two items and marks the one that won with 1, the other with 0",
        "item_a, item_b, winner_item_a, winner_item_b",
    ),
}
"""What each shape means, and names of columns that make such a table."""
SHAPES |= {name: meaning for name, (meaning, _) in ROW_BY_ROW.items()}
WANTED |= {name: columns for name, (_, columns) in ROW_BY_ROW.items()}

_MEANT = {word for words in SPELLINGS.values() for word in words}
_THIRD = {"a": "c", "first": "third"}  # these make a pair only as long as no third one follows
_MOST_OUTCOMES = 1000  # different words; more are names of items
_MOST_WORDS = 50  # different cells; more are no words for how clearly somebody won
_POINT_COLUMNS = ("score", "points", "result", "outcome")  # in these 1 is a point for the first


@dataclass(frozen=True)
class Reading:
    """A shape, and the columns that play a role in it; guessed: roles that nobody asked for."""

    shape: str
    columns: Mapping[str, str]
    guessed: frozenset[str] = frozenset()
    covariates: tuple[str, ...] = ()


def recognise(con: Any, source: Source, options: ReadOptions) -> Reading | None:
    """Return how each row of the table is one comparison, or None where it does not look so."""
    names, asked, shape = source.names, options.columns, options.shape
    if shape not in (None, *ROW_BY_ROW):
        return None
    for name in source.unusable:
        if name in asked.values() or plain(name) in _MEANT:
            raise DataError(
                f"column {name!r} of {source.name} holds lists or other values that cannot be a "
                "name: names must be text or numbers"
            )
    sides = _item_columns(source, names, shape)
    pair = find_roles(names, asked, ("winner", "loser"), source.name)
    if shape == "pairs" or (shape is None and len(pair) == 2):
        return _pairs(con, source, options)
    found = _battles(source, names, asked, sides, shape) if sides else None
    if found is None and shape is not None:
        raise DataError(
            f"{source.name} cannot be read as shape={shape!r} ({SHAPES[shape]}): its columns are "
            f"{listed(names)}, and it wants {WANTED[shape]}"
        )
    if found is None and sides and sides[0].casefold() in _THIRD:
        third = [name for name in names if name.casefold() == _THIRD[sides[0].casefold()]]
        if third:
            raise DataError(
                f"{source.name} can be read in two ways: {sides[0]!r} was preferred to "
                f"{sides[1]!r} in every row (shape='pairs'), which leaves {third[0]!r} out, or a "
                "row names choices from the best down (shape='top'): say which"
            )
        return _pairs(con, source, options)
    return found


def unrecognised(source: Source, asked: Mapping[str, str | None]) -> DataError:
    """What to say about a table that nothing fits."""
    try:
        choose_columns(source.names, asked, source.name)
    except DataError as error:
        return DataError(f"{error}; or say its shape=, one of {', '.join(map(repr, SHAPES))}")
    return DataError(f"{source.name} is not recognised: say its shape=")


def _item_columns(
    source: Source, names: Sequence[str], shape: str | None
) -> tuple[str, str] | None:
    """Return the two columns that name the items of a row, where two do."""
    known = find_sides(names, ITEM_STEMS)
    if known or not (_outcomes(names) or shape is not None):
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


def _outcomes(names: Sequence[str]) -> list[str]:
    clear, vague = (
        [name for name in names if plain(name) in spellings]
        for spellings in (OUTCOME_SPELLINGS, VAGUE_OUTCOMES)
    )
    return clear or vague


def _pairs(con: Any, source: Source, options: ReadOptions) -> Reading:
    columns = choose_columns(source.names, options.columns, source.name)
    winner, loser = columns["winner"], columns["loser"]
    reading = _reading("pairs", columns, options.columns)
    if options.shape is not None:
        return reading
    outcomes = [name for name in _outcomes(source.names) if name not in columns.values()]
    if outcomes and all_sides([winner, loser]):
        raise DataError(
            f"{source.name}: winner={winner!r} and loser={loser!r} would make the first the winner "
            f"of every row, but column {outcomes[0]!r} seems to tell who won: leave winner= and "
            "loser= out, or say shape='pairs' if they are right"
        )
    is_guess = {"winner", "loser"} <= reading.guessed
    if not is_guess or (plain(winner), plain(loser)) not in PAIRED_SPELLINGS:
        return reading
    for name in source.names:  # does what stands in another column look like a word on who won?
        known = name in columns.values() or name in options.columns.values()
        words = [] if known else _different(con, source, source[name])
        readings = [*read_numbers(words), read_words(words, winner, loser)] if words else []
        if any(len(v.side) == len(words) and len({*v.side.values()}) > 1 for v in readings):
            raise DataError(
                f"{source.name} can be read in two ways: {winner!r} was preferred to {loser!r} in "
                f"every row (shape='pairs'), or column {name!r} tells which of them was "
                f"(winner={name!r}, shape='outcome'): say which"
            )
    return reading


def _battles(
    source: Source,
    names: Sequence[str],
    asked: Mapping[str, str | None],
    sides: tuple[str, str],
    shape: str | None,
) -> Reading | None:
    """Two items a row, and a column of outcomes or two of scores."""
    columns = {"winner": sides[0], "loser": sides[1]}
    columns |= find_roles(names, asked, ("user", "tie", "count"), source.name)
    others = [name for name in names if name not in sides]
    wanted = asked.get("winner")
    for kind, scores in (
        ("scores", find_sides(others, SCORE_STEMS)),
        ("marks", find_sides(others, [f"winner{stem}" for stem in ITEM_STEMS])),
    ):
        if scores and shape in (None, kind) and not wanted:
            columns |= {"score": scores[0], "other score": scores[1]}
            return _reading(kind, {r: c for r, c in columns.items() if r != "tie"}, asked)
    if shape in ("scores", "marks"):
        return None
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
    return _reading(shape or "outcome", columns | {"outcome": found[0]}, asked)


def _reading(shape: str, columns: dict[str, str], asked: Mapping[str, str | None]) -> Reading:
    refuse_double_roles(columns)
    guessed = frozenset(role for role in columns if role in SPELLINGS and not asked.get(role))
    return Reading(shape, columns, guessed)


def with_extra_columns(con: Any, source: Source, reading: Reading, options: ReadOptions) -> Reading:
    """Return the reading with time, margin, first and covariates where they are asked for; a column
    called strength is the margin, and one called shown_first is `first`, if all its cells fit."""
    asked = options.columns
    roles = {role: name for role in ("time", "margin", "first") if (name := asked.get(role))}
    if reading.shape != "pairs":
        if roles.keys() & {"first", "margin"}:
            raise DataError(
                f"{source.name} is read as shape={reading.shape!r}, which tells itself who was "
                "shown first and by how much they won: leave first= and margin= out"
            )
    else:
        free = [name for name in source.names if name not in reading.columns.values()]
        strengths = [name for name in source.names if plain(name) in STRENGTH_SPELLINGS]
        if "margin" not in roles and len(strengths) == 1 and strengths[0] in free:
            words = _different(con, source, source[strengths[0]])
            if words and set(read_strengths(words)) == set(words):
                roles["margin"] = strengths[0]
        shown = [name for name in source.names if plain(name) == SHOWN_FIRST]
        if "first" not in roles and len(shown) == 1:
            side = side_named(source, shown[0], reading)
            told = f"bool_and(coalesce({side} IN (-1, 0, 1), false)) AND bool_or({side} <> 0)"
            if con.execute(f"SELECT {told} FROM {source.sql}").fetchone()[0]:
                roles["first"] = shown[0]
    return replace(reading, columns={**reading.columns, **roles}, covariates=options.covariates)


def side_named(source: Source, column: str, reading: Reading) -> str:
    """SQL for +1 where a cell names the winner, −1 the loser, 0 where it is empty; or a number."""
    columns = (column, reading.columns["winner"], reading.columns["loser"])
    cell, winner, loser = (f"trim({source[name].text})" for name in columns)
    return (
        f"CASE WHEN coalesce({cell}, '') = '' THEN 0 WHEN {cell} = {winner} THEN 1 "
        f"WHEN {cell} = {loser} THEN -1 ELSE {as_number(cell)} END"
    )


def margin_cell(con: Any, source: Source, column: Column) -> str:
    """SQL for a number, or for the number behind a word such as 'much better'."""
    told = read_strengths(_different(con, source, column))
    whens = " ".join(f"WHEN {literal(word)} THEN {value!r}" for word, value in told.items())
    number = as_number(column.text)
    return f"coalesce({number}, CASE trim({column.text}) {whens} END)" if whens else number


def _different(con: Any, source: Source, column: Column) -> list[str]:
    """The different texts in a column, or none where they are too many to be words."""
    cell = f"trim({column.text})"
    query = f"SELECT DISTINCT {cell} FROM {source.sql} WHERE {cell} <> '' LIMIT {_MOST_WORDS + 1}"
    found = [word for (word,) in con.execute(query).fetchall()]
    return found if len(found) <= _MOST_WORDS else []


class Battle(NamedTuple):
    """SQL on `picked` that tells who won.

    side : 1 the first, -1 the second, 0 a tie, NULL unreadable. margin : by how much, or nothing.
    both_bad : whether a tie is one of two that were bad.
    column, shown, advice : what a message about an unreadable outcome says.
    """

    side: str
    margin: str
    column: str
    shown: str
    advice: str
    both_bad: str = "false"


def read_battle(con: Any, table: str, reading: Reading, items: Sequence[Any] = ()) -> Battle | None:
    """Return how the rows of a reading tell who won; None where the winner is a column.

    items : the names in the two columns of items.
    """
    if reading.shape == "pairs":
        return None
    if reading.shape in ("scores", "marks"):
        return _by_scores(reading)
    cells = con.execute(f"SELECT DISTINCT outcome FROM picked LIMIT {_MOST_OUTCOMES + 1}")
    outcomes = sorted(cell for (cell,) in cells.fetchall() if cell is not None and cell.strip())
    candidates = _by_words(outcomes, reading)
    by_name = _side_by_name(con, outcomes)
    sides = {v.meaning: _side_by_word(v) for v in candidates if len(v.side) == len(outcomes)}
    called = {str(name).casefold() for name in items}
    # a look at every row is spared where no outcome is the name of an item
    is_named = not sides or any(word.strip().casefold() in called for word in outcomes)
    if reading.shape == "outcome" and is_named and _n_unread(con, by_name) == 0:
        sides["the outcome is the name of the item that won"] = by_name
    if not sides:
        best = max(candidates, key=lambda v: len(v.side), default=None)
        by_word = by_name if best is None else _side_by_word(best)
        sides = {"": min(by_name, by_word, key=lambda side: _n_unread(con, side))}
    side = _only_reading(con, table, reading, sides)
    bad = [word for word in outcomes if is_both_bad(word)]
    strength = next((v.strength for v in candidates if _side_by_word(v) == side), {})
    return Battle(
        side,
        _cases({w: f"{clear}::DOUBLE" for w, clear in strength.items()}) if strength else "",
        reading.columns["outcome"],
        'r."outcome"',
        f"it must say which of {reading.columns['winner']!r} and {reading.columns['loser']!r} won, "
        "by a side, a name or 'tie'",
        f"outcome IN ({', '.join(map(literal, bad))})" if bad else "false",
    )


def _by_scores(reading: Reading) -> Battle:
    one, two = as_number('"score"'), as_number('"other score"')
    difference = f"({one} - {two})"
    return Battle(
        f"CASE WHEN isfinite({one}) AND isfinite({two}) THEN sign({difference}) END",
        f"coalesce(abs({difference}), 0)" if reading.shape == "scores" else "",
        f"{reading.columns['score']}, {reading.columns['other score']}",
        'concat_ws(\', \', r."score", r."other score")',
        "both must be numbers",
    )


def _by_words(outcomes: Sequence[str], reading: Reading) -> list[Vocabulary]:
    """Every way in which outcomes can be words or numbers."""
    if len(outcomes) > _MOST_OUTCOMES:
        return []
    if (scores := read_scores(outcomes)) is not None and outcomes:
        return [scores]
    numbers = read_numbers(outcomes)
    if reading.shape in ("points", "numbered"):
        is_points = reading.shape == "points"
        for_first = ("1 means", "positive means")
        fitting = [v for v in numbers if v.meaning.startswith(for_first) == is_points]
        return [v for v in fitting if not v.meaning.endswith("2 a tie")]
    column = reading.columns["outcome"].casefold()
    if any(word in column for word in _POINT_COLUMNS) and numbers:
        return numbers[:1]
    return numbers or [read_words(outcomes, reading.columns["winner"], reading.columns["loser"])]


def _side_by_word(vocabulary: Vocabulary) -> str:
    return _cases({word: str(side) for word, side in vocabulary.side.items()})


def _cases(meaning: dict[str, str]) -> str:
    whens = " ".join(f"WHEN {literal(word)} THEN {value}" for word, value in meaning.items())
    return f"CASE outcome {whens} END" if whens else "NULL"


def _side_by_name(con: Any, outcomes: Sequence[str]) -> str:
    columns = {name for name, *_ in con.execute("DESCRIBE picked").fetchall()}
    one, two = ("first name", "second name") if "first name" in columns else ("winner", "loser")
    words = read_words(outcomes, "", "") if len(outcomes) <= _MOST_OUTCOMES else None
    ties = [word for word, side in words.side.items() if side == 0] if words else []
    tie = f"WHEN outcome IN ({', '.join(map(literal, ties))}) THEN 0" if ties else ""
    return (
        f'CASE WHEN trim(outcome) = trim("{one}") THEN {FIRST_WON} '
        f'WHEN trim(outcome) = trim("{two}") THEN {SECOND_WON} {tie} END'
    )


def _n_unread(con: Any, side: str) -> int:
    """How many outcomes a reading cannot make sense of; an empty cell is a bad row in any."""
    query = f"SELECT count(*) FROM picked WHERE ({side}) IS NULL AND trim(outcome) <> ''"
    found: int = con.execute(query).fetchone()[0]
    return found


def _only_reading(con: Any, table: str, reading: Reading, sides: dict[str, str]) -> str:
    """Return the one reading, or any where all say the same of every row."""
    (meaning, side), *others = sides.items()
    for other_meaning, other in others:
        differ = f"SELECT count(*) FROM picked WHERE ({side}) IS DISTINCT FROM ({other})"
        if con.execute(differ).fetchone()[0]:
            raise DataError(
                f"column {reading.columns['outcome']!r} of {table} can be read in two ways: "
                f"{meaning}; or, {other_meaning}. Say which, as in shape='points' (more is for the "
                "first: 1 it won, 0 or less the second), shape='numbered' (by number, from the "
                "first up) or, with both items' names in winner= and loser=, shape='pairs'; or "
                "write out names"
            )
    return side
