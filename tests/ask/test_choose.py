"""Choosing: the best question, a batch without redundancy, and rules that are kept."""

import numpy as np
import pytest
from scipy.special import entr, softmax

from penchant.ask import CRITERIA, Joint, Pool, Rules, all_pairs, ask, choose, grow_sets
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.likelihoods import Logit, Probit
from tests.simulation import random_belief as belief_over

READ_VARIANCES = [name for name, criterion in CRITERIA.items() if criterion.reads_variances]


def nothing_compared(n):
    """One comparison, which there must be, counts for little."""
    return Comparisons.from_pairs([0], [1], items=range(n))


@pytest.mark.parametrize("name", READ_VARIANCES)
def test_one_question_is_the_best_of_all_by_brute_force(name):
    belief = belief_over(6)
    score = CRITERIA[name].score
    alone = [score(belief, np.array([pair]), np.random.default_rng(0))[0] for pair in all_pairs(6)]
    (pair,) = ask(belief, nothing_compared(6), 1, name)
    assert list(pair) == all_pairs(6)[int(np.argmax(alone))].tolist()


@pytest.mark.parametrize("name", CRITERIA)
def test_a_batch_has_no_pair_twice_and_may_take_them_all(name):
    pairs = ask(belief_over(5), nothing_compared(5), 10, name, random_state=0)
    assert {frozenset(pair) for pair in pairs} == {frozenset(p) for p in all_pairs(5).tolist()}


@pytest.mark.parametrize("name", READ_VARIANCES)
def test_a_batch_is_greedy_on_what_is_expected(name):
    belief, pool = belief_over(6), Pool(all_pairs(6), np.zeros(6))
    batch = choose(belief, pool, 3, name, 0.0, np.random.default_rng(0))
    expected, left = belief, [tuple(pair) for pair in all_pairs(6).tolist()]
    for pair in batch:
        score = CRITERIA[name].score(expected, np.array(left), np.random.default_rng(0))
        best = left[int(score.argmax())]
        assert tuple(pair) == best
        expected = expected.expecting(*best)
        left.remove(best)


def test_pending_pairs_are_closed_and_count_as_expected():
    def asked(n, **held):
        pool, rng = Pool(all_pairs(6), np.zeros(6)), np.random.default_rng(0)
        return choose(belief_over(6), pool, n, "information_gain", 0.0, rng, **held)

    first, second = asked(2)
    (found,) = asked(1, pending=first[None, ::-1])
    assert found.tolist() == second.tolist()


@pytest.mark.parametrize("name", ["variance_ratio", "information_gain"])
def test_a_batch_does_not_ask_twice_about_the_same_thing(name):
    """Items 0 and 1 are twins, so are 2 and 3: four pairs are one question; 4 and 5 are another."""
    twins = np.kron(np.eye(2), np.ones((2, 2)))
    cov = np.zeros((6, 6))
    cov[:4, :4], cov[4:, 4:] = 4.0 * twins, np.eye(2)
    belief = Joint(np.zeros(6), cov, Probit())
    pool = Pool(np.array([[0, 2], [0, 3], [1, 2], [1, 3], [4, 5]]), np.zeros(6))
    batch = choose(belief, pool, 3, name, 0.0, np.random.default_rng(0))
    assert [4, 5] in batch.tolist()
    naive = CRITERIA[name].score(belief, pool.pairs, np.random.default_rng(0))
    assert naive.argsort()[0] == 4  # without looking ahead it would come last


def test_only_the_items_that_are_named():
    names = list("abcdef")
    data = Comparisons.from_pairs(["a"], ["b"], items=names)
    for name in CRITERIA:
        pairs = ask(belief_over(6), data, 3, name, Rules(items=["b", "d", "f"]), 0)
        assert {item for pair in pairs for item in pair} == {"b", "d", "f"}


def test_the_questions_about_some_items_are_the_best_among_them():
    belief, some = belief_over(6), np.array([1, 3, 5])
    pairs = np.array([(a, b) for a in some for b in some if a < b])
    best = pairs[CRITERIA["variance_ratio"].score(belief, pairs, None).argmax()]
    (pair,) = ask(belief, nothing_compared(6), 1, rules=Rules(items=[5, 1, 3]))
    assert list(pair) == best.tolist()


def test_avoided_pairs_are_not_asked_while_there_is_another():
    belief, data = belief_over(4), nothing_compared(4)
    (best,) = ask(belief, data)
    (next_best,) = ask(belief, data, rules=Rules(avoid=[best[::-1]]))
    assert set(next_best) != set(best)
    outside = Rules(items=[0, 1], avoid=[(2, 3)])
    assert ask(belief, data, rules=outside) == [(0, 1)]


def test_exposure_floors_come_before_the_criterion():
    data = Comparisons.from_pairs([0, 0, 1], [1, 2, 2], count=[5, 5, 5], items=range(5))
    sure = Joint(np.array([0.0, 0.0, 0.0, 9.0, -9.0]), np.eye(5), Probit())
    pairs = ask(sure, data, 4, "variance_ratio", Rules(exposure=2))
    shown = [item for pair in pairs for item in pair]
    assert shown.count(3) >= 2
    assert shown.count(4) >= 2
    assert not {3, 4} & set(ask(sure, data, 1, "variance_ratio")[0])


