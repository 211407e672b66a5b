"""Predictions are checked by leaving each answer out: too timid, too bold, or right."""

import numpy as np
import pytest

import penchant as pc
from penchant.kernels import Independent
from tests.simulation import duel_data


def scores(model, pairs):
    """Mean log-probability of the winners, as predicted, and without the slope."""
    plain = model.posterior_.prob(*pairs.T)
    return np.log(model.predict_proba(pairs)).mean(), np.log(plain).mean()


@pytest.mark.parametrize("seed", range(3))
def test_answers_of_the_model_itself_are_calibrated(seed):
    rng = np.random.default_rng(seed)
    gp = pc.PreferenceGP().fit(None, duel_data(rng, 1.5 * rng.standard_normal(40), 1_500))
    assert 0.9 < gp.report_.slope < 1.1


def two_levels(rng, n_answers):
    """Half of the items are better than all others; each of many features says a little of it."""
    good = np.arange(200) < 100
    X = rng.standard_normal((200, 300)) + 0.2 * np.where(good, 1.0, -1.0)[:, None]
    return X, np.column_stack([rng.choice(100, n_answers), 100 + rng.choice(100, n_answers)])


def test_a_utility_of_two_levels_is_predicted_more_surely_than_a_gaussian_one_would_be():
    rng = np.random.default_rng(0)
    X, pairs = two_levels(rng, 600)
    gp = pc.PreferenceGP().fit(X, pc.Comparisons.from_pairs(*pairs[:100].T, items=range(200)))
    assert gp.report_.slope > 1.5
    sloped, plain = scores(gp, pairs[100:])
    assert sloped > plain + 0.02


def test_too_bold_a_prior_that_was_given_is_told_and_kept():
    """A kernel that holds utilities to be far apart where they are not."""
    rng = np.random.default_rng(1)
    utility = 0.3 * rng.standard_normal(60)
    data, asked = duel_data(rng, utility, 400), duel_data(rng, utility, 1_000)
    bold, right = (
        pc.PreferenceGP(k, optimize=None).fit(None, data)
        for k in (Independent(25.0), Independent(0.09))
    )
    assert bold.report_.slope < 0.7
    assert right.report_.slope == 1.0
    sloped, plain = scores(bold, np.column_stack([asked.winner, asked.loser]))
    assert sloped == plain


@pytest.mark.parametrize("seed", range(3))
def test_few_answers_correct_nothing(seed):
    rng = np.random.default_rng(seed)
    gp = pc.PreferenceGP().fit(None, duel_data(rng, rng.standard_normal(10), 15))
    assert gp.report_.slope == 1.0


def test_answers_that_all_agree_do_not_make_predictions_certain():
    """A single best slope of so few answers has no upper end."""
    rng = np.random.default_rng(0)
    X, pairs = two_levels(rng, 20)
    gp = pc.PreferenceGP().fit(X, pc.Comparisons.from_pairs(*pairs.T, items=range(200)))
    assert gp.report_.slope > 1.1
    everything = np.array([(i, j) for i in range(200) for j in range(200) if i != j])
    assert gp.predict_proba(everything).min() > 1e-3


def test_calibrated_outcomes_add_up_and_mirror():
    X, pairs = two_levels(np.random.default_rng(0), 100)
    data = pc.Comparisons.from_pairs(*pairs.T, items=range(200))
    gp = pc.PreferenceGP(likelihood=pc.likelihoods.Ties()).fit(X, data)
    assert gp.report_.slope > 1.1
    forth, back = (gp.predict_proba(each, ties=True) for each in (pairs, pairs[:, ::-1]))
    np.testing.assert_allclose(forth.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(forth, back[:, ::-1], atol=1e-12)


def test_the_slope_is_saved_and_follows_new_answers(tmp_path):
    rng = np.random.default_rng(0)
    X, pairs = two_levels(rng, 120)
    gp = pc.PreferenceGP().fit(X, pc.Comparisons.from_pairs(*pairs[:100].T, items=range(200)))
    gp.save(tmp_path / "model.pen")
    again = pc.load(tmp_path / "model.pen")
    assert again.predict_proba(pairs) == pytest.approx(gp.predict_proba(pairs), abs=1e-9)
    whole = pc.Comparisons.from_pairs(*pairs.T, items=range(200))
    told = pc.PreferenceGP(gp.kernel_, optimize=None).fit(gp_features(gp, X), whole)
    gp.tell([tuple(pair) for pair in pairs[100:].tolist()])
    assert gp.report_.slope == pytest.approx(told.report_.slope, rel=1e-4)


def gp_features(gp, X):
    """As the default kernel sees them."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("kind", ["ties alone", "scores", "choices"])
def test_what_has_no_decided_pairs_is_not_judged(kind, rng):
    if kind == "ties alone":
        data = pc.Comparisons.from_pairs([0, 1], [1, 2], tie=[True, True], items=range(3))
        gp = pc.PreferenceGP(likelihood=pc.likelihoods.Ties()).fit(None, data)
    elif kind == "scores":
        data = pc.Comparisons.from_scores([3.0, 1.0, 2.0])
        gp = pc.PreferenceGP(likelihood="gaussian").fit(None, data)
    else:
        data = pc.Comparisons.from_choices([0, 1, 2], [[0, 1, 2]] * 3)
        gp = pc.PreferenceGP().fit(None, data)
    assert gp.report_.slope == 1.0
