import warnings

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.exceptions import NotFittedError

import penchant as pc
from penchant.kernels import RBF, Independent, RegularizedLaplacian, directed
from penchant.likelihoods import Lapse, Probit
from tests.simulation import duel_data, duels


@pytest.fixture
def study(rng):
    """Twelve items with two features whose utility is linear in the first."""
    X = rng.standard_normal((12, 2))
    f = 2.0 * X[:, 0]
    return X, f, duel_data(rng, f, 150)


def chain(n):
    W = np.zeros((n, n))
    W[np.arange(n - 1), np.arange(1, n)] = 1
    return W + W.T


def test_learns_the_ranking(study):
    X, f, data = study
    gp = pc.PreferenceGP(random_state=0).fit(X, data)
    assert np.corrcoef(gp.predict(), f)[0, 1] > 0.95
    assert gp.rank()[0].item == int(np.argmax(gp.predict()))


def test_learns_which_feature_matters(rng):
    X = rng.standard_normal((60, 2))
    gp = pc.PreferenceGP().fit(X, duel_data(rng, 2.0 * np.sin(2.0 * X[:, 0]), 400))
    relevant, idle = gp.kernel_.parts[0].lengthscale
    assert idle > 2 * relevant


@pytest.mark.parametrize("seed", range(3))
def test_new_items_are_ranked_by_the_slope_beyond_those_that_were_compared(seed):
    """The prior's linear part carries on where an item is unlike all others."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3))
    w = np.array([2.0, -1.0, 0.5])
    gp = pc.PreferenceGP().fit(X, duel_data(rng, X @ w, 200))
    far = gp.predict(X=np.array([[8.0, 0.0, 0.0], [16.0, 0.0, 0.0], [0.0, 16.0, 0.0]]))
    assert far[1] > far[0] > gp.predict().max()
    assert far[2] < gp.predict().min()


def odd_items(rng, spread, n=60, m=600):
    """Items whose utility is linear in a feature, plus an effect of their own."""
    X = rng.standard_normal((n, 2))
    f = 1.5 * X[:, 0] + spread * rng.standard_normal(n)
    return X, f, duel_data(rng, f, m)


@pytest.mark.parametrize("rule", ["ep", "laplace"])
def test_items_that_their_features_do_not_explain_get_effects_of_their_own(rng, rule):
    X, f, data = odd_items(rng, spread=1.5)
    gp = pc.PreferenceGP(inference=rule).fit(X, data)
    features_only = pc.PreferenceGP(RBF((3.0, 3.0)), inference=rule).fit(X, data)
    assert gp.log_evidence_ > features_only.log_evidence_ + 10.0
    assert np.corrcoef(gp.predict(), f)[0, 1] > 0.9
    # features alone need a rough function, which knows nothing of items in between
    new = rng.standard_normal((40, 2))
    assert np.corrcoef(gp.predict(new), new[:, 0])[0, 1] > 0.9
    assert np.corrcoef(features_only.predict(new), new[:, 0])[0, 1] < 0.8
    # a row of X is a new item, less certain than the old one of the same features
    assert (gp.predict(X, return_std=True)[1] > gp.predict(return_std=True)[1]).all()


def test_items_that_their_features_explain_have_next_to_no_effect_of_their_own(rng):
    X, f, data = odd_items(rng, spread=0.0)
    gp = pc.PreferenceGP().fit(X, data)
    own = gp.shares_["item effects"]
    assert own.posterior < own.prior / 3.0
    assert np.corrcoef(gp.predict(), f)[0, 1] > 0.99


def test_a_kernel_that_was_given_is_kept(rng):
    X, _, data = odd_items(rng, spread=1.5)
    assert isinstance(pc.PreferenceGP(RBF(1.0)).fit(X, data).kernel_, RBF)
    # the rank of an effect of each item's own is the number of items
    assert isinstance(pc.PreferenceGP(max_rank=10).fit(X, data).kernel_, RBF)


@pytest.mark.parametrize(
    "spread",
    [pytest.param(0.0, marks=pytest.mark.slow), 0.4, pytest.param(1.0, marks=pytest.mark.slow)],
)
def test_intervals_allow_for_what_features_do_not_tell(spread):
    """25 studies of 15 items and 150 answers; the same draws as in the issue of wrong intervals."""
    found = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((15, 2))
        f = X @ [1.0, 0.5] + spread * rng.standard_normal(15)
        data = pc.datasets.simulate_pairs(f, 150, random_state=1_000 + seed)
        rows = pc.PreferenceGP().fit(X, data).rank(n_samples=10)
        truth = f - f.mean()
        inside = [row.low <= truth[row.item] <= row.high for row in rows]
        found.append(np.mean(inside))
    error = np.std(found) / np.sqrt(len(found))
    assert 0.92 - 2.0 * error < np.mean(found) < 1.0


def test_probabilities_follow_the_posterior(study):
    X, _, data = study
    gp = pc.PreferenceGP(optimize=None).fit(X, data)
    pairs = np.array([[0, 1], [3, 7], [11, 2]])
    mean, var = gp.posterior_.difference(pairs[:, 0], pairs[:, 1])
    np.testing.assert_allclose(gp.predict_proba(pairs), ndtr(mean / np.sqrt(1 + var)))


def test_an_item_never_compared_still_gets_a_utility(study):
    X, _, _ = study
    data = pc.Comparisons.from_pairs([0, 1, 2], [1, 2, 3], items=range(12))
    mean, std = pc.PreferenceGP(optimize=None).fit(X, data).predict(return_std=True)
    assert mean.shape == (12,)
    assert np.isfinite(mean).all()
    assert std[11] > std[1]


def test_new_items_agree_with_the_textbook_formula(study):
    """k*ᵀα and k** − k*ᵀ R k*, from dense matrices, less the average item's."""
    X, _, data = study
    kernel = RBF((1.0, 2.0), 1.5)
    gp = pc.PreferenceGP(kernel, optimize=None).fit(X, data)
    new = np.array([[0.3, -0.4], [2.0, 1.0]])
    mean, std = gp.predict(new, return_std=True)
    A = np.zeros((len(data), 12))
    A[np.arange(len(data)), data.winner] = 1
    A[np.arange(len(data)), data.loser] = -1
    c, sites = data.count.astype(float), gp.state_.learned.sites
    # the sites are in the order of the pooled data, which is the order of the data here
    L, b = A.T @ np.diag(c * sites.tau) @ A, A.T @ (c * sites.nu)
    K, cross = kernel(X), kernel(X, new)
    sigma = np.linalg.inv(np.linalg.inv(K) + L)
    alpha = b - L @ sigma @ b
    R = L - L @ sigma @ L
    rows, every = kernel(np.vstack([new, X]), X), np.vstack([new, X])
    joint = kernel(every) - rows @ R @ rows.T
    above = np.hstack([np.eye(2), np.full((2, 12), -1.0 / 12.0)])
    np.testing.assert_allclose(mean, above @ rows @ alpha, atol=1e-7)
    np.testing.assert_allclose(std**2, np.diagonal(above @ joint @ above.T), atol=1e-7)
    p = gp.predict_proba([(0, 1)], X=new)
    cov = kernel(new) - cross.T @ R @ cross
    var = cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]
    np.testing.assert_allclose(p, ndtr((mean[0] - mean[1]) / np.sqrt(1 + var)), atol=1e-7)


