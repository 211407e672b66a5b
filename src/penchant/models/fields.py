"""Fields of one value in a model file, and the questions that a check asks of them."""

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray

WORDS = {"f": "numbers", "iu": "whole numbers", "b": "true or false"}


def is_whole(value: Any) -> bool:
    """A whole number, and not a truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


class Fields:
    """The fields of a value of one kind; every method gives the field or raises a DataError.

    >>> Fields("sites", {"tau": np.zeros(3)}).array("tau", (2,), "f")
    Traceback (most recent call last):
    penchant.errors.DataError: the file's sites is not sound: ...
    """

    def __init__(self, kind: str, values: Mapping[str, Any]) -> None:
        self.kind, self.values = kind, values

    def need(self, name: str, holds: bool, words: str) -> None:
        """A condition on a field."""
        if not holds:
            self._refuse(name, words)

    def has(self, name: str) -> bool:
        """Whether a field that may be absent is there."""
        return self.values.get(name) is not None

    def made(self, name: str, *classes: type) -> Any:
        """A field of one of these classes."""
        return self.is_a(name, self.values[name], *classes)

    def is_a(self, name: str, value: Any, *classes: type) -> Any:
        """A part of a field, of one of these classes."""
        if not isinstance(value, classes):
            wanted = " or ".join(cls.__name__ for cls in classes)
            self._refuse(name, f"holds a {type(value).__name__} and must hold a {wanted}")
        return value

    def array(self, name: str, shape: tuple[int | None, ...], kinds: str) -> Any:
        """An array of this shape (None: any length) and these NumPy kinds, all of it finite."""
        array = self.made(name, np.ndarray)
        fits = len(shape) == array.ndim and all(
            wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
        )
        wanted = tuple("any" if length is None else length for length in shape)
        self.need(name, fits, f"has shape {array.shape} and must have {wanted}")
        self.need(name, array.dtype.kind in kinds, f"must hold {WORDS[kinds]}")
        if kinds == "f" and not np.isfinite(array.sum()):  # one pass, which seldom overflows
            self.need(name, bool(np.isfinite(array).all()), "must be finite")
        return array

    def index(self, name: str, bound: int | None, length: int | None = None) -> IntArray:
        """(length,) positions, not negative and below `bound`."""
        places: IntArray = self.array(name, (length,), "iu")
        if len(places):
            self.need(name, int(places.min()) >= 0, "must hold nothing below 0")
            inside = bound is None or int(places.max()) < bound
            self.need(name, inside, f"must stay below {bound}, and has {places.max()}")
        return places

    def lower(self, name: str, size: int | None = None) -> FloatArray:
        """A Cholesky factor: (size, size), lower triangular with a positive diagonal."""
        factor: FloatArray = self.array(name, (size, size), "f")
        n = len(factor)
        self.need(name, factor.shape == (n, n), "must be square")
        self.need(name, bool((np.diagonal(factor) > 0).all()), "must have a positive diagonal")
        # row by row: a copy of the upper triangle would cost more than the factor itself
        is_lower = not any(row[k + 1 :].any() for k, row in enumerate(factor))
        self.need(name, is_lower, "must be lower triangular")
        return factor

    def graph(self, name: str) -> sparse.csr_array:
        """A symmetric sparse matrix."""
        graph = self.values[name]
        if not sparse.issparse(graph):
            self._refuse(name, "must be a sparse matrix")
        self.need(name, graph.shape[0] == graph.shape[1], f"has shape {graph.shape}, not square")
        self.need(name, bool(np.isfinite(graph.data).all()), "must be finite")
        largest = np.abs(graph.data).max(initial=0.0)
        gap = np.abs((graph - graph.T).data).max(initial=0.0)
        self.need(name, bool(gap <= 1e-9 * largest), "must be symmetric")
        return graph

    def names(self, name: str) -> tuple[Any, ...]:
        """Names in index order, each once."""
        names: tuple[Any, ...] = self.made(name, tuple)
        self.need(name, len(set(names)) == len(names), "every name must occur once")
        return names

    def whole(self, name: str, least: int = 0) -> int:
        """A whole number."""
        value = self.values[name]
        self.need(name, is_whole(value) and value >= least, f"must be whole and at least {least}")
        return int(value)

    def number(self, name: str, low: float = -np.inf, high: float = np.inf) -> float:
        """A number, not NaN, within bounds."""
        value = self.made(name, float, int)
        self.need(name, low <= value <= high, f"is {value} and must lie in [{low}, {high}]")
        return float(value)

    def _refuse(self, name: str, words: str) -> NoReturn:
        raise DataError(
            f"the file's {self.kind} is not sound: field {name!r} {words}; the file was damaged or "
            "changed by hand: save the model again"
        )


Check = Callable[[Fields], None]
CHECKS: dict[str, Check] = {}
"""Of every kind by its name in the file."""


def check(kind: str) -> Callable[[Check], Check]:
    """Decorator: register the check of a kind."""

    def register(function: Check) -> Check:
        CHECKS[kind] = function
        return function

    return register
