"""What the fields of a model file must be, and the one function that checks them.

A file may be a valid archive and yet name a user who is not there, or hold a factor that is none;
a model made of it would answer, and wrongly. Every kind of `store.schema` declares its fields with
the classes below. Dimensions have names: the first field that has one fixes it, the others must
agree, within one value and, where a `Nested` says so, with the values inside it.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
from scipy import sparse

from penchant.errors import DataError

TINY = float(np.finfo(float).tiny)
"""The least positive number: the low end of what must be positive."""
WORDS = {"f": "numbers", "iu": "whole numbers", "b": "true or false"}

Dimensions = dict[str, tuple[float, float]]
"""The least and the largest size that each dimension may still have, by name."""


class Checked(NamedTuple):
    """What is known of a value that was checked: its kind, and the sizes of its dimensions."""

    kind: str
    sizes: Dimensions


class Array(NamedTuple):
    """An array: its NumPy kinds, the names of its dimensions ("" for any), and its range.

    below: the dimension that entries are positions in. lower: a Cholesky factor, square and lower
    triangular with a positive diagonal. distinct: no entry twice.
    """

    kinds: str
    shape: tuple[str, ...]
    low: float = -np.inf
    high: float = np.inf
    below: str = ""
    lower: bool = False
    distinct: bool = False
    optional: bool = False


class Scalar(NamedTuple):
    """A number, a text or a truth value; dimension: the one whose size it is."""

    type: type
    low: float = -np.inf
    high: float = np.inf
    dimension: str = ""
    optional: bool = False


class Nested(NamedTuple):
    """A value of another kind, or of one of several ("this or that").

    same: dimensions of it and of this value that must agree.
    many: a tuple of such values, and the dimension that its length is ("" for any length).
    """

    kinds: str
    same: Mapping[str, str] = {}
    optional: bool = False
    many: str | None = None


class Names(NamedTuple):
    """A tuple of distinct names."""

    dimension: str


class Features(NamedTuple):
    """A finite matrix, dense or sparse; graph: symmetric, sparse, and not negative if so."""

    shape: tuple[str, str]
    optional: bool = False
    graph: str = ""


class Anything(NamedTuple):
    """An argument of a kernel or likelihood, which checks it itself."""

    optional: bool = True


class Condition(NamedTuple):
    """What no single declaration can say: a condition on all fields, blamed on one of them."""

    field: str
    holds: Callable[[Any], bool]
    words: str


Declaration = Array | Scalar | Nested | Names | Features | Anything


def refuse(kind: str, field: str, words: str) -> NoReturn:
    """Raise the error that names the kind and the field."""
    raise DataError(
        f"the file's {kind} is not sound: field {field!r} {words}; the file was damaged or changed "
        "by hand: save the model again"
    )


def check_fields(
    kind: str,
    declared: Mapping[str, Declaration],
    rules: tuple[Condition, ...],
    values: Mapping[str, Any],
    known: Callable[[Any], Checked],
) -> Checked:
    """Check every field of one value against its declaration; return what is known of it then.

    known: the same of a value that was checked before.
    """
    check = _Check(kind, known)
    for name, declaration in declared.items():
        if name not in values:
            refuse(kind, name, "is missing")
        value = values[name]
        if value is None and not isinstance(declaration, Names) and declaration.optional:
            continue
        check.field(name, value, declaration)
    fields = _Fields(values)
    for rule in rules:
        if not rule.holds(fields):
            refuse(kind, rule.field, rule.words)
    return Checked(kind, check.sizes)


class _Fields:
    """Fields by attribute, as rules read them."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.__dict__.update(values)


