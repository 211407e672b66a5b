"""`score` and `evaluate` foresee every comparison as it was made: by whom, how shown, and when."""

import numpy as np
import pytest

import penchant as pc
from penchant.likelihoods import Ties
from penchant.workflow import Material, hold_out

QUICK = {"optimize": None, "random_state": 0}
FIND = {"random_state": 0, "progress": False}
MODELS = {
    "utilities": lambda likelihood: pc.PreferenceGP(likelihood=likelihood, **QUICK),
    "raters": lambda likelihood: pc.PreferenceGP(likelihood=likelihood, raters="lapse", **QUICK),
    "half-life": lambda likelihood: pc.PreferenceGP(likelihood=likelihood, half_life=60, **QUICK),
    "drift": lambda likelihood: pc.PreferenceGP(likelihood=likelihood, drift="ou", **QUICK),
    "users": lambda likelihood: pc.MultiUserGP(likelihood=likelihood, progress=False, **QUICK),
    "communities": lambda likelihood: pc.CommunityGP(likelihood=likelihood, **FIND),
}


def made(ties, told, seed=0, m=240, n=6):
    """Answers of ten people over 200 days, in which tastes turn round."""
    rng = np.random.default_rng(seed)
    f = 2.0 * rng.standard_normal(n)
    a = rng.integers(n, size=m)
    b = (a + rng.integers(1, n, size=m)) % n
    time = np.sort(rng.uniform(0.0, 200.0, m)).round()
    g = (f[a] - f[b]) * (1.0 - time / 100.0)
    first, length = rng.choice([-1, 1], m), rng.standard_normal((m, 1))
    noisy = g + (0.8 * first + 0.7 * length[:, 0] if told else 0.0) + rng.standard_normal(m)
    won = noisy > 0
    turned = np.where(won, 1, -1)
    shown = {"first": first * turned, "covariates": {"length": length[:, 0] * turned}}
    winner, loser = np.where(won, a, b), np.where(won, b, a)
    return pc.Comparisons.from_pairs(
        [f"item {i}" for i in winner],
        [f"item {i}" for i in loser],
        user=[f"user {u}" for u in rng.integers(10, size=m)],
        tie=np.abs(noisy) < 0.4 if ties else None,
        time=time,
        items=[f"item {i}" for i in range(n)],
        **(shown if told else {}),
    )


def circumstances(model, data):
    """What `predict_proba` can be told of these comparisons."""
    known = {effect.name for effect in model.effects_}
    how = {"users": [data.users[u] for u in data.user], "ties": True}
    if "shown first" in known:
        how["first"] = data.first
    if "length" in known:
        how["covariates"] = {"length": data.covariates[:, 0]}
    if getattr(model, "drift", None) is not None:
        how["at"] = data.time
    return how


@pytest.mark.parametrize("told", [False, True], ids=["bare", "order and covariates"])
@pytest.mark.parametrize("ties", [False, True], ids=["decided", "ties"])
@pytest.mark.parametrize("name", MODELS)
def test_the_score_is_the_mean_log_probability_of_what_happened(name, ties, told):
    likelihood = Ties(0.4) if ties else "probit"
    train, test = made(ties, told).split(0.3, random_state=0)
    model = MODELS[name](likelihood).fit(None, train)
    pairs = [(test.items[a], test.items[b]) for a, b in zip(test.winner, test.loser, strict=True)]
    how = circumstances(model, test)
    win, tie, _ = model.predict_proba(pairs, **how).T
    log_prob = np.log(np.where(test.tie, tie, win))
    assert model.score(test) == pytest.approx(np.average(log_prob, weights=test.count), abs=1e-10)
    held_out = hold_out(MODELS[name](likelihood), Material(train), test)
    how["ties"] = False
    decided = model.predict_proba(pairs, **how)[~test.tie]
    np.testing.assert_allclose(held_out.prob, decided, atol=1e-9)


def test_under_drift_each_comparison_is_foreseen_when_it_was_made():
    data = made(False, False, m=600)
    drifting = pc.PreferenceGP(drift="ou", random_state=0)
    table = {row.model: row.log_loss for row in pc.evaluate({"drift": drifting}, data, folds=3)}
    assert table["drift"] < table["bradley-terry"] - 0.05  # .596 for whoever knows the truth
    train, test = data.split(0.3, random_state=0)
    model = drifting.fit(None, train)
    assert model.score(test) > model.score(test.bare()) + 0.2
