"""Rows in DuckDB to checked comparisons: encoding and grouping happen there, out of core."""

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from penchant.data.build import find_problems
from penchant.data.coding import FALSE_WORDS, MISSING, TRUE_WORDS, Codebook, CodedRows, settle
from penchant.data.columns import choose_columns
from penchant.errors import DataError

_MEMORY_LIMIT = "1GB"  # beyond it DuckDB spills to a temporary folder
_GROUPED_ROWS = 4_000_000  # a hash table of so many rows fits that limit; NumPy groups more
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")  # "007" and "+7" are text, not the number 7


@dataclass(frozen=True)
class Source:
    """Where rows come from, and what a cell means there.

    `text` cells hold names as written (CSV), `json` cells hold JSON values, `typed` cells have
    the type of their column (Parquet, data frames).
    """

    sql: str  # what stands after FROM
    cells: Literal["text", "json", "typed"]
    first_row: int
    name: str  # what messages call it


@contextmanager
def connection(what: str) -> Iterator[Any]:
    """Open an in-memory DuckDB; what goes wrong inside becomes a DataError about `what`."""
    import duckdb

    with tempfile.TemporaryDirectory(prefix="penchant-") as folder, duckdb.connect() as con:
        con.execute(f"SET memory_limit = '{_MEMORY_LIMIT}'")
        con.execute(f"SET temp_directory = {literal(folder)}")
        con.execute("SET autoinstall_known_extensions = false")
        con.execute("SET enable_progress_bar = false")
        try:
            yield con
        except duckdb.Error as error:
            reason = " ".join(str(error).split("Possible")[0].split())
            raise DataError(f"{what} cannot be read: {reason}") from error


def literal(text: str) -> str:
    """Return `text` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return `name` as an SQL column name."""
    return '"' + name.replace('"', '""') + '"'


def fetch_rows(
    con: Any, source: Source, asked: Mapping[str, str | None], *, guess: bool
) -> CodedRows:
    """Return the rows behind `source` as codes: some merged already, or where any is bad all of
    them in their order."""
    types = {name: kind for name, kind, *_ in con.execute(f"DESCRIBE FROM {source.sql}").fetchall()}
    labels = choose_columns(list(types), asked, guess=guess, table=source.name)
    _make_rows(con, source, labels, types)
    items = _make_dictionary(con, "items", ("winner", "loser"), source)
    users = _make_dictionary(con, "users", ("user",) if "user" in labels else (), source)
    coded = _CodedView(con, source, labels, items, users)
    rows = coded.fetch("grouped" if coded.n_possible <= _GROUPED_ROWS else "plain")
    return coded.fetch("numbered") if find_problems(rows) else rows


def fetch_frame(frame: Any, asked: Mapping[str, str | None]) -> CodedRows:
    """Return the rows of a data frame as codes, whatever library it comes from."""
    if not hasattr(frame, "columns"):
        raise DataError(
            f"frame is of type {type(frame).__name__}: it must be a pandas or polars data frame or "
            "a pyarrow table; for plain columns use from_pairs"
        )
    with connection("the data frame") as con:
        con.register("frame", frame)
        return fetch_rows(con, Source("frame", "typed", 0, "the data frame"), asked, guess=False)


def _make_rows(con: Any, source: Source, labels: dict[str, str], types: dict[str, str]) -> None:
    """Define `comparison`: the columns in use, under the names of their roles."""
    kinds = {role: _name_type(types[column]) for role, column in labels.items()}
    kinds["winner"] = kinds["loser"] = max(kinds["winner"], kinds["loser"], key=_NAME_TYPES.index)
    cells: list[str] = []
    for role, label in labels.items():
        column = identifier(label)
        if role in ("tie", "count"):
            cell = f"{column} ->> '$'" if source.cells == "json" else f"{column}::VARCHAR"
        else:
            cell = _NAME_CELL[source.cells].format(column=column, kind=kinds[role])
        cells.append(f'{cell} AS "{role}"')
    form = "VIEW" if source.cells == "typed" else "TABLE"  # text is parsed once, not every time
    con.execute(f"CREATE TEMP {form} comparison AS SELECT {', '.join(cells)} FROM {source.sql}")


_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_NAME_CELL = {
    "text": "trim({column})",
    "json": "{column}::VARCHAR",
    "typed": "{column}::{kind}",
}
_NAME_TYPES = ("BIGINT", "HUGEINT", "DOUBLE", "VARCHAR")  # each can hold those before it


def _name_type(kind: str) -> str:
    """Return the type that names of a column are read as; what is no number becomes text."""
    if kind in _INTEGERS:
        return "BIGINT"
    if kind in {"UBIGINT", "HUGEINT"}:
        return "HUGEINT"
    return "DOUBLE" if kind in {"DOUBLE", "FLOAT"} or kind.startswith("DECIMAL") else "VARCHAR"


