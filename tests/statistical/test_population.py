"""Intervals of CommunityGP for people at large hold the mean over all people, as often as they say.

Utilities of one study go together, so that a study counts as one draw: the share of its items whose
interval holds the truth.
"""

import numpy as np
import pytest

import penchant as pc
from tests.communities.simulation import votes

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::penchant.errors.DataWarning")]

STUDIES = 50
SIGMAS = 4.0
REACH = {0.50: 0.67449, 0.95: 1.95996}
CASES = {
    "one taste": {"n_items": 10, "n_users": 60, "each": 15, "n_camps": 1},
    "two camps": {"n_items": 10, "n_users": 60, "each": 15, "n_camps": 2},
    "two camps, ten times the people": {"n_items": 10, "n_users": 600, "each": 15, "n_camps": 2},
    "three camps": {"n_items": 10, "n_users": 100, "each": 30, "n_camps": 3},
    "one taste, few answers, features": {
        "n_items": 15, "n_users": 5, "each": 30, "n_camps": 1, "features": True
    },
    "one taste, features": {
        "n_items": 15, "n_users": 30, "each": 75, "n_camps": 1, "features": True
    },
    "two camps, features": {
        "n_items": 15, "n_users": 60, "each": 30, "n_camps": 2, "features": True
    },
}  # fmt: skip


def study(rng, n_items, n_users, each, n_camps, features=False):
    """The mean utility of all people, features or None, and answers of a sample of people."""
    X, tastes = None, 0.8 * rng.standard_normal((n_camps, n_items))
    if features:  # they do not tell all
        X = rng.standard_normal((n_items, 2))
        slopes = 0.8 * rng.standard_normal((n_camps, 2)) if n_camps > 1 else np.array([[1.0, 0.5]])
        tastes = slopes @ X.T + 0.4 * rng.standard_normal((n_camps, n_items))
    data = votes(tastes[rng.integers(n_camps, size=n_users)], each, seed=rng)
    truth = tastes.mean(axis=0)
    return truth - truth.mean(), X, data


@pytest.mark.parametrize("case", CASES)
def test_intervals_of_people_at_large_cover(case, record_property):
    rng, inside = np.random.default_rng(0), {level: [] for level in REACH}
    for _ in range(STUDIES):
        truth, X, data = study(rng, **CASES[case])
        belief = pc.CommunityGP(progress=False, random_state=0).fit(X, data).belief()
        off = np.abs(truth - belief.mean + belief.mean.mean()) / np.sqrt(belief.contrast_var)
        for level, reach in REACH.items():
            inside[level].append(np.mean(off < reach))
    for level, shares in inside.items():
        sigma = np.std(shares, ddof=1) / np.sqrt(STUDIES)
        record_property(f"within {level:.0%} intervals", f"{np.mean(shares):.3f} ± {sigma:.3f}")
        assert abs(np.mean(shares) - level) < SIGMAS * sigma, shares
