"""Columns of dates as days."""

from typing import Any

from penchant.data.duck import literal
from penchant.data.source import Column, Source
from penchant.errors import DataError

_FORMATS = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d", "%d/%m/%y", "%m/%d/%y")
_SECONDS, _MILLISECONDS = 1e8, 1e11  # numbers so large are not days but a clock's count since 1970


def days(con: Any, source: Source, column: Column) -> str:
    """Return SQL for the days since 1970, or for the numbers that a column holds."""
    cell = f"trim({column.text})"
    number = f"try_cast({cell} AS DOUBLE)"
    iso = f"epoch(try_cast({cell} AS TIMESTAMP)) / 86400"
    clock = (
        f"CASE WHEN abs({number}) >= {_MILLISECONDS} THEN {number} / 86400000 "
        f"WHEN abs({number}) >= {_SECONDS} THEN {number} / 86400 ELSE {number} END"
    )
    plain = f"coalesce({clock}, {iso})"
    if _reads(con, source, cell, plain):
        return plain
    written = {form: f"epoch(try_strptime({cell}, {literal(form)})) / 86400" for form in _FORMATS}
    fitting = [form for form, sql in written.items() if _reads(con, source, cell, sql)]
    if len(fitting) > 1:
        raise DataError(
            f"column {column.name!r} of {source.name} can be read in two ways, as dates of the "
            f"form {fitting[0]} or {fitting[1]}: write dates as 2024-05-31"
        )
    return written[fitting[0]] if fitting else plain


def _reads(con: Any, source: Source, cell: str, sql: str) -> bool:
    query = f"SELECT count(*) FROM {source.sql} WHERE {cell} <> '' AND ({sql}) IS NULL"
    unread: int = con.execute(query).fetchone()[0]
    return unread == 0
