"""Beliefs about every user's own utilities are as wide as they should be."""

import numpy as np
import pytest

import penchant as pc
from penchant.kernels import Constant, Independent
from tests.communities.simulation import votes

pytestmark = [
    pytest.mark.slow,
    # with few answers, items often fall apart into groups: that is part of the test
    pytest.mark.filterwarnings("ignore::penchant.errors.DataWarning"),
]

N_ITEMS, SHARING, VARIANCE = 6, 0.5, 2.0


def study(rng, n_users, n_answers):
    """Tastes with a shared and a personal half, and each user's answers about random pairs."""
    common = rng.standard_normal(N_ITEMS)
    own = rng.standard_normal((n_users, N_ITEMS))
    f = np.sqrt(VARIANCE) * (np.sqrt(SHARING) * common + np.sqrt(1 - SHARING) * own)
    return f, votes(f, n_answers, seed=rng)


@pytest.mark.parametrize("n_answers", [2, 10])
def test_intervals_of_users_cover(n_answers, assert_covered, assert_uniform, level_of):
    rng = np.random.default_rng(n_answers)
    model = pc.MultiUserGP(
        Independent(VARIANCE), Constant(1.0), sharing=SHARING, optimize=None, progress=False
    )
    z, levels = [], []
    for _ in range(1500):
        f, data = study(rng, 8, n_answers)
        who, i, j = np.zeros(1, int), np.array([0]), np.array([1])
        mean, var = model.fit(None, data).posterior_.differences(who, i, j)
        z.append((f[0, 0] - f[0, 1] - mean[0]) / np.sqrt(var[0]))
        levels.append(level_of(f[0, 0] - f[0, 1], mean[0], var[0]))
    assert_covered(np.array(z))
    assert_uniform(levels)


def test_learned_parameters_stay_calibrated(record_property):
    """What is thought likelier happens as often as thought, with all parameters learned."""
    rng = np.random.default_rng(5)
    gaps = []
    for _ in range(40):
        f, data = study(rng, 120, 8)
        users = np.arange(120)
        pairs = np.array([rng.choice(N_ITEMS, 2, replace=False) for _ in users])
        prob = pc.MultiUserGP(progress=False).fit(None, data).predict_proba(pairs, users)
        lead = f[users, pairs[:, 0]] - f[users, pairs[:, 1]]
        happened = lead + rng.standard_normal(len(users)) > 0
        gaps.append(np.mean(np.where(prob < 0.5, prob - happened, happened - prob)))
    # users of a study share its tastes: the spread over studies is the honest standard error
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    record_property("happened less predicted", f"{np.mean(gaps):+.4f} ± {error:.4f}")
    assert abs(np.mean(gaps)) < 4 * error
