"""The one checker: columns become codes, every row is checked, all faults are reported together."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from penchant.data.table import Table
from penchant.errors import DataError, DataWarning, warn
from penchant.numerics.types import BoolArray, FloatArray, IntArray

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

    A code is MISSING for an absent name, and at least `n_known` for a name outside the universe.
    tie : 1, 0, BOTH_BAD, or −1 where it is unreadable; unreadable numbers are NaN.
    value_at : the cell of a role and row as the caller wrote it. first_row : how the caller
    numbers the first row. labels : role → column name. advice : role → what its cells must be.
    source : the file's name. broken : rows that could not be parsed; the columns lack them.
    in_order : returns the same rows unmerged, in the order of the file.
    """

    winner: Codes
    loser: Codes
    user: Codes | None
    tie: NDArray[np.int8]
    count: FloatArray
    margin: FloatArray | None
    items: "NameCodes"
    users: "NameCodes"
    value_at: Callable[[str, int], object]
    first: NDArray[np.int8] | None = None  # +1 the winner was shown first, −1 the loser, 0 unknown
    time: FloatArray | None = None  # days
    covariates: FloatArray | None = None
    covariate_names: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    first_row: int = 0
    source: str = ""
    broken: tuple[BrokenRow, ...] = ()
    advice: Mapping[str, str] = field(default_factory=dict)
    in_order: "Callable[[], CodedRows] | None" = None

    def number(self, row: int) -> int:
        """The number of a row as the caller counts: broken rows count too."""
        number = row + self.first_row
        for broken in self.broken:
            number += broken.number <= number
        return number


class NameCodes(NamedTuple):
    """The final code of each name that was found, and all names by code.

    The first `n_known` names are the universe; a code beyond them is a name outside it.
    """

    code: IntArray
    names: Names
    n_known: int


def code_columns(
    *, items: Iterable[Any] | None, users: Iterable[Any] | None, covariates: Any, **columns: Any
) -> CodedRows:
    """Encode columns: winner, loser and any of user, tie, count, margin, first and time."""
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
    user, user_book = None, NameCodes(np.empty(0, dtype=np.intp), (), 0)
    if "user" in given:
        (user,), user_book = _encode(given, ("user",), users, "users")
    elif users is not None:
        raise DataError("users names the users, but no user column says who made each comparison")
    numbers, covariate_names = _read_covariates(covariates, n_rows)
    return CodedRows(
        winner=winner,
        loser=loser,
        user=user,
        tie=_read_ties(given["tie"]) if "tie" in given else np.zeros(n_rows, dtype=np.int8),
        count=_read_counts(given["count"]) if "count" in given else np.ones(n_rows),
        margin=read_numbers(given["margin"]) if "margin" in given else None,
        first=_read_first(given["first"]) if "first" in given else None,
        time=read_times(given["time"]) if "time" in given else None,
        covariates=numbers,
        covariate_names=covariate_names,
        items=item_book,
        users=user_book,
        value_at=lambda role, row: python_scalar(given[role][row]),
    )


def _encode(
    given: dict[str, Any], roles: Sequence[str], known: Iterable[Any] | None, column: str
) -> tuple[list[IntArray], NameCodes]:
    encoder = Encoder()
    codes = [encoder.encode(given[role], role) for role in roles]
    book = settle(encoder.names, known, column)
    return [book.code[c] for c in codes], book


def settle(found: Names, known: Iterable[Any] | None, column: str) -> NameCodes:
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
    return NameCodes(code, encoder.names, len(names))


def code_strictly(
    values: Sequence[Any] | NDArray[Any],
    known: Iterable[Any] | None,
    column: str,
    where: Callable[[int], str],
) -> tuple[IntArray, Names]:
    """Return final codes and names; the first value that is empty or unknown is an error."""
    (codes,), book = _encode({column: values}, (column,), known, column)
    for row in np.flatnonzero((codes == MISSING) | (codes >= book.n_known))[:1]:
        name = python_scalar(values[row])
        if codes[row] == MISSING:
            raise DataError(f"{where(row)} is empty ({name!r}): it must hold a name")
        raise DataError(
            f"{where(row)} names {name!r}{closest(name, book.names[: book.n_known])}, which is not "
            f"one of the {book.n_known} {column}: correct the name or add it to {column}"
        )
    return codes, book.names


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
    """Return +1, −1 or 0 for each row, UNREADABLE for any other value."""
    sides = np.nan_to_num(read_numbers(values), nan=UNREADABLE, posinf=UNREADABLE)
    return np.where(np.isin(sides, (-1, 0, 1)), sides, UNREADABLE).astype(np.int8)


