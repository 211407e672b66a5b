"""Stop rules against what they claim to measure; simulations where it is known what they say."""

import numpy as np
import pytest
from scipy.stats import norm

from penchant.ask import (
    CRITERIA,
    Budget,
    Joint,
    SmallGain,
    StudyDesign,
    TopSettled,
    answers_left,
    plan,
)
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


def test_a_budget_needs_what_is_left_of_it():
    assert answers_left(belief(np.zeros(4)), Budget(7), "random", random_state=0) == (7, 7, 7)


def test_nothing_is_left_where_everything_is_settled():
    assert answers_left(belief([9.0, 0.0, 0.0], 0.1), TopSettled(k=1), random_state=0) == (0, 0, 0)


def test_beyond_the_horizon_there_is_no_number():
    left = answers_left(
        belief(np.zeros(2)), TopSettled(k=1, level=0.999999), horizon=3, random_state=0
    )
    assert left.high is None


def test_the_range_is_in_order_and_comes_again_with_its_seed():
    near, rule = belief([1.0, 0.5, 0.0, -1.0]), TopSettled(k=1)
    first, again = (answers_left(near, rule, random_state=3) for _ in range(2))
    assert first == again
    assert 0 <= first.low <= first.median
    assert first.high is None or first.median <= first.high


def test_a_wider_gap_needs_fewer_answers():
    counts = [
        answers_left(
            belief(gap * np.arange(4.0), 0.3),
            TopSettled(k=1, level=0.9),
            "expected_best",
            n_futures=16,
            random_state=0,
        ).median
        for gap in (1.5, 0.3)
    ]
    assert counts[0] < counts[1]


def test_a_plan_reaches_its_reliability_and_no_earlier():
    result = plan(StudyDesign(6, n_raters=4), 0.7, n_simulations=20, random_state=1)
    assert len(result.reliability) == result.comparisons
    assert result.reliability[-1] >= 0.7
    assert (result.reliability[:-1] < 0.7).all()
    assert result.per_rater == -(-result.comparisons // 4)


def test_more_reliability_and_more_disagreement_cost_more():
    few, many = (
        plan(StudyDesign(6), level, n_simulations=10, random_state=0).comparisons
        for level in (0.6, 0.8)
    )
    assert few < many
    alike, unlike = (
        plan(StudyDesign(6, 5, disagreement=d), 0.7, n_simulations=10, random_state=0).comparisons
        for d in (0.0, 0.6)
    )
    assert alike < unlike


def test_choosing_needs_fewer_than_drawing():
    study = StudyDesign(8, spread=2.0)
    drawn, chosen = (
        plan(study, 0.85, criterion, n_simulations=12, random_state=0).comparisons
        for criterion in ("random", "information_gain")
    )
    assert chosen < drawn


def test_what_cannot_be_reached_has_no_number():
    assert (
        plan(StudyDesign(5), 0.99, n_simulations=3, longest=4, random_state=0).comparisons is None
    )


@pytest.mark.slow
def test_the_plan_holds_in_a_study_that_is_then_run():
    """Mean reliability of fresh studies of the planned length, in standard errors."""
    study = StudyDesign(10, n_raters=3, spread=1.5)
    planned = plan(study, 0.8, n_simulations=200, random_state=0).comparisons
    runs = [
        plan(study, 0.999, n_simulations=10, longest=planned, random_state=99 + seed)
        for seed in range(20)
    ]
    reached = [run.reliability[-1] for run in runs]
    error = np.std(reached) / np.sqrt(20)
    assert abs(np.mean(reached) - 0.8) < 5 * error + 0.01


def test_a_study_of_three_items_can_be_planned():
    assert plan(StudyDesign(3), 0.3, n_simulations=2, random_state=0).comparisons
