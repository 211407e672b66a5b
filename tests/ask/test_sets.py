"""The information of a choice, and sets that grow by it."""

import numpy as np
import pytest
from scipy.special import entr, softmax

from penchant.ask import Joint, Rules, grow_sets
from penchant.data import Comparisons
from penchant.likelihoods import Logit


@pytest.fixture
def belief():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    return Joint(rng.normal(size=6), 0.3 * root @ root.T, Logit())


@pytest.fixture
def data():
    return Comparisons.from_pairs([0], [1], items=range(6))


def information(draws, chosen):
    """Mutual information, in nats, of the utilities and of which one is chosen."""
    p = softmax(draws[:, chosen], axis=1)
    return entr(p.mean(axis=0)).sum() - entr(p).sum(axis=1).mean()


@pytest.mark.parametrize("start", [(0, 1), (4, 2)])
def test_a_set_grows_by_what_tells_most_on_the_same_draws(belief, data, start):
    (grown,) = grow_sets(belief, data, [start], 5, random_state=7)
    draws = belief.sample(256, np.random.default_rng(7))
    assert grown[:2] == start
    for size in (2, 3, 4):
        others = [item for item in range(6) if item not in grown[:size]]
        told = [information(draws, [*grown[:size], item]) for item in others]
        assert grown[size] == others[int(np.argmax(told))]


def test_utilities_far_apart_overflow_nothing(data):
    far = Joint(np.array([0.0, 1e3, -1e3, 2e3, 0.0, 1e4]), np.eye(6), Logit())
    with np.errstate(all="raise", under="ignore"):
        ((*_, last),) = grow_sets(far, data, [(0, 2)], 3, random_state=0)
    assert last == 4  # the only one that is near


def test_rules_hold_for_sets(belief, data):
    rules = Rules(items=(0, 1, 2, 3))
    for items in grow_sets(belief, data, [(0, 1), (2, 3)], 4, rules, 0):
        assert set(items) == {0, 1, 2, 3}