def test_relations_carry_preference_along_links():
    data = pc.Comparisons.from_pairs([0], [9], items=range(10))
    gp = pc.PreferenceGP(optimize=None).fit(None, data, relations={"next": chain(10)})
    utilities = gp.predict()
    assert np.all(np.diff(utilities[:5]) < 0)
    assert utilities[1] > 0 > utilities[8]


def test_directed_relations_by_roles_and_by_random_walk(rng, study):
    X, _, data = study
    cites = (rng.random((12, 12)) < 0.2).astype(float)
    np.fill_diagonal(cites, 0)
    for graph, n_parts in ((directed(cites), 3), (directed(cites, "chung"), 2)):
        gp = pc.PreferenceGP().fit(X, data, relations={"cites": graph})
        assert len(gp.kernel_.kernels) == n_parts
        assert np.isfinite(gp.log_evidence_)


def test_new_nodes_given_their_edges():
    """Predicting a new node equals having had it in the graph from the start, uncompared."""
    data = pc.Comparisons.from_pairs([0, 1], [4, 3], items=range(5))
    model = pc.PreferenceGP(RegularizedLaplacian("next", 0.5, 2.0), optimize=None)
    gp = model.fit(None, data, relations={"next": chain(5)})
    mean, std = gp.predict(return_std=True, relations={"next": chain(6)})
    more = pc.Comparisons.from_pairs([0, 1], [4, 3], items=range(6))
    whole = model.fit(None, more, relations={"next": chain(6)})
    belief, contrast = whole.belief(), np.append(np.full(5, -0.2), 1.0)
    np.testing.assert_allclose(mean, contrast @ belief.mean, atol=1e-6)
    np.testing.assert_allclose(std**2, contrast @ belief.covariance() @ contrast, atol=1e-6)


def test_the_rank_is_bounded(study):
    X, _, data = study
    gp = pc.PreferenceGP(max_rank=5, optimize=None).fit(X, data)
    assert gp.report_.rank == 5
    assert len(gp.rank()) == 12


def test_prob_best_matches_two_item_closed_form():
    data = pc.Comparisons.from_pairs(["a"] * 3, ["b"] * 3)
    gp = pc.PreferenceGP(Independent(1.0), optimize=None, random_state=0).fit(None, data)
    mean, var = gp.posterior_.difference(np.array([0]), np.array([1]))
    exact = float(ndtr(mean / np.sqrt(var))[0])
    table = gp.rank(n_samples=20_000)
    sigma = np.sqrt(exact * (1 - exact) / 20_000)
    assert abs(table[0].prob_best - exact) < 4 * sigma


