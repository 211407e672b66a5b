"""The estimator: names in and out, shapes, newcomers, saving, real data."""

import numpy as np
import pytest
from scipy.special import logit

from experiments.data import split_rankings
from penchant.data import Comparisons
from penchant.datasets import load_sushi_a
from penchant.errors import DataError
from penchant.gp import Rows, Settings, UserProblem
from penchant.kernels import RBF, Independent, Inputs
from penchant.likelihoods import Lapse, Probit
from penchant.metrics import calibration, log_loss, pair_error
from penchant.models import MultiUserGP, load, not_tried

ITEMS = ("tea", "milk", "water", "juice")
USERS = ("ann", "bob", "cem", "dee")


@pytest.fixture
def data():
    user = ["ann", "ann", "ann", "bob", "bob", "cem", "cem"]
    winner = ["tea", "tea", "milk", "milk", "juice", "tea", "water"]
    loser = ["milk", "water", "water", "tea", "tea", "juice", "juice"]
    return Comparisons.from_pairs(winner, loser, user=user, items=ITEMS, users=USERS)


@pytest.fixture
def X():
    return np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 0.0], [3.0, 2.0]])


@pytest.fixture
def F():
    return np.array([[20.0], [60.0], [25.0], [55.0]])


@pytest.fixture
def fitted(X, data, F):
    return MultiUserGP(optimize=None, random_state=0).fit(X, data, user_features=F)


def test_predict_by_name_and_by_index(fitted):
    every = fitted.predict(users=USERS)
    for users, rows in ((["cem", "ann"], [2, 0]), ("ann", [0]), (["bob", "ann", "bob"], [1, 0, 1])):
        np.testing.assert_allclose(fitted.predict(users=users), every[rows], atol=1e-12)
        np.testing.assert_array_equal(fitted.predict(users=users), fitted.predict(users=rows))


def test_users_differ_from_each_other_and_from_the_population(fitted):
    ann, bob = fitted.predict_proba([("tea", "milk")] * 2, ["ann", "bob"])
    population = fitted.belief().prob(np.array([0]), np.array([1]))[0]
    assert bob < 0.5 < ann
    assert bob < population < ann


def test_shares_say_what_the_item_kernel_looks_at(fitted, data):
    told = fitted.shares_
    assert list(told) == ["features", "item effects"]
    assert sum(share.posterior for share in told.values()) == pytest.approx(1.0)
    assert all(share.prior == share.posterior for share in told.values())  # nothing was learned
    free = MultiUserGP("free", progress=False).fit(None, data).shares_
    assert free == {"learned covariance": (pytest.approx(1.0), pytest.approx(1.0))}


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (100, ""),
        (101, "101 items are too many for a free"),
        (401, "few directions of taste (up to"),
    ],
)
def test_the_report_says_which_covariances_are_for_fewer_items(n, said):
    ring = np.arange(n)
    data = Comparisons.from_pairs(ring, np.roll(ring, 1), user=ring % 5, items=range(n))
    items, users = Inputs(index=ring), Inputs(index=np.arange(5))
    problem = UserProblem.of(items, users, Rows.by_user(data), Settings())
    assert said in not_tried(problem, None)
    assert bool(said) == bool(not_tried(problem, None))
    assert not_tried(problem, "free") == ""


def test_cold_users_follow_their_features(X, data, F):
    user_kernel = RBF(10.0, variance=20.0)
    gp = MultiUserGP(RBF(), user_kernel, optimize=None).fit(X, data, user_features=F)
    like_ann, like_bob = gp.predict_proba(
        [("tea", "milk")] * 2, users=[0, 1], user_features=[[20.0], [60.0]]
    )
    assert like_bob < like_ann
    assert gp.predict(user_features=[[30.0], [31.0], [32.0]]).shape == (3, 4)


def test_newcomers_without_features_get_what_is_shared(data):
    gp = MultiUserGP(optimize=None).fit(None, data)
    cold = gp.predict(user_features=np.empty((2, 0)))
    np.testing.assert_allclose(
        cold[0], gp.predict(users="dee")[0], atol=1e-12
    )  # dee never answered
    np.testing.assert_allclose(cold[0], gp.belief().mean, atol=1e-10)


