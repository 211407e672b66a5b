import numpy as np
import pytest
from scipy.special import ndtr

from penchant.datasets import simulate_pairs, simulate_study
from penchant.errors import DataError


@pytest.mark.parametrize("noise", [0.5, 1.0, 4.0])
def test_wins_are_probit_with_the_noise_on_the_difference(noise):
    f = np.array([0.0, 1.0])
    n = 40_000
    data = simulate_pairs(f, n, noise=noise, random_state=3)
    wins = data.count[data.winner == 1].sum()
    p = ndtr(1.0 / np.sqrt(noise))
    assert abs(wins - n * p) < 4 * np.sqrt(n * p * (1 - p))


def test_pairs_are_uniform():
    n_items, n_pairs = 5, 50_000
    data = simulate_pairs(np.zeros(n_items), n_pairs, random_state=0)
    expected = n_pairs / (n_items * (n_items - 1))
    assert len(data) == n_items * (n_items - 1)
    assert np.abs(data.count - expected).max() < 5 * np.sqrt(expected)


def test_the_same_seed_gives_the_same_bits():
    assert simulate_pairs([0.0, 1.0, 2.0], 50, random_state=5) == simulate_pairs(
        [0.0, 1.0, 2.0], 50, random_state=5
    )
    first, second = simulate_study(random_state=9), simulate_study(random_state=9)
    assert first.comparisons == second.comparisons
    np.testing.assert_array_equal(first.utilities, second.utilities)


@pytest.mark.parametrize(
    ("utilities", "options", "message"),
    [
        ([1.0], {}, "at least two finite numbers"),
        ([1.0, float("nan")], {}, "at least two finite numbers"),
        ([1.0, 2.0], {"n_pairs": 0}, "n_pairs is 0"),
        ([1.0, 2.0], {"noise": 0.0}, "noise is 0.0: it is a variance"),
    ],
)
def test_simulate_pairs_refuses(utilities, options, message):
    with pytest.raises(DataError, match=message):
        simulate_pairs(utilities, **({"n_pairs": 3} | options))


def test_a_study_is_what_it_says():
    study = simulate_study(n_users=20, n_items=12, n_tastes=4, n_answers=7, random_state=1)
    data = study.comparisons
    assert (data.n_users, data.n_items, data.n_comparisons) == (20, 12, 140)
    assert data.items == study.item_names
    assert data.users == study.user_names
    assert np.bincount(data.user, weights=data.count).tolist() == [7] * 20
    assert np.bincount(study.tastes).tolist() == [5] * 4
    assert study.utilities.shape == (4, 12)
    assert study.item_features.shape[0] == 12


def test_links_are_symmetric_and_join_similar_items():
    study = simulate_study()
    links = study.links
    assert (links != links.T).nnz == 0
    assert links.diagonal().sum() == 0
    assert (np.diff(links.indptr) >= 3).all()
    i, j = links.nonzero()
    x = study.item_features
    distance = np.linalg.norm(x[:, None] - x, axis=2)
    assert distance[i, j].mean() < 0.8 * distance.mean()


def test_answers_follow_the_taste_of_the_user():
    """Each answer agrees with the user's taste far more often than with another's."""
    study = simulate_study(n_users=60, n_answers=100)
    data = study.comparisons
    gain = study.utilities[:, data.winner] - study.utilities[:, data.loser]
    own = (gain[study.tastes[data.user], np.arange(len(data))] > 0).mean()
    other = (gain[(study.tastes[data.user] + 1) % 3, np.arange(len(data))] > 0).mean()
    assert own > 0.8
    assert own > other + 0.1


def test_simulate_study_refuses():
    with pytest.raises(DataError, match="n_users is 2: it must be at least 3"):
        simulate_study(n_users=2)
    with pytest.raises(DataError, match="n_items is 4"):
        simulate_study(n_items=4)
