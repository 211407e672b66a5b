"""Which rows of a table to read: `language = en and turns > 2`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from penchant.data.duck import literal
from penchant.data.source import Source, find_column
from penchant.errors import DataError

_QUOTED = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\""
_TEST = re.compile(
    rf"\s*(?P<column>{_QUOTED}|[^=<>!'\"();]+?)\s*(?P<op>==|!=|<>|<=|>=|=|<|>)\s*"
    rf"(?P<value>{_QUOTED}|[^=<>!'\"();]*?)\s*(?:\b(?P<join>and|or)\b|$)",
    re.IGNORECASE | re.DOTALL,
)
_SQL = {"==": "=", "!=": "<>"}
_FORM = (
    "it must look like language = en and turns > 2 (and, or; = != < <= > >=; quotes are optional)"
)
_MOST_SEGMENTS = 100


@dataclass(frozen=True)
class CellTest:
    """A cell of a column held against a value."""

    column: str
    op: str
    value: str

    def sql(self, source: Source) -> str:
        """Return SQL that is true or false for every row, never NULL: an empty cell is ''."""
        column = source[find_column(self.column, "where", source.names, source.name)]
        cell = f"coalesce(trim({column.text}), '')"
        value, number = literal(self.value), _number(self.value)
        op = _SQL.get(self.op, self.op)
        if number is None:  # texts, such as dates, are in the order of their letters
            return f"({cell} {op} {value})"
        as_number = f"(coalesce(try_cast({cell} AS DOUBLE) {op} {number!r}, false))"
        if op == "=":
            return f"({cell} = {value} OR {as_number})"
        if op == "<>":
            same = f"coalesce(try_cast({cell} AS DOUBLE) = {number!r}, false)"
            return f"({cell} <> {value} AND NOT {same})"
        return as_number


Where = tuple[tuple[CellTest, ...], ...]
"""Any of these, each of which is all of its tests."""


def parse_where(text: str | None) -> Where:
    """Return the tests in a text; `and` binds closer than `or`.

    >>> [[(t.column, t.op, t.value) for t in each] for each in parse_where("a = x or n >= 2")]
    [[('a', '=', 'x')], [('n', '>=', '2')]]
    """
    if text is None:
        return ()
    found, place, every = [[]], 0, True  # type: ignore[var-annotated]
    while every:
        match = _TEST.match(text, place)
        if match is None:
            raise DataError(f"where is {text!r}, which cannot be read at {text[place:]!r}: {_FORM}")
        found[-1].append(CellTest(_bare(match["column"]), match["op"], _bare(match["value"])))
        found += [[]] if (match["join"] or "").casefold() == "or" else []
        place, every = match.end(), bool(match["join"])
    return tuple(map(tuple, found))


def _bare(word: str) -> str:
    word = word.strip()
    mark = word[:1]
    return word[1:-1].replace(mark * 2, mark) if mark in ("'", '"') else word


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if isfinite(number) else None


def filtered(con: Any, source: Source, where: Where) -> Source:
    """Return the rows of a table that pass; what is said about them names the condition."""
    if not where:
        return source
    either = " OR ".join("(" + " AND ".join(t.sql(source) for t in each) + ")" for each in where)
    rows = f"(SELECT * FROM {source.sql} WHERE {either})"
    if not con.execute(f"SELECT count(*) FROM {rows}").fetchone()[0]:
        raise DataError(f"no row of {source.name} is one where {written(where)}: {_FORM}")
    return replace(source, sql=rows, name=f"{source.name} where {written(where)}")


def written(where: Where) -> str:
    """Return the condition as a person would write it."""
    return " or ".join(" and ".join(f"{t.column} {t.op} {t.value}" for t in each) for each in where)


def segments_of(con: Any, source: Source, by: str) -> tuple[str, list[str]]:
    """Return the column's name and the different texts in it, those of most rows first."""
    name = find_column(by, "by", source.names, source.name)
    cell = f"coalesce(trim({source[name].text}), '')"
    found = con.execute(
        f"SELECT {cell} AS cell FROM {source.sql} GROUP BY cell ORDER BY count(*) DESC, cell "
        f"LIMIT {_MOST_SEGMENTS + 1}"
    ).fetchall()
    if len(found) > _MOST_SEGMENTS:
        raise DataError(
            f"column {name!r} of {source.name} has more than {_MOST_SEGMENTS} different values: "
            "segments must be fewer; choose another column, or select some rows with where="
        )
    return name, [cell for (cell,) in found]


def within(where: Where, column: str, value: str) -> Where:
    """Return the rows of `where` in one segment."""
    test: Sequence[CellTest] = (CellTest(column, "=", value),)
    return tuple((*each, *test) for each in where or ((),))
