"""The estimator: conventions, equivalences between its ways of learning, and errors."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import check_estimator

from penchant.errors import DataError
from penchant.models import PreferencePerceptron, load
from penchant.online import AlphaUser, Round, simulate

SETTINGS = [
    {},
    {"k": 1, "average": True},
    {"loss": "logistic", "update": "adaptive", "average": True},
    {"update": "exponentiated", "rate": 0.1},
    {"dtype": "float32", "loss": "hinge"},
    {"exploration": 0.5, "random_state": 3},
]


def graded(n_queries=40, d=5, seed=0):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), rng.integers(1, 40, n_queries))
    X = rng.standard_normal((qid.size, d))
    return X, rng.integers(0, 4, qid.size), qid


def discounted_map(docs, order):
    return np.sum(docs[order] / np.log2(np.arange(len(order)) + 2)[:, None], axis=0)


def test_one_round_by_hand():
    docs = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    model = PreferencePerceptron(k=2).learn(docs, [0, 1, 2], [2, 0, 1])
    second = 1 / np.log2(3)
    np.testing.assert_allclose(model.coef_, [second, 1 - second], rtol=1e-15)
    assert model.n_rounds_ == 1


@pytest.mark.parametrize("setting", SETTINGS)
def test_arrays_of_rounds_equal_single_rounds(setting):
    rng = np.random.default_rng(1)
    docs = rng.standard_normal((30, 8, 4))
    presented = np.array([rng.permutation(8) for _ in range(30)])
    feedback = np.array([rng.permutation(8) for _ in range(30)])
    at_once = PreferencePerceptron(**setting).learn(docs, presented, feedback)
    one_by_one = PreferencePerceptron(**setting)
    for rounds in zip(docs, presented, feedback, strict=True):
        one_by_one.learn(*rounds)
    assert np.array_equal(at_once.coef_, one_by_one.coef_)
    assert at_once.n_rounds_ == one_by_one.n_rounds_ == 30


@pytest.mark.parametrize("setting", SETTINGS)
def test_partial_fit_continues_and_fit_starts_afresh(setting):
    X, y, qid = graded()
    cut = np.searchsorted(qid, 17)
    whole = PreferencePerceptron(**setting).fit(X, y, qid)
    parts = PreferencePerceptron(**setting).partial_fit(X[:cut], y[:cut], qid[:cut])
    parts.partial_fit(X[cut:], y[cut:], qid[cut:])
    assert np.array_equal(whole.coef_, parts.coef_)
    assert np.array_equal(whole.coef_, parts.fit(X, y, qid).coef_)


def test_queries_need_not_be_contiguous():
    X, y, qid = graded(3)
    shuffled = np.random.default_rng(0).permutation(qid.size)
    first = list(dict.fromkeys(qid[shuffled]))
    together = np.concatenate([shuffled[qid[shuffled] == q] for q in first])
    mixed = PreferencePerceptron().fit(X[shuffled], y[shuffled], qid[shuffled])
    sorted_ = PreferencePerceptron().fit(X[together], y[together], qid[together])
    assert np.array_equal(mixed.coef_, sorted_.coef_)


def test_a_callable_map_that_says_the_same_learns_the_same():
    X, y, qid = graded()
    built_in = PreferencePerceptron(k=3).fit(X, y, qid)
    general = PreferencePerceptron(k=3, feature_map=discounted_map).fit(X, y, qid)
    np.testing.assert_allclose(general.coef_, built_in.coef_, rtol=1e-12)
    docs = X[:9]
    assert general.present(docs)[:3].tolist() == built_in.present(docs)[:3].tolist()


def test_recommending_one_of_several_with_a_joint_map_of_context_and_object():
    """k = 1: objects are items, φ is user ⊗ item, and the taste of each user is learned."""
    rng = np.random.default_rng(2)
    items, taste = rng.standard_normal((12, 3)), rng.standard_normal((2, 3))
    model = PreferencePerceptron(
        k=1, feature_map=lambda docs, order: np.outer(docs[order[0]][0], docs[order[0]][1]).ravel()
    )
    for t in range(200):
        person = np.eye(2)[t % 2]
        docs = [(person, item) for item in items]
        best = np.argmax(items @ taste[t % 2])
        model.learn(docs, model.present(docs), [best])
    for person in range(2):
        docs = [(np.eye(2)[person], item) for item in items]
        assert model.present(docs)[0] == np.argmax(items @ taste[person])


def test_pairs_learn_a_linear_taste():
    rng = np.random.default_rng(3)
    X, taste = rng.standard_normal((400, 6)), rng.standard_normal(6)
    a, b = rng.integers(0, 400, (2, 5000))
    utility = X @ taste
    winner, loser = np.where(utility[a] >= utility[b], [a, b], [b, a])
    for setting in ({"loss": "perceptron"}, {"loss": "logistic", "update": "adaptive"}):
        model = PreferencePerceptron(average=True, **setting).learn_pairs(X, winner, loser)
        assert np.corrcoef(model.predict(X), utility)[0, 1] > 0.99


def test_average_is_the_mean_of_the_weights_after_each_round():
    X, y, qid = graded(12)
    model, history = PreferencePerceptron(average=True), []
    for query in range(12):
        rows = qid == query
        history.append(model.partial_fit(X[rows], y[rows], qid[rows]).coef_)
    np.testing.assert_allclose(model.average_coef_, np.mean(history, axis=0), rtol=1e-12)
    np.testing.assert_allclose(model.predict(X), X @ model.average_coef_, rtol=1e-12)


def test_exploration_swaps_neighbours_only_and_repeats_within_a_round():
    docs = np.arange(10.0)[::-1, None]
    model = PreferencePerceptron(k=1, exploration=0.5, random_state=0)
    model.learn(docs, [1], [0])
    shown = model.present(docs)
    assert shown.tolist() == model.present(docs).tolist()
    assert {frozenset(pair) for pair in shown.reshape(5, 2).tolist()} == {
        frozenset(pair) for pair in np.arange(10).reshape(5, 2).tolist()
    }
    orders = set()
    for _ in range(20):
        orders.add(tuple(model.learn(docs, [1], [0]).present(docs)))
    assert len(orders) > 5


@pytest.mark.parametrize("setting", SETTINGS)
def test_files_and_pickles_go_on_exactly(setting, tmp_path):
    X, y, qid = graded(10)
    model = PreferencePerceptron(**setting).fit(X, y, qid)
    model.save(tmp_path / "model.penchant")
    others = load(tmp_path / "model.penchant"), pickle.loads(pickle.dumps(model))
    for _ in range(3):
        shown = model.present(X[:9])
        model.learn(X[:9], shown, shown[::-1])
        for restored in others:
            assert restored.present(X[:9]).tolist() == shown.tolist()
            restored.learn(X[:9], shown, shown[::-1])
            assert np.array_equal(restored.coef_, model.coef_)
            assert restored.coef_.dtype == model.coef_.dtype
    assert others[0].get_params() == model.get_params()


def test_scikit_learn_s_own_checks():
    check_estimator(PreferencePerceptron(), on_skip=None)


def test_the_rate_does_not_change_what_the_paper_s_algorithm_presents():
    rng = np.random.default_rng(4)
    rounds = [Round(rng.standard_normal((9, 4))) for _ in range(50)]
    weights = rng.standard_normal(4)
    slow, fast = (
        simulate(
            PreferencePerceptron(rate=rate), rounds, AlphaUser(weights, 0.3), weights=weights
        ).utility
        for rate in (0.25, 4.0)
    )
    assert np.array_equal(slow, fast)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.present(np.ones(3)), r"shape \(3,\)"),
        (lambda m: m.present([[np.nan, 1.0]]), "document 0 has no finite score"),
        (lambda m: m.learn([[np.inf], [1.0]], [0, 1], [1, 0]), "round 0 of 1"),
        (lambda m: m.present([["tea", "milk"]]), "not an array of numbers"),
        (lambda m: m.present(sparse.eye_array(3)), "toarray"),
        (lambda m: m.present(np.ones((0, 2))), r"shape \(0, 2\)"),
        (lambda m: m.present(np.ones((2, 0))), "0 feature"),
        (lambda m: m.present(np.eye(2) * 1j), "Complex"),
        (lambda m: m.learn(np.eye(3), [0, 1], [0, 1, 2]), "presented has shape"),
        (lambda m: m.learn(np.eye(3), [0, 1, 2], [0, 1, 1]), "feedback runs from 0 to 1"),
        (lambda m: m.learn(np.eye(3), [0, 1, 3], [0, 1, 2]), "presented runs from 0 to 3"),
        (lambda m: m.learn(np.eye(3), [0, 1, -1], [0, 1, 2]), "presented runs from -1"),
        (lambda m: m.learn(np.eye(3), [0.0, 1.0, 2.0], [0, 1, 2]), "type float64"),
        (lambda m: m.learn(np.ones((2, 3, 1)), [[0, 1, 2]], [[0, 1, 2]]), "1 rounds and docs 2"),
        (lambda m: m.partial_fit(np.eye(3), [1, 2]), r"y has shape \(2,\)"),
        (lambda m: m.partial_fit(np.eye(3), [1, 2, 3], qid=[1]), "qid has shape"),
        (lambda m: m.learn_pairs(np.eye(3), [0, 1], [2]), "pair up"),
        (lambda m: m.learn_pairs(np.eye(3), [3], [0]), "winner runs from 3 to 3"),
        (
            lambda m: m.learn(np.eye(3), [0, 1, 2], [2, 1, 0]).present(np.ones((2, 4))),
            "4 features, but PreferencePerceptron is expecting 3",
        ),
        (
            lambda m: (
                m.set_params(feature_map=discounted_map)
                .learn(np.eye(3), [0, 1, 2], [2, 1, 0])
                .predict(np.eye(3))
            ),
            "use present",
        ),
    ],
)
def test_errors_say_what_is_wrong(call, message):
    with pytest.raises(DataError, match=message):
        call(PreferencePerceptron())


def test_a_damaged_state_is_refused_before_a_compiled_loop_sees_it():
    model = PreferencePerceptron().learn(np.eye(3), [0, 1, 2], [2, 1, 0])
    damaged = deepcopy(model)
    damaged.squares_ = np.zeros(1)
    with pytest.raises(DataError, match="expecting 1"):
        damaged.learn(np.eye(3), [0, 1, 2], [2, 1, 0])
