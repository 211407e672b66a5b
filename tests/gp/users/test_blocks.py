"""Blocks of users: every comparison lands where it belongs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant.gp.users.blocks import arrange


def random_votes(seed, n_users=9, n_items=7, m=40):
    rng = np.random.default_rng(seed)
    user = rng.integers(n_users, size=m)
    winner = rng.integers(n_items, size=m)
    loser = (winner + 1 + rng.integers(n_items - 1, size=m)) % n_items
    return user, winner, loser


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60))
def test_laplacian_and_adjoint_equal_the_sums_over_comparisons(seed, m):
    user, winner, loser = random_votes(seed, m=m)
    rng = np.random.default_rng(seed)
    weight, shift = rng.random(m), rng.standard_normal(m)
    L, b = np.zeros((9, 7, 7)), np.zeros((9, 7))
    for u, w, v, x, y in zip(user, winner, loser, weight, shift, strict=True):
        difference = np.eye(7)[w] - np.eye(7)[v]
        L[u] += x * np.outer(difference, difference)
        b[u] += y * difference
    seen = np.zeros(9, dtype=int)
    for block in arrange(user, winner, loser, 7):
        for row, (u, items) in enumerate(zip(block.users, block.items, strict=True)):
            seen[u] += 1
            np.testing.assert_allclose(block.laplacian(weight)[row], L[u][np.ix_(items, items)])
            np.testing.assert_allclose(block.adjoint(shift)[row], b[u, items], atol=1e-14)
            others = np.setdiff1d(np.arange(7), items)
            assert not L[u][others].any()
    np.testing.assert_array_equal(seen, np.isin(np.arange(9), user))


def test_every_comparison_is_in_one_block():
    user, winner, loser = random_votes(3)
    blocks = arrange(user, winner, loser, 7)
    np.testing.assert_array_equal(
        np.sort(np.concatenate([block.edges for block in blocks])), np.arange(len(user))
    )
    for block in blocks:
        np.testing.assert_array_equal(block.users[block.row], user[block.edges])
        np.testing.assert_array_equal(block.items[block.row, block.winner], winner[block.edges])
        np.testing.assert_array_equal(block.items[block.row, block.loser], loser[block.edges])


def test_small_blocks_hold_the_same_users():
    votes = random_votes(4)
    whole = {tuple(row) for block in arrange(*votes, 7) for row in block.items}
    parts = arrange(*votes, 7, 2 * 7**2)
    assert max(len(block.users) for block in parts) == 2
    assert {tuple(row) for block in parts for row in block.items} == whole


def test_nobody_compared_anything():
    nothing = np.zeros(0, dtype=np.intp)
    assert arrange(nothing, nothing, nothing, 3) == ()


@pytest.mark.parametrize("n_weights", [1, 3])
@pytest.mark.parametrize("kind", ["same items", "few of many items", "most items"])
def test_weighted_sum_and_pick(rng, kind, n_weights):
    n = 20 if kind == "few of many items" else 6
    if kind == "same items":
        user, winner, loser = np.repeat(np.arange(4), 2), np.tile([0, 2], 4), np.tile([2, 5], 4)
    else:
        user, winner, loser = random_votes(5, n_items=6, m=25)
    block = max(arrange(user, winner, loser, n), key=lambda b: len(b.users))
    assert block.same_items == (kind == "same items")
    k, p = block.items.shape
    weights, stack = rng.standard_normal((k, n_weights)), rng.standard_normal((k, p, p))
    matrices = rng.standard_normal((n_weights, n, n))
    total = np.zeros((n_weights, n, n))
    for row, items in enumerate(block.items):
        cells = np.ix_(items, items)
        for q in range(n_weights):
            total[q][cells] += weights[row, q] * stack[row]
        picked = np.tensordot(weights[row], matrices, axes=1)[cells]
        np.testing.assert_allclose(block.weighted_pick(weights, matrices)[row], picked)
    np.testing.assert_allclose(block.weighted_sum(weights, stack), total, atol=1e-13)
