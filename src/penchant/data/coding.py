"""Columns of names, marks and numbers as codes, ready to be checked."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.data.names import (
    Encoder,
    Names,
    as_column,
    closest,
    is_missing,
    python_scalar,
    sorted_order,
    universe,
)
from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray

MISSING = -1  # the code of a name that is not there
UNREADABLE = 2  # a side that is none
TRUE_WORDS = ("true", "t", "yes", "y", "1", "1.0")
BAD_WORDS = ("both bad", "bothbad")  # a tie of two that were both found bad
BOTH_BAD = 2  # its code, beside 1 for any other tie
FALSE_WORDS = ("false", "f", "no", "n", "0", "0.0", "")

Codes = NDArray[np.integer[Any]]


class BrokenRow(NamedTuple):
    """A row of a file that has no cells to look at, and why."""

    number: int
    why: str


@dataclass(frozen=True)
class CodedRows:
    """Rows whose names are codes already, not yet checked.

    A code is MISSING for an absent name, and at least `n_items` (`n_users`) for a name outside
    the universe. `tie` is 1, 2 (both bad), 0 or -1 (unreadable); numbers are NaN if unreadable.
    """

    winner: Codes
    loser: Codes
    user: Codes | None
    tie: NDArray[np.int8]
    count: FloatArray
    margin: FloatArray | None
    items: Names
    users: Names
    n_items: int
    n_users: int
    value_at: Callable[[str, int], object]
    first: NDArray[np.int8] | None = None  # +1 the winner was shown first, −1 the loser, 0 unknown
    time: FloatArray | None = None  # days
    covariates: FloatArray | None = None
    labels: dict[str, str] = field(default_factory=dict)  # role → what the caller calls the column
    first_row: int = 0
    source: str = ""  # the file's name
    broken: tuple[BrokenRow, ...] = ()  # not among the columns above
    advice: Mapping[str, str] = field(default_factory=dict)  # role → what its cells must be

    def label(self, role: str) -> str:
        return repr(self.labels.get(role, role))

    def number(self, row: int) -> int:
        """How the caller counts a row: broken ones count there, too."""
        number = row + self.first_row
        for broken in self.broken:
            number += broken.number <= number
        return number


class Codebook(NamedTuple):
    """Final codes of the names that were found, and the names behind the codes.

    The first `n_known` names are the universe; a code beyond them is a name outside it.
    """

    code: IntArray
    names: Names
    n_known: int


def code_columns(
    columns: dict[str, Any],
    *,
    items: Iterable[Any] | None,
    users: Iterable[Any] | None,
    covariates: Any = None,
) -> CodedRows:
    """Turn the columns (winner, loser and any of user, tie, count, margin, first, time) into
    codes."""
    given = {
        role: as_column(values, role) for role, values in columns.items() if values is not None
    }
    n_rows = len(given["winner"])
    for role, values in given.items():
        if len(values) != n_rows:
            raise DataError(
                f"winner has {n_rows} entries and {role} has {len(values)}: every column must "
                "have one entry per comparison"
            )
    (winner, loser), item_book = _encode(given, ("winner", "loser"), items, "items")
    user, user_book = None, Codebook(np.empty(0, dtype=np.intp), (), 0)
    if "user" in given:
        (user,), user_book = _encode(given, ("user",), users, "users")
    elif users is not None:
        raise DataError("users names the users, but no user column says who made each comparison")
    return CodedRows(
        winner=winner,
        loser=loser,
        user=user,
        tie=_read_ties(given["tie"]) if "tie" in given else np.zeros(n_rows, dtype=np.int8),
        count=_read_counts(given["count"]) if "count" in given else np.ones(n_rows),
        margin=read_numbers(given["margin"]) if "margin" in given else None,
        first=_read_first(given["first"]) if "first" in given else None,
        time=read_times(given["time"]) if "time" in given else None,
        covariates=None if covariates is None else as_covariates(covariates, n_rows),
        items=item_book.names,
        users=user_book.names,
        n_items=item_book.n_known,
        n_users=user_book.n_known,
        value_at=lambda role, row: python_scalar(given[role][row]),
    )


def _encode(
    given: dict[str, Any], roles: Sequence[str], known: Iterable[Any] | None, column: str
) -> tuple[list[IntArray], Codebook]:
    encoder = Encoder()
    codes = [encoder.encode(given[role], role) for role in roles]
    book = settle(encoder.names, known, column)
    return [book.code[c] for c in codes], book


def settle(found: Names, known: Iterable[Any] | None, column: str) -> Codebook:
    """Give the names that were found their final codes: their place in the universe `known`,
    or where there is none, their place in sorted order."""
    missing = [code for code, name in enumerate(found) if is_missing(name)]
    if known is None:
        present = [name for name in found if not is_missing(name)]
        names = tuple(dict.fromkeys(present[i] for i in sorted_order(present)))
    else:
        names = universe(known, column)
    encoder = Encoder(names)
    code = encoder.encode(found, column)
    code[missing] = MISSING
    return Codebook(code, encoder.names, len(names))


def code_strictly(
    values: Sequence[Any] | NDArray[Any],
    known: Iterable[Any] | None,
    column: str,
    where: Callable[[int], str],
) -> tuple[IntArray, Names]:
    """Return final codes and names; the first value that is empty or unknown is an error."""
    encoder = Encoder()
    codes = encoder.encode(values, column)
    book = settle(encoder.names, known, column)
    final = book.code[codes]
    bad = np.flatnonzero((final == MISSING) | (final >= book.n_known))
    if not len(bad):
        return final, book.names
    name = encoder.names[codes[bad[0]]]
    if is_missing(name):
        raise DataError(f"{where(int(bad[0]))} is empty ({name!r}): it must hold a name")
    raise DataError(
        f"{where(int(bad[0]))} names {name!r}{closest(name, book.names[: book.n_known])}, which "
        f"is not one of the {book.n_known} {column}: correct the name or add it to {column}"
    )


def _read_ties(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.int8]:
    if isinstance(values, np.ndarray) and values.dtype == np.bool_:
        return values.astype(np.int8)
    encoder = Encoder()
    codes = encoder.encode(values, "tie")
    meaning = [_read_tie(name) for name in encoder.names]
    return np.array(meaning, dtype=np.int8)[codes]


def _read_tie(value: Any) -> int:
    word = "" if is_missing(value) else str(value).strip().lower()
    if word in BAD_WORDS:
        return BOTH_BAD
    return 1 if word in TRUE_WORDS else 0 if word in FALSE_WORDS else -1


def _read_first(values: Sequence[Any] | NDArray[Any]) -> NDArray[np.int8]:
    """+1, −1 or 0 for each row; what is none of them is UNREADABLE."""
    sides = np.nan_to_num(read_numbers(values), nan=UNREADABLE, posinf=UNREADABLE)
    return np.where(np.isin(sides, (-1, 0, 1)), sides, UNREADABLE).astype(np.int8)


def read_times(values: Sequence[Any] | NDArray[Any]) -> FloatArray:
    """Return dates as days since 1970, numbers as they are, NaN where a value is neither."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        days: FloatArray = (values - np.datetime64(0, "D")) / np.timedelta64(1, "D")
        return days
    return np.array([_read_time(value) for value in values], dtype=np.float64)


