"""CommunityGP beside effects of the order shown and of covariates."""

import numpy as np
import pytest

import penchant as pc

SLOPE = 0.5


def answers(seed=0, n_users=60, each=12):
    """Two opposite camps, three items; the longer item has a lead, and the first is longer."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(n_users), each)
    f = np.where(user % 2 == 0, 1.0, -1.0)[:, None] * np.array([1.0, 0.0, -1.0])
    a = rng.integers(3, size=len(user))
    b = (a + 1 + rng.integers(2, size=len(user))) % 3
    longer = rng.normal(1.0 * (a == 0) - 1.0 * (b == 0)).round(1)
    rows = np.arange(len(user))
    won = f[rows, a] - f[rows, b] + SLOPE * longer + rng.standard_normal(len(user)) > 0
    return np.where(won, a, b), np.where(won, b, a), user, np.where(won, longer, -longer)


def comparisons(winner, loser, user, longer, count=None):
    return pc.Comparisons.from_pairs(
        winner,
        loser,
        user=user,
        covariates={"length": longer},
        count=count,
        items=range(3),
        users=range(60),
    )


def fit(data, **how):
    return pc.CommunityGP(progress=False, random_state=0, **how).fit(None, data)


WAYS = [{"personal": False}, {"personal": True, "n_communities": 2}]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_the_effect_of_a_covariate_is_recovered(how):
    data = comparisons(*answers())
    model = fit(data, **how)
    assert model.n_communities_ == 2
    (length,) = model.effects_
    assert length.low < SLOPE < length.high
    assert length.high - length.low < 0.4
    assert model.score(data) > model.score(data.bare()) + 0.02
    # at equal lengths the camps are mirror images of each other, whatever was longer
    ours, theirs = model.predict(users=[0, 2, 4]).mean(axis=0), model.predict(users=[1, 3, 5])
    assert abs((ours + theirs.mean(axis=0))[0] - (ours + theirs.mean(axis=0))[2]) < 0.7


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_counts_are_duplicates_and_rows_have_no_order(how):
    columns = answers()
    counted = fit(comparisons(*columns, count=np.full(720, 2)), **how)
    twice = fit(comparisons(*(np.concatenate([column, column]) for column in columns)), **how)
    order = np.random.default_rng(1).permutation(720)
    shuffled = comparisons(*(column[order] for column in columns), count=np.full(720, 2))
    for other in (twice, fit(shuffled, **how)):
        np.testing.assert_allclose(other.predict(users=range(60)), counted.predict(users=range(60)))
        np.testing.assert_allclose(other.effects_["estimate"], counted.effects_["estimate"])


def test_one_community_is_the_model_of_many_users():
    data = comparisons(*answers())
    one = fit(data, personal=True, n_communities=1)
    people = pc.MultiUserGP(progress=False, random_state=0).fit(None, data)
    shown = {"users": range(3), "covariates": {"length": [1.0, -2.0, 0.0]}}
    pairs = [(0, 1), (1, 2), (0, 2)]
    np.testing.assert_allclose(
        one.predict_proba(pairs, **shown), people.predict_proba(pairs, **shown), rtol=1e-6
    )
    np.testing.assert_allclose(one.effects_["estimate"], people.effects_["estimate"], rtol=1e-6)


def test_newcomers_and_more_answers_are_seen_as_they_were_shown(tmp_path):
    data = comparisons(*answers())
    model = fit(data, personal=True, n_communities=2)
    more = pc.Comparisons.from_pairs([0], [1], user=["eva"], covariates={"length": [2.0]})
    folded = model.fold_in(more)
    level = model.fold_in(
        pc.Comparisons.from_pairs([0], [1], user=["eva"], covariates={"length": [0.0]})
    )
    # somebody who took the much longer one told less about the items
    assert folded.predict(users="eva")[0, 0] < level.predict(users="eva")[0, 0]
    model.save(tmp_path / "model.penchant")
    again = pc.load(tmp_path / "model.penchant")
    assert again.effects_ == model.effects_
    assert again.tell(more).effects_ == model.tell(more).effects_
