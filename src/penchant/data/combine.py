"""Two sets of comparisons as one, and one without the other."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from penchant.data.describe import sentence
from penchant.data.names import Encoder, Names
from penchant.data.table import Table
from penchant.errors import DataError
from penchant.numerics.types import IntArray

if TYPE_CHECKING:
    from penchant.data.comparisons import Comparisons


def joined(data: "Comparisons", more: "Comparisons") -> tuple[Table, Names, Names]:
    """Return the rows of both, items and users; names that are new go to the end."""
    items, users = Encoder(data.items), Encoder(data.users)
    theirs = _recoded(data, more, items, users)
    return data._table().join(theirs).merge(), items.names, users.names


def found_again(data: "Comparisons", answers: "Comparisons") -> IntArray:
    """Return how often each row of `data` occurs in `answers`, all of which must be there."""
    items, users = Encoder(data.items), Encoder(data.users)
    theirs = _recoded(data, answers, items, users).merge()
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


def _recoded(data: "Comparisons", others: "Comparisons", items: Encoder, users: Encoder) -> Table:
    """The rows of `others` with the codes that the encoders give; new names get new ones."""
    if data.covariate_names != others.covariate_names:
        raise DataError(
            f"covariates are {data.covariate_names} here and {others.covariate_names} there: both "
            "sets of comparisons must have the same"
        )
    item_code = items.encode(others.items, "items")
    user_code = users.encode(others.users, "users")
    table = others._table()
    return replace(
        table,
        winner=item_code[table.winner],
        loser=item_code[table.loser],
        user=None if table.user is None else user_code[table.user],
    )
