"""Defaults against fixed choices: how they are scored, and pairs made of ratings."""

import numpy as np
import pytest

from experiments import defaults
from experiments import defaults_tasks as tasks
from experiments.defaults import film_trials
from experiments.defaults_tasks import BOTH, DEFAULTS, FREE, INDEPENDENT, LINKS
from penchant.data import Comparisons
from penchant.datasets import MovieLens
from penchant.metrics import calibration


def test_chance_makes_of_right_statements_what_it_is_said_to():
    rng = np.random.default_rng(0)
    stated = rng.random(400)
    drawn = [
        calibration(np.where(rng.random(400) < stated, stated, 1.0 - stated)).error
        for _ in range(100)
    ]
    error = np.std(drawn) * np.sqrt(1 / 100 + 1 / 50)
    assert tasks.by_chance(stated) == pytest.approx(np.mean(drawn), abs=4.0 * error)
    assert tasks.by_chance(np.ones(10)) == 0.0


def test_regret_ratio_and_confidence():
    p = {DEFAULTS: np.array([0.9, 0.9, 0.2]), LINKS: np.array([0.6, 0.6, 0.6])}
    scores = tasks.ContestScores(
        {DEFAULTS: np.array([0.2, 0.4]), LINKS: np.array([0.1, 0.3])},
        {DEFAULTS: np.array([-0.5, -0.7]), LINKS: np.array([-0.7, -0.6])},
        p,
        {DEFAULTS: "", LINKS: ""},
    )
    assert scores.regret == pytest.approx(0.0)
    assert scores.ratio == pytest.approx(1.5)
    assert scores.overconfidence(DEFAULTS) == pytest.approx((0.9 + 0.9 + 0.8) / 3 - 2 / 3)
    assert [row[0] for row in scores.rows()] == [DEFAULTS, LINKS]


def test_stand_ins_do_not_carry_the_name_of_a_public_set(tmp_path, monkeypatch):
    monkeypatch.setenv("PENCHANT_DATA", str(tmp_path))
    p = {DEFAULTS: np.array([0.9]), FREE: np.array([0.8])}
    result = {name: np.array([0.1]) for name in p}
    scores = tasks.ContestScores(result, result, p, dict.fromkeys(p, ""))
    monkeypatch.setattr(defaults, "score", lambda rounds: scores)
    text = defaults.run(quick=True)
    headings = [line for line in text.splitlines() if line.startswith("##")]
    assert "## simulated papers, true links, 10 pairs" in headings
    assert "## simulated rankings, each person" in headings
    for name in ("Cora", "OHSUMED", "sushi", "cars 1"):
        assert f"## {name}" not in text
        assert f"| {name}" not in text
    assert "| not confirmed |" not in text
    assert "| confirmed |" not in text


def test_items_with_links_meet_every_choice():
    """Also what a model learned is told: here that links and features are both there."""
    X, ring = np.arange(12.0)[:, None], np.roll(np.eye(12), 1, axis=1)
    known = Comparisons.from_pairs(np.arange(11), np.arange(1, 12), items=range(12))
    items = tasks.ContestItems(12, X, {"ring": ring + ring.T})
    told = tasks.score([items.round(known, np.array([[0, 5], [2, 9]]))])
    assert set(told.errors) == {DEFAULTS, tasks.OLD_FEATURES, tasks.FEATURES, BOTH, LINKS}
    assert told.errors[DEFAULTS][0] == 0.0
    assert told.told[DEFAULTS].startswith("features 0.")
    assert ", ring 0." in told.told[DEFAULTS]
    assert told.before is told.probs[BOTH]


def test_people_are_predicted_by_every_covariance():
    drawn = tasks.simulated_people("alike")(np.random.default_rng(0))
    contest = drawn.contest()
    assert list(contest.fits) == [DEFAULTS, INDEPENDENT, FREE]
    assert len(contest.asked) == len(contest.users) == drawn.test.n_comparisons
    told = tasks.score([contest._replace(fits={FREE: contest.fits[INDEPENDENT]})])
    assert told.errors[FREE][0] < 0.3
    assert told.before is told.probs[FREE]


N_USERS, N_FILMS = 12, tasks.MOVIELENS_FILMS + 5


@pytest.fixture(scope="module")
def films():
    """Everybody rated all films but the last few, which hardly anybody has seen."""
    rng = np.random.default_rng(3)
    user, item = map(np.ravel, np.indices((N_USERS, N_FILMS)))
    seen = (item < tasks.MOVIELENS_FILMS) | (user < 2)
    user, item = user[seen], item[seen]
    return MovieLens(
        user=user,
        item=item,
        rating=rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], len(user), p=[0.1, 0.1, 0.2, 0.35, 0.25]),
        titles=tuple(f"film {i}" for i in range(N_FILMS)),
        genres=rng.integers(2, size=(N_FILMS, 3)).astype(float),
        genre_names=("a", "b", "c"),
        user_features=np.zeros((N_USERS, 1)),
        user_feature_names=("none",),
    )


def test_ratings_are_chained_within_a_person_the_better_one_first(films):
    rated = tasks.FilmRatings.of(films)
    assert len(rated.user) == N_USERS * tasks.MOVIELENS_FILMS
    best, worst = rated.pairs(np.random.default_rng(0))
    assert len(best) == N_USERS * (tasks.MOVIELENS_FILMS - 1)
    assert np.array_equal(rated.user[best], rated.user[worst])
    assert (rated.rating[best] >= rated.rating[worst]).all()
    assert np.bincount(np.concatenate([best, worst])).max() == 2
    drawn = tasks.people_of_movielens(films)(np.random.default_rng(0))
    n_different = int(np.sum(rated.rating[best] != rated.rating[worst]))
    assert drawn.train.n_comparisons + drawn.test.n_comparisons == n_different


def test_simulated_ratings_have_the_steps_of_the_real_ones(films):
    whole, rounded, _, real, kept = film_trials(films)
    assert kept.keeps_ties
    assert not real.keeps_ties
    assert len(np.unique(whole.rated.rating)) == len(whole.rated.rating)
    steps, real_steps = (np.unique_counts(each.rated.rating).counts for each in (rounded, real))
    assert np.abs(steps - real_steps).max() <= 1
    order = np.argsort(whole.rated.rating)
    assert (np.diff(rounded.rated.rating[order]) >= 0.0).all()


@pytest.mark.slow
def test_a_trial_tells_of_pairs_that_differ(films):
    """Ties are learned from, but only pairs that differ are predicted."""
    *_, real, kept = film_trials(films)
    rows = [trial.row() for trial in (real, kept)]
    assert [row[:2] for row in rows] == [["MovieLens", "left out"], ["MovieLens", "kept"]]
    assert int(rows[0][2]) < int(rows[1][2]) == N_USERS * (tasks.MOVIELENS_FILMS - 1)
    # these tastes are pure chance, but who was low once has more room above
    assert all(0.1 < float(row[3]) < 0.45 for row in rows)
