"""Names to indices and back: the encoder of columns and the lookup of names."""

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from itertools import count, islice
from typing import Any, TypeVar

import numpy as np

from penchant.errors import DataError
from penchant.numerics.types import IntArray

Name = Hashable
Names = tuple[Name, ...]
T = TypeVar("T")

_CHUNK = 1_000_000  # rows turned into Python objects at a time; bounds the memory of encoding
_SUGGEST_AMONG = 20_000  # names that are looked through for a similar one; more would take seconds


def as_column(values: Any, column: str) -> Sequence[Any] | np.ndarray[Any, Any]:
    """Return `values` as a list or one-dimensional array whose elements keep their types.

    A list stays a list: NumPy would turn a mixture of 1 and "a" into text.
    """
    if isinstance(values, str | bytes):
        raise DataError(
            f"{column} is the single text {values!r}: it must be a sequence with one entry per "
            f"comparison; try [{values!r}]"
        )
    if hasattr(values, "to_numpy"):  # pandas, polars and pyarrow columns
        values = values.to_numpy()
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise DataError(
                f"{column} has shape {values.shape}: it must be one-dimensional, one entry per "
                "comparison"
            )
        return values
    if not isinstance(values, Iterable):
        raise DataError(
            f"{column} is {values!r}: it must be a sequence with one entry per comparison"
        )
    return values if isinstance(values, list | tuple | range) else list(values)


def python_scalar(name: Any) -> Any:
    """Return a NumPy scalar as the Python value it stands for, anything else as it is."""
    return name.item() if isinstance(name, np.generic) else name


def is_missing(name: Any) -> bool:
    """Whether `name` says nothing: None, NaN, a data frame's NA, or blank text."""
    if name is None or type(name).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(name, str):
        return not name.strip()
    return isinstance(name, float | np.floating) and bool(np.isnan(name))


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,999}")  # "007" and "+7" are text, not the number 7


def whole_numbers(names: Sequence[str]) -> list[Any]:
    """Return names in a text as integers if all of them are, else as they are written.

    >>> whole_numbers(["10", "9"]), whole_numbers(["007", "9"])
    ([10, 9], ['007', '9'])
    """
    if all(_INTEGER.fullmatch(name) for name in names if name):
        return [int(name) if name else name for name in names]
    return list(names)


def universe(names: Iterable[Any], column: str) -> Names:
    """Return `names` as a tuple of Python values, after checking that they can serve as names."""
    if isinstance(names, str | bytes):
        raise DataError(f"{column} is the single text {names!r}: it must be a sequence of names")
    if not isinstance(names, Iterable):
        raise DataError(
            f"{column} is {names!r}: it must be a sequence of names; where the names are the "
            "indices 0 … n−1, give range(n)"
        )
    names = tuple(map(python_scalar, names))
    if any(map(is_missing, names)):
        where = next(i for i, name in enumerate(names) if is_missing(name))
        raise DataError(f"{column}[{where}] is empty: every name must say something")
    times = _hashable(Counter, names, column)
    if len(times) < len(names):
        twice = next(name for name, n in times.items() if n > 1)
        raise DataError(
            f"{column} names {twice!r} more than once ({len(names)} names, {len(times)} distinct): "
            "every name must occur once; make them unique"
        )
    return names


def _hashable(use: Callable[[Sequence[Any]], T], names: Sequence[Any], column: str) -> T:
    """Return `use(names)`, where a name that cannot be a key is the user's mistake."""
    try:
        return use(names)
    except TypeError as error:
        raise DataError(
            f"{column} holds a value that cannot be a name ({error}): names must be text, "
            "numbers or other hashable values"
        ) from None


