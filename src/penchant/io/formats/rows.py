"""Tables in which each row is one comparison: a winner and a loser, or two items and an outcome.

Recognition is by the names of columns and, where these leave a choice, by their cells. DuckDB then
numbers the names and groups equal rows, out of core.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from penchant.data import (
    BAD_WORDS,
    BOTH_BAD,
    FALSE_WORDS,
    TRUE_WORDS,
    UNREADABLE,
    CodedRows,
    NameCodes,
    Names,
    settle,
    whole_numbers,
)
from penchant.errors import DataError
from penchant.io import recognise
from penchant.io.recognise import SHAPES, WANTED, ReadOptions, find_column, listed, plain
from penchant.io.source import INTEGERS, WIDE_INTEGERS, Cells, Column, Source, as_number, literal
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

_MEANT = {word for words in recognise.SPELLINGS.values() for word in words}
_THIRD = {"a": "c", "first": "third"}  # these make a pair only as long as no third one follows
_MOST_OUTCOMES = 1000  # different words; more are names of items
_MOST_WORDS = 50  # different cells; more are no words for how clearly somebody won
_POINT_COLUMNS = ("score", "points", "result", "outcome")  # in these 1 is a point for the first


@dataclass(frozen=True)
class Reading:
    """A shape and its columns by role. guessed : roles that the caller did not name."""

    shape: str
    columns: Mapping[str, str]
    guessed: frozenset[str] = frozenset()
    covariates: tuple[str, ...] = ()


def recognise_rows(con: Any, source: Source, options: ReadOptions) -> Reading | None:
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
    sides = _item_columns(source, shape)
    pair = recognise.find_roles(names, asked, ("winner", "loser"), source.name)
    if shape == "pairs" or (shape is None and len(pair) == 2):
        return _pairs(con, source, options)
    found = _battles(source, options, sides) if sides else None
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


def _item_columns(source: Source, shape: str | None) -> tuple[str, str] | None:
    """Return the two columns that name the items of a row, where two do."""
    names = source.names
    known = recognise.find_sides(names, recognise.ITEM_STEMS)
    if known or not (_outcomes(names) or shape is not None):
        return known
    scores = recognise.find_sides(names, recognise.SCORE_STEMS) or ()
    found = [pair for pair in recognise.all_sides(names) if pair != scores]
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
        for spellings in (recognise.OUTCOME_SPELLINGS, recognise.VAGUE_OUTCOMES)
    )
    return clear or vague


def _pairs(con: Any, source: Source, options: ReadOptions) -> Reading:
    columns = recognise.choose_columns(source.names, options.columns, source.name)
    winner, loser = columns["winner"], columns["loser"]
    reading = _reading("pairs", columns, options.columns)
    if options.shape is not None:
        return reading
    outcomes = [name for name in _outcomes(source.names) if name not in columns.values()]
    if outcomes and recognise.all_sides([winner, loser]):
        raise DataError(
            f"{source.name}: winner={winner!r} and loser={loser!r} would make the first the winner "
            f"of every row, but column {outcomes[0]!r} seems to tell who won: leave winner= and "
            "loser= out, or say shape='pairs' if they are right"
        )
    is_guess = {"winner", "loser"} <= reading.guessed
    if not is_guess or (plain(winner), plain(loser)) not in recognise.PAIRED_SPELLINGS:
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


def _battles(source: Source, options: ReadOptions, sides: tuple[str, str]) -> Reading | None:
    """Two items a row, and a column of outcomes or two of scores."""
    names, asked, shape = source.names, options.columns, options.shape
    columns = {"winner": sides[0], "loser": sides[1]}
    columns |= recognise.find_roles(names, asked, ("user", "tie", "count"), source.name)
    others = [name for name in names if name not in sides]
    wanted = asked.get("winner")
    for kind, scores in (
        ("scores", recognise.find_sides(others, recognise.SCORE_STEMS)),
        ("marks", recognise.find_sides(others, [f"winner{stem}" for stem in recognise.ITEM_STEMS])),
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
    recognise.refuse_double_roles(columns)
    guessed = frozenset(
        role for role in columns if role in recognise.SPELLINGS and not asked.get(role)
    )
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
        strengths = [name for name in source.names if plain(name) in recognise.STRENGTH_SPELLINGS]
        if "margin" not in roles and len(strengths) == 1 and strengths[0] in free:
            words = _different(con, source, source[strengths[0]])
            if words and set(read_strengths(words)) == set(words):
                roles["margin"] = strengths[0]
        shown = [name for name in source.names if plain(name) == recognise.SHOWN_FIRST]
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
    """Return the distinct texts in a column, or none where they are too many to be words."""
    cell = f"trim({column.text})"
    query = f"SELECT DISTINCT {cell} FROM {source.sql} WHERE {cell} <> '' LIMIT {_MOST_WORDS + 1}"
    found = [word for (word,) in con.execute(query).fetchall()]
    return found if len(found) <= _MOST_WORDS else []


class Battle(NamedTuple):
    """SQL on the table `picked` for who won.

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
    """Count the outcomes that a reading cannot interpret; empty cells are bad rows in any."""
    query = f"SELECT count(*) FROM picked WHERE ({side}) IS NULL AND trim(outcome) <> ''"
    return con.execute(query).fetchone()[0]


