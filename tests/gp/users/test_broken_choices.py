"""Pairs broken out of choices: they are recognised, and count as much as the choices did."""

import numpy as np
import pytest

import penchant as pc
from penchant.gp import Rows


def best_of(k, n_users=40, n_tasks=8, n=12, seed=0):
    """Everybody's choices, by tastes of their own."""
    rng = np.random.default_rng(seed)
    utility = rng.standard_normal(n) + rng.standard_normal((n_users, n))
    user = np.repeat(np.arange(n_users), n_tasks)
    sets = rng.permuted(np.tile(np.arange(n), (len(user), 1)), axis=1)[:, :k]
    heard = utility[user[:, None], sets] + rng.gumbel(size=sets.shape)
    chosen = sets[np.arange(len(sets)), heard.argmax(axis=1)]
    return pc.Comparisons.from_choices(
        chosen.tolist(), sets.tolist(), user=user.tolist(), items=range(n)
    )


def independent_pairs(n_users=40, n_answers=24, n=12, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.integers(n, size=n_users * n_answers)
    second = (first + 1 + rng.integers(n - 1, size=len(first))) % n
    user = np.repeat(np.arange(n_users), n_answers)
    return pc.Comparisons.from_pairs(first, second, user=user, items=range(n))


@pytest.mark.parametrize("k", [3, 4, 6])
def test_the_size_of_choices_is_found(k):
    rows = Rows.by_user(best_of(k).as_pairs())
    assert rows.choice_size == k
    assert rows.are_discounted
    assert rows.count.sum() == pytest.approx(2.0 / k * best_of(k).as_pairs().n_comparisons)


def test_few_brands_bought_often_are_choices():
    assert Rows.by_user(best_of(4, n_users=30, n_tasks=20, n=4).as_pairs()).choice_size == 4


@pytest.mark.parametrize("seed", range(5))
def test_pairs_of_their_own_are_not_choices(seed):
    data = independent_pairs(seed=seed)
    twice = data.extend(data)
    few = independent_pairs(n_answers=3, seed=seed)
    whole = pc.Comparisons.from_rankings(
        [list(np.random.default_rng([seed, u]).permutation(6)) for u in range(30)],
        users=list(range(30)),
    )
    for each in (data, twice, few, whole.as_pairs(), whole):
        rows = Rows.by_user(each)
        assert rows.choice_size == 2
        assert not rows.are_discounted


def test_a_handful_of_answers_is_taken_as_it_is():
    data = pc.Comparisons.from_pairs(["a", "a"], ["b", "c"], user=["ann", "ann"])
    assert Rows.by_user(data).choice_size == 2


def test_broken_choices_predict_as_whole_ones_do():
    data = best_of(4, n_users=60, n_tasks=12, seed=3)
    pairs = [(i, j) for i in range(12) for j in range(i)]
    users = np.repeat(np.arange(60), len(pairs))
    whole, broken = (
        pc.MultiUserGP(progress=False).fit(None, each).predict_proba(pairs * 60, users)
        for each in (data, data.as_pairs())
    )
    # taken as independent answers, the pairs are .09 away on average
    assert np.abs(whole - broken).mean() < 0.03


def test_tell_equals_a_fit_of_everything():
    data = best_of(4, n_users=20).as_pairs()
    more = pc.Comparisons.from_pairs([3, 3, 3], [0, 1, 2], user=[5, 5, 5], items=range(12))
    model = pc.MultiUserGP(optimize=None).fit(None, data)
    told = model.tell(more, reconverge=False).predict(users=range(20))
    whole = pc.MultiUserGP(optimize=None).fit(None, data.extend(more)).predict(users=range(20))
    np.testing.assert_allclose(told, whole, atol=1e-5)


def test_scanned_answers_are_discounted_too(tmp_path):
    data = best_of(4, n_users=30).as_pairs()
    frame = data.to_frame()
    frame.to_csv(tmp_path / "votes.csv", index=False)
    scanned = pc.MultiUserGP(optimize=None).fit(
        None, pc.scan_comparisons(tmp_path / "votes.csv", shards=4)
    )
    there = pc.MultiUserGP(optimize=None).fit(None, pc.read_comparisons(tmp_path / "votes.csv"))
    assert there.posterior_.sites.weight.max() > 0
    by_name = dict(zip(scanned.comparisons_.items, scanned.predict(), strict=True))
    for item, mean in zip(there.comparisons_.items, there.predict(), strict=True):
        assert by_name[item] == pytest.approx(mean, abs=1e-4)
