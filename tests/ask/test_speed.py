"""Cost: ratios measured side by side in one process."""

import numpy as np
import pytest
from scipy.special import ndtr

import penchant as pc
from penchant.ask import CRITERIA
from penchant.kernels import RBF, Independent

pytestmark = pytest.mark.slow
KERNEL = RBF(1.0, 2.0) + Independent(0.1)


def study(n, m, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    f = 2.0 * np.sin(X[:, 0]) + X[:, 1]
    a = rng.integers(n, size=m)
    b = (a + 1 + rng.integers(n - 1, size=m)) % n
    first = f[a] - f[b] + rng.standard_normal(m) > 0
    winner, loser = np.where(first, a, b), np.where(first, b, a)
    return X, pc.Comparisons.from_pairs(winner, loser, items=range(n))


def fit(X, data):
    return pc.PreferenceGP(KERNEL, optimize=None, random_state=0).fit(X, data)


@pytest.fixture(scope="module")
def thousand():
    return fit(*study(1_000, 5_000))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_asking_about_all_pairs_of_a_thousand_items_is_fifteen_normal_integrals(
    thousand, criterion, seconds
):
    numbers = np.random.default_rng(1).standard_normal(499_500)
    taken = seconds(lambda: thousand.ask(1, criterion))
    assert taken <= 15.0 * seconds(lambda: ndtr(numbers))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_asking_costs_no_more_right_after_an_answer(thousand, criterion, seconds):
    """When nothing of the new posterior has been worked out yet."""
    numbers = np.random.default_rng(1).standard_normal(499_500)
    taken = []
    for _ in range(5):
        thousand.tell([(5, 7)])
        taken.append(seconds(lambda: thousand.ask(1, criterion), repeats=1))
        thousand.undo()
    assert min(taken) <= 15.0 * seconds(lambda: ndtr(numbers))


def test_telling_a_thousand_items_is_a_twentieth_of_a_fit(thousand, seconds):
    X, data = study(1_000, 5_000)
    whole = seconds(lambda: fit(X, data), repeats=3)
    assert seconds(lambda: thousand.tell([(5, 7)]).undo()) <= whole / 20.0


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_round_trip_with_two_hundred_items_feels_instant(criterion, seconds):
    gp = fit(*study(200, 1_000))

    def round_trip():
        gp.tell(gp.ask(1, criterion))

    assert seconds(round_trip, repeats=10) <= 0.020


def test_telling_one_of_many_users_is_a_twentieth_of_a_fit(seconds):
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(1_000), 20)
    a = rng.integers(30, size=len(user))
    b = (a + 1 + rng.integers(29, size=len(user))) % 30
    data = pc.Comparisons.from_pairs(a, b, user=user, items=range(30), users=range(1_000))

    def fit_users():
        return pc.MultiUserGP(optimize=None, progress=False).fit(None, data)

    model = fit_users()
    whole = seconds(fit_users, repeats=3)
    assert seconds(lambda: model.tell([(5, 7)], user=3).undo()) <= whole / 20.0
