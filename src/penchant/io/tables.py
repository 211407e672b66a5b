"""Tables beside the comparisons: features of items or people, and links between items."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from penchant.data import Name, Names, closest, is_missing, whole_numbers
from penchant.errors import DataError
from penchant.io.read import check_file, open_file
from penchant.io.recognise import listed
from penchant.io.source import Column, open_duck
from penchant.numerics.types import FloatArray, IntArray

RelationKind = Literal["undirected", "directed", "bipartite"]

_DECIMAL_COMMA = re.compile(r"(-?[0-9]+),([0-9]+)")


@dataclass(frozen=True)
class CellTable:
    """Columns by name; a cell is text, a number, a truth value, or None where it is empty.

    >>> CellTable("items.csv", {"item": ["tea", "milk"], "price": ["3", "1"]}, 1).row_of(
    ...     "item", ["milk", "tea"]
    ... ).tolist()
    [1, 0]
    """

    source: str
    columns: dict[str, list[Any]]
    first_row: int

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), []))

    def names(self, column: str, known: Sequence[Any] = ()) -> list[Name]:
        """Return a column's cells as names: the known name of the same text, else whole numbers
        where all known names are such, else as they are; an empty cell is an error."""
        by_text = _by_text(known)
        whole = bool(known) and all(isinstance(name, int) for name in known)
        names: list[Name] = []
        for row, cell in enumerate(self.columns[column], start=self.first_row):
            if is_missing(cell):
                raise DataError(
                    f"{self.source}: column {column!r} row {row} is empty: it must hold a name"
                )
            text = str(cell)
            names.append(by_text.get(text, whole_numbers([text])[0] if whole else cell))
        return names

    def row_of(self, column: str, names: Sequence[Any]) -> IntArray:
        """Return the row of each name; every name must have one row and no more."""
        listed_names = self.names(column, names)
        row: dict[Name, int] = {}
        for number, name in enumerate(listed_names):
            if name in row:
                raise DataError(
                    f"{self.source} has rows {row[name] + self.first_row} and "
                    f"{number + self.first_row} for {name!r} (column {column!r}): every name must "
                    "have one row; drop one of them"
                )
            row[name] = number
        absent = [name for name in names if name not in row]
        if absent:
            raise DataError(
                f"{len(absent)} of {len(names)} names have no row in {self.source} (for example "
                f"{absent[0]!r}{closest(absent[0], row)}; names are in column {column!r}): add a "
                "row for each, its cells empty where nothing is known"
            )
        return np.array([row[name] for name in names], dtype=np.intp)


def read_table(path: str | PathLike[str]) -> CellTable:
    """Read all columns of a table of features, from any kind of file that comparisons come in.

    Cells of text files are text as it is written, without the spaces around it. Where semicolons
    separate the cells, as a spreadsheet writes them where the decimal mark is a comma, 1,5 is a
    number.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "items.csv")
    ...     _ = path.write_text("item,price\\ntea,3\\nmilk,1\\n")
    ...     read_table(path).columns["price"]
    ['3', '1']
    """
    path = check_file(Path(path))
    with open_duck(str(path)) as duck:
        source = open_file(duck, path)
        columns = [column for column in source.columns if column.name]
        cells = ", ".join(_cell(column) for column in columns)
        rows = duck.con.execute(f"SELECT {cells} FROM {source.sql}").fetchall() if columns else []
        for row in source.broken()[:1]:
            raise DataError(f"{path.name}: {row.why} (rows are counted from 1)")
    if not rows:
        raise DataError(f"{path.name} has no rows below its header: nothing can be read")
    decimal_comma = "delim = ';'" in source.sql
    return CellTable(
        path.name,
        {
            column.name: [_value(row[k], column, decimal_comma) for row in rows]
            for k, column in enumerate(columns)
        },
        source.first_row,
    )


def _cell(column: Column) -> str:
    return f"{column.sql}::VARCHAR" if column.cells == "json" else column.sql


def _value(cell: Any, column: Column, decimal_comma: bool) -> Any:
    if cell is None or column.cells == "typed":
        return cell
    if column.cells == "json":
        return json.loads(cell)
    text = cell.strip()
    comma = _DECIMAL_COMMA.fullmatch(text) if decimal_comma else None
    return f"{comma[1]}.{comma[2]}" if comma else text or None


def _by_text(names: Sequence[Any]) -> dict[str, Name]:
    by_text: dict[str, Name] = {}
    for name in names:
        other = by_text.setdefault(str(name), name)
        if type(other) is not type(name) or other != name:
            raise DataError(
                f"the names {other!r} and {name!r} read alike, so that a table cannot tell them "
                "apart: rename one of them"
            )
    return by_text


@dataclass(frozen=True)
class Links:
    """Links between names, each with a positive weight.

    >>> links = Links("by hand", ("tea",), ("milk",), np.array([2.0]))
    >>> links.matrix(["milk", "tea"], "undirected").toarray().tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """

    source: str
    first: tuple[Name, ...]
    second: tuple[Name, ...]
    weight: FloatArray

    def items(self, kind: RelationKind) -> Names:
        """Return the items that are linked, in the order in which they occur; in a bipartite
        relation the other ends are no items."""
        ends = self.first if kind == "bipartite" else (*self.first, *self.second)
        return tuple(dict.fromkeys(ends))

    def matrix(self, items: Sequence[Any], kind: RelationKind) -> sparse.csr_array:
        """Return weights between items (rows) and items, or in a bipartite relation the other
        ends; an undirected relation is symmetric."""
        code = {name: index for index, name in enumerate(items)}
        other = code
        if kind == "bipartite":
            other = {name: index for index, name in enumerate(dict.fromkeys(self.second))}
        rows, columns = self._codes(self.first, code), self._codes(self.second, other)
        shape = (len(code), len(other))
        if kind == "undirected":
            rows, columns = np.minimum(rows, columns), np.maximum(rows, columns)
        place, first, where = np.unique(
            rows * shape[1] + columns, return_index=True, return_inverse=True
        )
        self._refuse_contradictions(first[where])
        weight = self.weight[first]
        links = sparse.csr_array((weight, np.divmod(place, shape[1])), shape=shape)
        return links.maximum(links.T).tocsr() if kind == "undirected" else links

    def _codes(self, names: Sequence[Name], code: dict[Any, int]) -> IntArray:
        for name in names:
            if name not in code:
                raise DataError(
                    f"{self.source} links {name!r}{closest(name, code)}, which is not one of the "
                    f"{len(code)} items: correct the name or add it to the items"
                )
        return np.array([code[name] for name in names], dtype=np.intp)

    def _refuse_contradictions(self, first: IntArray) -> None:
        """A link may be listed twice, also from its other end, but with one weight only."""
        for row in np.flatnonzero(self.weight != self.weight[first])[:1]:
            raise DataError(
                f"{self.source} links {self.first[row]!r} and {self.second[row]!r} twice, with "
                f"weights {self.weight[first[row]]:g} and {self.weight[row]:g}: keep one of them"
            )


def read_relation(path: str | PathLike[str], names: Sequence[Any] = ()) -> Links:
    """Read links from a table: two columns of names and, where there is one, their weight.

    `names` are the items that are known already: a cell means the one of the same text.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "links.csv")
    ...     _ = path.write_text("from,to,weight\\ntea,milk,2\\n")
    ...     read_relation(path).items("undirected")
    ('tea', 'milk')
    """
    table = read_table(path)
    if len(table.columns) < 2:
        raise DataError(
            f"{table.source} has one column, {listed(list(table.columns))}: a relation needs two, "
            "the items at both ends of a link (and may have a third, called weight)"
        )
    first, second = list(table.columns)[:2]
    return Links(
        table.source,
        tuple(table.names(first, names)),
        tuple(table.names(second, names)),
        _weights(table),
    )


def _weights(table: CellTable) -> FloatArray:
    column = next((name for name in table.columns if name.casefold() == "weight"), None)
    if column is None:
        return np.ones(len(table))
    weights = np.empty(len(table))
    for row, cell in enumerate(table.columns[column]):
        try:
            weights[row] = float(cell)
        except (TypeError, ValueError):
            weights[row] = np.nan
        if not (np.isfinite(weights[row]) and weights[row] > 0):
            raise DataError(
                f"{table.source}: column {column!r} row {row + table.first_row} is {cell!r}: the "
                "weight of a link must be a positive number; drop links that are not there"
            )
    return weights


def read_arff(path: str | PathLike[str]) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """Return (X, y, names): the features, the last attribute as target, the features' names.

    A nominal attribute whose values are numbers keeps them; any other becomes one 0/1 column
    per value, named `attribute=value`, and as a target the position of the value. Missing
    values are NaN.

    >>> from tempfile import TemporaryDirectory
    >>> text = "@relation r\\n@attribute sex {M,F}\\n@attribute age real\\n@data\\nF,3\\nM,5\\n"
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.arff"
    ...     _ = path.write_text(text)
    ...     X, y, names = read_arff(path)
    >>> X.tolist(), y.tolist(), names
    ([[0.0, 1.0], [1.0, 0.0]], [3.0, 5.0], ('sex=M', 'sex=F'))
    """
    from scipy.io import arff  # slow to import

    path = Path(path)
    if not path.is_file():
        raise DataError(f"there is no file {path}: check the path")
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            table, meta = arff.loadarff(file)
    except (arff.ArffError, NotImplementedError, ValueError, StopIteration) as error:
        raise DataError(
            f"{path} is not an ARFF table of numbers and nominal values: {error}"
        ) from error
    *inputs, target = meta.names()
    if not inputs or not len(table):
        raise DataError(f"{path} holds no data: it needs a feature, a target and a row")
    columns, names = [], []
    for name in inputs:
        values, levels = _arff_numbers(table[name], meta[name])
        indicators = values[:, None] == np.arange(len(levels))
        missing = np.isnan(values)[:, None]
        columns.append(np.where(missing, np.nan, indicators) if levels else values[:, None])
        names += [f"{name}={level}" for level in levels] or [name]
    return np.hstack(columns), _arff_numbers(table[target], meta[target])[0], tuple(names)


def _arff_numbers(values: Any, kind: tuple[str, Any]) -> tuple[FloatArray, list[str]]:
    """Return the values as numbers; words become their positions in the list beside them."""
    if kind[0] == "numeric":
        return np.asarray(values, dtype=np.float64), []
    words: list[str] = []
    try:
        meaning = {level.encode(): float(level) for level in kind[1]}
    except ValueError:
        words = list(kind[1])
        meaning = {word.encode(): float(place) for place, word in enumerate(words)}
    return np.array([meaning.get(value, np.nan) for value in values.tolist()]), words
