"""Hold out comparisons for testing: whole answers, never a part of a ranking."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from penchant.errors import DataError
from penchant.numerics.random import ContentKeys, Incidence, KeyArray, content_keys, hashed
from penchant.numerics.types import IntArray


def hold_out(
    count: IntArray, user: IntArray | None, fraction: float, by: str, rng: np.random.Generator
) -> IntArray:
    """Return how many of each row's comparisons are held out."""
    if not 0 < fraction < 1:
        raise DataError(f"fraction is {fraction}: it must lie strictly between 0 and 1")
    if by not in ("comparison", "user"):
        raise DataError(f"by is {by!r}: it must be 'comparison' or 'user'")
    if by == "user":
        if user is None:
            raise DataError("by='user' needs users, and these comparisons do not tell them apart")
        active = np.unique(user)
        people = rng.choice(active, _part(len(active), fraction, "users"), replace=False)
        return np.where(np.isin(user, people), count, 0)
    # single comparisons without replacement: a row that occurred five times is like five rows
    total = int(count.sum())
    held_out = _part(total, fraction, "comparisons")
    if total == len(count):
        drawn = np.zeros(total, dtype=np.intp)
        drawn[rng.choice(total, held_out, replace=False)] = 1
        return drawn
    return rng.multivariate_hypergeometric(count, held_out, method="marginals").astype(np.intp)


def _part(total: int, fraction: float, what: str) -> int:
    part = round(fraction * total)
    if not 0 < part < total:
        raise DataError(
            f"a fraction of {fraction} of {total} {what} leaves one side empty: both sides need "
            f"at least one; change the fraction or bring more {what}"
        )
    return part


@dataclass(frozen=True, eq=False)
class WholeAnswers:
    """Whole answers, single pairs first and then rankings, and the items of each.

    answer, item : (N,) each item of each answer. part : (N,) a key of the item's place in it.
    count, user : (r,) of each answer; user is 0 where there is no user column.
    """

    answer: IntArray
    item: IntArray
    part: KeyArray
    count: IntArray
    user: IntArray

    @classmethod
    def of(cls, data: Any) -> "WholeAnswers":
        """Return all answers of some `Comparisons`."""
        single, orders = data.single_pairs(), data.rankings
        n = len(single)
        odd = [] if single.first is None else [single.first]
        odd += [] if single.covariates is None else list(single.covariates.T)
        even = [v for v in (single.margin, single.time, single.both_bad) if v is not None]
        sides = [
            hashed(np.where(single.tie, 2, place), *(sign * v for v in odd), *even)
            for place, sign in enumerate((1, -1))
        ]
        count, user = single.count, single.user
        answer, item, part = np.tile(np.arange(n), 2), [single.winner, single.loser], sides
        if orders is not None:
            which = np.repeat(np.arange(len(orders)), orders.size)
            answer, item = np.append(answer, n + which), [*item, orders.item]
            part = [*part, hashed(np.full(len(which), 3), orders.place, orders.tied[which])]
            count = np.concatenate([count, orders.count])
            if user is not None and orders.user is not None:
                user = np.concatenate([user, orders.user])
        user = np.zeros(len(count), dtype=np.intp) if user is None else user
        return cls(answer, np.concatenate(item), np.concatenate(part), count, user)

    def keys(self, n_items: int, n_users: int) -> ContentKeys:
        """Keys of items, users and answers that depend on the answers, not on names or order."""
        held = Incidence(self.answer, self.item, self.part)
        return content_keys(held, self.user, self.count, n_items, max(n_users, 1))


def folds(said: WholeAnswers, keys: ContentKeys, n_folds: int) -> list[IntArray]:
    """Return, for each fold, how many occurrences of each answer it holds out.

    Each user's answers are spread evenly, in an order that depends on the answers only.
    """
    order = np.lexsort((keys.answer, keys.user[said.user]))
    last = np.empty(len(order), dtype=np.intp)
    last[order] = np.cumsum(said.count[order])
    first = last - said.count
    return [(last - k - 1) // n_folds - (first - k - 1) // n_folds for k in range(n_folds)]