class Encoder:
    """Gives every distinct name a code, in order of appearance, after those it starts with.

    >>> encoder = Encoder(("a", "b"))
    >>> encoder.encode(["b", "c", "a"], "winner").tolist(), encoder.names
    ([1, 2, 0], ('a', 'b', 'c'))
    """

    def __init__(self, names: Names = ()) -> None:
        self._code: defaultdict[Any, int] = defaultdict(count(len(names)).__next__)
        self._code.update((name, code) for code, name in enumerate(names))

    @property
    def names(self) -> Names:
        return tuple(map(python_scalar, self._code))

    def encode(self, values: Sequence[Any] | np.ndarray[Any, Any], column: str) -> IntArray:
        """Return the code of each value."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and len(values):
            distinct, where = _distinct_integers(values)
            code_of = self._encode_chunk(distinct, column)
            return np.take(code_of, where)
        codes = np.empty(len(values), dtype=np.intp)
        for start in range(0, len(values), _CHUNK):
            chunk = values[start : start + _CHUNK]
            chunk = chunk.tolist() if isinstance(chunk, np.ndarray) else chunk
            codes[start : start + len(chunk)] = self._encode_chunk(chunk, column)
        return codes

    def _encode_chunk(self, chunk: Sequence[Any], column: str) -> IntArray:
        code_of = self._code.__getitem__  # gives a name that is new the next code
        return _hashable(lambda c: np.fromiter(map(code_of, c), np.intp, len(c)), chunk, column)


def _distinct_integers(values: np.ndarray[Any, Any]) -> tuple[list[int], IntArray]:
    """Return the distinct values in order, and the position of each value among them."""
    low, high = int(values.min()), int(values.max())
    if high - low > 4 * len(values) + 1000:
        distinct, where = np.unique(values, return_inverse=True)
        return distinct.tolist(), where
    # Where the range is narrow a table of marks replaces the sort.
    wide = values if values.dtype.itemsize == 8 else values.astype(np.int64)
    offset = (wide - wide.dtype.type(low)).astype(np.intp, copy=False)
    present = np.zeros(high - low + 1, dtype=bool)
    present[offset] = True
    position = np.cumsum(present) - 1
    return [low + step for step in np.flatnonzero(present).tolist()], position[offset]


def sorted_order(names: Sequence[Any]) -> list[int]:
    """Return the positions that sort `names`; names of different types are kept apart by type."""
    try:
        return sorted(range(len(names)), key=names.__getitem__)
    except TypeError:
        return sorted(range(len(names)), key=lambda i: (type(names[i]).__name__, str(names[i])))


def closest(name: object, known: Iterable[object]) -> str:
    """Return " (did you mean …?)" with the known names nearest to `name`, or nothing.

    >>> closest("aple", ["apple", "pear"])
    " (did you mean 'apple'?)"
    """
    by_text = {str(other).casefold(): other for other in islice(known, _SUGGEST_AMONG)}
    near = difflib.get_close_matches(str(name).casefold(), by_text, n=3)
    return f" (did you mean {' or '.join(repr(by_text[text]) for text in near)}?)" if near else ""


class Lookup:
    """Finds indices from names or indices: a value that is itself a name means that name,
    any other integer in range is an index.

    Where every name is an integer, integers are names and nothing else: among items called 1, 2
    and 3, an index 0 beside a name 1 would mean the same item.

    >>> Lookup(("a", "b"), "item").index(["b", 0]).tolist()
    [1, 0]
    >>> Lookup((10, 20, 1), "item").index([1, 10]).tolist()
    [2, 0]
    """

    def __init__(self, names: Names, what: str) -> None:
        self._code = {name: code for code, name in enumerate(names)}
        self._what = what
        self._names_are_indices = names == tuple(range(len(names)))
        self._names_are_integers = bool(names) and all(isinstance(name, int) for name in names)

    def index(self, names: Any) -> int | IntArray:
        """Return an int for a single name, an array of them for a sequence."""
        if isinstance(names, str | bytes) or not isinstance(names, Iterable) or names in self:
            return self._one(names)
        names = as_column(names, f"{self._what}s")
        if self._is_index_array(names):
            return np.asarray(names, dtype=np.intp)
        return np.fromiter(map(self._one, names), dtype=np.intp, count=len(names))

    def pairs(self, pairs: Any) -> IntArray:
        """Return (k, 2) indices for k pairs of names or indices."""
        if not isinstance(pairs, np.ndarray):
            pairs = self._listed(pairs)
        lengths = {len(p) for p in pairs} if isinstance(pairs, list) else {*pairs.shape[1:]}
        if lengths - {2} or getattr(pairs, "ndim", 2) != 2:
            raise DataError(
                f"pairs must be a sequence of two {self._what}s each, shape (k, 2); got entries of "
                f"length {sorted(lengths)}"
            )
        flat = pairs.ravel() if isinstance(pairs, np.ndarray) else [n for p in pairs for n in p]
        return np.reshape(self.index(flat), (-1, 2))

    def _listed(self, pairs: Any) -> list[Any]:
        """Pairs as a list of things with a length; a text is a name, never a pair of letters."""
        no_pairs = isinstance(pairs, str | bytes | Mapping) or not isinstance(pairs, Iterable)
        listed = [] if no_pairs else list(pairs)
        odd = [p for p in listed if isinstance(p, str | bytes) or not isinstance(p, Sized)]
        if no_pairs or odd:
            got = odd[0] if odd else pairs
            raise DataError(
                f"pairs must be a sequence of two {self._what}s each, such as [('a', 'b')]; got "
                f"{got!r}"
            )
        return listed

    def _is_index_array(self, values: Any) -> bool:
        return (
            self._names_are_indices
            and isinstance(values, np.ndarray)
            and values.dtype.kind in "iu"
            and (not len(values) or (values.min() >= 0 and values.max() < len(self._code)))
        )

    def __contains__(self, name: object) -> bool:
        return isinstance(name, Hashable) and name in self._code

    def _one(self, name: Any) -> int:
        name = python_scalar(name)
        if name in self:
            return self._code[name]
        size = len(self._code)
        if self._names_are_integers and isinstance(name, int):
            raise DataError(
                f"unknown {self._what} {name}: the {size} {self._what}s are named by integers "
                f"({self._examples()}), so an integer means a name and never an index; for the "
                f"{self._what} at index i give {self._what}s[i]"
            )
        if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < size:
            return name
        raise DataError(
            f"unknown {self._what} {name!r}{closest(name, self._code)}: it must be one of the "
            f"{size} names, or an index from 0 to {size - 1}"
        )

    def _examples(self) -> str:
        first = [str(name) for name in islice(self._code, 3)]
        return ", ".join(first + ["…"] * (len(self._code) > len(first)))
