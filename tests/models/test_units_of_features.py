"""Parameters of kernels that are not given follow the features: their units change nothing."""

import copy
import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

import penchant as pc
from penchant.errors import DataWarning
from penchant.kernels import RBF, Independent, Linear, Matern

RNG = np.random.default_rng(0)
Z = RNG.standard_normal((30, 2))
NEW = RNG.standard_normal((50, 2))
ABOUT = RNG.standard_normal((6, 2))
KERNELS = [RBF(), Matern(), Linear(), RBF(variance=2.0) + Independent(), 2.0 * Matern(1.5)]
GIVEN = [RBF(1.0), RBF((1.0, 1.0)), Matern(2.5, 1.0)]


def utility(X):
    return 2.0 * np.sin(X[:, 0]) + X[:, 1]


def answers():
    data = pc.datasets.simulate_pairs(utility(Z), 300, random_state=0)
    return pc.Comparisons.from_pairs(
        data.winner, data.loser, user=np.arange(len(data)) % 6, items=range(30), users=range(6)
    )


QUIET = {"random_state": 0, "progress": False}
MODELS = {
    "gp": partial(pc.PreferenceGP, random_state=0),
    "multi-user": partial(pc.MultiUserGP, user_kernel=RBF() + 1.0, **QUIET),
    "community": partial(pc.CommunityGP, **QUIET),
}


def fitted(name, kernel, unit, **how):
    about = {} if name == "gp" else {"user_features": unit * ABOUT}
    return MODELS[name](kernel=kernel, **how).fit(unit * Z, answers(), **about)


@pytest.mark.parametrize("optimize", ["evidence", None])
@pytest.mark.parametrize(
    ("name", "kernel"),
    [("gp", kernel) for kernel in KERNELS]
    + [(name, kernel) for name in ("multi-user", "community") for kernel in (RBF(), Linear())],
    ids=repr,
)
def test_units_do_not_matter(name, kernel, optimize):
    wanted = fitted(name, kernel, 1.0, optimize=optimize).predict(NEW)
    for unit in (1e-3, 1e3, 1e6) if name == "gp" else (1e3,):
        found = fitted(name, kernel, unit, optimize=optimize).predict(unit * NEW)
        np.testing.assert_allclose(found, wanted, atol=1e-3 * np.ptp(wanted))


@pytest.mark.parametrize("name", MODELS)
def test_new_items_are_foreseen_in_any_unit(name):
    predicted = fitted(name, RBF(), 1e3).predict(1e3 * NEW)
    assert np.corrcoef(predicted, utility(NEW))[0, 1] > 0.9


@pytest.mark.parametrize("name", ["RankRLS", "KPCRank", "RankSVM"])
def test_units_do_not_matter_to_rankers(name):
    model = getattr(pc, name)
    wanted = model(RBF()).fit(Z, utility(Z)).predict(NEW)
    found = model(RBF()).fit(1e3 * Z, utility(Z)).predict(1e3 * NEW)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("kernel", GIVEN, ids=repr)
@pytest.mark.parametrize("unit", [1e-3, 1e3])
@pytest.mark.parametrize("name", MODELS)
def test_a_given_lengthscale_far_from_the_features_is_warned_about(name, kernel, unit):
    with pytest.warns(DataWarning, match=rf"{type(kernel).__name__}\(\), to start"):
        fitted(name, kernel + Independent(), unit, optimize=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        fitted(name, kernel + Independent(), 3.0, optimize=None)


def test_a_given_lengthscale_of_users_is_warned_about():
    model = pc.MultiUserGP(user_kernel=RBF(1.0), optimize=None, progress=False)
    with pytest.warns(DataWarning, match="1 lengthscales|lengthscales of RBF"):
        model.fit(None, answers(), user_features=1e3 * ABOUT)


@pytest.mark.parametrize("kernel", GIVEN, ids=repr)
def test_a_given_parameter_stays(kernel):
    assert fitted("gp", kernel, 1.0, optimize=None).kernel_ == kernel
    assert fitted("gp", Linear(1.0), 1.0, optimize=None).kernel_ == Linear(1.0)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_copies_and_files_know_what_was_not_given(kernel, tmp_path):
    model = fitted("gp", kernel, 1.0, optimize=None)
    model.save(tmp_path / "model.penchant")
    copies = [clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    wanted = fitted("gp", kernel, 1e3, optimize=None).predict()
    for same in [*copies, pc.load(tmp_path / "model.penchant")]:
        assert same.kernel == kernel
        np.testing.assert_array_equal(same.fit(1e3 * Z, answers()).predict(), wanted)


def test_outside_a_fit_a_default_is_a_number():
    assert RBF().lengthscale == 1.0
    assert RBF() == RBF(1.0)
    assert repr(RBF()) == "RBF(lengthscale=1.0, variance=1.0)"
    np.testing.assert_array_equal(RBF()(Z), RBF(1.0)(Z))
    np.testing.assert_array_equal(Linear()(Z), Linear(1.0)(Z))
