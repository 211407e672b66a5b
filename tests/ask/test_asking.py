"""Asking, telling and saving in a loop: what somebody does who collects answers one by one."""

import numpy as np
import pytest

import penchant as pc
from penchant.ask import Rules
from penchant.kernels import RBF

NAMES = ["tea", "milk", "water", "juice", "wine", "beer"]
MODELS = {
    "gp": (pc.PreferenceGP, {"kernel": RBF(1.0, 2.0), "optimize": None}, {}),
    "multi-user": (pc.MultiUserGP, {"optimize": None, "progress": False}, {"user": "ann"}),
    "community": (pc.CommunityGP, {"progress": False}, {"user": "ann"}),
    "personal": (pc.CommunityGP, {"progress": False, "personal": True}, {"user": "ann"}),
}


def fitted(name):
    rng = np.random.default_rng(1)
    first, second = np.array([rng.choice(6, 2, replace=False) for _ in range(36)]).T
    winner, loser = np.minimum(first, second), np.maximum(first, second)
    data = pc.Comparisons.from_pairs(
        [NAMES[i] for i in winner],
        [NAMES[i] for i in loser],
        user=["ann", "bob", "cem"] * 12,
        items=NAMES,
    )
    make, how, about = MODELS[name]
    X = rng.standard_normal((6, 2)) if name == "gp" else None
    return make(**how, random_state=0).fit(X, data), about


@pytest.mark.parametrize("name", MODELS)
def test_a_model_saved_after_each_answer_goes_on_where_it_was(name, tmp_path):
    model, about = fitted(name)
    other = model
    for criterion in ("variance_ratio", "thompson"):
        (pair,) = model.ask(1, criterion, **about)
        assert other.ask(1, criterion, **about) == [pair]
        model.tell([pair[::-1]], **about)
        if other is not model:  # learn what the saved model learned
            other.tell([pair[::-1]], **about)
        model.save(tmp_path / "model")
        other = pc.load(tmp_path / "model")
        np.testing.assert_allclose(other.predict(), model.predict(), rtol=0, atol=1e-9)
    assert other.comparisons_ == model.comparisons_
    for each in (other, model):
        each.withdraw([pair[::-1]], **about)
    np.testing.assert_allclose(other.predict(), model.predict(), rtol=0, atol=1e-6)


def test_the_same_is_not_asked_twice_in_a_row_but_after_an_undo():
    model, about = fitted("multi-user")
    (first,) = model.ask(**about)
    (second,) = model.tell([first], **about).ask(**about)
    assert set(second) != set(first)
    assert model.undo().ask(**about) == [first]


def test_an_exposure_floor_counts_what_the_user_has_seen():
    model, _ = fitted("multi-user")
    model.tell(pc.Comparisons.from_pairs(["tea"], ["milk"], user=["eva"]))
    asked = set()
    for _ in range(4):
        (pair,) = model.ask(user="eva", rules=Rules(exposure=1))
        asked |= set(pair)
        model.tell([pair], user="eva")
    assert {"water", "juice", "wine", "beer"} <= asked
