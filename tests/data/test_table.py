from collections import Counter

import numpy as np
import pytest

from penchant.data import Table


def table_of(count, winner=0, loser=1, user=None, margin=None, **told):
    """Rows of one pair, or of those given."""
    n = len(count)
    winner, loser = np.broadcast_to(winner, n).astype(np.intp), np.broadcast_to(loser, n)
    tie = told.pop("tie", np.zeros(n, dtype=bool))
    return Table(winner, loser.astype(np.intp), count, user, tie, margin, **told)


def test_more_possible_rows_than_integers():
    """10⁷ items squared times 10⁵ margins would not fit a 64-bit number: they are packed."""
    n = 100_000
    margin = np.sqrt(np.arange(n, dtype=float))[::-1]
    table = table_of(np.ones(n, dtype=np.intp), winner=2**40, loser=0, margin=margin).merge()
    assert np.array_equal(table.margin, np.sqrt(np.arange(n)))
    assert (table.winner == 2**40).all()
    assert (table.count == 1).all()


@pytest.mark.parametrize("n_items", [4, 3_000])
@pytest.mark.parametrize("scale", [1.0, 0.37])
@pytest.mark.parametrize("once", [True, False])
def test_merging_is_what_sorting_and_counting_by_hand_gives(n_items, scale, once):
    rng = np.random.default_rng(1)
    m = 400
    winner = rng.integers(n_items, size=m)
    table = table_of(
        count=np.ones(m, dtype=np.intp) if once else rng.integers(1, 5, size=m),
        winner=winner,
        loser=(winner + rng.integers(1, 3, size=m)) % n_items,
        user=rng.integers(2, size=m),
        first=rng.integers(-1, 2, size=m),
        time=10_000.0 + scale * rng.integers(3, size=m),
        covariates=scale * rng.integers(-1, 2, size=(m, 2)),
    )
    by_hand = Counter()
    for row in range(m):
        said = [table.user[row], table.winner[row], table.loser[row], table.first[row]]
        by_hand[(*said, table.time[row], *table.covariates[row])] += table.count[row]
    found = table.merge()
    columns = [found.user, found.winner, found.loser, found.first, found.time, *found.covariates.T]
    assert list(zip(*columns, strict=True)) == sorted(by_hand)
    assert found.count.tolist() == [by_hand[said] for said in sorted(by_hand)]
    again = found.merge()
    assert all(np.array_equal(vars(again)[name], vars(found)[name]) for name in vars(found))


def test_counts_beyond_floating_point_add_up_exactly():
    most = 2**53 - 1
    assert table_of(np.array([most, most, 2])).merge().count.tolist() == [2 * most + 2]


@pytest.mark.parametrize(
    "values",
    [
        np.array([0.5]),
        np.array([0.1, 0.1 + 1e-17, np.nextafter(0.1, 1.0), 0.7]),
        np.array([-1e300, 0.5, 1e300]),
        np.array([5e-324, 1.5e-320, 0.25e-310]),
        np.append(np.linspace(0.0, 1e-9, 500), 1e6 + 0.5),
        np.random.default_rng(0).standard_cauchy(3_000),
    ],
    ids=["one", "neighbours", "wide", "tiny", "crowded", "heavy tails"],
)
def test_numbers_of_any_spread_are_told_apart(values):
    rows = np.random.default_rng(1).integers(len(values), size=2_000)
    distinct, count = np.unique(values[rows], return_counts=True)
    found = table_of(np.ones(2_000, dtype=np.intp), time=values[rows]).merge()
    np.testing.assert_array_equal(found.time, distinct)
    np.testing.assert_array_equal(found.count, count)


def test_narrow_codes_are_wide_once_merged():
    """A code of 8 bits holds −128 … 127, whose difference does not fit 8 bits."""
    one, first = np.ones(2, dtype=np.int32), np.array([127, -128], dtype=np.int8)
    table = Table(3 * one, one, one, None, one == 0, None, first).merge()
    assert table.first.tolist() == [-128, 127]
    assert {table.winner.dtype, table.loser.dtype, table.first.dtype} == {np.dtype(np.intp)}
