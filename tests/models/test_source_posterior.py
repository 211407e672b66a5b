"""`PreferenceGP.predict(source=)`: the posterior of each source of the utilities by itself."""

import numpy as np
import pytest
from scipy.linalg import block_diag

import penchant as pc
from penchant.errors import DataError
from penchant.kernels import RBF, Independent, Inputs, Linear, RegularizedLaplacian, undirected

N = 8
SUM = RBF(1.5) + RegularizedLaplacian("cites", iota=2.0) + Independent(0.5)


def draw_graph(rng, n=N):
    links = np.triu(rng.random((n, n)) < 0.3, 1).astype(float)
    return links + links.T


def draw_pairs(rng, m, n=N, **further):
    winner = rng.integers(n, size=m)
    return pc.Comparisons.from_pairs(
        winner, (winner + rng.integers(1, n, m)) % n, items=range(n), **further
    )


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def relative(mean, cov):
    """To the average item."""
    n = len(mean)
    contrast = np.eye(n) - 1.0 / n
    return contrast @ mean, np.sqrt(np.diag(contrast @ cov @ contrast))


@pytest.mark.parametrize("n_comparisons", [3, 40])
@pytest.mark.parametrize("inference", ["ep", "laplace"])
def test_sources_are_the_joint_prior_given_the_sites(rng, n_comparisons, inference):
    X, links = rng.normal(size=(N, 2)), draw_graph(rng)
    data = draw_pairs(rng, n_comparisons)
    model = pc.PreferenceGP(SUM, optimize=None, inference=inference)
    model.fit(X, data, {"cites": links})
    items = Inputs(X, {"cites": undirected(links)}, np.arange(N))
    priors = [part(items) for part in SUM.parts]
    belief = model.belief()
    # what the sites add to the precision of f = Σ f_s, and their shift
    precision = np.linalg.inv(belief.covariance()) - np.linalg.inv(sum(priors))
    shift = np.linalg.solve(belief.covariance(), belief.mean)
    # f_s are independent before the answers, and every answer sees their sum
    together = np.ones((len(priors), len(priors)))
    joint = np.linalg.inv(np.linalg.inv(block_diag(*priors)) + np.kron(together, precision))
    mean = joint @ np.tile(shift, len(priors))
    for s, source in enumerate(["features", "cites", "item effects"]):
        own = slice(s * N, (s + 1) * N)
        expected = relative(mean[own], joint[own, own])
        found = model.predict(source=source, return_std=True)
        np.testing.assert_allclose(found, expected, atol=1e-7)
        np.testing.assert_array_equal(model.predict(source=source), found[0])


def several_sources(rng, **chosen):
    n = 30
    X = rng.normal(size=(n, 3))
    relations = {"cites": draw_graph(rng, n), "sold by": draw_graph(rng, n)}
    answers = {
        "user": rng.integers(6, size=60),
        "covariates": {"price": rng.normal(size=60)},
    }
    data = draw_pairs(rng, 60, n, **answers)
    return pc.PreferenceGP(**chosen).fit(X, data, relations)


def added_up(model, *given, **how):
    return sum(model.predict(*given, source=source, **how) for source in model.shares_)


@pytest.mark.parametrize(
    "chosen", [{}, {"max_rank": 5}, {"optimize": "em"}, {"raters": "lapse"}], ids=str
)
def test_means_of_all_sources_add_up(rng, chosen):
    model = several_sources(rng, **chosen)
    assert {"features", "cites", "sold by"} <= set(model.shares_)
    np.testing.assert_allclose(added_up(model), model.predict(), atol=1e-6)


def test_means_add_up_for_new_items_users_and_after_more_answers(rng, tmp_path):
    model = several_sources(rng)
    X = rng.normal(size=(4, 3))
    new = {name: np.zeros((34, 34)) for name in ("cites", "sold by")}
    new["cites"][30, 2] = new["cites"][2, 30] = 1.0
    np.testing.assert_allclose(
        added_up(model, X, relations=new), model.predict(X, relations=new), atol=1e-6
    )
    assert model.predict(users=[1, 2], source="cites").shape == (2, 30)
    model.tell([(0, 1), (2, 3)], user=1)
    np.testing.assert_allclose(added_up(model), model.predict(), atol=1e-6)
    model.save(tmp_path / "model.pc")
    again = pc.load(tmp_path / "model.pc").predict(source="cites", return_std=True)
    np.testing.assert_allclose(again, model.predict(source="cites", return_std=True), atol=1e-6)


def test_means_add_up_for_rows_of_features(rng):
    model = pc.PreferenceGP().fit(rng.normal(size=(N, 2)), draw_pairs(rng, 20))
    X = rng.normal(size=(3, 2))
    np.testing.assert_allclose(added_up(model, X), model.predict(X), atol=1e-6)
    # a new item has no answers of its own: its effect is as before any
    mean, std = model.predict(X, source="item effects", return_std=True)
    np.testing.assert_allclose(mean, mean[0])
    assert np.all(std**2 >= model.kernel_.parts[1].variance)


def test_links_carry_what_features_do_not(rng):
    """Utilities that follow the links alone are the relation's, not the features'."""
    n = 40
    group = np.arange(n) % 2
    links = (group[:, None] == group) & (rng.random((n, n)) < 0.4)
    links = np.triu(links, 1).astype(float)
    data = pc.datasets.simulate_pairs(3.0 * group, 300, random_state=0)
    model = pc.PreferenceGP().fit(rng.normal(size=(n, 2)), data, {"cites": links + links.T})
    linked, features = model.predict(source="cites"), model.predict(source="features")
    assert np.corrcoef(linked, group)[0, 1] > 0.95
    assert linked.std() > 5.0 * features.std()


def test_one_source_is_all_there_is(rng):
    model = pc.PreferenceGP().fit(None, draw_pairs(rng, 20))
    assert list(model.shares_) == ["item effects"]
    np.testing.assert_allclose(
        model.predict(source="item effects", return_std=True),
        model.predict(return_std=True),
        atol=1e-7,
    )


def test_a_product_is_one_source(rng):
    X = rng.normal(size=(N, 2))
    kernel = Linear() * RBF(2.0) + Independent(0.3)
    model = pc.PreferenceGP(kernel, optimize=None).fit(X, draw_pairs(rng, 20))
    assert "features × features" in model.shares_
    np.testing.assert_allclose(added_up(model), model.predict(), atol=1e-6)


@pytest.mark.parametrize("source", ["links", "", 3, ["cites"]])
def test_an_unknown_source_is_told_with_those_that_are_there(rng, source):
    model = several_sources(rng)
    with pytest.raises(DataError, match=r"'features', 'cites', 'sold by'"):
        model.predict(source=source)


def test_paths_have_no_sources(rng):
    data = draw_pairs(rng, 30, time=np.arange(30.0))
    model = pc.PreferenceGP(drift="ou").fit(rng.normal(size=(N, 2)), data)
    with pytest.raises(DataError, match="half_life"):
        model.predict(source="features")