@pytest.mark.parametrize("optimize", ["evidence", "em"])
def test_learning_raises_the_evidence(study, optimize):
    X, _, data = study
    fixed = pc.PreferenceGP(RBF(3.0, 0.5), optimize=None).fit(X, data)
    learned = pc.PreferenceGP(RBF(3.0, 0.5), optimize=optimize).fit(X, data)
    assert learned.log_evidence_ > fixed.log_evidence_ + 1.0
    assert learned.report_.optimizer


def test_a_learned_lapse_rate_finds_the_slips(rng):
    """A tenth of clear-cut answers flipped at random: the rate is found within its error."""
    n, m = 15, 3000
    f = 4.0 * rng.standard_normal(n)
    winner, loser = duels(rng, f, m)
    turned = rng.random(m) < 0.1  # a lapse is right half of the time
    pairs = np.where(turned, loser, winner), np.where(turned, winner, loser)
    data = pc.Comparisons.from_pairs(*pairs, items=range(n))
    gp = pc.PreferenceGP(Independent(4.0), likelihood=Lapse(Probit(), 0.05)).fit(None, data)
    assert gp.likelihood_.rate == pytest.approx(0.2, abs=4 * np.sqrt(0.2 * 0.8 / m) + 0.02)


def test_ties_need_a_likelihood_that_has_them():
    data = pc.Comparisons.from_pairs(["a", "a"], ["b", "c"], tie=[True, False])
    with pytest.raises(pc.DataError, match="likelihood='ties'"):
        pc.PreferenceGP().fit(None, data)


@pytest.mark.parametrize("likelihood", ["ties", "probit"])
def test_a_contradictory_cycle_and_all_ties_rank_nobody(likelihood):
    tie = [True] * 3 if likelihood == "ties" else None
    data = pc.Comparisons.from_pairs(["a", "b", "c"], ["b", "c", "a"], tie=tie)
    gp = pc.PreferenceGP(likelihood=likelihood).fit(None, data)
    np.testing.assert_allclose(gp.predict(), 0.0, atol=1e-6)


def test_items_with_the_same_features_may_be_liked_differently():
    X = np.array([[0.0], [0.0], [1.0]])
    data = pc.Comparisons.from_pairs([0] * 9 + [1], [1] * 9 + [0], items=range(3))
    gp = pc.PreferenceGP().fit(X, data)
    assert gp.predict_proba([(0, 1)])[0] > 0.7
    assert np.isfinite(gp.predict(np.array([[0.5]]), return_std=True)).all()
    bounded = pc.PreferenceGP(max_rank=1).fit(X, data)
    assert bounded.predict_proba([(0, 1)])[0] == pytest.approx(0.5)


def fit_three(X=None, relations=None, **how):
    data = pc.Comparisons.from_pairs([0, 1], [1, 2], items=range(3))
    return pc.PreferenceGP(**how).fit(X, data, relations=relations)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"X": [[0.0], [np.nan], [1.0]]}, r"row 1, column 0.*SimpleImputer"),
        ({"X": [[0.0], [np.inf], [1.0]]}, "missing or infinite"),
        ({"X": [["red"], ["blue"], ["green"]]}, "encode text columns"),
        ({"X": [[0.0], [1.0]]}, "2 rows and there are 3 items"),
        ({"X": [0.0, 1.0, 2.0]}, "reshape"),
        ({"relations": {"cites": np.triu(np.ones((3, 3)), 1)}}, "directed"),
        ({"relations": {"cites": -chain(3)}}, "negative"),
        ({"relations": {"cites": chain(4)}}, "3"),
    ],
)
def test_bad_features_and_graphs_are_refused(wrong, message):
    with pytest.raises(pc.DataError, match=message):
        fit_three(**wrong)


def test_data_that_tell_little_are_warned_about():
    with pytest.warns(pc.DataWarning, match="columns 1 of X are constant"):
        fit_three([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]])
    with pytest.warns(pc.DataWarning, match="prior"):
        pc.PreferenceGP(optimize=None).fit(None, pc.Comparisons.from_pairs([0, 2], [1, 3]))


def test_predictions_need_a_fit_and_the_rows_that_are_asked_about(study):
    X, _, data = study
    gp = pc.PreferenceGP(optimize=None)
    with pytest.raises(NotFittedError):
        gp.predict()
    gp.fit(X, data)
    with pytest.raises(pc.DataError, match="rows"):
        gp.predict_proba([(0, 9)], X=np.zeros((3, 2)))


def test_a_good_fit_warns_of_nothing(study):
    X, _, data = study
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pc.PreferenceGP().fit(X, data)
