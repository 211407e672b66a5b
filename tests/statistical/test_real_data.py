"""Predicted probabilities of real people's answers, against how often they came true.

The bounds are on the expected calibration error over ten bins of held-out answers. No model of
people is true, so it does not go to zero with more answers.
"""

import numpy as np
import pytest

import penchant as pc
from experiments.communities import cars_trial, sushi_trial
from penchant.metrics import calibration

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("real_data"),
    pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning"),
]

MODELS = {
    "many users": lambda: pc.MultiUserGP(progress=False),
    "communities": lambda: pc.CommunityGP(
        inference="mcmc", n_sweeps=60, progress=False, random_state=0
    ),
    "communities, personal": lambda: pc.CommunityGP(personal=True, progress=False, random_state=0),
}


@pytest.fixture
def real_data(data_folder, monkeypatch):
    monkeypatch.setenv("PENCHANT_DATA", str(data_folder))


def calibration_error(model, trial):
    user, winner, loser = trial.test.T
    model.fit(trial.X, trial.train)
    return calibration(model.predict_proba(np.column_stack([winner, loser]), user)).error


@pytest.mark.parametrize("name", MODELS)
def test_sushi(name, record_property):
    """500 users' rankings of ten kinds of sushi: 27 of each user's 45 pairs to learn from."""
    error = calibration_error(MODELS[name](), sushi_trial(0, n_users=500))
    record_property("calibration error", f"{error:.4f}")
    assert error < 0.02


@pytest.mark.parametrize("name", MODELS)
def test_cars(name, record_property):
    """60 people's choices between ten cars: 1,070 answers held out."""
    errors = [calibration_error(MODELS[name](), cars_trial(seed)) for seed in range(2)]
    record_property("calibration error", f"{np.mean(errors):.4f}")
    assert np.mean(errors) < 0.04


def test_sushi_pooled(record_property):
    """Everybody as one: what the population prefers, on answers of people not seen before.

    By 200 people in turn. Whole rankings are held for Plackett and Luce's, and people are surer of
    their first places than of their last: that costs calibration of pairs, see docs/choices.md.
    """
    rankings = pc.datasets.load_sushi_a().rankings
    errors = {"whole": [], "as pairs": []}
    for start in range(0, 5000, 500):
        some = np.arange(start, start + 200)
        seen = pc.Comparisons.from_rankings(rankings[some].tolist(), items=range(10))
        others = np.delete(rankings, some, axis=0).tolist()
        unseen = pc.Comparisons.from_rankings(others, items=range(10))
        pairs = np.column_stack([unseen.winner, unseen.loser])
        for way, data in (("whole", seen), ("as pairs", seen.as_pairs())):
            foreseen = pc.PreferenceGP().fit(None, data).predict_proba(pairs)
            errors[way].append(calibration(foreseen, counts=unseen.count).error)
    for way, found in errors.items():
        record_property(f"calibration error, {way}", f"{np.mean(found):.4f}")
    assert np.mean(errors["as pairs"]) < 0.02
    assert np.mean(errors["whole"]) < 0.03
