"""Rows in DuckDB to codes: names are numbered and equal rows grouped there, out of core."""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from penchant.data import (
    BAD_WORDS,
    BOTH_BAD,
    FALSE_WORDS,
    MISSING,
    TRUE_WORDS,
    UNREADABLE,
    CodedRows,
    NameCodes,
    settle,
    whole_numbers,
)
from penchant.errors import DataError
from penchant.io.formats.rows import Battle, Reading, margin_cell, read_battle, side_named
from penchant.io.recognise import SHOWN_FIRST
from penchant.io.source import (
    EXACT,
    Column,
    Source,
    as_number,
    find_column,
    literal,
    name_cells,
    plain,
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


class RowsByCode(NamedTuple):
    """SQL of all rows by code, none of them fetched; `users` is a table of names and codes.

    items: codes there are final. kind: of users' names: "text" or "json" cells, or an SQL type.
    """

    sql: str
    items: NameCodes
    kind: str


def rows_by_code(con: Any, source: Source, reading: Reading) -> RowsByCode:
    """Code the rows behind `source`, which name their users, without fetching them or the users."""
    query = _RowQuery.of(con, source, reading, fetch_users=False)
    final = [(int(code), number) for number, code in enumerate(query.items.code) if code != number]
    if final:
        con.execute("UPDATE items SET code = -2 - code")
        con.executemany("UPDATE items SET code = ? WHERE code = -2 - ?", final)
        con.execute("UPDATE items SET code = -2 - code WHERE code < -1")
    con.execute(
        """CREATE TEMP TABLE users AS SELECT name, row_number() OVER () - 1 AS code
           FROM (SELECT DISTINCT "user" AS name FROM picked) WHERE name IS NOT NULL"""
    )
    ((_, kind, *_), _) = con.execute("DESCRIBE users").fetchall()
    _, cells = name_cells(con, source, [source[reading.columns["user"]]])
    return RowsByCode(query.sql("plain"), query.items, kind if cells == "typed" else cells)


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
        user, margin, first, time = (found.get(n) for n in ("user", "margin", "first", "time"))
        return CodedRows(
            winner=_final(found["winner"], self.items),
            loser=_final(found["loser"], self.items),
            user=None if user is None else _final(user, self.users),
            tie=found["tie"],
            count=found["count"],
            margin=None if margin is None else _numbers(margin),
            first=first,
            time=None if time is None else _numbers(time),
            covariates=np.stack([*map(_numbers, covariates)]).T if covariates else None,
            items=self.items.names,
            users=self.users.names,
            n_items=self.items.n_known,
            n_users=self.users.n_known,
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
        """Who won, and all that turns with it."""
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
        elif plain(name) == SHOWN_FIRST:
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
    """Number the distinct names in a table of that name; return their final codes."""
    union = " UNION ".join(f'SELECT DISTINCT "{role}" AS name FROM picked' for role in roles)
    con.execute(
        f"""CREATE TEMP TABLE {table} AS
            SELECT name, (row_number() OVER (
                ORDER BY try_cast(name AS BIGINT) NULLS LAST, name) - 1)::INTEGER AS code
            FROM ({union}) WHERE name IS NOT NULL"""
    )
    raw = [name for (name,) in con.execute(f"SELECT name FROM {table} ORDER BY code").fetchall()]
    return settle(tuple(_DECODE[kind](raw)), None, table)


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
    if isinstance(name, float) and abs(name) >= EXACT["DOUBLE"]:
        raise DataError(
            f"{text} cannot be a name: numbers with a point, or of more than 19 digits, can merge "
            f"from {EXACT['DOUBLE']} on; write names as whole numbers or text"
        )
    return text if isinstance(name, bool) else name


_DECODE: Mapping[str, Callable[[list[Any]], list[Any]]] = {
    "text": lambda raw: whole_numbers([name.strip(" ") for name in raw]),
    "json": json_names,
    "typed": lambda raw: raw,
}


def _numbers(column: Any) -> Any:
    """A column of numbers with NaN where DuckDB has NULL."""
    if isinstance(column, np.ma.MaskedArray):
        column = np.ma.filled(column.astype(np.float64), math.nan)
    return column.astype(np.float64, copy=False)


def _final(code: Any, book: NameCodes) -> Any:
    if np.array_equal(book.code, np.arange(len(book.code))):
        return code
    codes = np.append(book.code, MISSING).astype(np.int32)
    return codes[code]  # the code −1 of an absent name finds the last entry
