"""The one checker: every row is looked at once, every complaint is made at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penchant.data.coding import BOTH_BAD, MISSING, UNREADABLE, CodedRows
from penchant.data.names import Names, closest
from penchant.data.table import Table
from penchant.errors import DataError, DataWarning, warn
from penchant.numerics.types import BoolArray, IntArray

_SHOWN = 5  # bad rows that a message spells out
MOST = 2**53 - 1  # comparisons that can be counted: floating point tells all smaller ones apart


class Fault(NamedTuple):
    """Rows that fail one check, and the sentence about each."""

    rows: IntArray
    say: Callable[[int], str]


def build(rows: CodedRows, *, skip_bad: bool = False) -> tuple[Table, Names, Names]:
    """Check every row, merge equal rows into one with a count; return them, items and users.

    All bad rows are collected before anything is said. They raise a DataError, or are left out
    with a DataWarning when `skip_bad` is true, together with names that only they mentioned.
    """
    if not len(rows.winner) and not rows.broken:
        raise DataError(_where(rows) + _EMPTY)
    keep: slice | BoolArray = slice(None)
    problems = find_problems(rows)
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
    told: Any = rows  # codes may be narrow here, and are wide once rows are merged
    table = Table(
        told.winner[keep],
        told.loser[keep],
        rows.count[keep].astype(np.intp),
        None if rows.user is None else told.user[keep],
        rows.tie[keep].astype(bool),
        None if rows.margin is None else rows.margin[keep],
        None if rows.first is None else told.first[keep],
        None if rows.time is None else rows.time[keep],
        None if rows.covariates is None else rows.covariates[keep],
        _both_bad(rows.tie[keep]),
    )
    if table.count.sum(dtype=np.float64) > MOST:
        raise DataError(
            f"{_where(rows)}the counts add up to {table.count.sum(dtype=np.float64):.3g}: they may "
            f"be {MOST} together at most; is the column of counts something else, such as an id?"
        )
    table = table.merge()
    return _forget_unused(table, rows) if problems else (table, rows.items, rows.users)


def _both_bad(tie: NDArray[np.int8]) -> BoolArray | None:
    """Where both were found bad; None where nobody says so."""
    bad: BoolArray = tie == BOTH_BAD
    return bad if bad.any() else None


def _forget_unused(table: Table, rows: CodedRows) -> tuple[Table, Names, Names]:
    """Renumber the items and users so that only those that occur are left."""
    used, code = np.unique(np.concatenate([table.winner, table.loser]), return_inverse=True)
    winner, loser = np.split(code, 2)
    items = tuple(rows.items[i] for i in used)
    if table.user is None:
        return replace(table, winner=winner, loser=loser), items, ()
    active, user = np.unique(table.user, return_inverse=True)
    users = tuple(rows.users[u] for u in active)
    return replace(table, winner=winner, loser=loser, user=user), items, users


def find_problems(rows: CodedRows) -> list[Fault]:
    """Return every check that fails, with the rows that fail it."""
    count = rows.count
    with np.errstate(invalid="ignore"):
        whole = (count >= 1) & (count <= MOST) & (count == np.floor(count))
        huge = (count > MOST) & (count < np.inf)
    checks = [
        (rows.winner == MISSING, _empty(rows, "winner", _NEEDS_BOTH)),
        (rows.loser == MISSING, _empty(rows, "loser", _NEEDS_BOTH)),
        (rows.winner >= rows.n_items, _unknown(rows, "winner", "items", rows.n_items)),
        (rows.loser >= rows.n_items, _unknown(rows, "loser", "items", rows.n_items)),
        ((rows.winner == rows.loser) & (rows.winner != MISSING), _itself(rows)),
        (rows.tie < 0, _wrong(rows, "tie", _TIE)),
        (~whole & ~huge, _wrong(rows, "count", _COUNT)),
        (huge, _wrong(rows, "count", _TOO_MANY)),
    ]
    if rows.user is not None:
        checks.append((rows.user == MISSING, _empty(rows, "user", _NEEDS_USER)))
        checks.append((rows.user >= rows.n_users, _unknown(rows, "user", "users", rows.n_users)))
    if rows.margin is not None:
        right = np.isfinite(rows.margin) & (rows.margin >= 0)
        right &= (rows.tie < 1) | (rows.margin == 0)
        checks.append((~right, _wrong(rows, "margin", _MARGIN)))
    if rows.first is not None:
        checks.append((rows.first == UNREADABLE, _wrong(rows, "first", _FIRST)))
    if rows.time is not None:
        checks.append((~np.isfinite(rows.time), _wrong(rows, "time", _TIME)))
    if rows.covariates is not None:
        finite = np.isfinite(rows.covariates).all(axis=1)
        checks.append((~finite, _covariate(rows)))
    return [Fault(np.flatnonzero(bad), say) for bad, say in checks if bad.any()]


_EMPTY = "there are no comparisons: the data are empty; every row must hold a winner and a loser"
_NEEDS_BOTH = "every comparison needs a winner and a loser; drop the row or mark a tie"
_NEEDS_USER = "where users are given, every comparison needs one; fill it in or drop the row"
_TIE = "it must be true or false (yes/no, 1/0), or 'both bad'"
_COUNT = "it must be a whole number of at least 1; drop rows that never happened"
_TOO_MANY = f"it must be at most {MOST}; is it an id or a row number?"
_FIRST = "it must be +1 (the winner was shown first), -1 (the loser was) or 0 (not known)"
_TIME = "it must be a date such as 2024-05-31 or a number of days; drop the row or fill it in"
_MARGIN = "it must be finite, not negative (else swap winner and loser), and 0 in a tie"


def _empty(rows: CodedRows, role: str, advice: str) -> Callable[[int], str]:
    return lambda row: f"column {rows.label(role)} row {rows.number(row)} is empty: {advice}"


def _wrong(rows: CodedRows, role: str, advice: str) -> Callable[[int], str]:
    return lambda row: (
        f"column {rows.label(role)} row {rows.number(row)} is {rows.value_at(role, row)!r}: "
        f"{rows.advice.get(role, advice)}"
    )


def _covariate(rows: CodedRows) -> Callable[[int], str]:
    return lambda row: (
        f"the covariates of row {rows.number(row)} are not all numbers: fill them in, or drop the "
        "row or the covariate"
    )


def _itself(rows: CodedRows) -> Callable[[int], str]:
    return lambda row: (
        f"row {rows.number(row)} compares {rows.items[rows.winner[row]]!r} with itself: a "
        "comparison needs two different items; drop the row or correct a name"
    )


def _unknown(rows: CodedRows, role: str, kind: str, n_known: int) -> Callable[[int], str]:
    def say(row: int) -> str:
        name = rows.value_at(role, row)
        known = (rows.items if kind == "items" else rows.users)[:n_known]
        return (
            f"column {rows.label(role)} row {rows.number(row)} names {name!r}"
            f"{closest(name, known)}, which is not one of the {n_known} {kind}: correct the name "
            f"or add it to {kind}"
        )

    return say


def _where(rows: CodedRows) -> str:
    return f"{rows.source}: " if rows.source else ""


def _message(problems: list[Fault], rows: CodedRows) -> str:
    unusable = [problem.rows for problem in problems]
    n_bad = len(rows.broken) + len(np.unique(np.concatenate([*unusable, np.empty(0)])))
    found = [(broken.number, broken.why) for broken in rows.broken[:_SHOWN]]
    for problem in problems:
        found += [(rows.number(row), problem.say(row)) for row in problem.rows[:_SHOWN].tolist()]
    lines = [sentence for _, sentence in sorted(found, key=lambda entry: entry[0])[:_SHOWN]]
    total = len(rows.broken) + sum(map(len, unusable))
    if total == 1:
        return f"{lines[0]} (rows are counted from {rows.first_row})"
    lines += [f"… and {total - len(lines)} more"] if total > len(lines) else []
    return (
        f"{n_bad} of {len(rows.winner) + len(rows.broken)} rows cannot be used (rows are counted "
        f"from {rows.first_row}):\n  " + "\n  ".join(lines)
    )
