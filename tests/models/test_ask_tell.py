"""Asking and telling through PreferenceGP."""

import numpy as np
import pytest

import penchant as pc
from penchant.ask import CRITERIA, Rules
from penchant.kernels import RBF, Independent


@pytest.fixture
def gp(rng):
    X = rng.standard_normal((10, 2))
    a = rng.integers(10, size=25)
    b = (a + 1 + rng.integers(9, size=25)) % 10
    data = pc.Comparisons.from_pairs(a, b, items=range(10))
    return pc.PreferenceGP(RBF(1.0, 2.0), optimize=None, random_state=3).fit(X, data)


@pytest.mark.parametrize("criterion", sorted(CRITERIA))
def test_asks_for_distinct_pairs_of_known_items(gp, criterion):
    pairs = gp.ask(5, criterion=criterion)
    assert len(pairs) == 5
    assert len({frozenset(pair) for pair in pairs}) == 5
    assert all(a != b and a in gp.comparisons_.items for a, b in pairs)


def test_names_come_back_where_names_went_in():
    data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    (pair,) = pc.PreferenceGP(optimize=None).fit(None, data).ask()
    assert set(pair) < {"tea", "milk", "water"}


def test_the_papers_criterion_is_the_largest_ratio(gp):
    n = 10
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n)])
    mean, var = gp.posterior_.difference(pairs[:, 0], pairs[:, 1])
    best = pairs[np.argmax(var / mean**2)]
    assert set(gp.ask(1)[0]) == set(best.tolist())


@pytest.mark.parametrize("criterion", ["variance_ratio", "information_gain", "expected_best"])
def test_scores_do_not_depend_on_who_stands_first(gp, criterion, rng):
    pairs = np.array([(0, 1), (3, 8), (9, 2)])
    score = CRITERIA[criterion].score
    np.testing.assert_allclose(
        score(gp.posterior_, pairs, rng), score(gp.posterior_, pairs[:, ::-1], rng), rtol=1e-12
    )


def test_telling_equals_refitting(gp):
    more = [(0, 5), (5, 7), (2, 9), (0, 5)]
    refit = pc.PreferenceGP(RBF(1.0, 2.0), optimize=None).fit(
        gp.posterior_.universe.X,
        gp.comparisons_ + pc.Comparisons.from_pairs(*np.array(more).T, items=range(10)),
    )
    gp.tell(more, reconverge=True)
    np.testing.assert_allclose(gp.predict(), refit.predict(), atol=1e-6)
    np.testing.assert_allclose(gp.posterior_.covariance(), refit.posterior_.covariance(), atol=1e-6)
    assert gp.log_evidence_ == pytest.approx(refit.log_evidence_, abs=1e-6)
    assert gp.comparisons_ == refit.comparisons_


def test_absorbing_one_answer_is_close_and_cheap(gp):
    before = gp.predict_proba([(0, 5)])[0]
    gp.tell([(0, 5)], reconverge=False)
    absorbed = gp.predict().copy()
    assert gp.predict_proba([(0, 5)])[0] > before
    gp.undo()
    gp.tell([(0, 5)], reconverge=True)
    np.testing.assert_allclose(absorbed, gp.predict(), atol=0.05)


def test_undo_is_exact(gp):
    before = {name: value for name, value in vars(gp).items() if name.endswith("_")}
    gp.tell([(1, 2)]).tell([(3, 4)]).undo().undo()
    after = {name: value for name, value in vars(gp).items() if name.endswith("_")}
    assert before.keys() == after.keys()
    assert all(after[name] is before[name] for name in before)
    with pytest.raises(pc.DataError, match="no tell to undo"):
        gp.undo()


def test_rules_restrict_the_candidates(gp):
    for _ in range(3):
        pairs = gp.ask(3, rules=Rules(items=[1, 4, 6]))
        assert {item for pair in pairs for item in pair} <= {1, 4, 6}


def test_asking_actively_beats_asking_at_random():
    """A study of twelve items: the criterion's answers order them better, on average."""
    errors = {"information_gain": [], "random": []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        f = 2.0 * rng.standard_normal(12)
        for criterion, found in errors.items():
            data = pc.Comparisons.from_pairs([0], [1], items=range(12))
            gp = pc.PreferenceGP(Independent(4.0), optimize=None, random_state=seed)
            gp.fit(None, data)
            answers = np.random.default_rng(100 + seed)
            for _ in range(40):
                a, b = gp.ask(1, criterion=criterion)[0]
                first = f[a] - f[b] + answers.standard_normal() > 0
                gp.tell([(a, b) if first else (b, a)])
            order = np.sign(f[:, None] - f) != np.sign(gp.predict()[:, None] - gp.predict())
            found.append(order.mean())
    assert np.mean(errors["information_gain"]) < np.mean(errors["random"])


def test_unknown_criteria_and_items():
    data = pc.Comparisons.from_pairs(["tea"], ["milk"])
    gp = pc.PreferenceGP(optimize=None).fit(None, data)
    with pytest.raises(pc.DataError, match="variance_ratio"):
        gp.ask(criterion="curiosity")
    with pytest.raises(pc.DataError, match="coffee"):
        gp.tell([("coffee", "tea")])
    with pytest.raises(pc.DataError, match="k is 5"):
        gp.ask(5)


def test_answers_join_the_pooled_comparisons_of_many_users():
    data = pc.Comparisons.from_pairs(["tea", "milk"], ["milk", "water"], user=["ann", "bob"])
    gp = pc.PreferenceGP(optimize=None).fit(None, data)
    before = gp.predict_proba([("tea", "water")])[0]
    gp.tell([("tea", "water")])
    assert gp.predict_proba([("tea", "water")])[0] > before
    more = pc.Comparisons.from_pairs(["tea"], ["milk"], user=["cem"])
    assert gp.tell(more).comparisons_.n_comparisons == 4


def test_an_answer_without_a_name_or_a_side_is_taken_back_from_a_pool_that_has_them():
    data = pc.Comparisons.from_pairs(
        ["a", "b", "a"], ["b", "c", "c"], user=["ann", "bob", "ann"], first=[1, -1, 1]
    )
    gp = pc.PreferenceGP(optimize=None).fit(None, data)
    before = gp.predict()
    gp.tell([("a", "b")]).withdraw([("a", "b")])
    assert gp.comparisons_ == data.pooled()
    np.testing.assert_allclose(gp.predict(), before, atol=1e-6)


def test_a_tie_is_taken_back_and_not_one_of_two_bad_items():
    data = pc.Comparisons.from_pairs(
        ["a", "a", "b"], ["b", "b", "c"], tie=["both bad", "yes", "no"], user=["ann", "bob", "ann"]
    )
    gp = pc.PreferenceGP(optimize=None, likelihood="ties").fit(None, data)
    gp.withdraw(pc.Comparisons.from_pairs(["a"], ["b"], tie=[True]))
    assert gp.comparisons_.tie_words.tolist() == ["both bad", False]
