"""Tables with types of their own: data frames, spreadsheets, Parquet, JSON."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from penchant.data import is_missing, python_scalar
from penchant.errors import DataError
from penchant.io.source import (
    NO_GUESSES,
    Column,
    Duck,
    Source,
    described,
    literal,
    refuse_bomb,
    refuse_repeated,
    refuse_title,
)

_TEXT = ("string", "empty")


def open_frame(duck: Duck, frame: Any, name: str = "the data frame", first_row: int = 0) -> Source:
    """Return the table in a data frame, whatever library it comes from."""
    if not hasattr(frame, "columns"):
        raise DataError(
            f"frame is of type {type(frame).__name__}: it must be a pandas or polars data frame or "
            "a pyarrow table; for plain columns use from_pairs"
        )
    if hasattr(frame, "dtypes") and hasattr(frame, "iloc"):
        return _open_pandas(duck, frame, name, first_row)
    if hasattr(frame, "write_parquet"):
        return _open_polars(duck, frame, name, first_row)
    names = list(getattr(frame, "column_names", frame.columns))
    refuse_repeated(names, name)
    duck.con.register("frame", frame.rename_columns([f"c{k}" for k in range(len(names))]))
    return Source("frame", _columns(duck, names, {}), name, first_row)


def _open_polars(duck: Duck, frame: Any, name: str, first_row: int) -> Source:
    """Read a polars frame through a scratch file: DuckDB needs pyarrow to read it directly."""
    unusable = tuple(column for column, kind in frame.schema.items() if str(kind) == "Object")
    names = [column for column in frame.columns if column not in unusable]
    if not names:
        raise DataError(f"{name} has no column that can be read: it must name winners and losers")
    places = {column: f"c{k}" for k, column in enumerate(names)}
    file = duck.folder / "frame.parquet"
    frame.select(names).rename(places).write_parquet(file)
    duck.con.execute(f"CREATE VIEW frame AS FROM read_parquet({literal(str(file))})")
    return Source("frame", _columns(duck, names, {}), name, first_row, unusable)


def _open_pandas(duck: Duck, frame: Any, name: str, first_row: int) -> Source:
    """Read a pandas frame. DuckDB guesses the type of a column of Python objects from a sample
    ('007' → 7), so object columns that are not all text are encoded as JSON, value by value."""
    from pandas.api.types import infer_dtype

    names = [str(label) for label in frame.columns]
    refuse_repeated(names, name)
    kept: dict[str, Any] = {}
    as_json: set[str] = set()
    unusable: list[str] = []
    for k, label in enumerate(names):
        series = frame.iloc[:, k]
        if series.dtype == object and infer_dtype(series, skipna=True) not in _TEXT:
            written = _written(series.to_numpy())
            if written is None:
                unusable.append(label)
                continue
            as_json.add(label)
            series = written
        kept[f"c{k}"] = series.array if hasattr(series, "array") else series
    if not kept:
        raise DataError(f"{name} has no column that can be read: it must name winners and losers")
    used = [label for label in names if label not in unusable]
    duck.con.execute("SET GLOBAL pandas_analyze_sample = 0")  # a column of objects is text
    duck.con.register("frame", type(frame)(kept, copy=False))
    columns = _columns(duck, used, as_json)
    return Source("frame", columns, name, first_row, tuple(unusable))


def _columns(duck: Duck, names: list[str], as_json: Any) -> tuple[Column, ...]:
    found = duck.con.execute("DESCRIBE FROM frame").fetchall()
    return tuple(
        Column(name, place, "json" if name in as_json else "typed", kind)
        for name, (place, kind, *_) in zip(names, found, strict=True)
    )


def _written(values: NDArray[Any]) -> NDArray[Any] | None:
    """Return each value as JSON text, or None where one is neither text nor a number."""
    text: dict[Any, str | None] = {}
    cells = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        try:
            key = (type(value), value)
            if key not in text:
                text[key] = None if is_missing(value) else _as_json(python_scalar(value))
        except TypeError:
            return None
        cells[row] = text[key]
    return cells


def _as_json(value: Any) -> str:
    if isinstance(value, int | float | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | dict | tuple | set | bytes):
        raise TypeError
    return json.dumps(str(value), ensure_ascii=False)


SHEETS = (".xlsx", ".ods")

_NEEDS = {".xlsx": "openpyxl", ".ods": "odfpy"}


def open_sheet(duck: Duck, path: Path) -> Source:
    """Return the table in a spreadsheet with one sheet; its first row names the columns."""
    sheets = {name: _without_margins(cells) for name, cells in _read_sheets(path).items()}
    filled = {name: cells for name, cells in sheets.items() if cells.size}
    if len(filled) != 1:
        raise DataError(
            f"{path.name} has {len(filled)} sheets that hold something"
            + (f" ({', '.join(map(repr, filled))})" if filled else "")
            + ": it must have one; save the sheet that you mean as a file of its own"
        )
    (cells,) = filled.values()
    table = cells.iloc[1:].reset_index(drop=True)
    table.columns = ["" if _is_blank(label) else str(label).strip() for label in cells.iloc[0]]
    further = sum(not _is_blank(cell) for cell in table.head(1).to_numpy().ravel())
    refuse_title(list(table.columns), further > 1, path.name)
    return open_frame(duck, table, path.name, first_row=1)


def _read_sheets(path: Path) -> dict[str, Any]:
    needed = f"pandas and {_NEEDS[path.suffix.lower()]}"
    try:
        import pandas as pd

        with ZipFile(path) as parts:
            refuse_bomb(path, sum(p.file_size for p in parts.infolist()), path.stat().st_size)

        sheets: dict[str, Any] = pd.read_excel(
            path, sheet_name=None, header=None, dtype=object, na_filter=False
        )
    except ImportError:
        raise DataError(
            f"{path.name} is a spreadsheet, which {needed} read: install them, or save the sheet "
            "as CSV UTF-8"
        ) from None
    except DataError:
        raise
    except Exception as error:  # a damaged file fails anywhere inside the libraries
        raise DataError(
            f"{path.name} cannot be read as a spreadsheet ({type(error).__name__}: {error}): save "
            "it again, or save the sheet as CSV UTF-8"
        ) from error
    return sheets


def _without_margins(cells: Any) -> Any:
    """Drop rows and columns in which nothing is written."""
    filled = ~cells.map(_is_blank)
    return cells.loc[filled.any(axis=1), filled.any(axis=0)].astype(object)


def _is_blank(cell: Any) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and not cell.strip())


JSON = (".jsonl", ".ndjson", ".json")
PARQUET = (".parquet", ".pq")


def open_parquet(duck: Duck, path: Path) -> Source:
    """Return the table in a Parquet file."""
    sql = f"read_parquet({duck.place(path)}, {NO_GUESSES})"
    return Source(sql, described(duck.con, sql, "typed"), path.name, first_row=0)


def open_json(duck: Duck, path: Path) -> Source:
    """Return the table in a JSON file; its cells stay JSON, as they are written."""
    file = duck.unzipped(path) if path.suffix.lower() == ".gz" else path
    sql = f"read_json({duck.place(file)}, maximum_depth = 1, sample_size = -1, {NO_GUESSES})"
    return Source(sql, described(duck.con, sql, "json"), path.name)
