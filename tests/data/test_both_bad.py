"""Both bad: a tie to the models, an outcome of its own to whoever looks at the data."""

import pickle

import numpy as np
import pandas as pd
import pytest

import penchant as pc

ROWS = """model_a,model_b,winner
x,y,model_a
x,y,tie (bothbad)
y,z,tie
z,x,tie (bothbad)
y,x,tie (bothbad)
z,y,model_b
"""


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "battles.csv"
    path.write_text(ROWS)
    return pc.read_comparisons(path)


def test_is_kept_and_reported(data):
    assert "4 ties, 3 of them both bad" in data.source
    assert data.count[data.both_bad].sum() == 3
    assert data.tie[data.both_bad].all()
    assert data.bad_rates() == pytest.approx({"x": 0.75, "y": 0.4, "z": 1 / 3})
    assert "both bad: 3 (50%); most often with x (75%)" in data.describe()


def test_survives_frames_answers_and_joins(data):
    # the order shown is a column that is read when it is named
    frame = pc.Comparisons.from_frame(data.to_frame(), first="first")
    assert frame == data
    assert frame.both_bad.tolist() == data.both_bad.tolist()
    assert pickle.loads(pickle.dumps(data)) == data
    plain = pc.Comparisons.from_pairs(["x"], ["y"])
    both = data + plain
    assert both.count[both.both_bad].sum() == 3
    assert (both.without(plain)).bad_rates() == data.bad_rates()


def test_is_a_tie_to_the_models(data, tmp_path):
    tied = pc.Comparisons.from_frame(
        pd.read_csv(tmp_path / "battles.csv").replace("tie (bothbad)", "tie")
    )
    assert tied.both_bad is None
    found = [pc.PreferenceGP(likelihood="ties", random_state=0).fit(None, d) for d in (data, tied)]
    np.testing.assert_array_equal(found[0].predict(), found[1].predict())
    found[0].tell(pc.Comparisons.from_pairs(["x"], ["z"], tie=["both bad"], first=[1]))
    assert found[0].comparisons_.count[found[0].comparisons_.both_bad].sum() == 4
    found[0].save(tmp_path / "model.penchant")
    assert pc.load(tmp_path / "model.penchant").comparisons_ == found[0].comparisons_


def test_is_a_word_for_a_tie_and_nothing_else():
    with pytest.raises(pc.DataError, match="'both bad'"):
        pc.Comparisons.from_pairs(["x"], ["y"], tie=["both awful"])
