"""Ratings turned into pairs: chains of each person's, in as many steps as the real ones."""

import numpy as np
import pytest

from penchant.datasets.people import MovieLens
from penchant.reproduce.default_films import film_trials
from penchant.reproduce.defaults_users import MOVIELENS_FILMS, FilmRatings, people_of_movielens

N_USERS, N_FILMS = 12, MOVIELENS_FILMS + 5


@pytest.fixture(scope="module")
def films():
    """Everybody rated all films but the last few, which hardly anybody has seen."""
    rng = np.random.default_rng(3)
    user, item = map(np.ravel, np.indices((N_USERS, N_FILMS)))
    seen = (item < MOVIELENS_FILMS) | (user < 2)
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
    rated = FilmRatings.of(films)
    assert len(rated.user) == N_USERS * MOVIELENS_FILMS
    best, worst = rated.pairs(np.random.default_rng(0))
    assert len(best) == N_USERS * (MOVIELENS_FILMS - 1)
    assert np.array_equal(rated.user[best], rated.user[worst])
    assert (rated.rating[best] >= rated.rating[worst]).all()
    assert np.bincount(np.concatenate([best, worst])).max() == 2
    drawn = people_of_movielens(films)(np.random.default_rng(0))
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
    """Ties are learned from, but what is foreseen are the same kinds of pairs."""
    *_, real, kept = film_trials(films)
    rows = [trial.row() for trial in (real, kept)]
    assert [row[:2] for row in rows] == [["MovieLens", "left out"], ["MovieLens", "kept"]]
    assert int(rows[0][2]) < int(rows[1][2]) == N_USERS * (MOVIELENS_FILMS - 1)
    # these tastes are pure chance, but who was low once has more room above
    assert all(0.1 < float(row[3]) < 0.45 for row in rows)
