import json
from contextlib import suppress
from dataclasses import asdict

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penchant as pc
from penchant.errors import DataError
from penchant.workflow import Encoding


def test_numbers_categories_and_missing_values():
    X = pc.encode(
        {
            "id": ["a", "b", "c", "d"],
            "price": ["1", "", "3", "8"],
            "colour": ["red", "blue", "red", "?"],
            "new": ["yes", "no", "no", "yes"],
        }
    )
    assert X.names == ("a", "b", "c", "d")
    assert list(X.columns) == [
        "price",
        "price is missing",
        "colour = blue",
        "colour = red",
        "colour is missing",
        "new = yes",
    ]
    assert X.values.tolist() == [
        [1, 0, 0, 1, 0, 1],
        [3, 1, 1, 0, 0, 0],
        [3, 0, 0, 1, 0, 0],
        [8, 0, 0, 0, 1, 1],
    ]
    assert X.left_out == ()


def test_columns_that_say_nothing_are_left_out_and_named():
    names = [f"name {k}" for k in range(8)]
    X = pc.encode({"id": names, "title": names, "same": ["x"] * 8, "size": list(range(8))})
    assert X.columns == ("size",)
    assert len(X.left_out) == 2
    assert "'title'" in X.left_out[0]
    assert "'same'" in X.left_out[1]


def test_a_slip_among_numbers_is_pointed_at():
    X = pc.encode({"id": list("abcd"), "size": range(4), "price": ["1", "", "2", "3 Euro"]})
    assert X.columns == ("size",)
    assert X.left_out[0].startswith("column 'price' row 4 is '3 Euro' among numbers: left out")


def test_an_unseen_level_is_zero_everywhere_and_a_word_among_numbers_is_an_error():
    X = pc.encode({"id": list("abcdef"), "size": range(6), "hue": list("rgbrgb")})
    new = X.like({"id": ["z"], "size": ["4"], "hue": ["violet"]})
    assert new.names == ("z",)
    assert new.values.tolist() == [[4, 0, 0, 0]]
    with pytest.raises(DataError, match="'size' row 1 is 'large'"):
        X.like({"id": ["z"], "size": ["large"], "hue": ["r"]})
    with pytest.raises(DataError, match="lacks the columns 'hue'"):
        X.like({"id": ["z"], "size": ["4"]})


cells = st.one_of(
    st.none(), st.sampled_from(["x", "y", "z", "NA", ""]), st.integers(-9, 9), st.booleans()
)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=12))
def test_any_table_gives_a_finite_matrix_that_survives_storing(rows):
    table = {"id": list(range(len(rows))), "u": [u for u, _ in rows], "v": [v for _, v in rows]}
    X = None
    with suppress(DataError):  # where no column says anything
        X = pc.encode(table)
    if X is None:
        return
    assert X.values.shape == (len(rows), len(X.columns))
    assert np.isfinite(X.values).all()
    restored = Encoding.from_dict(json.loads(json.dumps(asdict(X.encoding))))
    assert np.array_equal(restored.encode(table), X.values)


def test_the_id_column_is_the_one_that_holds_the_names():
    table = {"body": [1, 2, 1], "Item ID": ["1", "2", "3"], "size": [9, 8, 7]}
    assert pc.encode(table, [3, 1, 2]).encoding.id_column == "Item ID"
    assert pc.encode(table, [3, 1, 2]).values[:, 1].tolist() == [7, 9, 8]
    with pytest.raises(DataError, match="no column of the table holds the items"):
        pc.encode(table, ["tea", "milk"])
    with pytest.raises(DataError, match="2 rows for item 'tea'"):
        pc.encode({"name": ["tea", "tea", "milk"], "size": [1, 2, 3]}, ["tea", "milk"])


def test_rows_come_in_the_order_of_the_names_and_others_where_they_are_wanted():
    table = {"name": ["d", "c", "b", "a"], "size": [4, 3, 2, 1]}
    assert pc.encode(table, ["a", "b", "c"]).values.ravel().tolist() == [1, 2, 3]
    more = pc.encode(table, ["a", "b", "c"], others=True)
    assert (more.names, more.values.ravel().tolist()) == (("a", "b", "c", "d"), [1, 2, 3, 4])
    with pytest.raises(DataError, match="1 of 2 users have no row"):
        pc.encode(table, ["a", "z"], what="user")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_are_tables(frame):
    table = frame({"name": ["b", "a", "c"], "size": [2.0, None, 4.0], "hot": [True, False, True]})
    X = pc.encode(table, ["a", "b", "c"])
    assert X.columns == ("size", "size is missing", "hot")
    assert X.values.tolist() == [[3, 1, 0], [2, 0, 1], [4, 0, 1]]


def test_pandas_own_missing_values_are_missing():
    table = pd.DataFrame({"size": pd.array([1, None, 3], dtype="Int64"), "b": ["x", pd.NA, "y"]})
    assert pc.encode(table).columns == ("size", "size is missing", "b = x", "b = y", "b is missing")


@pytest.mark.parametrize("table", [{}, {"name": []}, {"name": [], "size": []}, {"name": ["a"]}])
def test_a_table_without_features_is_an_error(table):
    with pytest.raises(DataError, match="no usable feature column"):
        pc.encode(table)
    with pytest.raises(DataError, match=r"no usable feature column|no column of the table holds"):
        pc.encode(table, ["a"])


def test_models_know_the_columns_by_their_names():
    data = pc.Comparisons.from_pairs(["a", "a", "b"], ["b", "c", "c"], user=["u", "v", "w"])
    X = pc.encode({"name": ["c", "b", "a"], "size": [1, 2, 3]}, data.items)
    for model in (pc.PreferenceGP(optimize=None), pc.MultiUserGP(optimize=None)):
        model.fit(X, data)
        assert model.state_.columns.names == ("size",)
        new = model.predict(X.like({"name": ["z"], "size": [2.5]}))
        assert new.shape == (1,)
