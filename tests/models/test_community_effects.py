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
    longer = {"length": np.where(won, longer, -longer)}
    names = {"items": range(3), "users": range(60)}
    pair = np.where(won, a, b), np.where(won, b, a)
    return pc.Comparisons.from_pairs(*pair, user=user, covariates=longer, **names)


def fit(data, **how):
    return pc.CommunityGP(progress=False, random_state=0, **how).fit(None, data)


WAYS = [{"personal": False}, {"personal": True, "n_communities": 2}]


@pytest.mark.parametrize("how", WAYS, ids=str)
def test_the_effect_of_a_covariate_is_recovered(how):
    data = answers()
    model = fit(data, **how)
    assert model.n_communities_ == 2
    (length,) = model.effects_
    assert length.low < SLOPE < length.high
    assert length.high - length.low < 0.4
    assert model.score(data) > model.score(data.bare()) + 0.02
    # at equal lengths the camps are mirror images of each other, whatever was longer
    ours, theirs = model.predict(users=[0, 2, 4]).mean(axis=0), model.predict(users=[1, 3, 5])
    assert abs((ours + theirs.mean(axis=0))[0] - (ours + theirs.mean(axis=0))[2]) < 0.7


def test_one_community_is_the_model_of_many_users():
    data = answers()
    one = fit(data, personal=True, n_communities=1)
    people = pc.MultiUserGP(progress=False, random_state=0).fit(None, data)
    shown = {"users": range(3), "covariates": {"length": [1.0, -2.0, 0.0]}}
    pairs = [(0, 1), (1, 2), (0, 2)]
    np.testing.assert_allclose(
        one.predict_proba(pairs, **shown), people.predict_proba(pairs, **shown), rtol=1e-6
    )
    np.testing.assert_allclose(one.effects_["estimate"], people.effects_["estimate"], rtol=1e-6)


def test_newcomers_and_more_answers_are_seen_as_they_were_shown(tmp_path):
    data = answers()
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
