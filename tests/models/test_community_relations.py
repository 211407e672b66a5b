"""CommunityGP: names and the order of users, items and rows decide nothing."""

import numpy as np
import pytest

import penchant as pc
from penchant.communities import mixture as finding
from penchant.communities import population as personal
from penchant.communities import search as mixture
from penchant.communities import split_merge as moves
from penchant.kernels import Independent
from tests.simulation import duels

N_USERS, N_ITEMS = 48, 7
X = np.random.default_rng(9).standard_normal((N_ITEMS, 2))
WAYS = {
    "plain": {"personal": False},
    "auto": {},
    "personal": {"personal": True, "n_communities": 2, "kernel": Independent()},
    "personal, nothing else chosen": {"personal": True},
    "plain, features": {"personal": False, "X": X},
}
CASES = [  # the metamorphic suite has the others
    ("plain", "rankings", True),
    ("auto", "pairs", True),
    ("personal", "pairs", True),
    ("personal, nothing else chosen", "pairs", True),
    ("plain, features", "rankings", False),
]


def tastes(seed=0):
    """Of people in three camps who also differ from each other."""
    rng = np.random.default_rng(seed)
    camps = 0.9 * rng.standard_normal((3, N_ITEMS))
    own = 0.3 * rng.standard_normal((N_USERS, N_ITEMS))
    return camps[rng.integers(3, size=N_USERS)] + own, rng


def pairs(each=20):
    f, rng = tastes()
    user = np.repeat(np.arange(N_USERS), each)
    return *duels(rng, f, user=user), user


def orders(each=3):
    """(rows, 5) rankings of five items, and who gave them."""
    f, rng = tastes()
    user = np.repeat(np.arange(N_USERS), each)
    some = np.stack([rng.permutation(N_ITEMS)[:5] for _ in user])
    noisy = f[user[:, None], some] + rng.gumbel(size=some.shape)
    return np.take_along_axis(some, np.argsort(-noisy, axis=1), axis=1), user


def renamed(kind, users, items, seed=None):
    """The answers, where user u is called users[u] and item i items[i]; rows shuffled by a seed."""
    names = {"items": range(N_ITEMS)}
    *answers, user = pairs() if kind == "pairs" else orders()
    rows = np.arange(len(user))
    if seed is not None:
        rows = np.random.default_rng(seed).permutation(rows)
    answers, who = [items[column[rows]] for column in answers], users[user[rows]]
    if kind == "pairs":
        return pc.Comparisons.from_pairs(*answers, user=who, **names)
    return pc.Comparisons.from_rankings(answers[0].tolist(), users=who.tolist(), **names)


def fit(data, items, X=None, **how):
    features = None if X is None else X[np.argsort(items)]
    return pc.CommunityGP(progress=False, random_state=0, **how).fit(features, data)


def centred(model, users, items):
    """(N_USERS + 1, N_ITEMS) utilities of everybody and of people at large, by original number."""
    f = np.vstack([model.predict(users=users.tolist()), model.predict()])[:, items]
    return f - f.mean(axis=1, keepdims=True)


@pytest.fixture
def few(monkeypatch):
    """As if there were too many people and answers to look at all of them."""
    monkeypatch.setattr(personal, "CHOICE_ANSWERS", 300)
    monkeypatch.setattr(mixture, "MANY_USERS", 30)
    monkeypatch.setattr(moves, "SPECTRUM_USERS", 20)
    monkeypatch.setattr(finding, "JUDGING_USERS", 40)


@pytest.mark.parametrize(("way", "kind", "is_large"), CASES)
def test_names_and_order_decide_nothing(way, kind, is_large, request):
    if is_large:
        request.getfixturevalue("few")
    rng, users, items = np.random.default_rng(1), np.arange(N_USERS), np.arange(N_ITEMS)
    model = fit(renamed(kind, users, items), items, **WAYS[way])
    expected, spread = centred(model, users, items), model.belief().contrast_var
    for case in ("users", "items", "rows"):
        called = rng.permutation(N_USERS) if case == "users" else users
        numbers = rng.permutation(N_ITEMS) if case == "items" else items
        data = renamed(kind, called, numbers, seed=2 if case == "rows" else None)
        other = fit(data, numbers, **WAYS[way])
        assert other.n_communities_ == model.n_communities_, case
        # counts are added up in single precision; a covariance that is learned entry by entry is
        # climbed along another path where items stand in another order, and the climb ends where
        # .02 nats are left
        close = 0.02 if case == "items" else 2e-4
        np.testing.assert_allclose(
            centred(other, called, numbers), expected, atol=close, err_msg=case
        )
        rtol = 0.02 if case == "items" else 2e-3
        np.testing.assert_allclose(other.belief().contrast_var[numbers], spread, rtol=rtol)


def test_the_verdict_does_not_depend_on_names():
    items, users = np.arange(N_ITEMS), np.arange(N_USERS)
    called = np.random.default_rng(3).permutation(N_USERS)
    one = fit(renamed("pairs", users, items), items, personal=False).support_
    two = fit(renamed("pairs", called, items), items, personal=False).support_
    assert one.sentence == two.sentence
    np.testing.assert_allclose(two[2:7], one[2:7], rtol=1e-3)


def test_personal_taste_beside_communities_where_only_ties_can_be_held_out():
    rng = np.random.default_rng(5)
    user = np.repeat(np.arange(6), 12)
    a = rng.integers(5, size=len(user))
    b = (a + 1 + rng.integers(4, size=len(user))) % 5
    data = pc.Comparisons.from_pairs(a, b, user=user, tie=np.ones(len(user), dtype=bool))
    how = {"likelihood": "ties", "personal": True, "n_communities": 2, "progress": False}
    model = pc.CommunityGP(**how).fit(None, data)
    assert np.isfinite(model.predict(users=model.comparisons_.users)).all()