def _read_time(value: Any) -> float:
    if isinstance(value, str):
        number = _read_number(value)
        if math.isfinite(number):
            return number
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return math.nan
    if isinstance(value, date) and value == value:  # pandas's NaT is a date unlike itself
        moment = value if isinstance(value, datetime) else datetime(*value.timetuple()[:3])
        moment = moment.replace(tzinfo=moment.tzinfo or UTC)
        return moment.timestamp() / 86400.0
    return _read_number(value)


def as_covariates(covariates: Any, n_rows: int) -> FloatArray:
    """Return covariates as (m, q): odd in the pair, the winner's minus the loser's."""
    columns = list(covariates.values()) if isinstance(covariates, Mapping) else None
    values = np.asarray(covariates if columns is None else columns, dtype=object)
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"covariates hold something that is no number ({error})") from None
    numbers = numbers.T if columns is not None else numbers
    numbers = numbers[:, None] if numbers.ndim == 1 else numbers
    if numbers.ndim != 2 or len(numbers) != n_rows:
        raise DataError(
            f"covariates have shape {numbers.shape} for {n_rows} comparisons: they must have one "
            "row per comparison and one column per covariate (or be a dictionary of columns)"
        )
    return numbers


def _read_counts(values: Sequence[Any] | NDArray[Any]) -> FloatArray:
    """Return counts as numbers; true and false are none, whichever library they are of."""
    is_numbers = isinstance(values, np.ndarray) and values.dtype.kind not in "bO"
    if not is_numbers and any(isinstance(value, bool | np.bool_) for value in values):
        raise DataError(
            "count holds true and false: it must hold whole numbers of at least 1, how often each "
            "comparison was made; keep only the rows that are meant, or give tie="
        )
    return read_numbers(values)


def read_numbers(values: Sequence[Any] | NDArray[Any]) -> FloatArray:
    """Return the values as floats, NaN where one is not a number."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([_read_number(value) for value in values])


def _read_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
