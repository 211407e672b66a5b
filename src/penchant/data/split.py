"""Which comparisons are held out for testing."""

import numpy as np

from penchant.errors import DataError
from penchant.numerics.types import BoolArray, IntArray


def hold_out(
    count: IntArray, user: IntArray | None, fraction: float, by: str, rng: np.random.Generator
) -> IntArray:
    """Return how many of each row's comparisons are held out."""
    if not 0 < fraction < 1:
        raise DataError(f"fraction is {fraction}: it must lie strictly between 0 and 1")
    if by == "comparison":
        return _draw_comparisons(count, fraction, rng)
    if by != "user":
        raise DataError(f"by is {by!r}: it must be 'comparison' or 'user'")
    if user is None:
        raise DataError("by='user' needs users, and these comparisons do not tell them apart")
    return np.where(_draw_users(user, fraction, rng), count, 0)


def _draw_comparisons(count: IntArray, fraction: float, rng: np.random.Generator) -> IntArray:
    """Draw single comparisons without replacement, so that the rows' shares are multivariate
    hypergeometric: a row that occurred five times behaves like five rows."""
    total = int(count.sum())
    held_out = _part(total, fraction, "comparisons")
    if total == len(count):
        drawn = np.zeros(total, dtype=np.intp)
        drawn[rng.choice(total, held_out, replace=False)] = 1
        return drawn
    return rng.multivariate_hypergeometric(count, held_out, method="marginals").astype(np.intp)


def _draw_users(user: IntArray, fraction: float, rng: np.random.Generator) -> BoolArray:
    """Return which rows belong to the held-out users, drawn among those who compared anything."""
    active = np.unique(user)
    held_out = rng.choice(active, _part(len(active), fraction, "users"), replace=False)
    return np.isin(user, held_out)


def _part(total: int, fraction: float, what: str) -> int:
    part = round(fraction * total)
    if not 0 < part < total:
        raise DataError(
            f"a fraction of {fraction} of {total} {what} leaves one side empty: both sides need "
            f"at least one; change the fraction or bring more {what}"
        )
    return part