def test_the_share_of_random_questions_is_what_it_says():
    belief, rng = belief_over(12), np.random.default_rng(0)
    (best,) = choose(belief, Pool(all_pairs(12), np.zeros(12)), 1, "variance_ratio", 0.0, rng)
    chosen = [
        choose(belief, Pool(all_pairs(12), np.zeros(12)), 1, "variance_ratio", 0.3, rng)[0]
        for _ in range(600)
    ]
    n_other = sum(pair.tolist() != best.tolist() for pair in chosen)
    expected = 0.3 * 600 * 65 / 66
    assert abs(n_other - expected) < 4.5 * np.sqrt(expected * 0.7)


def test_the_same_seed_asks_the_same():
    belief, data = belief_over(9), nothing_compared(9)
    for name in ("random", "thompson"):
        assert ask(belief, data, 3, name, None, 5) == ask(belief, data, 3, name, None, 5)


def test_k_must_fit():
    for k in (0, 11):
        with pytest.raises(DataError, match=f"k is {k}"):
            ask(belief_over(5), nothing_compared(5), k)
    with pytest.raises(DataError, match="one of variance_ratio, information_gain"):
        ask(belief_over(5), nothing_compared(5), 1, "informationgain")


def test_candidates_are_all_items_or_those_named(rng):
    data = Comparisons.from_pairs(["a", "a", "b"], ["b", "c", "a"], items=list("abcde"))
    assert Rules().candidates(data, rng).tolist() == [0, 1, 2, 3, 4]
    assert Rules(items=["d", 0, "d"]).candidates(data, rng).tolist() == [0, 3]
    with pytest.raises(DataError, match="a question needs two"):
        Rules(items=["a"]).candidates(data, rng)
    with pytest.raises(DataError, match="zebra"):
        Rules(items=["a", "zebra"]).candidates(data, rng)
    many = Comparisons.from_pairs([0], [1], items=range(6_000))
    assert len(np.unique(Rules().candidates(many, rng))) == 5_000


def test_a_pool_closes_what_is_avoided_in_either_orientation_while_others_are_left():
    pool = Pool(np.array([[2, 0], [0, 1], [1, 2]]), np.zeros(3))
    pool.avoid(np.array([[0, 2]]))
    assert pool.pairs[pool.open].tolist() == [[0, 1], [1, 2]]
    assert pool.take(1).tolist() == [0, 1]
    assert pool.exposed.tolist() == [1.0, 1.0, 0.0]
    pool.avoid(np.array([[1, 2]]))
    assert pool.pairs[pool.open].tolist() == [[1, 2]]


def test_the_floor_asks_for_items_below_it_until_there_are_none():
    pool = Pool(all_pairs(4), np.array([2.0, 2.0, 0.0, 1.0]), floor=2)
    for _ in range(6):
        short = pool.exposed < 2
        if not short.any():
            assert pool.eligible().sum() == pool.open.sum()
            return
        assert short[pool.pairs[pool.eligible()]].any(axis=1).all()
        pool.take(int(np.flatnonzero(pool.eligible())[0]))
    pytest.fail("the floor was never reached")


# Sets


@pytest.fixture
def belief():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(6, 6))
    return Joint(rng.normal(size=6), 0.3 * root @ root.T, Logit())


def information(draws, chosen):
    """Mutual information, in nats, of the utilities and of which one is chosen."""
    p = softmax(draws[:, chosen], axis=1)
    return entr(p.mean(axis=0)).sum() - entr(p).sum(axis=1).mean()


@pytest.mark.parametrize("start", [(0, 1), (4, 2)])
def test_a_set_grows_by_what_tells_most_on_the_same_draws(belief, start):
    (grown,) = grow_sets(belief, nothing_compared(6), [start], 5, random_state=7)
    draws = belief.sample(256, np.random.default_rng(7))
    assert grown[:2] == start
    for size in (2, 3, 4):
        others = [item for item in range(6) if item not in grown[:size]]
        told = [information(draws, [*grown[:size], item]) for item in others]
        assert grown[size] == others[int(np.argmax(told))]


def test_utilities_far_apart_overflow_nothing():
    far = Joint(np.array([0.0, 1e3, -1e3, 2e3, 0.0, 1e4]), np.eye(6), Logit())
    with np.errstate(all="raise", under="ignore"):
        ((*_, last),) = grow_sets(far, nothing_compared(6), [(0, 2)], 3, random_state=0)
    assert last == 4  # the only one that is near


def test_rules_hold_for_sets(belief):
    rules = Rules(items=(0, 1, 2, 3))
    for items in grow_sets(belief, nothing_compared(6), [(0, 1), (2, 3)], 4, rules, 0):
        assert set(items) == {0, 1, 2, 3}