def test_new_items_by_features(fitted, X):
    assert fitted.predict(X[:2] + 0.1, users=USERS).shape == (4, 2)
    near = fitted.predict_proba([(0, 1)], "ann", X=X[:2])
    assert near.shape == (1,)
    assert near[0] > 0.5


def test_folding_in_a_user(fitted):
    new = Comparisons.from_pairs(["juice", "water"], ["tea", "tea"], user=["eva", "eva"])
    with pytest.raises(DataError, match="none were given"):
        fitted.fold_in(new)
    bigger = fitted.fold_in(new, [[40.0]])
    assert bigger.predict_proba([("tea", "juice")], "eva")[0] < 0.5
    assert bigger.comparisons_.users == (*USERS, "eva")
    np.testing.assert_allclose(bigger.predict(users=USERS), fitted.predict(users=USERS), atol=1e-12)
    assert bigger.predict(users=bigger.comparisons_.users).shape == (5, 4)
    assert fitted.predict().shape == (4,)
    twice = bigger.fold_in(Comparisons.from_pairs(["tea"], ["milk"], user=["fay"]), [[21.0]])
    assert twice.predict(users=twice.comparisons_.users).shape == (6, 4)


def test_folding_in_refuses_known_users_and_unknown_items(fitted):
    with pytest.raises(DataError, match="'ann'"):
        fitted.fold_in(Comparisons.from_pairs(["tea"], ["milk"], user=["ann"]), [[20.0]])
    with pytest.raises(DataError, match="unknown item 'wine'"):
        fitted.fold_in(Comparisons.from_pairs(["tea"], ["wine"], user=["eva"]), [[20.0]])


RULES = pytest.mark.parametrize("rule", ["summary", "printed"])


@RULES
def test_sparse_reports_what_it_kept(X, data, rule):
    whole = MultiUserGP(optimize=None).fit(X, data)
    gp = MultiUserGP(optimize=None, sparse=(2, 3), sparse_rule=rule).fit(X, data)
    assert whole.kept_ is None
    assert len(gp.kept_users_) == 2
    assert len(gp.kept_items_) == 3
    assert set(gp.kept_users_) < set(USERS)
    assert gp.kept_.n_comparisons < len(data)
    assert gp.log_evidence_ == whole.log_evidence_
    assert gp.predict(users=USERS).shape == (4, 4)
    assert np.abs(gp.predict(users=USERS) - whole.predict(users=USERS)).max() > 1e-3


def test_the_printed_rule_keeps_who_contradicts_and_a_summary_does_not():
    """Twelve people with one taste, and one with the opposite, who answered as much."""
    rng = np.random.default_rng(0)
    a, b = np.triu_indices(6, 1)
    user = np.repeat(np.arange(13), len(a))
    better = np.tile(a, 13) + rng.normal(0, 1.0, len(user)) < np.tile(b, 13)
    better[user == 7] ^= True
    win, lose = np.where(better, [np.tile(a, 13), np.tile(b, 13)], [np.tile(b, 13), np.tile(a, 13)])
    data = Comparisons.from_pairs(win, lose, user=user, items=range(6), users=range(13))
    fixed = {"optimize": None, "sparse": (1, 6), "sharing": 0.8}
    printed = MultiUserGP(**fixed, sparse_rule="printed").fit(None, data)
    summary = MultiUserGP(**fixed).fit(None, data)
    assert printed.kept_users_ == (7,)
    others = np.delete(summary.kept_.user_entropy, 7)
    np.testing.assert_allclose(summary.kept_.user_entropy[7], others, rtol=1e-9)
    pairs = np.column_stack([a, b])
    assert (summary.predict_proba(pairs, users=[0] * len(pairs)) > 0.5).mean() > 0.9
    assert (printed.predict_proba(pairs, users=[0] * len(pairs)) > 0.5).mean() < 0.1


