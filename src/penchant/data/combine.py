"""Two sets of comparisons as one, and one without the other."""

from dataclasses import replace

import numpy as np

from penchant.data.comparison_columns import ComparisonColumns
from penchant.data.describe import sentence
from penchant.data.names import Encoder
from penchant.data.rankings import Rankings
from penchant.data.table import Table
from penchant.errors import DataError
from penchant.numerics.types import IntArray


def found_again(data: ComparisonColumns, answers: ComparisonColumns) -> IntArray:
    """Return how often each row of `data` occurs in `answers`, all of which must be there."""
    items, users = Encoder(data.items), Encoder(data.users)
    theirs = recoded(data, answers, items, users)[0].merge()
    at = data._table().locate(theirs)
    there = np.where(at < 0, 0, data.count[at] if len(data) else 0)
    for row in np.flatnonzero(theirs.count > there)[:1]:
        named = data.from_table(theirs, items.names, users.names, data.covariate_names)
        raise DataError(
            f"{sentence(named, row)} is to be taken back {theirs.count[row]} times, but occurred "
            f"{there[row]} times: take back only what was said, by the same user and with the same "
            "tie, margin and covariates"
        )
    again = np.zeros_like(data.count)
    again[at] = theirs.count
    return again


def found_rankings(data: ComparisonColumns, answers: ComparisonColumns) -> IntArray:
    """Return how often each ranking of `data` occurs in `answers`, all of which must be there."""
    mine, (_, theirs) = data.rankings, recoded(data, answers, *_encoders(data))
    again = np.zeros(0 if mine is None else len(mine), dtype=np.intp)
    if theirs is None:
        return again
    theirs = theirs.merge()
    at = np.full(len(theirs), -1) if mine is None else mine.locate(theirs)
    there = np.zeros(len(theirs), dtype=np.intp)
    if mine is not None:
        there = np.where(at < 0, 0, mine.count[at])
    for row in np.flatnonzero(theirs.count > there)[:1]:
        where = slice(theirs.start[row], theirs.start[row + 1])
        names = [answers.items[i] for i in _inverse(data, answers, theirs.item[where])]
        raise DataError(
            f"the ranking or choice of {names!r} is to be taken back {theirs.count[row]} times, "
            f"but occurred {there[row]} times: take back only what was said, whole and by the same "
            "user"
        )
    again[at] = theirs.count
    return again


def _inverse(data: ComparisonColumns, answers: ComparisonColumns, codes: IntArray) -> list[int]:
    """Positions in `answers` of items that have been recoded to those of `data`."""
    code = _encoders(data)[0].encode(answers.items, "items").tolist()
    return [code.index(c) for c in codes.tolist()]


def _encoders(data: ComparisonColumns) -> tuple[Encoder, Encoder]:
    return Encoder(data.items), Encoder(data.users)


def recoded(
    data: ComparisonColumns, others: ComparisonColumns, items: Encoder, users: Encoder
) -> tuple[Table, Rankings | None]:
    """The rows and rankings of `others` with the codes that the encoders give; new names get new
    ones."""
    if data.covariate_names != others.covariate_names:
        raise DataError(
            f"covariates are {data.covariate_names} here and {others.covariate_names} there: both "
            "sets of comparisons must have the same"
        )
    item_code = items.encode(others.items, "items")
    user_code = users.encode(others.users, "users")
    table = others._table()
    rows = replace(
        table,
        winner=item_code[table.winner],
        loser=item_code[table.loser],
        user=None if table.user is None else user_code[table.user],
    )
    rankings = others.rankings
    return rows, None if rankings is None else rankings.recoded(item_code, user_code)
