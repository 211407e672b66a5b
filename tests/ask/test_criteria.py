"""Every criterion: finite, indifferent to the order of a pair, and right on tiny problems."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import entr
from scipy.stats import norm

from penchant.ask import CRITERIA, Joint, all_pairs
from penchant.likelihoods import Gaussian, Lapse, Logit, Probit, Ties
from tests.simulation import random_belief as belief_over

expected_best, information_gain, thompson, variance_ratio = (
    CRITERIA[name].score
    for name in ("expected_best", "information_gain", "thompson", "variance_ratio")
)
LIKELIHOODS = [
    *(Probit(), Logit(), Ties(0.5), Ties(3.0), Ties(0.4, "logit")),
    *(Lapse(Probit(), rate=0.1), Lapse(Ties(0.5), rate=0.05), Gaussian(0.5), Gaussian(1e-3)),
]


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_scores_are_finite_and_do_not_depend_on_the_order_of_a_pair(name, likelihood):
    belief = belief_over(7, likelihood=likelihood)
    pairs = all_pairs(7)
    score = CRITERIA[name].score
    scores = score(belief, pairs, np.random.default_rng(1))
    assert scores.shape == (21,)
    assert np.isfinite(scores).all()
    swapped = score(belief, pairs[:, ::-1], np.random.default_rng(1))
    np.testing.assert_allclose(scores, swapped, rtol=1e-10)


@pytest.mark.parametrize("name", CRITERIA)
def test_scores_are_finite_before_the_first_answer_and_where_nothing_is_uncertain(name):
    pairs, rng = all_pairs(4), np.random.default_rng(0)
    for cov in (np.eye(4), np.zeros((4, 4)), np.ones((4, 4))):
        belief = Joint(np.zeros(4), cov + 1e-14 * np.eye(4), Probit())
        assert np.isfinite(CRITERIA[name].score(belief, pairs, rng)).all()


@given(
    n=st.integers(2, 6),
    seed=st.integers(0, 2**20),
    shift=st.floats(-50, 50),
    name=st.sampled_from(["variance_ratio", "information_gain"]),
)
@example(n=6, seed=187_581, shift=28.0, name="variance_ratio")  # means equal to 1e-4
@settings(max_examples=40, deadline=None)
def test_a_constant_added_to_all_utilities_changes_nothing(n, seed, shift, name):
    belief = belief_over(n, seed)
    moved = Joint(belief.mean + shift, belief.cov + abs(shift), belief.likelihood)
    score, rng = CRITERIA[name].score, np.random.default_rng(0)
    before, after = score(belief, all_pairs(n), rng), score(moved, all_pairs(n), rng)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-9)


def test_variance_ratio_is_the_paper_s():
    belief = belief_over(5)
    pairs, rng = all_pairs(5), np.random.default_rng(0)
    for (a, b), score in zip(pairs, variance_ratio(belief, pairs, rng), strict=True):
        var = belief.cov[a, a] + belief.cov[b, b] - 2 * belief.cov[a, b]
        assert score == pytest.approx(var / (belief.mean[a] - belief.mean[b]) ** 2, rel=1e-6)


def test_variance_ratio_prefers_the_larger_variance_where_means_are_equal():
    belief = Joint(np.zeros(3), np.diag([1.0, 4.0, 2.0]), Probit())
    scores = variance_ratio(belief, all_pairs(3), np.random.default_rng(0))
    assert all_pairs(3)[scores.argmax()].tolist() == [1, 2]


def answer_entropy(likelihood, mean, var):
    mean, var = np.array([mean]), np.array([var])
    win, lose = likelihood.prob(mean, var)[0], likelihood.prob(-mean, var)[0]
    tie = likelihood.prob_tie(mean, var)[0] if likelihood.n_answers == 3 else 0.0
    return entr(min(win, 1.0)) + entr(min(lose, 1.0)) + entr(tie)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
@pytest.mark.parametrize(("mean", "var"), [(0.0, 0.01), (0.0, 4.0), (1.5, 1.0), (-3.0, 9.0)])
def test_information_gain_is_the_mutual_information_of_answer_and_difference(likelihood, mean, var):
    sd = np.sqrt(var)
    how = {"points": (-mean / sd,), "limit": 400, "epsabs": 1e-9}
    conditional, _ = quad(
        lambda x: norm.pdf(x) * answer_entropy(likelihood, mean + sd * x, 0.0), -10, 10, **how
    )
    exact = answer_entropy(likelihood, mean, var) - conditional
    belief = Joint(np.array([mean, 0.0]), np.diag([0.5 * var, 0.5 * var]), likelihood)
    gain = information_gain(belief, np.array([[0, 1]]), np.random.default_rng(0))[0]
    assert gain == pytest.approx(exact, abs=2e-5 if isinstance(likelihood, Probit) else 3e-4)


@pytest.mark.parametrize(("var", "expected", "error"), [(1e-8, 0.0, 1e-5), (1e8, np.log(2), 1e-3)])
def test_information_gain_reaches_from_a_coin_toss_for_everybody_to_one_bit(var, expected, error):
    belief = Joint(np.zeros(2), var * np.eye(2), Probit())
    gain = information_gain(belief, all_pairs(2), np.random.default_rng(0))[0]
    assert gain == pytest.approx(expected, abs=error)


def test_expected_best_is_the_expected_maximum():
    belief = belief_over(4, scale=2.0)
    pairs = all_pairs(4)
    scores = expected_best(belief, pairs, np.random.default_rng(0))
    draws = belief.sample(400_000, np.random.default_rng(1))
    best = np.maximum(draws[:, pairs[:, 0]], draws[:, pairs[:, 1]])
    error = best.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(best.mean(axis=0) - scores) < 4.5 * error)


def test_expected_best_of_items_that_are_known_is_the_better_one():
    belief = Joint(np.array([1.0, 3.0]), np.zeros((2, 2)), Probit())
    assert expected_best(belief, all_pairs(2), np.random.default_rng(0))[0] == pytest.approx(3.0)


def test_thompson_pairs_the_best_of_two_draws():
    belief = belief_over(6)
    seen = 0
    for seed in range(40):
        one, other = belief.sample(2, np.random.default_rng(seed))
        scores = thompson(belief, all_pairs(6), np.random.default_rng(seed))
        chosen = set(all_pairs(6)[scores.argmax()].tolist())
        if one.argmax() != other.argmax():
            seen += 1
            assert chosen == {one.argmax(), other.argmax()}
        else:
            assert one.argmax() in chosen
    assert seen > 5


def test_the_page_names_every_criterion_and_stop_rule():
    page = (Path(__file__).parents[2] / "docs" / "ask.md").read_text(encoding="utf-8")
    for name in (*CRITERIA, "Budget", "SmallGain", "TopSettled"):
        assert f"`{name}" in page


def test_long_lists_of_pairs_are_scored_in_blocks_without_a_seam():
    n = 300  # 44,850 pairs, three blocks
    belief = belief_over(n)
    pairs, rng = all_pairs(n), np.random.default_rng(0)
    some = rng.integers(len(pairs), size=50)
    for name in ("variance_ratio", "information_gain", "expected_best"):
        score = CRITERIA[name].score
        np.testing.assert_allclose(
            score(belief, pairs, rng)[some], score(belief, pairs[some], rng), rtol=1e-9
        )