def _make_dictionary(con: Any, table: str, roles: tuple[str, ...], source: Source) -> Codebook:
    """Number the distinct names in a table of that name; return their final codes."""
    if not roles:
        return settle((), None, table)
    union = " UNION ".join(f'SELECT DISTINCT "{role}" AS name FROM comparison' for role in roles)
    con.execute(
        f"""CREATE TEMP TABLE {table} AS
            SELECT name, (row_number() OVER (
                ORDER BY try_cast(name AS BIGINT) NULLS LAST, name) - 1)::INTEGER AS code
            FROM ({union}) WHERE name IS NOT NULL"""
    )
    raw = [name for (name,) in con.execute(f"SELECT name FROM {table} ORDER BY code").fetchall()]
    return settle(tuple(_DECODE[source.cells](raw)), None, table)


def _decode_text(raw: list[str]) -> list[Any]:
    filled = [name for name in raw if name]
    if all(map(_INTEGER.fullmatch, filled)):
        return [int(name) if name else name for name in raw]
    return list(raw)


def _decode_json(raw: list[str]) -> list[Any]:
    names = [json.loads(name) for name in raw]
    for name in names:
        if isinstance(name, list | dict):
            raise DataError(f"{name!r} cannot be a name: names must be text or numbers")
    return names


_DECODE: dict[str, Callable[[list[Any]], list[Any]]] = {
    "text": _decode_text,
    "json": _decode_json,
    "typed": lambda raw: raw,
}


@dataclass(frozen=True)
class _CodedView:
    """The view `comparison` with codes in place of names."""

    con: Any
    source: Source
    labels: dict[str, str]
    items: Codebook
    users: Codebook

    @property
    def n_possible(self) -> int:
        """How many distinct rows there can be: users x winners x losers x (tie or not)."""
        return 2 * max(1, self.users.n_known) * self.items.n_known**2

    def fetch(self, how: Literal["grouped", "plain", "numbered"]) -> CodedRows:
        """Return distinct rows with counts, all rows in any order, or all in the file's order."""
        found = self.con.execute(self._query(how)).fetchnumpy()
        return CodedRows(
            winner=_final(found["winner"], self.items),
            loser=_final(found["loser"], self.items),
            user=_final(found["user"], self.users) if "user" in self.labels else None,
            tie=found["tie"],
            count=found["count"],
            margin=None,
            items=self.items.names,
            users=self.users.names,
            n_items=self.items.n_known,
            n_users=self.users.n_known,
            value_at=lambda role, row: found[f"raw_{role}"][row : row + 1].tolist()[0],
            labels=self.labels,
            first_row=self.source.first_row,
            source=self.source.name,
        )

    def _query(self, how: str) -> str:
        with_user = "user" in self.labels
        columns = ['coalesce(u.code, -1) AS "user"'] if with_user else []
        columns += ["coalesce(w.code, -1) AS winner", "coalesce(l.code, -1) AS loser"]
        columns += [f"{self._tie()} AS tie", f'{self._count()} AS "count"']
        number = "0"
        if how == "numbered":
            number = "row_number() OVER ()"
            columns += [f'r."{role}" AS raw_{role}' for role in self.labels]
        coded = f"""
            SELECT {", ".join(columns)}
            FROM (SELECT *, {number} AS number FROM comparison) r
            LEFT JOIN items w ON r.winner = w.name
            LEFT JOIN items l ON r.loser = l.name
            {'LEFT JOIN users u ON r."user" = u.name' if with_user else ""}"""
        if how == "grouped":
            return f'SELECT * EXCLUDE "count", sum("count") AS "count" FROM ({coded}) GROUP BY ALL'
        return f"{coded} ORDER BY number" if how == "numbered" else coded

    def _tie(self) -> str:
        if "tie" not in self.labels:
            return "0::TINYINT"
        word = "coalesce(lower(trim(r.tie)), '')"
        return (
            f"CASE WHEN {word} IN {TRUE_WORDS} THEN 1 WHEN {word} IN {FALSE_WORDS} THEN 0 "
            "ELSE -1 END::TINYINT"
        )

    def _count(self) -> str:
        """A count that is not a whole number of at least 1 is NaN, and so is any sum with it."""
        if "count" not in self.labels:
            return "1::DOUBLE"
        number = 'try_cast(r."count" AS DOUBLE)'
        return (
            f"CASE WHEN {number} >= 1 AND {number} = floor({number}) THEN {number} ELSE 'NaN' END"
        )


def _final(code: Any, book: Codebook) -> Any:
    if np.array_equal(book.code, np.arange(len(book.code))):
        return code
    codes = np.append(book.code, MISSING).astype(np.int32)
    return codes[code]  # the code −1 of an absent name finds the last entry
