import numpy as np
import pytest

from penchant.data.table import Table
from penchant.errors import DataError


def test_more_possible_rows_than_integers_are_refused():
    """10⁷ items squared times 10⁵ margins would not fit a 64-bit number."""
    n = 100_000
    ones = np.ones(n, dtype=np.intp)
    table = Table(
        winner=np.full(n, 10_000_000),
        loser=np.zeros(n, dtype=np.intp),
        count=ones,
        user=None,
        tie=np.zeros(n, dtype=bool),
        margin=np.arange(n, dtype=float),
    )
    with pytest.raises(DataError, match="round the margins"):
        table.merge()


def test_merging_is_idempotent():
    rng = np.random.default_rng(0)
    winner = rng.integers(5, size=100)
    table = Table(
        winner=winner,
        loser=(winner + rng.integers(1, 5, size=100)) % 5,
        count=rng.integers(1, 4, size=100),
        user=rng.integers(3, size=100),
        tie=rng.random(100) < 0.5,
        margin=None,
    ).merge()
    again = table.merge()
    for name, values in vars(table).items():
        np.testing.assert_array_equal(vars(again)[name], values)
