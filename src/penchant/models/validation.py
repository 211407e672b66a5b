"""Checks that estimators share. Messages say what, what it got, what it must be, what to try."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from penchant.errors import DataError, DataWarning
from penchant.numerics.types import FloatArray, IntArray


def check_choice(estimator: Any, name: str, choices: Iterable[Any]) -> None:
    """The estimator's parameter must be one of the choices."""
    value, allowed = getattr(estimator, name), list(choices)
    if value not in allowed:
        raise DataError(
            f"{type(estimator).__name__}: {name}={value!r}: it must be one of "
            f"{', '.join(map(repr, allowed))}"
        )


def check_features(X: Any, n: int, what: str) -> FloatArray | None:
    """Features as a finite float matrix with n rows, or None.

    Accepts arrays, lists, data frames of numbers and scipy sparse matrices.
    """
    if X is None:
        return None
    dense = X.toarray() if sparse.issparse(X) else X
    try:
        features = np.asarray(dense, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"X holds values that are not numbers ({error}): encode text columns as numbers, "
            "for example one 0/1 column a category"
        ) from None
    if features.ndim != 2:
        raise DataError(
            f"X has shape {features.shape}: it must be a matrix with one row an item; "
            "for one feature use X.reshape(-1, 1)"
        )
    if len(features) != n:
        raise DataError(
            f"X has {len(features)} rows and there are {n} {what}: give one row for each, in "
            "index order"
        )
    bad_rows, bad_columns = np.nonzero(~np.isfinite(features))
    if len(bad_rows):
        raise DataError(
            f"X has {len(bad_rows)} missing or infinite values, the first in row {bad_rows[0]}, "
            f"column {bad_columns[0]}: fill or drop them (scikit-learn's SimpleImputer fills)"
        )
    return features


def warn_constant_features(X: FloatArray) -> None:
    """A column that never varies says nothing about preference; say so."""
    constant = np.flatnonzero(np.ptp(X, axis=0) == 0.0) if len(X) > 1 else np.zeros(0, int)
    if len(constant):
        listed = ", ".join(map(str, constant[:10])) + (" …" if len(constant) > 10 else "")
        warnings.warn(
            f"feature columns {listed} of X are constant: they carry no information about "
            "preference and can be dropped",
            DataWarning,
            stacklevel=3,
        )


def check_row_pairs(pairs: Any, n: int) -> IntArray:
    """(k, 2) row numbers below n."""
    index = np.asarray(pairs)
    if index.ndim != 2 or index.shape[1] != 2 or index.dtype.kind not in "iu":
        raise DataError(
            f"pairs has shape {index.shape} and type {index.dtype}: with X given it must be (k, 2) "
            "row numbers of X"
        )
    if index.size and (index.min() < 0 or index.max() >= n):
        raise DataError(f"pairs names row {index.max()} and X has {n} rows: count from 0")
    return index.astype(np.intp)


def size_of_relations(relations: Mapping[str, Any]) -> int:
    """How many items the graphs cover."""
    sizes = {np.shape(getattr(graph, "weights", graph))[0] for graph in relations.values()}
    if len(sizes) != 1:
        raise DataError(
            f"relations cover {sorted(sizes)} items: every graph must cover the training items "
            "followed by the new ones"
        )
    return int(sizes.pop())
