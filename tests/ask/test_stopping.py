"""Stop rules: each against what it claims to measure."""

import numpy as np
import pytest
from scipy.stats import norm

from penchant.ask import CRITERIA, Budget, Joint, SmallGain, TopSettled
from penchant.likelihoods import Probit


def belief(mean, var=1.0):
    mean = np.asarray(mean, dtype=float)
    return Joint(mean, var * np.eye(len(mean)), Probit())


def test_a_budget_counts_answers(rng):
    rule = Budget(3)
    assert [rule.check(None, n, rng).stop for n in (2, 3, 4)] == [False, True, True]
    assert rule.check(None, 2, rng).value == 2


def test_the_gain_is_that_of_the_best_question(rng):
    unsure = belief([0.3, -0.2, 0.0])
    verdict = SmallGain(0.05).check(unsure, 0, rng)
    by_hand = max(
        CRITERIA["information_gain"].score(unsure, np.array([pair]), rng)[0]
        for pair in [(0, 1), (0, 2), (1, 2)]
    )
    assert verdict.value == pytest.approx(by_hand)
    assert not verdict.stop
    assert SmallGain(0.05).check(belief([0.3, -0.2, 0.0], 1e-6), 0, rng).stop


def test_the_top_is_settled_as_probably_as_it_is_exactly(rng):
    """Two items that differ by N(1.5, 2): the first is best with probability Φ(1.5/√2)."""
    verdict = TopSettled(k=1).check(belief([1.5, 0.0]), 0, rng)
    exact = norm.cdf(1.5 / np.sqrt(2.0))
    assert abs(verdict.value - exact) < 4.5 * np.sqrt(exact * (1 - exact) / 1000)
    assert not verdict.stop
    assert TopSettled(k=1).check(belief([4.0, 0.0]), 0, rng).stop


def test_the_order_within_the_top_does_not_matter(rng):
    tied_on_top = belief([9.0, 9.0, 0.0])
    assert TopSettled(k=2).check(tied_on_top, 0, rng).stop
    assert not TopSettled(k=1).check(tied_on_top, 0, rng).stop


def test_all_items_are_always_the_top(rng):
    verdict = TopSettled(k=2).check(belief([0.0, 0.0]), 0, rng)
    assert verdict.stop
    assert verdict.value == 1.0


def test_every_rule_says_why(rng):
    for rule in (Budget(1), SmallGain(), TopSettled()):
        assert rule.check(belief([0.0, 1.0]), 0, rng).reason
