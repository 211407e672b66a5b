"""The table of defaults: how it scores, and what it is about."""

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.metrics import calibration
from penchant.reproduce.default_scores import ContestScores, by_chance, score
from penchant.reproduce.default_tasks import (
    BOTH,
    DEFAULTS,
    FEATURES,
    FREE,
    INDEPENDENT,
    LINKS,
    OLD_FEATURES,
    ContestItems,
)
from penchant.reproduce.defaults_users import simulated_people


def test_chance_makes_of_right_statements_what_it_is_said_to():
    rng = np.random.default_rng(0)
    stated = rng.random(400)
    drawn = [
        calibration(np.where(rng.random(400) < stated, stated, 1.0 - stated)).error
        for _ in range(100)
    ]
    error = np.std(drawn) * np.sqrt(1 / 100 + 1 / 50)
    assert by_chance(stated) == pytest.approx(np.mean(drawn), abs=4.0 * error)
    assert by_chance(np.ones(10)) == 0.0


def test_regret_ratio_and_confidence():
    p = {DEFAULTS: np.array([0.9, 0.9, 0.2]), LINKS: np.array([0.6, 0.6, 0.6])}
    scores = ContestScores(
        {DEFAULTS: np.array([0.2, 0.4]), LINKS: np.array([0.1, 0.3])},
        {DEFAULTS: np.array([-0.5, -0.7]), LINKS: np.array([-0.7, -0.6])},
        p,
        {DEFAULTS: "", LINKS: ""},
    )
    assert scores.regret == pytest.approx(0.0)
    assert scores.ratio == pytest.approx(1.5)
    assert scores.overconfidence(DEFAULTS) == pytest.approx((0.9 + 0.9 + 0.8) / 3 - 2 / 3)
    assert [row[0] for row in scores.rows()] == [DEFAULTS, LINKS]


def test_items_with_links_meet_every_choice():
    """Also what a model learned is told: here that links and features are both there."""
    X, ring = np.arange(12.0)[:, None], np.roll(np.eye(12), 1, axis=1)
    known = Comparisons.from_pairs(np.arange(11), np.arange(1, 12), items=range(12))
    items = ContestItems(12, X, {"ring": ring + ring.T})
    told = score([items.round(known, np.array([[0, 5], [2, 9]]))])
    assert set(told.errors) == {DEFAULTS, OLD_FEATURES, FEATURES, BOTH, LINKS}
    assert told.errors[DEFAULTS][0] == 0.0
    assert told.told[DEFAULTS].startswith("features 0.")
    assert ", ring 0." in told.told[DEFAULTS]
    assert told.before is told.probs[BOTH]


def test_people_are_foreseen_by_every_covariance():
    drawn = simulated_people("alike")(np.random.default_rng(0))
    contest = drawn.contest()
    assert list(contest.fits) == [DEFAULTS, INDEPENDENT, FREE]
    assert len(contest.asked) == len(contest.users) == drawn.test.n_comparisons
    told = score([contest._replace(fits={FREE: contest.fits[INDEPENDENT]})])
    assert told.errors[FREE][0] < 0.3
    assert told.before is told.probs[FREE]
