"""Cost: ratios measured side by side in one process."""

import numpy as np
import pytest
from scipy.special import ndtr

import penchant as pc
from penchant.ask import CRITERIA
from penchant.kernels import RBF, Independent
from tests.simulation import duel_data

pytestmark = pytest.mark.slow


def utilities(n_items, n_pairs):
    """Fit a model of everybody."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_items, 3))
    data = duel_data(rng, 2.0 * np.sin(X[:, 0]) + X[:, 1], n_pairs)
    kernel = RBF(1.0, 2.0) + Independent(0.1)
    return pc.PreferenceGP(kernel, optimize=None, random_state=0).fit(X, data)


def people():
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(1_000), 20)
    a = rng.integers(30, size=len(user))
    b = (a + 1 + rng.integers(29, size=len(user))) % 30
    data = pc.Comparisons.from_pairs(a, b, user=user, items=range(30), users=range(1_000))
    return pc.MultiUserGP(optimize=None, progress=False).fit(None, data)


@pytest.fixture(scope="module")
def thousand():
    return utilities(1_000, 5_000)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_asking_about_all_pairs_of_a_thousand_items_is_fifteen_normal_integrals(
    thousand, criterion, seconds
):
    """Also right after an answer, when nothing of the new posterior is worked out yet."""
    numbers = np.random.default_rng(1).standard_normal(499_500)
    taken = []
    for _ in range(5):
        thousand.tell([(5, 7)])
        taken.append(seconds(lambda: thousand.ask(1, criterion), repeats=1))
        thousand.undo()
    assert min(taken) <= 15.0 * seconds(lambda: ndtr(numbers))


@pytest.mark.parametrize(
    ("fit", "about"), [(lambda: utilities(1_000, 5_000), {}), (people, {"user": 3})]
)
def test_telling_is_a_twentieth_of_a_fit(fit, about, seconds):
    model, whole = fit(), seconds(fit, repeats=3)
    assert seconds(lambda: model.tell([(5, 7)], **about).undo()) <= whole / 20.0


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_round_trip_with_two_hundred_items_feels_instant(criterion, seconds):
    gp = utilities(200, 1_000)
    assert seconds(lambda: gp.tell(gp.ask(1, criterion)), repeats=10) <= 0.020
