"""Numerics at the edges: each test fails on one small change that once went unnoticed."""

from types import SimpleNamespace

import numpy as np
import pytest

import penchant as pc
from penchant.numerics import batched, optimize, quadrature
from penchant.numerics import dispatch as device


@pytest.mark.parametrize(("n_cards", "index"), [(0, None), (0, 0), (1, 1), (2, 5)])
def test_a_card_beyond_the_last_is_refused(n_cards, index, monkeypatch):
    torch = SimpleNamespace(
        __version__="2",
        cuda=SimpleNamespace(device_count=lambda: n_cards),
        device=lambda name: SimpleNamespace(type="cuda", index=index),
    )
    monkeypatch.setattr(device, "_torch", lambda: torch)
    device._torch_device.cache_clear()
    with pytest.raises(pc.DataError, match=f"sees {n_cards} CUDA cards"):
        device.device_called("cuda" if index is None else f"cuda:{index}")


def test_a_fit_beyond_a_card_says_what_it_would_need():
    card = SimpleNamespace(name="cuda:0", most_items=10_000)
    device.check_room(card, 10_000)
    need = f"{device.MATRICES * 3.2:,.0f} GB"  # 20,000² numbers of 8 bytes are 3.2 GB
    with pytest.raises(pc.DataError, match=need):
        device.check_room(card, 20_000)


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


def test_a_step_out_of_bounds_is_not_tried():
    asked = []

    def falls(x):
        asked.append(float(x[0]))
        return -float(x[0]), np.array([-1.0])

    optimize.minimize_in_box(falls, np.array([1.0]), np.array([[0.0, 1.0]]), 5, 1e-3)
    assert asked == [1.0]


@pytest.mark.parametrize("max_sd", [0.5, 2.0])
def test_nodes_reach_no_further_than_the_density_does(max_sd):
    x, w = quadrature.normal_rule(max_sd, 0.63)
    assert x[-1] < 7.4 + 0.5 * max_sd + (x[1] - x[0])
    assert w @ x**2 == pytest.approx(1.0, abs=1e-9)