def read_times(values: Sequence[Any] | NDArray[Any]) -> FloatArray:
    """Return dates as days since 1970, numbers as they are, NaN where a value is neither."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        return (values - np.datetime64(0, "D")) / np.timedelta64(1, "D")
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


def _read_covariates(covariates: Any, n_rows: int) -> tuple[FloatArray | None, tuple[str, ...]]:
    """Return covariates as (m, q), odd in the pair (the winner's minus the loser's), and names."""
    if covariates is None:
        return None, ()
    named = isinstance(covariates, Mapping)
    values = np.asarray(list(covariates.values()) if named else covariates, dtype=object)
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"covariates hold something that is no number ({error})") from None
    numbers = numbers.T if named else numbers
    numbers = numbers[:, None] if numbers.ndim == 1 else numbers
    if numbers.ndim != 2 or len(numbers) != n_rows:
        raise DataError(
            f"covariates have shape {numbers.shape} for {n_rows} comparisons: they must have one "
            "row per comparison and one column per covariate (or be a dictionary of columns)"
        )
    names = covariates if named else (f"x{k + 1}" for k in range(numbers.shape[1]))
    return numbers, tuple(map(str, names))


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


_SHOWN = 5  # bad rows that a message spells out
MOST = 2**53 - 1  # comparisons that can be counted: floating point tells all smaller ones apart


class Fault(NamedTuple):
    """Rows that fail one check, the column, and which check or what the cell must be."""

    rows: IntArray
    role: str
    check: str


def build(rows: CodedRows, *, skip_bad: bool = False) -> tuple[Table, Names, Names]:
    """Check every row, merge equal rows into one with a count; return them, items and users.

    All bad rows are collected before anything is said. They raise a DataError, or are left out
    with a DataWarning when `skip_bad` is true, together with names that only they mentioned.
    """
    if not len(rows.winner) and not rows.broken:
        raise DataError(_where(rows) + _NO_ROWS)
    keep: slice | BoolArray = slice(None)
    problems = _find_problems(rows)
    if problems and rows.in_order is not None:
        rows = replace(rows.in_order(), broken=rows.broken)
        problems = _find_problems(rows)
    if problems or rows.broken:
        message = _where(rows) + _message(problems, rows)
        if not skip_bad:
            raise DataError(message)
        keep = np.ones(len(rows.winner), dtype=bool)
        for problem in problems:
            keep[problem.rows] = False
        if not keep.any():
            raise DataError(f"no row is usable. {message}")
        warn(f"{message}\nThey were left out.", DataWarning)
    columns: dict[str, Any] = {
        name: None if (values := getattr(rows, name)) is None else values[keep]
        for name in ("winner", "loser", "user", "margin", "first", "time", "covariates")
    }
    tie, count = rows.tie[keep], rows.count[keep].astype(np.intp)
    is_bad = tie == BOTH_BAD
    table = Table(
        count=count, tie=tie.astype(bool), both_bad=is_bad if is_bad.any() else None, **columns
    )
    if table.count.sum(dtype=np.float64) > MOST:
        raise DataError(
            f"{_where(rows)}the counts add up to {table.count.sum(dtype=np.float64):.3g}: they may "
            f"be {MOST} together at most; is the column of counts something else, such as an id?"
        )
    table = table.merge()
    return _forget_unused(table, rows) if problems else (table, rows.items.names, rows.users.names)


def _forget_unused(table: Table, rows: CodedRows) -> tuple[Table, Names, Names]:
    """Renumber the items and users so that only those that occur are left."""
    used, code = np.unique(np.concatenate([table.winner, table.loser]), return_inverse=True)
    winner, loser = np.split(code, 2)
    items = tuple(rows.items.names[i] for i in used)
    if table.user is None:
        return replace(table, winner=winner, loser=loser), items, ()
    active, user = np.unique(table.user, return_inverse=True)
    users = tuple(rows.users.names[u] for u in active)
    return replace(table, winner=winner, loser=loser, user=user), items, users


def _find_problems(rows: CodedRows) -> list[Fault]:
    """Return every check that fails, with the rows that fail it."""
    count = rows.count
    with np.errstate(invalid="ignore"):
        whole = (count >= 1) & (count <= MOST) & (count == np.floor(count))
        huge = (count > MOST) & (count < np.inf)
    winner, loser, n_items = rows.winner, rows.loser, rows.items.n_known
    checks = [
        (winner == MISSING, "winner", "empty"),
        (loser == MISSING, "loser", "empty"),
        (winner >= n_items, "winner", "unknown"),
        (loser >= n_items, "loser", "unknown"),
        ((winner == loser) & (winner != MISSING), "winner", "itself"),
        (rows.tie < 0, "tie", _TIE),
        (~whole & ~huge, "count", _COUNT),
        (huge, "count", _TOO_MANY),
    ]
    if rows.user is not None:
        checks.append((rows.user == MISSING, "user", "empty"))
        checks.append((rows.user >= rows.users.n_known, "user", "unknown"))
    if rows.margin is not None:
        right = np.isfinite(rows.margin) & (rows.margin >= 0)
        right &= (rows.tie < 1) | (rows.margin == 0)
        checks.append((~right, "margin", _MARGIN))
    if rows.first is not None:
        checks.append((rows.first == UNREADABLE, "first", _FIRST))
    if rows.time is not None:
        checks.append((~np.isfinite(rows.time), "time", _TIME))
    if rows.covariates is not None:
        checks.append((~np.isfinite(rows.covariates).all(axis=1), "covariates", "number"))
    return [Fault(np.flatnonzero(bad), role, check) for bad, role, check in checks if bad.any()]


_NO_ROWS = "there are no comparisons: the data are empty; every row must hold a winner and a loser"
_NEEDS = {
    "winner": "every comparison needs a winner and a loser; drop the row or mark a tie",
    "loser": "every comparison needs a winner and a loser; drop the row or mark a tie",
    "user": "where users are given, every comparison needs one; fill it in or drop the row",
}
_TIE = "it must be true or false (yes/no, 1/0), or 'both bad'"
_COUNT = "it must be a whole number of at least 1; drop rows that never happened"
_TOO_MANY = f"it must be at most {MOST}; is it an id or a row number?"
_FIRST = "it must be +1 (the winner was shown first), -1 (the loser was) or 0 (not known)"
_TIME = "it must be a date such as 2024-05-31 or a number of days; drop the row or fill it in"
_MARGIN = "it must be finite, not negative (else swap winner and loser), and 0 in a tie"


def _sentence(rows: CodedRows, fault: Fault, row: int) -> str:
    """Return what is wrong with a row, and what to do about it."""
    role, number = fault.role, rows.number(row)
    cell = f"column {rows.labels.get(role, role)!r} row {number}"
    if fault.check == "empty":
        return f"{cell} is empty: {_NEEDS[role]}"
    if fault.check == "itself":
        return (
            f"row {number} compares {rows.items.names[rows.winner[row]]!r} with itself: a "
            "comparison needs two different items; drop the row or correct a name"
        )
    if fault.check == "number":
        return (
            f"the covariates of row {number} are not all numbers: fill them in, or drop the row or "
            "the covariate"
        )
    value = rows.value_at(role, row)
    if fault.check == "unknown":
        kind, (_, names, n) = ("users", rows.users) if role == "user" else ("items", rows.items)
        return (
            f"{cell} names {value!r}{closest(value, names[:n])}, which is not one of the {n} "
            f"{kind}: correct the name or add it to {kind}"
        )
    return f"{cell} is {value!r}: {rows.advice.get(role, fault.check)}"


def _where(rows: CodedRows) -> str:
    return f"{rows.source}: " if rows.source else ""


def _message(problems: list[Fault], rows: CodedRows) -> str:
    unusable = [problem.rows for problem in problems]
    n_bad = len(rows.broken) + len(np.unique(np.concatenate([*unusable, np.empty(0)])))
    found = [(broken.number, broken.why) for broken in rows.broken[:_SHOWN]]
    for problem in problems:
        some = problem.rows[:_SHOWN].tolist()
        found += [(rows.number(row), _sentence(rows, problem, row)) for row in some]
    lines = [sentence for _, sentence in sorted(found, key=lambda entry: entry[0])[:_SHOWN]]
    total = len(rows.broken) + sum(map(len, unusable))
    if total == 1:
        return f"{lines[0]} (rows are counted from {rows.first_row})"
    lines += [f"… and {total - len(lines)} more"] if total > len(lines) else []
    return (
        f"{n_bad} of {len(rows.winner) + len(rows.broken)} rows cannot be used (rows are counted "
        f"from {rows.first_row}):\n  " + "\n  ".join(lines)
    )