class _Check:
    """The sizes found so far in one value."""

    def __init__(self, kind: str, known: Callable[[Any], Checked]) -> None:
        self.kind, self.known = kind, known
        self.sizes: Dimensions = {}

    def field(self, name: str, value: Any, declared: Declaration) -> None:
        if isinstance(declared, Array):
            self.array(name, value, declared)
        elif isinstance(declared, Scalar):
            self.scalar(name, value, declared)
        elif isinstance(declared, Nested):
            self.part(name, value, declared)
        elif isinstance(declared, Features):
            self.features(name, value, declared)
        elif isinstance(declared, Names):
            self.need(name, isinstance(value, tuple), "must be names")
            self.need(name, len(set(value)) == len(value), "every name must occur once")
            self.size(name, declared.dimension, len(value), len(value))

    def need(self, name: str, holds: bool, words: str) -> None:
        if not holds:
            refuse(self.kind, name, words)

    def size(self, name: str, dimension: str, low: float, high: float) -> None:
        """A dimension must have a size in [low, high]."""
        if not dimension:
            return
        least, most = self.sizes.get(dimension, (0.0, np.inf))
        if low > most or high < least:
            got, known = (
                f"{a:.0f}" if a == b else f"at least {a:.0f}"
                for a, b in ((low, high), (least, most))
            )
            refuse(self.kind, name, f"has {got} where there are {known} ({dimension})")
        self.sizes[dimension] = max(low, least), min(high, most)

    def array(self, name: str, value: Any, declared: Array) -> None:
        self.need(name, isinstance(value, np.ndarray), "must be an array")
        fits = value.ndim == len(declared.shape)
        self.need(name, fits, f"has shape {value.shape} and must have {len(declared.shape)} axes")
        self.need(name, value.dtype.kind in declared.kinds, f"must hold {WORDS[declared.kinds]}")
        for dimension, length in zip(declared.shape, value.shape, strict=True):
            self.size(name, dimension, length, length)
        if value.dtype.kind == "f" and not np.isfinite(value.sum()):  # one pass, seldom overflows
            self.need(name, bool(np.isfinite(value).all()), "must be finite")
        if value.size and value.dtype.kind != "b":
            self.range(name, value, declared)
        if declared.distinct:
            self.need(name, len(np.unique(value)) == value.size, "must hold no entry twice")
        if declared.lower:
            self.factor(name, value)

    def range(self, name: str, value: Any, declared: Array) -> None:
        low = 0.0 if declared.below else declared.low
        if low > -np.inf:
            self.need(name, bool(value.min() >= low), f"must hold nothing below {low:.3g}")
        if declared.high < np.inf:
            self.need(name, bool(value.max() <= declared.high), f"must stay below {declared.high}")
        self.size(name, declared.below, int(value.max()) + 1 if declared.below else 0, np.inf)

    def factor(self, name: str, value: Any) -> None:
        self.need(name, value.shape[0] == value.shape[1], "must be square")
        self.need(name, bool((np.diagonal(value) > 0).all()), "must have a positive diagonal")
        # row by row: a copy of the upper triangle would cost more than the factor itself
        is_lower = not any(row[k + 1 :].any() for k, row in enumerate(value))
        self.need(name, is_lower, "must be lower triangular")

    def scalar(self, name: str, value: Any, declared: Scalar) -> None:
        types = (int, float) if declared.type is float else (declared.type,)
        is_right = isinstance(value, types) and (isinstance(value, bool) == (declared.type is bool))
        self.need(name, is_right, f"must be a {declared.type.__name__}")
        if isinstance(value, int | float) and value == value:
            inside = declared.low <= value <= declared.high
            words = f"is {value} and must lie in [{declared.low:.3g}, {declared.high:.3g}]"
            self.need(name, inside, words)
            self.size(name, declared.dimension, value, value)

    def part(self, name: str, value: Any, declared: Nested) -> None:
        parts = (value,)
        if declared.many is not None:
            self.need(name, isinstance(value, tuple | Mapping), "must hold several values")
            parts = tuple(value.values()) if isinstance(value, Mapping) else value
            self.size(name, declared.many, len(parts), len(parts))
        for part in parts:
            kind, sizes = self.known(part)
            is_one = kind in declared.kinds.split(" or ")
            self.need(name, is_one, f"holds a {kind} and must hold a {declared.kinds}")
            for theirs, mine in declared.same.items():
                if theirs in sizes:
                    self.size(name, mine, *sizes[theirs])

    def features(self, name: str, value: Any, declared: Features) -> None:
        if not sparse.issparse(value):
            self.need(name, not declared.graph, "must be a sparse matrix")
            self.array(name, value, Array("f", declared.shape))
            return
        self.need(name, value.dtype.kind == "f", f"must hold {WORDS['f']}")
        self.need(name, bool(np.isfinite(value.data).all()), "must be finite")
        for dimension, length in zip(declared.shape, value.shape, strict=True):
            self.size(name, dimension, length, length)
        if declared.graph:
            gap = np.abs((value - value.T).data).max(initial=0.0)
            largest = np.abs(value.data).max(initial=0.0)
            self.need(name, bool(gap <= 1e-9 * largest), "must be symmetric")
        if declared.graph == "weights":
            self.need(name, bool((value.data >= 0).all()), "must not be negative")
            self.need(name, not value.diagonal().any(), "must not relate an item to itself")