def test_keeping_everybody_predicts_as_ep_does(X, data, F):
    whole = MultiUserGP(optimize=None).fit(X, data, user_features=F)
    gp = MultiUserGP(optimize=None, sparse=(10, 10)).fit(X, data, user_features=F)
    for one, other in zip(
        gp.predict(users=USERS, return_std=True),
        whole.predict(users=USERS, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_options_that_go_together(data):
    with pytest.raises(DataError, match="without sparse"):
        MultiUserGP(sparse_rule="printed").fit(None, data)
    with pytest.raises(DataError, match="sharing=1"):
        MultiUserGP(sharing=1).fit(None, data)


def test_sharing_of_one_is_the_product_of_both_kernels(data, F):
    """K_u ⊗ K_x itself, as paper 003 writes it (Eq. 3): users with equal features are one."""
    same = np.array(F)
    same[1] = same[0]
    gp = MultiUserGP(sharing=1, optimize=None).fit(None, data, user_features=same)
    near = MultiUserGP(sharing=1 - 1e-9, optimize=None).fit(None, data, user_features=same)
    np.testing.assert_allclose(gp.predict(users=USERS), near.predict(users=USERS), atol=1e-6)
    first, second = gp.predict(users=USERS[:2])
    np.testing.assert_allclose(first, second, atol=1e-9)


@pytest.mark.parametrize("inference", ["ep", "laplace", "variational"])
def test_learning_raises_the_evidence(data, inference):
    start = MultiUserGP(inference=inference, optimize=None).fit(None, data)
    learned = MultiUserGP(inference=inference).fit(None, data)
    assert learned.log_evidence_ > start.log_evidence_
    assert learned.report_.n_evaluations > 1
    assert 0.0 < learned.sharing_ < 1.0


def test_likelihoods_with_parameters(data):
    gp = MultiUserGP(likelihood=Lapse(Probit(), 0.05)).fit(None, data)
    assert gp.likelihood_.rate != 0.05
    assert gp.predict_proba([("tea", "milk")], "ann")[0] < 1 - gp.likelihood_.rate / 2


@RULES
@pytest.mark.parametrize("with_features", [False, True])
def test_sparse_models_are_saved(X, data, F, tmp_path, with_features, rule):
    gp = MultiUserGP(optimize=None, sparse=(2, 3), sparse_rule=rule, random_state=0)
    gp.fit(X if with_features else None, data, user_features=F if with_features else None)
    gp.save(tmp_path / "model.penchant")
    again = load(tmp_path / "model.penchant")
    np.testing.assert_array_equal(again.predict(users=USERS), gp.predict(users=USERS))
    np.testing.assert_array_equal(
        again.predict_proba([("tea", "milk")], "dee"), gp.predict_proba([("tea", "milk")], "dee")
    )
    assert again.report_ == gp.report_
    assert list(again.belief("ann").mean) == list(gp.belief("ann").mean)
    kept = again.comparisons_
    assert {kept.users[u] for u in kept.user} <= set(gp.kept_users_)
    assert kept.n_comparisons + again.n_elsewhere_ == data.n_comparisons
    with pytest.raises(DataError, match="are not in this model"):
        again.tell([("tea", "milk")], user="ann")
    new = Comparisons.from_pairs(["tea"], ["milk"], user=["eva"])
    folded = again.fold_in(new, [[20.0]] if with_features else None)
    folded.save(tmp_path / "folded.penchant")
    read = load(tmp_path / "folded.penchant")
    np.testing.assert_array_equal(read.predict(users="eva"), folded.predict(users="eva"))


def test_bad_requests(fitted, data, X):
    with pytest.raises(DataError, match="who made them"):
        MultiUserGP().fit(X, data.pooled())
    with pytest.raises(DataError, match="one user for all pairs"):
        fitted.predict_proba([(0, 1)] * 3, ["ann", "bob"])
    with pytest.raises(DataError, match="unknown row of user_features 5"):
        fitted.predict_proba([(0, 1)], users=5, user_features=[[1.0], [2.0]])
    with pytest.raises(DataError, match="features X"):
        MultiUserGP("free", optimize=None).fit(X, data).predict(X=X)


def study(rng, steps, n=15, n_users=40, n_answers=80):
    """Pairs of differently rated items, of utilities (steps=None) or of as many steps of them."""
    f = rng.standard_normal(n) + 0.7 * rng.standard_normal((n_users, n))
    if steps is not None:
        f = 9.0 * np.digitize(f, np.quantile(f, np.arange(1, steps) / steps))
    user = np.repeat(np.arange(n_users), n_answers)
    a, b = rng.integers(n, size=(2, len(user)))
    user, a, b = (each[f[user, a] != f[user, b]] for each in (user, a, b))
    won = f[user, a] - f[user, b] + rng.standard_normal(len(user)) > 0
    winner, loser = np.where(won, a, b), np.where(won, b, a)
    data = Comparisons.from_pairs(winner, loser, user=user, items=range(n), users=range(n_users))
    return data.split(1 / 3, random_state=rng)


def slope_of(p):
    """The best power of the odds, by a grid."""
    grid = np.exp(np.linspace(-1.5, 2.0, 200))
    odds = logit(np.clip(p, 1e-12, 1.0 - 1e-12))
    return grid[np.argmin([np.logaddexp(0.0, -s * odds).mean() for s in grid])]


def test_pairs_made_of_a_few_steps_are_predicted_as_sharply_as_they_are(rng, tmp_path):
    train, test = study(rng, steps=3)
    model = MultiUserGP(progress=False).fit(None, train)
    pairs, who = np.column_stack([test.winner, test.loser]), np.asarray(test.user)
    p = model.predict_proba(pairs, who)
    mean, var = model.posterior_.differences(who, test.winner, test.loser)
    timid = Probit().prob(mean, var)
    assert model.report_.slope > 1.5
    assert abs(np.log(slope_of(p))) < 0.5 * np.log(slope_of(timid))
    assert np.log(p).mean() > np.log(timid).mean() + 0.02
    model.save(tmp_path / "model")
    read = load(tmp_path / "model")
    np.testing.assert_allclose(read.predict_proba(pairs, who), p, atol=1e-9)
    told = read.tell([(0, 1)], user=3, reconverge=True)
    assert told.report_.slope == model.report_.slope
    assert told.posterior_.calibration == model.posterior_.calibration
    # what predicts a person's other answers says nothing about people at large
    population = model.posterior_.population().difference(*pairs.T)
    np.testing.assert_allclose(model.predict_proba(pairs), Probit().prob(*population))


def test_calibrated_predictions_stay_as_they_are(rng):
    train, _ = study(rng, steps=None)
    model = MultiUserGP(progress=False).fit(None, train)
    assert 0.9 < model.report_.slope < 1.1
    assert model.posterior_.calibration.slope == 1.0
    given = MultiUserGP(Independent(), progress=False).fit(None, train)
    assert given.report_.slope == pytest.approx(model.report_.slope, abs=0.1)
    assert given.posterior_.calibration.slope == 1.0


def sushi_split(n_users, k, seed):
    """k of the 45 pairs of each user for training, the rest for testing."""
    rng = np.random.default_rng(seed)
    rankings = load_sushi_a().rankings[rng.choice(5000, n_users, replace=False)]
    train, test = split_rankings(rankings, k, rng)
    return train.comparisons(10, n_users), test


def test_sushi_is_learned_from_five_pairs_a_user(data_folder):
    train, test = sushi_split(300, 5, seed=0)
    p = MultiUserGP().fit(None, train).predict_proba(test.pairs, test.user)
    assert pair_error(p) < 0.29  # a population ranking alone errs in 0.34
    assert log_loss(p) < 0.55
    assert calibration(p).error < 0.03


def test_a_few_answers_settle_little():
    contradict = Comparisons.from_pairs(["a", "b"], ["b", "a"], user=["u", "v"])
    first = MultiUserGP().fit(None, contradict).rank()[0]
    assert 0.5 < first.high - first.low < 3.0
    agree = Comparisons.from_pairs(["a", "b", "a"], ["b", "c", "c"], user=["u", "u", "v"])
    best = MultiUserGP().fit(None, agree).rank()[0]
    assert best.item == "a"
    assert 0.4 < best.prob_best < 0.95
    assert best.utility < 5.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "accuracy", "log_lik"), [(5, 0.74, -0.53), (10, 0.78, -0.44), (27, 0.87, -0.26)]
)
def test_sushi_of_a_thousand_users(data_folder, k, accuracy, log_lik):
    train, test = sushi_split(1000, k, seed=0)
    p = MultiUserGP().fit(None, train).predict_proba(test.pairs, test.user)
    assert 1 - pair_error(p) >= accuracy
    assert -log_loss(p) >= log_lik
    assert calibration(p).error <= 0.03
