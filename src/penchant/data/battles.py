"""Rows of two items and an outcome: which of the two won."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penchant.data.duck import literal
from penchant.data.outcomes import (
    FIRST_WON,
    SECOND_WON,
    Vocabulary,
    is_both_bad,
    read_numbers,
    read_scores,
    read_words,
)
from penchant.data.recognise import Reading
from penchant.errors import DataError

_MOST_OUTCOMES = 1000  # different words; more are names of items
_POINTS = ("score", "points", "result", "outcome")  # columns in which 1 is a point for the first


@dataclass(frozen=True)
class Battle:
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
    one, two = (f'try_cast("{role}" AS DOUBLE)' for role in ("score", "other score"))
    difference = f"({one} - {two})"
    finite = f"isfinite({one}) AND isfinite({two})"
    side = f"CASE WHEN {finite} THEN sign({difference}) END"
    pair = f"{reading.columns['score']}, {reading.columns['other score']}"
    return Battle(
        side,
        f"coalesce(abs({difference}), 0)" if reading.shape == "scores" else "",
        pair,
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
    if any(word in column for word in _POINTS) and numbers:
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
