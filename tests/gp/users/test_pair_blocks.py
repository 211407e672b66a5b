"""Users worked on among their comparisons: the same numbers as among their items."""

from dataclasses import replace

import numpy as np
import pytest

from penchant.gp.users.arrowhead import ArrowPrior, ArrowState
from penchant.gp.users.blocks import Arrangement, Block, PairBlock, arrange
from penchant.gp.users.problem import item_slopes, user_slopes

N_ITEMS, N_USERS = 9, 12


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    monkeypatch.setattr("penchant.gp.users.blocks.MANY", 1)
    monkeypatch.setattr("penchant.numerics.batched.FEW", 1)


def votes(rng):
    """Forests, circles and repeated pairs, of users with one to six comparisons."""
    sizes = 1 + np.arange(N_USERS) % 6
    user = np.repeat(np.arange(N_USERS), sizes)
    winner = rng.integers(N_ITEMS, size=len(user))
    return user, winner, (winner + 1 + rng.integers(N_ITEMS - 1, size=len(user))) % N_ITEMS


def states(rng, rank, item_rank, missed):
    """Of the same prior and sites: users in both kinds of block, and among items alone."""
    ends = votes(rng)
    m = len(ends[0])
    factor = np.linalg.qr(rng.standard_normal((N_ITEMS, N_ITEMS)))[0][:, :item_rank]
    prior = ArrowPrior(
        rng.standard_normal((N_USERS, rank)),
        factor * rng.uniform(0.5, 2.0, item_rank),
        0.4,
        Arrangement.of(*ends, np.zeros(N_ITEMS, dtype=np.intp)).blocks,
        rng.uniform(0.1, 0.5, N_USERS) if missed else None,
    )
    weight, shift = rng.uniform(0.1, 2.0, m), rng.standard_normal(m)
    among_items = replace(prior, blocks=arrange(*ends, N_ITEMS))
    return [some.refresh(weight, shift) for some in (prior, among_items)]


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("item_rank", [4, N_ITEMS])
@pytest.mark.parametrize("missed", [False, True])
def test_comparisons_and_items_give_the_same_posterior(rng, rank, item_rank, missed):
    state, reference = states(rng, rank, item_rank, missed)
    kinds = {type(block) for block in state.prior.blocks}
    assert kinds == {Block, PairBlock}
    for name in ("mean", "var", "log_det", "quadratic", "lower"):
        np.testing.assert_allclose(
            getattr(state, name), getattr(reference, name), rtol=1e-9, atol=1e-11, err_msg=name
        )
    pull = rng.standard_normal(len(state.weight))
    np.testing.assert_allclose(state.respond(pull), reference.respond(pull), atol=1e-10)


def slopes(state: ArrowState):
    outer = [(1.0, state.response.residual)]
    return (*item_slopes(state, outer), user_slopes(state, outer))


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("item_rank", [4, N_ITEMS])
def test_and_the_same_slopes(rng, rank, item_rank):
    state, reference = states(rng, rank, item_rank, missed=False)
    for ours, theirs in zip(slopes(state), slopes(reference), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_every_comparison_is_in_one_block(rng):
    user, winner, loser = votes(rng)
    blocks = Arrangement.of(user, winner, loser, np.zeros(N_ITEMS, dtype=np.intp)).blocks
    every = np.concatenate([block.edges for block in blocks])
    assert sorted(every) == list(range(len(user)))
    for block in blocks:
        if isinstance(block, PairBlock):
            rows = np.repeat(block.users, block.shape[1])
            assert (user[block.edges] == rows).all()
            np.testing.assert_array_equal(
                block.items,
                np.hstack([x[block.edges].reshape(block.shape) for x in (winner, loser)]),
            )
