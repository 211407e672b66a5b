"""Utilities are told from the average item: in rankings, predictions, and their deviations."""

import numpy as np
import pytest

import penchant as pc
from penchant.kernels import RBF, Independent, Inputs
from tests.simulation import duels

RNG = np.random.default_rng(3)
X = RNG.standard_normal((9, 2)) + 2.0
NEW = RNG.standard_normal((4, 2)) + 2.0
LINKS = np.triu(RNG.random((9, 9)) < 0.4, 1).astype(float)
LINKS += LINKS.T
USERS = [f"user {u}" for u in range(12)]


def answers(**more):
    rng = np.random.default_rng(4)
    tastes = np.stack([X @ [1.0, 0.5], X @ [-1.0, 0.5]]) + 0.4 * rng.standard_normal((2, 9))
    who = rng.integers(12, size=500)
    winner, loser = duels(rng, tastes, user=who % 2)
    user = [USERS[u] for u in who]
    return pc.Comparisons.from_pairs(winner, loser, user=user, items=range(9), **more)


def days():
    return {"time": np.datetime64("2024-01-01") + np.arange(500) // 5}


GIVEN = {"kernel": RBF(30.0, 9.0) + Independent(), "optimize": None}
ABOUT = {"user_features": np.arange(24.0).reshape(12, 2) % 5}
CAMPS = pc.CommunityGP(n_communities=2, personal=False)
MODELS = {  # and what they are fitted to beside the answers
    "plain": (pc.PreferenceGP(), {"X": None}),
    "features": (pc.PreferenceGP(), {}),
    "one level": (pc.PreferenceGP(**GIVEN), {}),
    "bounded": (pc.PreferenceGP(RBF(), max_rank=4), {}),
    "links": (pc.PreferenceGP(), {"X": None, "relations": {"links": LINKS}}),
    "drift": (pc.PreferenceGP(drift="ou"), {"data": answers(**days())}),
    "users": (pc.MultiUserGP(), {"X": None}),
    "users, features": (pc.MultiUserGP(), {}),
    "users, given": (pc.MultiUserGP(**GIVEN), ABOUT),
    "communities": (CAMPS, {}),
    "personal": (pc.CommunityGP(personal=True), {}),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    model, given = MODELS[request.param]
    return model.set_params(random_state=0).fit(**{"X": X, "data": answers(), **given})


def has_users(model):
    return not isinstance(model, pc.PreferenceGP)


def test_predictions_are_the_utilities_that_rank_shows(model):
    for user in (None, USERS[3]) if has_users(model) else (None,):
        table = model.rank(user, level=0.5)
        order = np.argsort(table["item"])
        assert abs(table["utility"].mean()) < 1e-9
        users = {} if user is None else {"users": user}
        mean, std = (np.ravel(each) for each in model.predict(return_std=True, **users))
        np.testing.assert_allclose(mean, np.ravel(model.predict(**users)), atol=1e-9)
        np.testing.assert_allclose(mean, table["utility"][order], atol=1e-6)
        reach = 0.6744897501960817 * std
        np.testing.assert_allclose(reach, (table["high"] - table["utility"])[order], rtol=1e-4)


def test_new_items_are_told_from_the_average_item_of_the_fit(model):
    if model.n_features_in_ == 0 or getattr(model, "drift", None):
        pytest.skip("it knows no new items, or tests/gp/test_paths.py asks about them")
    for user in (None, USERS[3]) if has_users(model) else (None,):
        users = {} if user is None else {"users": user}
        mean, std = (np.ravel(each) for each in model.predict(NEW, return_std=True, **users))
        np.testing.assert_allclose(mean, np.ravel(model.predict(NEW, **users)), atol=1e-9)
        expected = np.array([joint(model, user, new) for new in NEW])
        np.testing.assert_allclose(mean, expected[:, 0], atol=1e-6)
        np.testing.assert_allclose(std, np.sqrt(expected[:, 1]), rtol=1e-5)


def joint(model, user, new):
    """Mean and variance of a new item less the average one, from what is known of the old ones."""
    found = model.state_.learned
    u = None if user is None else int(found.data.user_index(user))
    parts, weights = [model.belief(user)], np.ones(1)
    if isinstance(model, pc.CommunityGP) and found.personal is None:
        parts, weights = found.posteriors, found.shares(None if u is None else np.array([u]))[0]
    means, variances = np.transpose([given_old_items(model, part, new) for part in parts])
    mean = weights @ means
    if user is None:  # the people who answered are a sample
        return mean, weights**2 @ variances + weights @ (means - mean) ** 2 / (len(USERS) + 1)
    return mean, weights @ (means**2 + variances) - mean**2


def given_old_items(model, part, new):
    kernel, old = part.kernel, part.universe
    scaled = model.state_.columns.new_items(new[None])
    if getattr(model, "max_rank", None):  # a prior of few pivots is that of the features alone
        seen = part.at(Inputs(np.vstack([old.X, scaled.X])))
        mean, cov = seen.mean, seen.covariance()
    else:
        rows = np.vstack([np.eye(9), np.linalg.solve(kernel(old), kernel(old, scaled)).T])
        mean, cov = rows @ part.mean, rows @ part.covariance() @ rows.T
        cov[9, 9] += (kernel(scaled) - rows[9:] @ kernel(old, scaled))[0, 0]
    contrast = np.append(np.full(9, -1 / 9), 1.0)
    return contrast @ mean, contrast @ cov @ contrast


def test_a_level_that_nobody_can_know_is_in_no_deviation():
    """A shift of all utilities that the prior leaves wide open changes nothing."""
    deviations = [
        pc.PreferenceGP(RBF(1.0) + level, optimize=None)
        .fit(X, answers())
        .predict(np.vstack([X, NEW]), return_std=True)
        for level in (1.0, 1e4)
    ]
    np.testing.assert_allclose(*deviations, atol=1e-4)


def test_rankings_of_communities_are_centred():
    for community in CAMPS.set_params(random_state=0).fit(X, answers()).communities_:
        assert abs(np.mean([row.utility for row in community.ranking])) < 1e-9
