"""Rows in DuckDB to checked comparisons: encoding and grouping happen there, out of core."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from penchant.data.battles import Battle, read_battle
from penchant.data.build import find_problems
from penchant.data.coding import (
    BAD_WORDS,
    BOTH_BAD,
    FALSE_WORDS,
    MISSING,
    TRUE_WORDS,
    UNREADABLE,
    Codebook,
    CodedRows,
    settle,
)
from penchant.data.columns import PAIRED_SPELLINGS, SHOWN_FIRST, STRENGTH_SPELLINGS
from penchant.data.dates import days
from penchant.data.duck import literal
from penchant.data.json_names import json_names
from penchant.data.names import whole_numbers
from penchant.data.outcomes import read_numbers, read_strengths, read_words
from penchant.data.recognise import Reading
from penchant.data.source import Column, Source, find_column, name_cells, plain
from penchant.errors import DataError

_GROUPED_ROWS = 4_000_000  # a hash table of so many rows fits the memory limit; NumPy groups more
_INDEX_ROWS = 3  # counts of 1, 2, 3 in this order are row numbers
_WORDS = 50  # different cells; more are no words for how clearly somebody won
_SHUFFLED_ROWS = 20  # so many counts that are 1 … n in any order, too


@dataclass(frozen=True)
class Further:
    """Columns that are read only when asked for; `first` and `margin` where winners are named."""

    time: str | None = None
    margin: str | None = None
    first: str | None = None  # +1 the winner was shown first, −1 the loser, 0 not known; or a name
    covariates: Sequence[str] = ()  # a column, or "one - other"


def fetch_rows(con: Any, source: Source, reading: Reading, further: Further) -> CodedRows:
    """Return the rows behind `source` as codes: some merged already, or where any is bad all of
    them in their order."""
    if reading.shape != "pairs" and (further.first or further.margin):
        raise DataError(
            f"{source.name} is read as shape={reading.shape!r}, which tells itself who was shown "
            "first and by how much they won: leave first= and margin= out"
        )
    decode = _pick(con, source, reading, further)
    if "count" in reading.guessed:
        _refuse_row_numbers(con, source, reading.columns["count"])
    items = _make_dictionary(con, "items", ("winner", "loser"), decode["items"])
    has_user = "user" in reading.columns
    users = _make_dictionary(con, "users", ("user",) if has_user else (), decode["users"])
    _refuse_sides_as_items(source, reading, items)
    battle = read_battle(con, source.name, reading, items.names)
    coded = _CodedView(con, source, reading, further, battle, items, users)
    many = coded.n_possible > _GROUPED_ROWS or further != Further()
    rows = coded.fetch("plain" if many else "grouped")
    return coded.fetch("numbered") if find_problems(rows) else rows


class RowsByCode(NamedTuple):
    """SQL of all rows by code, none of them fetched; `users` is a table of names and codes.

    items: codes there are final. kind: of users' names: "text" or "json" cells, or an SQL type.
    """

    sql: str
    items: Codebook
    kind: str


def rows_by_code(con: Any, source: Source, reading: Reading) -> RowsByCode:
    """Code the rows behind `source`, which name their users, without looking at all of them."""
    decode = _pick(con, source, reading, Further())
    if "count" in reading.guessed:
        _refuse_row_numbers(con, source, reading.columns["count"])
    items = _make_dictionary(con, "items", ("winner", "loser"), decode["items"])
    _refuse_sides_as_items(source, reading, items)
    battle = read_battle(con, source.name, reading, items.names)
    final = [(int(code), number) for number, code in enumerate(items.code) if code != number]
    if final:
        con.execute("UPDATE items SET code = -2 - code")
        con.executemany("UPDATE items SET code = ? WHERE code = -2 - ?", final)
        con.execute("UPDATE items SET code = -2 - code WHERE code < -1")
    con.execute(
        """CREATE TEMP TABLE users AS SELECT name, row_number() OVER () - 1 AS code
           FROM (SELECT DISTINCT "user" AS name FROM picked) WHERE name IS NOT NULL"""
    )
    ((_, kind, *_), _) = con.execute("DESCRIBE users").fetchall()
    cells = next(cells for cells, function in _DECODE.items() if function is decode["users"])
    nobody = settle((), None, "users")
    view = _CodedView(con, source, reading, Further(), battle, items, nobody)
    return RowsByCode(view._query("plain"), items, kind if cells == "typed" else cells)


def _pick(
    con: Any, source: Source, reading: Reading, further: Further
) -> dict[str, Callable[[list[Any]], list[Any]]]:
    """Define `picked`: the columns in use, under the names of their roles."""
    roles = {role: source[name] for role, name in reading.columns.items()}
    (winner, loser), kind_of_items = name_cells(con, source, [roles["winner"], roles["loser"]])
    cells = {"winner": winner, "loser": loser}
    decode = {"items": _DECODE[kind_of_items], "users": _DECODE["typed"]}
    if "user" in roles:
        (user,), kind = name_cells(con, source, [roles["user"]])
        cells["user"] = f"trim({user})" if kind == "text" else user
        decode["users"] = _DECODE[kind]
    cells |= {role: c.text for role, c in roles.items() if role not in cells}
    if "outcome" in roles and kind_of_items != "text":
        cells |= {"first name": roles["winner"].text, "second name": roles["loser"].text}
    for role in ("time", "margin", "first"):
        if name := getattr(further, role):
            column = source[find_column(name, role, source.names, source.name)]
            if role == "first" and plain(name) == SHOWN_FIRST:
                cells[role] = _side_named(column, roles)
            else:
                cells[role] = _FURTHER_CELLS[role](con, source, column)
            cells[_text_of(role)] = column.text
    for k, covariate in enumerate(further.covariates):
        cells[f"covariate {k}"], cells[_text_of(f"covariate {k}")] = _covariate(source, covariate)
    typed = all(column.cells == "typed" for column in source.columns)
    form = "VIEW" if typed else "TABLE"  # text is parsed once, not every time
    columns = ", ".join(f'{cell} AS "{role}"' for role, cell in cells.items())
    con.execute(f"CREATE TEMP {form} picked AS SELECT {columns} FROM {source.sql}")
    return decode


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
    return " - ".join(_number(column.text) for column in found), f"concat({text})"


def _number(cell: str) -> str:
    return f"try_cast({cell} AS DOUBLE)"


def with_strength(con: Any, source: Source, reading: Reading, further: Further) -> Further:
    """Take a column called strength for the margin where all its cells are words that tell one."""
    named = [name for name in source.names if plain(name) in STRENGTH_SPELLINGS]
    if further.margin or reading.shape != "pairs" or len(named) != 1:
        return further
    if named[0] in reading.columns.values():
        return further
    words = _different(con, source, source[named[0]])
    told = bool(words) and set(read_strengths(words)) == set(words)
    return replace(further, margin=named[0]) if told else further


def with_shown_first(con: Any, source: Source, reading: Reading, further: Further) -> Further:
    """Take a column called shown_first for `first` where each cell tells a side, or is empty
    because that is not known."""
    named = [name for name in source.names if plain(name) == SHOWN_FIRST]
    if further.first or reading.shape != "pairs" or len(named) != 1:
        return further
    side = _side_named(source[named[0]], {role: source[c] for role, c in reading.columns.items()})
    told = f"bool_and(coalesce({side} IN (-1, 0, 1), false)) AND bool_or({side} <> 0)"
    (is_told,) = con.execute(f"SELECT {told} FROM {source.sql}").fetchone()
    return replace(further, first=named[0]) if is_told else further


def _side_named(column: Column, roles: Mapping[str, Column]) -> str:
    """SQL for +1 where a cell names the winner, −1 the loser, 0 where it is empty; or a number."""
    cell, winner, loser = (f"trim({c.text})" for c in (column, roles["winner"], roles["loser"]))
    return (
        f"CASE WHEN coalesce({cell}, '') = '' THEN 0 WHEN {cell} = {winner} THEN 1 "
        f"WHEN {cell} = {loser} THEN -1 ELSE {_number(cell)} END"
    )


def _different(con: Any, source: Source, column: Column) -> list[str]:
    """The different texts in a column, or none where they are too many to be words."""
    cell = f"trim({column.text})"
    query = f"SELECT DISTINCT {cell} FROM {source.sql} WHERE {cell} <> '' LIMIT {_WORDS + 1}"
    found = [word for (word,) in con.execute(query).fetchall()]
    return found if len(found) <= _WORDS else []


def _margin(con: Any, source: Source, column: Column) -> str:
    """SQL for a number, or for the number behind a word such as 'much better'."""
    told = read_strengths(_different(con, source, column))
    whens = " ".join(f"WHEN {literal(word)} THEN {value!r}" for word, value in told.items())
    number = _number(column.text)
    return f"coalesce({number}, CASE trim({column.text}) {whens} END)" if whens else number


_FURTHER_CELLS: Mapping[str, Callable[[Any, Source, Column], str]] = {
    "time": days,
    "margin": _margin,
    "first": lambda con, source, column: _number(column.text),
}


def _refuse_row_numbers(con: Any, source: Source, column: str) -> None:
    """Raise where counts that nobody asked for are 1, 2, 3, …: an index, not counts."""
    number = _number('"count"')
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


def refuse_other_outcomes(con: Any, source: Source, reading: Reading, further: Further) -> None:
    """Raise where winner and loser were taken from columns such as a and b, and what stands in
    another column looks like a word on who won."""
    winner, loser = reading.columns["winner"], reading.columns["loser"]
    if reading.shape != "pairs" or not {"winner", "loser"} <= reading.guessed:
        return
    if (plain(winner), plain(loser)) not in PAIRED_SPELLINGS:
        return
    known = {*reading.columns.values(), further.time, further.margin, further.first}
    for name in source.names:
        words = [] if name in known else _different(con, source, source[name])
        readings = [*read_numbers(words), read_words(words, winner, loser)] if words else []
        if any(len(v.side) == len(words) and len({*v.side.values()}) > 1 for v in readings):
            raise DataError(
                f"{source.name} can be read in two ways: {winner!r} was preferred to {loser!r} in "
                f"every row (shape='pairs'), or column {name!r} tells which of them was "
                f"(winner={name!r}, shape='outcome'): say which"
            )


def _refuse_sides_as_items(source: Source, reading: Reading, items: Codebook) -> None:
    """Raise where winners are called by the names of other columns: they are sides, not items."""
    others = set(source.names) - set(reading.columns.values())
    if reading.shape == "pairs" and items.names and set(items.names) <= others:
        raise DataError(
            f"{source.name}: the winners and losers are {', '.join(map(repr, items.names))}, which "
            "are columns of their own that seem to name the items: keep one column that tells who "
            "won and say shape='outcome'"
        )


def _make_dictionary(
    con: Any, table: str, roles: tuple[str, ...], decode: Callable[[list[Any]], list[Any]]
) -> Codebook:
    """Number the distinct names in a table of that name; return their final codes."""
    if not roles:
        return settle((), None, table)
    union = " UNION ".join(f'SELECT DISTINCT "{role}" AS name FROM picked' for role in roles)
    con.execute(
        f"""CREATE TEMP TABLE {table} AS
            SELECT name, (row_number() OVER (
                ORDER BY try_cast(name AS BIGINT) NULLS LAST, name) - 1)::INTEGER AS code
            FROM ({union}) WHERE name IS NOT NULL"""
    )
    raw = [name for (name,) in con.execute(f"SELECT name FROM {table} ORDER BY code").fetchall()]
    return settle(tuple(decode(raw)), None, table)


_DECODE: Mapping[str, Callable[[list[Any]], list[Any]]] = {
    "text": lambda raw: whole_numbers([name.strip(" ") for name in raw]),
    "json": json_names,
    "typed": lambda raw: raw,
}


@dataclass(frozen=True)
class _CodedView:
    """The rows in `picked` with codes in place of names."""

    con: Any
    source: Source
    reading: Reading
    further: Further
    battle: Battle | None
    items: Codebook
    users: Codebook

    @property
    def n_possible(self) -> int:
        """How many distinct rows there can be: users x winners x losers x (tie or not)."""
        return 2 * max(1, self.users.n_known) * self.items.n_known**2

    def fetch(self, how: Literal["grouped", "plain", "numbered"]) -> CodedRows:
        """Return distinct rows with counts, all rows in any order, or all in the file's order."""
        found = self.con.execute(self._query(how)).fetchnumpy()
        covariates = [_numbers(found[f"covariate {k}"]) for k in range(self._n_covariates)]
        has = found.__contains__
        return CodedRows(
            winner=_final(found["winner"], self.items),
            loser=_final(found["loser"], self.items),
            user=_final(found["user"], self.users) if has("user") else None,
            tie=found["tie"],
            count=found["count"],
            margin=_numbers(found["margin"]) if has("margin") else None,
            first=found["first"] if has("first") else None,
            time=_numbers(found["time"]) if has("time") else None,
            covariates=np.stack(covariates).T if covariates else None,
            items=self.items.names,
            users=self.users.names,
            n_items=self.items.n_known,
            n_users=self.users.n_known,
            value_at=lambda role, row: found[f"raw_{role}"][row : row + 1].tolist()[0],
            labels=self._labels(),
            first_row=self.source.first_row,
            source=self.source.name,
            advice={} if self.battle is None else {"tie": self.battle.advice},
        )

    @property
    def _n_covariates(self) -> int:
        return len(self.further.covariates)

    def _labels(self) -> dict[str, str]:
        labels = dict(self.reading.columns)
        for role in ("time", "margin", "first"):
            labels |= {role: name} if (name := getattr(self.further, role)) else {}
        return labels if self.battle is None else labels | {"tie": self.battle.column}

    def _query(self, how: str) -> str:
        with_user = "user" in self.reading.columns
        columns = ['coalesce(u.code, -1) AS "user"'] if with_user else []
        columns += self._compared()
        number = "0"
        if how == "numbered":
            number = "row_number() OVER ()"
            raw = {role: f'r."{role}"' for role in self._labels() if role != "tie"}
            read = [role for role in ("time", "margin", "first") if getattr(self.further, role)]
            raw |= {role: f'r."{_text_of(role)}"' for role in read}
            raw["tie"] = 'r."tie"' if self.battle is None else self.battle.shown
            if self.battle is not None or "tie" in self.reading.columns:
                columns.append(f"{raw['tie']} AS raw_tie")
            columns += [f'{cell} AS "raw_{role}"' for role, cell in raw.items() if role != "tie"]
        coded = f"""
            SELECT {", ".join(columns)}
            FROM (SELECT *, {number} AS number{self._side()} FROM picked) r
            LEFT JOIN items w ON r.winner = w.name
            LEFT JOIN items l ON r.loser = l.name
            {'LEFT JOIN users u ON r."user" = u.name' if with_user else ""}"""
        if how == "grouped":
            total = 'sum("count")::DOUBLE AS "count"'
            return f'SELECT * EXCLUDE "count", {total} FROM ({coded}) GROUP BY ALL'
        return f"{coded} ORDER BY number" if how == "numbered" else coded

    def _side(self) -> str:
        return "" if self.battle is None else f", {self.battle.side} AS side"

    def _compared(self) -> list[str]:
        """Who won, and all that turns with it."""
        winner, loser, sign = "coalesce(w.code, -1)", "coalesce(l.code, -1)", ""
        columns = []
        if self.battle is not None:
            # a tie's smaller code goes first, as it does where rows are merged
            lost = "coalesce(r.side < 0 OR (r.side = 0 AND w.code > l.code), false)"
            winner, loser = (
                f"CASE WHEN {lost} THEN {two} ELSE {one} END"
                for one, two in ((winner, loser), (loser, winner))
            )
            sign = f" * CASE WHEN {lost} THEN -1 ELSE 1 END"
            columns.append(f"(1{sign})::TINYINT AS first")
            if self.battle.margin:
                columns.append(f"{self.battle.margin} AS margin")
        elif self.further.first:
            known = f"CASE WHEN r.first IN (-1, 0, 1) THEN r.first ELSE {UNREADABLE} END"
            columns.append(f"({known})::TINYINT AS first")
        if self.battle is None and self.further.margin:
            columns.append("r.margin AS margin")
        columns += [f"{winner} AS winner", f"{loser} AS loser", f"{self._tie()} AS tie"]
        columns.append(f'{self._count()} AS "count"')
        if self.further.time is not None:
            columns.append('r."time" AS "time"')
        for k in range(self._n_covariates):
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
        number = _number('r."count"')
        return (
            f"CASE WHEN {number} >= 1 AND {number} = floor({number}) THEN {number} ELSE 'NaN' END"
        )


def _numbers(column: Any) -> Any:
    """A column of numbers with NaN where DuckDB has NULL."""
    if isinstance(column, np.ma.MaskedArray):
        column = np.ma.filled(column.astype(np.float64), math.nan)
    return column.astype(np.float64, copy=False)


def _final(code: Any, book: Codebook) -> Any:
    if np.array_equal(book.code, np.arange(len(book.code))):
        return code
    codes = np.append(book.code, MISSING).astype(np.int32)
    return codes[code]  # the code −1 of an absent name finds the last entry
