"""The soak itself: it plays, and it finds what it is there to find."""

import sys
from pathlib import Path

import numpy as np
import pytest

import penchant as pc

sys.path.insert(0, str(Path(__file__).parents[1]))
import soak


@pytest.mark.parametrize(
    "name", ["PreferenceGP", "MultiUserGP", "relations", "RankRLS", "PreferencePerceptron"]
)
def test_a_few_trials_of_each_kind_hold(name, capsys):
    assert soak.main(["--seed", "1", "--trials", "3", "--only", name]) == 0
    assert "3 trials without a violation, seeds 1 to 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        ("predict_proba", lambda right: 0.9 * right),
        ("undo", lambda right: right.tell([right.comparisons_.items[:2]])),
        ("score", lambda right: np.nan),
    ],
)
def test_a_broken_model_is_found_with_its_seed(method, wrong, monkeypatch, capsys):
    right = getattr(pc.PreferenceGP, method)

    def broken(self, *args, **kwargs):
        return wrong(right(self, *args, **kwargs))

    monkeypatch.setattr(pc.PreferenceGP, method, broken)
    assert soak.main(["--seed", "1", "--trials", "20", "--only", "PreferenceGP"]) == 1
    assert "violation with seed" in capsys.readouterr().out


def test_an_unexpected_error_is_a_violation(monkeypatch, capsys):
    def crash(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(pc.PreferenceGP, "rank", crash)
    assert soak.main(["--repeat", "1", "--only", "PreferenceGP"]) == 1
    assert "--repeat 1 --only PreferenceGP" in capsys.readouterr().out
