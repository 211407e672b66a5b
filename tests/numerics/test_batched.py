"""Stacks of users' matrices against plain sums."""

import numpy as np
import pytest

from penchant.numerics import batched


@pytest.mark.parametrize("n_weights", [1, 2, 3])
@pytest.mark.parametrize("n_items", [4, 20])
def test_users_matrices_add_up_wherever_their_items_lie(rng, n_weights, n_items):
    """Few or many of all items, one weight a user or several: each has a way of its own."""
    items = np.sort(np.stack([rng.permutation(n_items)[:3] for _ in range(5)]), axis=1)
    nothing = np.zeros(0, dtype=np.intp)
    places = batched.StackPlaces(items, *[nothing] * 4, n_items)
    stack, weights = rng.standard_normal((5, 3, 3)), rng.standard_normal((5, n_weights))
    expected = np.zeros((n_weights, n_items, n_items))
    for matrix, weight, own in zip(stack, weights, items, strict=True):
        expected[:, own[:, None], own] += weight[:, None, None] * matrix
    np.testing.assert_allclose(batched.collect_cells(stack, weights, places), expected, atol=1e-12)
