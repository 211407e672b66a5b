"""Numeric tables in ARFF, the format of many regression collections."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import arff

from penchant.errors import DataError
from penchant.numerics.types import FloatArray


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
    columns = [_columns(table[name], name, meta[name]) for name in inputs]
    if not columns or not len(table):
        raise DataError(f"{path} holds no data: it needs a feature, a target and a row")
    X = np.hstack([values for values, _ in columns])
    names = tuple(name for _, names in columns for name in names)
    return X, _target(table[target], meta[target]), names


def _columns(values: Any, name: str, kind: tuple[str, Any]) -> tuple[FloatArray, list[str]]:
    numbers = _numbers(values, kind)
    if numbers is not None:
        return numbers[:, None], [name]
    levels = list(kind[1])
    codes = _codes(values, levels)
    indicator = (codes[:, None] == np.arange(len(levels))).astype(np.float64)
    indicator[np.isnan(codes)] = np.nan
    return indicator, [f"{name}={level}" for level in levels]


def _target(values: Any, kind: tuple[str, Any]) -> FloatArray:
    numbers = _numbers(values, kind)
    return _codes(values, list(kind[1])) if numbers is None else numbers


def _numbers(values: Any, kind: tuple[str, Any]) -> FloatArray | None:
    """Return the values as numbers, or None where they are words."""
    if kind[0] == "numeric":
        return np.asarray(values, dtype=np.float64)
    try:
        meaning = {level.encode(): float(level) for level in kind[1]}
    except ValueError:
        return None
    return np.array([meaning.get(value, np.nan) for value in values.tolist()])


def _codes(values: Any, levels: list[str]) -> FloatArray:
    position = {level.encode(): float(code) for code, level in enumerate(levels)}
    return np.array([position.get(value, np.nan) for value in values.tolist()])
