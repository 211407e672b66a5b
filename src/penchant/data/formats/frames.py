"""Data frames of pandas and polars, and pyarrow tables."""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penchant.data.duck import Duck, literal
from penchant.data.names import is_missing, python_scalar
from penchant.data.source import Column, Source, refuse_repeated
from penchant.errors import DataError

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
    """By a scratch file: to read a polars frame itself, DuckDB needs pyarrow."""
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
    """DuckDB guesses the type of a column of Python objects from some of them ('007' → 7); so
    those that are not all text are written down as JSON first, value by value."""
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