def _only_reading(con: Any, table: str, reading: Reading, sides: dict[str, str]) -> str:
    """Return the only way to read outcomes, or any of several that agree on every row."""
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


_NESTED = re.compile(r"\]$|^(STRUCT|MAP|UNION|LIST)\b")
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_DIGITS_OF_A_DOUBLE = 15
_EXACT = {"DOUBLE": 2**53, "FLOAT": 2**24}  # beyond it whole numbers merge in such a column


def name_cells(con: Any, source: Source, columns: Sequence[Column]) -> tuple[list[str], Cells]:
    """Return SQL for the names in columns that share their names, and how to decode them.

    A cast that would merge or split names is refused.
    """
    if any(column.cells == "json" for column in columns):
        cells = [c.sql if c.cells == "json" else f"to_json({c.sql})" for c in columns]
        return [f"{cell}::VARCHAR" for cell in cells], "json"
    if columns[0].cells == "text":
        return [column.sql for column in columns], "text"
    kinds = [_name_type(con, source, column) for column in columns]
    if {"DOUBLE", "FLOAT"} & set(kinds) and "VARCHAR" in kinds:
        raise DataError(
            f"{source.name}: columns {listed([c.name for c in columns])} hold numbers with a point "
            "and text, so that 7.0 and '7' would be two names: give both as text or as whole "
            "numbers"
        )
    order = ("BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "VARCHAR")  # each can hold those before it
    common = max(kinds, key=order.index)
    common = "DOUBLE" if common == "FLOAT" else common
    for column, kind in zip(columns, kinds, strict=True):
        if common == "DOUBLE":
            _refuse_inexact(con, source, column, _EXACT.get(kind, _EXACT["DOUBLE"]))
    return [f"{column.sql}::{common}" for column in columns], "typed"


def _name_type(con: Any, source: Source, column: Column) -> str:
    """Return the SQL type in which the names of a column are read; text unless they are numbers."""
    if column.type in INTEGERS:
        return "BIGINT"
    if column.type in WIDE_INTEGERS or column.type in _EXACT:
        return "HUGEINT" if column.type in WIDE_INTEGERS else column.type
    if decimal := _DECIMAL.fullmatch(column.type):
        whole = f"SELECT bool_and({column.sql} = round({column.sql}, 0)) FROM {source.sql}"
        if decimal[2] == "0" or con.execute(whole).fetchone()[0] in (True, None):
            return "HUGEINT"
        if int(decimal[1]) > _DIGITS_OF_A_DOUBLE:
            raise DataError(
                f"column {column.name!r} of {source.name} holds decimal numbers of {decimal[1]} "
                "digits, which would be rounded: give names as text or whole numbers"
            )
        return "DOUBLE"
    if _NESTED.search(column.type):
        raise DataError(
            f"column {column.name!r} of {source.name} holds values of type {column.type}, which "
            "cannot be a name: names must be text or numbers"
        )
    return "VARCHAR"


def _refuse_inexact(con: Any, source: Source, column: Column, limit: int) -> None:
    value = f"max(abs({column.sql})) FILTER (NOT isnan({column.sql}::DOUBLE))"
    largest = con.execute(f"SELECT {value} FROM {source.sql}").fetchone()[0]
    if largest is not None and largest >= limit:
        raise DataError(
            f"column {column.name!r} of {source.name} holds {largest}: as floating-point numbers, "
            f"names from {limit} on can merge; give them as whole numbers or text in every column"
        )


_GROUPED_ROWS = 4_000_000  # a hash table of so many rows fits the memory limit; NumPy groups more
_INDEX_ROWS = 3  # counts of 1, 2, 3 in this order are row numbers
_SHUFFLED_ROWS = 20  # so many counts that are 1 … n in any order, too
_EXTRA = ("time", "margin", "first")
_DATES = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d/%m/%y", "%m/%d/%y")
_SECONDS, _MILLISECONDS = 1e8, 1e11  # numbers so large are not days but a clock's count since 1970


def fetch_rows(con: Any, source: Source, reading: Reading) -> CodedRows:
    """Return the rows behind `source` as codes, some merged already."""
    query = _RowQuery.of(con, source, reading)
    has_extra = bool(reading.covariates) or not reading.columns.keys().isdisjoint(_EXTRA)
    n_possible = 2 * max(1, query.users.n_known) * query.items.n_known**2  # with and without a tie
    return query.fetch("plain" if n_possible > _GROUPED_ROWS or has_extra else "grouped")


def rows_by_code(con: Any, source: Source, reading: Reading) -> tuple[str, Names, str]:
    """Return SQL of the rows behind `source` by code, the items in the order of their codes, and
    the kind of users' names: "text" or "json" cells, or an SQL type.

    Neither rows nor users are fetched: `users` is a table of their names and codes.
    """
    query = _RowQuery.of(con, source, reading, fetch_users=False)
    con.execute(
        """CREATE TEMP TABLE users AS SELECT name, row_number() OVER () - 1 AS code
           FROM (SELECT DISTINCT "user" AS name FROM picked) WHERE name IS NOT NULL"""
    )
    ((_, kind, *_), _) = con.execute("DESCRIBE users").fetchall()
    _, cells = name_cells(con, source, [source[reading.columns["user"]]])
    return query.sql("plain"), query.items.names, kind if cells == "typed" else cells


@dataclass(frozen=True)
class _RowQuery:
    """The query for the rows of a table with codes in place of names.

    The columns in use are a table or view `picked`, under the names of their roles; the names of
    `items` and `users` are tables of that name.
    """

    con: Any
    source: Source
    reading: Reading
    battle: Battle | None
    items: NameCodes
    users: NameCodes

    @classmethod
    def of(
        cls, con: Any, source: Source, reading: Reading, fetch_users: bool = True
    ) -> "_RowQuery":
        kind_of_items, kind_of_users = _pick(con, source, reading)
        if "count" in reading.guessed:
            _refuse_row_numbers(con, source, reading.columns["count"])
        items = _make_dictionary(con, "items", ("winner", "loser"), kind_of_items)
        users = settle((), None, "users")
        if "user" in reading.columns and fetch_users:
            users = _make_dictionary(con, "users", ("user",), kind_of_users)
        _refuse_sides_as_items(source, reading, items)
        battle = read_battle(con, source.name, reading, items.names)
        return cls(con, source, reading, battle, items, users)

    def fetch(self, how: Literal["grouped", "plain", "numbered"]) -> CodedRows:
        """Return distinct rows with counts, all rows in any order, or all in the file's order."""
        found = self.con.execute(self.sql(how)).fetchnumpy()
        covariates = [found[f"covariate {k}"] for k in range(len(self.reading.covariates))]
        margin, time = found.get("margin"), found.get("time")
        return CodedRows(
            winner=found["winner"],
            loser=found["loser"],
            user=found.get("user"),
            tie=found["tie"],
            count=found["count"],
            margin=None if margin is None else _numbers(margin),
            first=found.get("first"),
            time=None if time is None else _numbers(time),
            covariates=np.stack([*map(_numbers, covariates)]).T if covariates else None,
            items=self.items,
            users=self.users,
            value_at=lambda role, row: found[f"raw_{role}"][row : row + 1].tolist()[0],
            labels=self._labels(),
            first_row=self.source.first_row,
            source=self.source.name,
            advice={} if self.battle is None else {"tie": self.battle.advice},
            in_order=None if how == "numbered" else lambda: self.fetch("numbered"),
        )

    def _labels(self) -> dict[str, str]:
        labels = dict(self.reading.columns)
        return labels if self.battle is None else labels | {"tie": self.battle.column}

    def sql(self, how: str) -> str:
        """The query, as `fetch` explains it."""
        with_user = "user" in self.reading.columns
        columns = ['coalesce(u.code, -1) AS "user"'] if with_user else []
        columns += self._compared()
        number = "0"
        if how == "numbered":
            number = "row_number() OVER ()"
            for role in self._labels():
                cell = f'r."{_text_of(role) if role in _EXTRA else role}"'
                if role == "tie" and self.battle is not None:
                    cell = self.battle.shown
                columns.append(f'{cell} AS "raw_{role}"')
        side = "" if self.battle is None else f", {self.battle.side} AS side"
        coded = f"""
            SELECT {", ".join(columns)}
            FROM (SELECT *, {number} AS number{side} FROM picked) r
            LEFT JOIN items w ON r.winner = w.name
            LEFT JOIN items l ON r.loser = l.name
            {'LEFT JOIN users u ON r."user" = u.name' if with_user else ""}"""
        if how == "grouped":
            total = 'sum("count")::DOUBLE AS "count"'
            return f'SELECT * EXCLUDE "count", {total} FROM ({coded}) GROUP BY ALL'
        return f"{coded} ORDER BY number" if how == "numbered" else coded

    def _compared(self) -> list[str]:
        """Return the columns that depend on who won: they change sides with the winner."""
        winner, loser, sign = "coalesce(w.code, -1)", "coalesce(l.code, -1)", ""
        roles, columns = self.reading.columns, []
        if self.battle is not None:
            # a tie's smaller code goes first, as it does where rows are merged
            lost = "coalesce(r.side < 0 OR (r.side = 0 AND w.code > l.code), false)"
            winner, loser = (
                f"CASE WHEN {lost} THEN {two} ELSE {one} END"
                for one, two in ((winner, loser), (loser, winner))
            )
            sign = f" * CASE WHEN {lost} THEN -1 ELSE 1 END"
            columns.append(f"(1{sign})::TINYINT AS first")
            columns += [f"{self.battle.margin} AS margin"] if self.battle.margin else []
        if "first" in roles:
            known = f"CASE WHEN r.first IN (-1, 0, 1) THEN r.first ELSE {UNREADABLE} END"
            columns.append(f"({known})::TINYINT AS first")
        columns += ["r.margin AS margin"] if "margin" in roles else []
        columns += [f"{winner} AS winner", f"{loser} AS loser", f"{self._tie()} AS tie"]
        columns.append(f'{self._count()} AS "count"')
        columns += ['r."time" AS "time"'] if "time" in roles else []
        for k in range(len(self.reading.covariates)):
            columns.append(f'r."covariate {k}"{sign} AS "covariate {k}"')
        return columns

    def _tie(self) -> str:
        marked = "0"
        if "tie" in self.reading.columns:
            word = "coalesce(lower(trim(r.tie)), '')"
            marked = (
                f"CASE WHEN {word} IN {TRUE_WORDS} THEN 1 WHEN {word} IN {FALSE_WORDS} THEN 0 "
                f"WHEN {word} IN {BAD_WORDS} THEN {BOTH_BAD} ELSE -1 END"
            )
        if self.battle is not None:
            tied = f"CASE WHEN {self.battle.both_bad} THEN {BOTH_BAD} ELSE 1 END"
            marked = (
                f"CASE WHEN r.side IS NULL THEN -1 WHEN r.side = 0 THEN {tied} ELSE {marked} END"
            )
        return f"({marked})::TINYINT"

    def _count(self) -> str:
        """A count that is not a whole number of at least 1 is NaN, and so is any sum with it."""
        if "count" not in self.reading.columns:
            return "1::TINYINT"
        number = as_number('r."count"')
        return (
            f"CASE WHEN {number} >= 1 AND {number} = floor({number}) THEN {number} ELSE 'NaN' END"
        )


def _pick(con: Any, source: Source, reading: Reading) -> tuple[str, str]:
    """Define `picked`; return how names of items and of users are decoded."""
    roles = {r: source[name] for r, name in reading.columns.items() if r not in _EXTRA}
    (winner, loser), kind_of_items = name_cells(con, source, [roles["winner"], roles["loser"]])
    cells, kind_of_users = {"winner": winner, "loser": loser}, "typed"
    if "user" in roles:
        (user,), kind_of_users = name_cells(con, source, [roles["user"]])
        cells["user"] = f"trim({user})" if kind_of_users == "text" else user
    cells |= {role: c.text for role, c in roles.items() if role not in cells}
    if "outcome" in roles and kind_of_items != "text":
        cells |= {"first name": roles["winner"].text, "second name": roles["loser"].text}
    for role in (role for role in _EXTRA if role in reading.columns):
        name = find_column(reading.columns[role], role, source.names, source.name)
        column = source[name]
        if role == "time":
            cells[role] = _days(con, source, column)
        elif role == "margin":
            cells[role] = margin_cell(con, source, column)
        elif plain(name) == recognise.SHOWN_FIRST:
            cells[role] = side_named(source, name, reading)
        else:
            cells[role] = as_number(column.text)
        cells[_text_of(role)] = column.text
    for k, covariate in enumerate(reading.covariates):
        cells[f"covariate {k}"], cells[_text_of(f"covariate {k}")] = _covariate(source, covariate)
    typed = all(column.cells == "typed" for column in source.columns)
    form = "VIEW" if typed else "TABLE"  # text is parsed once, not every time
    columns = ", ".join(f'{cell} AS "{role}"' for role, cell in cells.items())
    con.execute(f"CREATE TEMP {form} picked AS SELECT {columns} FROM {source.sql}")
    return kind_of_items, kind_of_users


def _text_of(role: str) -> str:
    """The column of `picked` with the text behind a number: messages show it, and DuckDB does not
    turn cells into numbers while it reads them, which would make a word a broken row."""
    return f"text of {role}"


def _covariate(source: Source, covariate: str) -> tuple[str, str]:
    """SQL for a column, or for the difference of two: "length_a - length_b"; and for its text."""
    names = [covariate] if covariate in source.names else covariate.split(" - ")
    if len(names) > 2:
        raise DataError(
            f"the covariate {covariate!r} is made of {len(names)} columns: it must be one column, "
            "or the difference of two, as in 'length_a - length_b'"
        )
    found = [source[find_column(n.strip(), "covariate", source.names, source.name)] for n in names]
    text = ", ' - ', ".join(column.text for column in found)
    return " - ".join(as_number(column.text) for column in found), f"concat({text})"


def _days(con: Any, source: Source, column: Column) -> str:
    """SQL for the days since 1970, or for the numbers that a column holds."""
    cell = f"trim({column.text})"
    number = as_number(cell)
    iso = f"epoch(try_cast({cell} AS TIMESTAMP)) / 86400"
    clock = (
        f"CASE WHEN abs({number}) >= {_MILLISECONDS} THEN {number} / 86400000 "
        f"WHEN abs({number}) >= {_SECONDS} THEN {number} / 86400 ELSE {number} END"
    )

    def reads(sql: str) -> bool:
        query = f"SELECT count(*) FROM {source.sql} WHERE {cell} <> '' AND ({sql}) IS NULL"
        return bool(con.execute(query).fetchone()[0] == 0)

    plain_form = f"coalesce({clock}, {iso})"
    if reads(plain_form):
        return plain_form
    written = {form: f"epoch(try_strptime({cell}, {literal(form)})) / 86400" for form in _DATES}
    fitting = [form for form, sql in written.items() if reads(sql)]
    if len(fitting) > 1:
        raise DataError(
            f"column {column.name!r} of {source.name} can be read in two ways, as dates of the "
            f"form {fitting[0]} or {fitting[1]}: write dates as 2024-05-31"
        )
    return written[fitting[0]] if fitting else plain_form


def _refuse_row_numbers(con: Any, source: Source, column: str) -> None:
    """Raise where a column taken for counts holds 1, 2, 3, …: it is an index."""
    number = as_number('"count"')
    query = f"""SELECT count(*), min(x), max(x), count(DISTINCT x), bool_and(x - row = lowest)
        FROM (SELECT {number} AS x, row_number() OVER () AS row,
                     min({number}) OVER () - 1 AS lowest FROM picked)"""
    n, low, high, n_distinct, in_order = con.execute(query).fetchone()
    consecutive = low in (0.0, 1.0) and high == low + n - 1 and n_distinct == n
    if consecutive and n >= (_INDEX_ROWS if in_order else _SHUFFLED_ROWS):
        raise DataError(
            f"column {column!r} of {source.name} holds {low:g}, {low + 1:g}, … {high:g}: that "
            f"looks like a row number, not like a count of comparisons; say count={column!r} if it "
            "is one, or else rename or drop the column"
        )


def _refuse_sides_as_items(source: Source, reading: Reading, items: NameCodes) -> None:
    """Raise where winners are called by the names of other columns: they are sides, not items."""
    extra = {reading.columns[role] for role in _EXTRA if role in reading.columns}
    others = set(source.names) - (set(reading.columns.values()) - extra)
    if reading.shape == "pairs" and items.names and set(items.names) <= others:
        raise DataError(
            f"{source.name}: the winners and losers are {', '.join(map(repr, items.names))}, which "
            "are columns of their own that seem to name the items: keep one column that tells who "
            "won and say shape='outcome'"
        )


def _make_dictionary(con: Any, table: str, roles: tuple[str, ...], kind: str) -> NameCodes:
    """Make a table of the distinct names and their codes; return the names in index order."""
    union = " UNION ".join(f'SELECT DISTINCT "{role}" AS name FROM picked' for role in roles)
    con.execute(
        f"""CREATE TEMP TABLE distinct_{table} AS SELECT name, row_number() OVER () - 1 AS number
            FROM ({union}) WHERE name IS NOT NULL"""
    )
    query = f"SELECT name FROM distinct_{table} ORDER BY number"
    raw = [name for (name,) in con.execute(query).fetchall()]
    known = settle(tuple(_DECODE[kind](raw)), None, table)
    codes = {"number": np.arange(len(raw)), "code": known.code.astype(np.int32)}
    con.register("codes", codes)
    con.execute(
        f"CREATE TEMP TABLE {table} AS SELECT name, code FROM distinct_{table} JOIN codes "
        "USING (number)"
    )
    return known


def json_names(raw: list[str]) -> list[Any]:
    """JSON values as names; 1, 1.0 and true are different names, kept as they are written."""
    names = {text: _json_name(text) for text in raw}
    n_spellings = Counter(names.values())
    written = {
        text: text if isinstance(name, float) and n_spellings[name] > 1 else name
        for text, name in names.items()
    }
    given = {name for text, name in names.items() if text.startswith('"')}
    for text, name in written.items():
        if name in given and not text.startswith('"'):
            raise DataError(
                f"both {text} and the text {json.dumps(name)} occur as names, so that they cannot "
                "be told apart: write them alike"
            )
    return [written[text] for text in raw]


def _json_name(text: str) -> Any:
    try:
        name = json.loads(text)
    except ValueError as error:  # a number of thousands of digits
        raise DataError(f"{text[:40]}… cannot be a name ({error}): write it as text") from None
    if isinstance(name, list | dict):
        raise DataError(f"{name!r} cannot be a name: names must be text or numbers")
    if isinstance(name, float) and abs(name) >= _EXACT["DOUBLE"]:
        raise DataError(
            f"{text} cannot be a name: numbers with a point, or of more than 19 digits, can merge "
            f"from {_EXACT['DOUBLE']} on; write names as whole numbers or text"
        )
    return text if isinstance(name, bool) else name


_DECODE: Mapping[str, Callable[[list[Any]], list[Any]]] = {
    "text": lambda raw: whole_numbers([name.strip(" ") for name in raw]),
    "json": json_names,
    "typed": lambda raw: raw,
}


def _numbers(column: Any) -> Any:
    """Return a column of numbers with NaN for NULL."""
    if isinstance(column, np.ma.MaskedArray):
        column = np.ma.filled(column.astype(np.float64), math.nan)
    return column.astype(np.float64, copy=False)
