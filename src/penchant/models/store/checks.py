"""What a model file may hold, and the one function that checks it.

A file may be a valid archive and yet name a user who is not there, or hold a factor that is none;
a model made of it would answer, and wrongly. Types come from the annotations of the stored classes.
Shapes and ranges come from `store.schema`, in the classes below. Axes have names: the first field
that has one fixes its length, and the others must agree, within one value and with the nested
values that share the axis.
"""

from collections.abc import Callable, Hashable, Mapping
from types import NoneType, UnionType
from typing import Any, NamedTuple, NoReturn, Union, get_args, get_origin

import numpy as np
from scipy import sparse

from penchant.errors import DataError

TINY = float(np.finfo(float).tiny)
"""The least positive number: the low end of what must be positive."""

Sizes = dict[str, tuple[float, float]]
"""The least and the largest length that each axis may still have, by name."""


class Array(NamedTuple):
    """Axes and range of an array, dense or sparse, or of a tuple, whose one axis is its length.

    shape: names of the axes; "_" is any length. below: the axis that entries are positions in.
    lower: a Cholesky factor, lower triangular with a positive diagonal. distinct: no entry twice.
    """

    shape: str
    low: float = -np.inf
    high: float = np.inf
    below: str = ""
    lower: bool = False
    distinct: bool = False


class Number(NamedTuple):
    """Range of a number; size: the axis whose length it is."""

    low: float = -np.inf
    high: float = np.inf
    size: str = ""


class Nested(NamedTuple):
    """Axes that a nested value shares with this one, by their name there.

    length: the axis that a tuple of nested values has.
    """

    axes: Mapping[str, str]
    length: str = "_"


Declaration = Array | Number | Nested


def refuse(kind: str, field: str, words: str) -> NoReturn:
    """Raise the error that names the kind and the field."""
    raise DataError(
        f"the file's {kind} is not sound: field {field!r} {words}; the file was damaged or changed "
        "by hand: save the model again"
    )


def has_type(value: Any, hint: Any) -> bool:
    """Whether a value read from a file is what an annotation says; whole numbers are counts.

    >>> has_type((1, 2), tuple[int, ...]), has_type(-1, int), has_type(None, int | None)
    (True, False, True)
    """
    origin, parts = get_origin(hint) or hint, get_args(hint)
    if hasattr(origin, "__value__"):  # an alias, as NumPy 2.5 has for arrays
        return has_type(value, origin.__value__[parts] if parts else origin.__value__)
    if hint in (Any, Hashable):
        return True
    if origin in (Union, UnionType):
        return any(has_type(value, part) for part in parts)
    if origin is int:
        return type(value) is int and value >= 0
    if origin is float:
        return type(value) in (int, float)
    if origin is np.ndarray:
        kinds = np.dtype(get_args(parts[1])[0]).kind.replace("i", "iu")
        return isinstance(value, np.ndarray) and value.dtype.kind in kinds
    if hint == tuple[Hashable, ...]:  # names, of which there may be very many
        return isinstance(value, tuple)
    if origin is tuple:
        each = parts[:1] * len(value) if ... in parts else parts
        return (
            isinstance(value, tuple) and len(value) == len(each) and all(map(has_type, value, each))
        )
    if isinstance(value, Mapping) and len(parts) == 2:
        return all(has_type(part, parts[1]) for part in value.values())
    return isinstance(value, NoneType if origin is None else origin)


class FieldCheck:
    """The lengths of the axes found so far in one value."""

    def __init__(self, kind: str, sizes_of: Callable[[Any], Sizes]) -> None:
        self.kind, self.sizes_of = kind, sizes_of
        self.sizes: Sizes = {}

    def field(self, name: str, value: Any, declared: Declaration) -> None:
        """Check one field against its declaration."""
        if isinstance(declared, Array):
            self._array(name, value, declared)
        elif isinstance(declared, Number):
            inside = declared.low <= value <= declared.high
            words = f"is {value} and must lie in [{declared.low:.3g}, {declared.high:.3g}]"
            self._need(name, inside, words)
            if declared.size:
                self._size(name, declared.size, value, value)
        else:
            parts = value if isinstance(value, tuple) else (value,)
            parts = tuple(value.values()) if isinstance(value, Mapping) else parts
            self._size(name, declared.length, len(parts), len(parts))
            for theirs, mine in declared.axes.items():
                for part in parts:
                    self._size(name, mine, *self.sizes_of(part).get(theirs, (0.0, np.inf)))

    def _need(self, name: str, holds: Any, words: str) -> None:
        if not holds:
            refuse(self.kind, name, words)

    def _size(self, name: str, axis: str, low: float, high: float) -> None:
        """An axis must have a length in [low, high]."""
        if axis == "_":
            return
        least, most = self.sizes.get(axis, (0.0, np.inf))
        if low > most or high < least:
            got, known = (
                f"{a:.0f}" if a == b else f"at least {a:.0f}"
                for a, b in ((low, high), (least, most))
            )
            refuse(self.kind, name, f"has {got} where there are {known} ({axis})")
        self.sizes[axis] = max(low, least), min(high, most)

    def _array(self, name: str, value: Any, declared: Array) -> None:
        axes = declared.shape.split()
        shape = (len(value),) if isinstance(value, tuple) else value.shape
        self._need(
            name, len(shape) == len(axes), f"has shape {shape} and must have {len(axes)} axes"
        )
        for axis, length in zip(axes, shape, strict=True):
            self._size(name, axis, length, length)
        if isinstance(value, tuple):
            self._need(name, not declared.distinct or len({*value}) == len(value), "repeats a name")
            return
        entries = value.data if sparse.issparse(value) else value
        self._need(name, entries.dtype.kind in "fiub", "must hold numbers")
        if entries.dtype.kind == "f" and not np.isfinite(
            entries.sum()
        ):  # one pass, seldom overflows
            self._need(name, np.isfinite(entries).all(), "must be finite")
        if entries.size and entries.dtype.kind != "b":
            self._range(name, entries, declared)
        if declared.distinct:
            self._need(name, len(np.unique(value)) == value.size, "must hold no entry twice")
        if declared.lower:
            self._need(name, (np.diagonal(value) > 0).all(), "must have a positive diagonal")
            # row by row: a copy of the upper triangle would cost more than the factor itself
            is_lower = not any(row[k + 1 :].any() for k, row in enumerate(value))
            self._need(name, is_lower, "must be lower triangular")

    def _range(self, name: str, value: Any, declared: Array) -> None:
        low = 0.0 if declared.below else declared.low
        if low > -np.inf:
            self._need(name, value.min() >= low, f"must hold nothing below {low:.3g}")
        if declared.high < np.inf:
            self._need(name, value.max() <= declared.high, f"must stay below {declared.high}")
        if declared.below:
            self._size(name, declared.below, int(value.max()) + 1, np.inf)
