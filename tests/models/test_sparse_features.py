"""Bags of words: the same numbers as dense features, without ever making them dense."""

import warnings

import numpy as np
import pytest
from scipy import sparse

import penchant as pc
from penchant.errors import DataError
from penchant.kernels import RBF, Inputs, Linear, Matern
from penchant.models import Scaling

N, D = 25, 40


@pytest.fixture(scope="module")
def words():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.3, size=(N, D)).astype(float)
    counts[:, 3] = 0.0
    counts[:, 4] = 1.0
    counts[:, 5] = rng.choice([-1.0, 0.0, 2.0], N)
    return sparse.csr_matrix(counts)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    winner = rng.integers(N, size=60)
    loser = (winner + 1 + rng.integers(N - 1, size=60)) % N
    return pc.Comparisons.from_pairs(winner, loser, user=np.arange(60) % 6, items=range(N))


KERNELS = [
    RBF(1.7, 2.0),
    RBF(tuple(np.linspace(0.5, 3.0, D))),
    Matern(0.5, 2.0),
    Matern(1.5, tuple(np.linspace(0.5, 3.0, D))),
    Linear(0.7),
    RBF(2.0) * Linear() + Matern(2.5),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: repr(kernel)[:12])
def test_kernels_see_the_same(kernel, words, rng):
    thin, thick = Inputs(sparse.csr_array(words)), Inputs(words.toarray())
    few = np.arange(7)
    np.testing.assert_allclose(kernel(thin), kernel(thick), atol=1e-12)
    np.testing.assert_allclose(
        kernel(thin, thin.take(few)), kernel(thick, thick.take(few)), atol=1e-12
    )
    np.testing.assert_allclose(kernel(thick.take(few), thin), kernel(thick.take(few), thick))
    np.testing.assert_allclose(kernel.diag(thin), kernel.diag(thick))
    G, H = rng.standard_normal((N, N)), rng.standard_normal((N, 7))
    G += G.T
    np.testing.assert_allclose(kernel.pullback(thin, G), kernel.pullback(thick, G), atol=1e-9)
    np.testing.assert_allclose(
        kernel.pullback(thin, H, thin.take(few)),
        kernel.pullback(thick, H, thick.take(few)),
        atol=1e-9,
    )


def test_scales_are_those_of_dense_columns(words):
    dense = Scaling.of(words.toarray())
    thin = Scaling.of(sparse.csr_array(words))
    np.testing.assert_allclose(thin.scale, dense.scale)
    assert not thin.center.any()


def test_fits_without_becoming_dense(words, data, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("dense features")

    monkeypatch.setattr(sparse.csr_matrix, "toarray", refuse)
    gp = pc.PreferenceGP(RBF(3.0)).fit(words, data)
    assert sparse.issparse(gp.state_.learned.problem.universe.X)


@pytest.mark.filterwarnings("ignore:feature columns")
@pytest.mark.parametrize("kernel", [RBF(3.0), Linear(0.2)])
def test_the_model_is_that_of_dense_features(kernel, words, data, tmp_path):
    thin = pc.PreferenceGP(kernel).fit(words, data)
    thick = pc.PreferenceGP(kernel).fit(words.toarray(), data)
    np.testing.assert_allclose(thin.predict(), thick.predict(), atol=1e-6)
    new = words[:4].toarray() + 1.0
    for rows in (new, sparse.csr_matrix(new), sparse.coo_array(new)):
        np.testing.assert_allclose(thin.predict(rows), thick.predict(new), atol=1e-6)
        np.testing.assert_allclose(
            thick.predict_proba([(0, 3)], X=rows), thin.predict_proba([(0, 3)], X=new), atol=1e-6
        )
    thin.save(tmp_path / "thin.penchant")
    again = pc.load(tmp_path / "thin.penchant")
    assert sparse.issparse(again.state_.learned.problem.universe.X)
    np.testing.assert_array_equal(again.predict(words), thin.predict(words))
    np.testing.assert_array_equal(
        again.tell([(0, 1)]).predict(), pc.load(tmp_path / "thin.penchant").tell([(0, 1)]).predict()
    )


@pytest.mark.parametrize("model", [pc.PreferenceGP, pc.MultiUserGP, pc.CommunityGP])
def test_every_model_takes_them_and_says_nothing_of_missing_words(model, words, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = model(random_state=0).fit(words, data)
    assert np.isfinite(fitted.predict(words[:3])).all()


def test_new_items_of_a_relation(words, data):
    graph = np.diag(np.ones(N + 1), 1) + np.diag(np.ones(N + 1), -1)
    gp = pc.PreferenceGP().fit(words, data, {"next": graph[:N, :N]})
    assert gp.predict(words[:2], relations={"next": graph}).shape == (2,)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_values_are_named(words, data, value):
    broken = words.copy().tolil()
    broken[7, 2] = value
    with pytest.raises(DataError, match="row 7, column 2"):
        pc.PreferenceGP().fit(broken.tocsr(), data)


def test_rows_and_columns_are_counted(words, data):
    with pytest.raises(DataError, match="X has 24 rows and there are 25 items"):
        pc.PreferenceGP().fit(words[:24], data)
    with pytest.raises(DataError, match="39 were given"):
        pc.PreferenceGP().fit(words, data).predict(words[:, :39])


def test_twins_are_seen_in_sparse_rows(data):
    kinds = sparse.csr_array(np.repeat(np.eye(5), 5, axis=0))
    gp = pc.PreferenceGP().fit(kinds, data)
    assert "item effects" in gp.shares_
