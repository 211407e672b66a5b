"""The information of a choice, and sets that grow by it."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import entr, softmax

from penchant.ask import Joint, Rules
from penchant.ask.sets import _information, grow_sets
from penchant.data import Comparisons
from penchant.likelihoods import Logit


@pytest.fixture
def belief():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    return Joint(rng.normal(size=6), 0.3 * root @ root.T, Logit())


@pytest.fixture
def data():
    return Comparisons.from_pairs([0], [1], items=range(6))


def test_information_is_the_mutual_information_of_the_chosen_one(belief):
    draws = belief.sample(500, np.random.default_rng(1))
    found = _information(draws, [0, 3])
    for item in (1, 2, 4, 5):
        p = softmax(draws[:, [0, 3, item]], axis=1)
        expected = entr(p.mean(axis=0)).sum() - entr(p).sum(axis=1).mean()
        assert found[item] == pytest.approx(expected, abs=1e-12)


def test_a_set_of_three_is_the_best_extension_of_its_pair(belief, data):
    ((a, b, c),) = grow_sets(belief, data, [(0, 1)], 3, random_state=7)
    assert (a, b) == (0, 1)
    draws = belief.sample(20_000, np.random.default_rng(2))
    worth = _information(draws, [0, 1])
    best = max((2, 3, 4, 5), key=lambda i: worth[i])
    assert worth[c] > worth[best] - 0.03  # within what 256 draws can tell


def test_larger_sets_tell_more(belief):
    draws = belief.sample(4000, np.random.default_rng(3))
    for chosen in combinations(range(4), 2):
        whole = _information(draws, list(chosen))
        larger = _information(draws, [*chosen, 4])
        assert larger[5] > min(whole[4], whole[5]) - 1e-9


def test_rules_hold_for_sets(belief, data):
    rules = Rules(items=(0, 1, 2, 3))
    for items in grow_sets(belief, data, [(0, 1), (2, 3)], 4, rules, 0):
        assert set(items) == {0, 1, 2, 3}


def test_a_session_writes_choices_whole_and_replays_them(tmp_path):
    import penchant as pc
    from penchant.ask import Session

    def model():
        return pc.PreferenceGP(optimize=None, random_state=0).fit(
            None, Comparisons.from_pairs(["a", "b"], ["b", "c"], items=list("abcde"))
        )

    told = Comparisons.from_choices(["a"], [list("abcd")]) + Comparisons.from_rankings(
        [["e", ["a", "b"]], ["c", "d"]]
    )
    path = tmp_path / "log.jsonl"
    session = Session(model(), log=path).tell(told)
    session.close()
    again = Session.replay(path, model())
    assert again.model.comparisons_ == session.model.comparisons_
    assert again.model.comparisons_.rankings.count.sum() == 2
    assert (again.model.predict() == session.model.predict()).all()
