"""RankRLS, KPCRank and RankSVM as scikit-learn estimators, on graded scores and comparisons."""

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from penchant.data import Comparisons
from penchant.datasets import load_parse_sample
from penchant.errors import DataError
from penchant.kernels import RBF, Linear
from penchant.metrics import disagreement_error
from penchant.models import KPCRank, RankRLS, RankSVM

RANKERS = (RankRLS, KPCRank, RankSVM)


@parametrize_with_checks(
    [ranker(kernel) for ranker in RANKERS for kernel in (None, "linear")]
    + [KPCRank(selection="truncate"), RankRLS(alpha=1.0), KPCRank(n_components=3)]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture
def graded(rng):
    """Rows of 12 queries, whose scores also carry a constant of the query that must not matter."""
    X = rng.standard_normal((180, 4))
    qid = np.repeat(np.arange(12), 15)
    y = np.sin(X[:, 0]) + X[:, 1] + 5.0 * rng.standard_normal(12)[qid]
    return X, y, qid


@pytest.mark.parametrize("ranker", RANKERS)
def test_learns_within_groups(ranker, graded):
    X, y, qid = graded
    train = qid < 8
    model = ranker(random_state=0).fit(X[train], y[train], qid=qid[train])
    score = model.score(X[~train], y[~train], qid=qid[~train])
    error = disagreement_error(y[~train], model.predict(X[~train]), qid=qid[~train])
    assert score == pytest.approx(1.0 - error)
    assert score > 0.9


@pytest.mark.parametrize("ranker", RANKERS)
def test_group_constants_do_not_matter(ranker, graded, rng):
    X, y, qid = graded
    shifted = y + rng.standard_normal(12)[qid]
    one = ranker().fit(X, y, qid).predict(X)
    np.testing.assert_allclose(one, ranker().fit(X, shifted, qid).predict(X), atol=1e-6)


@pytest.mark.parametrize("ranker", RANKERS)
def test_comparisons_with_margins_are_graded_scores(ranker, graded):
    X, y, qid = graded
    X, y, qid = X[:45], y[:45], qid[:45]
    data = Comparisons.from_scores(y, groups=qid)
    parameters = {RankRLS: {"alpha": 0.5}, KPCRank: {"n_components": 7}, RankSVM: {}}[ranker]
    by_score = ranker(**parameters).fit(X, y, qid).predict(X)
    by_pair = ranker(**parameters).fit(X, data).predict(X)
    if ranker is RankSVM:  # margins do not enter, and groups are weighted: the same order only
        assert np.corrcoef(by_score, by_pair)[0, 1] > 0.98
    else:
        np.testing.assert_allclose(by_pair, by_score, atol=1e-7)


@pytest.mark.parametrize("ranker", RANKERS)
def test_comparisons_without_margins(ranker, rng, make_comparisons):
    X = rng.standard_normal((60, 2))
    data = make_comparisons(n_items=60, n_pairs=600, utilities=4.0 * X[:, 0])
    model = ranker(random_state=0).fit(X, data)
    new = rng.standard_normal((300, 2))
    assert model.score(new, new[:, 0]) > 0.9
    assert model.score(X, data) > 0.85


def test_ties_draw_scores_together():
    X = np.eye(3)
    pairs = {"winner": [0, 1], "loser": [2, 2], "items": range(3)}
    free = RankRLS("linear", alpha=0.1).fit(X, Comparisons.from_pairs(**pairs)).predict(X)
    pairs = {"winner": [0, 0], "loser": [2, 1], "tie": [False, True], "items": range(3)}
    tied = RankRLS("linear", alpha=0.1).fit(X, Comparisons.from_pairs(**pairs)).predict(X)
    assert free[0] > free[2]
    assert 0 < tied[0] - tied[1] < 0.6 * (tied[0] - tied[2])


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("shape", ["long", "wide"])
def test_sparse_and_dense_agree(ranker, shape, rng):
    n, d = (60, 20) if shape == "long" else (40, 300)
    X = sparse.random(n, d, density=0.2, random_state=1, format="csr")
    y = X @ rng.standard_normal(d)
    one = ranker().fit(X, y)  # linear, because X is sparse
    other = ranker("linear").fit(X.toarray(), y)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    np.testing.assert_allclose(one.predict(X), other.predict(X.toarray()), atol=1e-6)


@pytest.mark.parametrize("ranker", [RankRLS, KPCRank])
def test_wide_and_long_linear_paths_agree(ranker, rng):
    X = rng.standard_normal((30, 30))
    y = X[:, 0] + rng.standard_normal(30)
    parameters = {"alpha": 2.0} if ranker is RankRLS else {"n_components": 5}
    primal = ranker("linear", **parameters).fit(X, y)
    padded = np.hstack([X, np.zeros((30, 1))])  # one more column than rows: through the Gram matrix
    dual = ranker("linear", **parameters).fit(padded, y)
    np.testing.assert_allclose(dual.coef_, np.append(primal.coef_, 0.0), atol=1e-8)


def test_a_linear_kernel_keeps_its_variance(rng):
    X = rng.standard_normal((25, 3))
    y = X[:, 0] + rng.standard_normal(25)
    scaled = RankRLS(Linear(variance=4.0), alpha=1.0).fit(X, y).predict(X)
    np.testing.assert_allclose(scaled, RankRLS(Linear(), alpha=0.25).fit(X, y).predict(X))
    np.testing.assert_allclose(
        scaled, RankRLS(lambda A, B: 4 * A @ B.T, alpha=1.0).fit(X, y).predict(X)
    )


@pytest.mark.parametrize("ranker", RANKERS)
def test_all_landmarks_are_exact_and_few_are_close(ranker, graded):
    X, y, qid = graded
    exact = ranker(n_landmarks=None).fit(X, y, qid)
    every = ranker(n_landmarks=180, random_state=0).fit(X, y, qid)
    np.testing.assert_array_equal(exact.predict(X), every.predict(X))
    some = ranker(n_landmarks=60, random_state=0).fit(X, y, qid)
    again = ranker(n_landmarks=60, random_state=0).fit(X, y, qid)
    assert len(some.landmarks_) == 60
    np.testing.assert_array_equal(some.predict(X), again.predict(X))
    assert some.score(X, y, qid) > 0.9


def test_cross_validation_recovers_from_noise(rng):
    X = rng.standard_normal((200, 1))
    y = X[:, 0] + 3.0 * rng.standard_normal(200)
    new = np.linspace(-2, 2, 100)[:, None]
    overfitted = RankRLS(RBF(0.05), alpha=1e-6).fit(X, y).score(new, new[:, 0])
    chosen = RankRLS(RBF(0.5)).fit(X, y)
    assert chosen.score(new, new[:, 0]) > overfitted + 0.2
    assert chosen.alpha_ == chosen.alphas_[chosen.cv_error_ == chosen.cv_error_.min()].max()
    few = KPCRank(RBF(0.5)).fit(X, y)
    assert few.n_components_ == 1 + np.argmin(few.cv_error_)
    assert few.score(new, new[:, 0]) > overfitted + 0.2


def test_grid_search_by_groups(graded):
    X, y, qid = graded
    with sklearn.config_context(enable_metadata_routing=True):
        model = RankRLS("linear").set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(model, {"alpha": [1e-3, 1.0, 1e6]}, cv=GroupKFold(4))
        search.fit(X, y, qid=qid, groups=qid)
    assert search.best_score_ > 0.9


@pytest.mark.parametrize("ranker", RANKERS)
def test_pipelines_pass_the_query(ranker, graded):
    X, y, qid = graded
    name = ranker.__name__.lower()
    pipeline = make_pipeline(StandardScaler(), ranker()).fit(100 * X, y, **{f"{name}__qid": qid})
    assert pipeline[-1].score(StandardScaler().fit_transform(X), y, qid) > 0.9


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_a_handful_of_rows(ranker, n):
    X = np.arange(float(n))[:, None]
    assert ranker("linear").fit(X, X[:, 0]).score(X, X[:, 0]) == 1.0


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": np.full(6, 0.1)}, "nothing is preferred"),
        ({"y": np.arange(6), "qid": np.arange(6)}, "nothing is preferred"),
        ({"y": np.arange(6), "qid": [1, 2]}, "give each row its group"),
        ({"y": Comparisons.from_pairs([0], [1])}, "X has 6 rows and the comparisons know 2"),
        (
            {"y": Comparisons.from_pairs([0], [1], tie=[True], items=range(6))},
            "every comparison is a tie",
        ),
        (
            {"y": Comparisons.from_pairs([0], [1], items=range(6)), "qid": np.zeros(6)},
            "leave qid out",
        ),
    ],
)
def test_unusable_data_say_so(ranker, arguments, message):
    with pytest.raises(DataError, match=message):
        ranker().fit(np.arange(12.0).reshape(6, 2), **arguments)


def test_sparse_rows_need_a_linear_kernel(rng):
    X = sparse.csr_array(np.eye(5))
    with pytest.raises(DataError, match="use kernel='linear'"):
        RankRLS("rbf").fit(X, np.arange(5))
    with pytest.raises(DataError, match="use kernel='linear'"):
        RankRLS("rbf").fit(np.eye(5), np.arange(5)).predict(X)


def test_rows_that_are_all_alike(rng):
    with pytest.raises(DataError, match="looks the same"):
        KPCRank().fit(np.ones((5, 2)), np.arange(5))
    assert RankRLS().fit(np.ones((5, 2)), np.arange(5)).score(np.ones((5, 2)), np.arange(5)) == 0.5


@pytest.mark.usefixtures("data_folder")
def test_wide_parse_features():
    """195,100 sparse features of 100 parses: learned through a 100 × 100 Gram matrix."""
    parts = load_parse_sample()
    train, test = parts.train, parts.test
    model = RankRLS().fit(train.X, train.y, qid=train.qid)
    assert model.coef_.shape == (train.X.shape[1],)
    assert model.score(test.X, test.y, qid=test.qid) > 0.6
