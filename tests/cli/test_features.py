import json
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penchant.cli.features import Encoding, find_id_column, learn_encoding
from penchant.cli.tables import Table
from penchant.errors import DataError


def encoded(**columns):
    encoding, left_out = learn_encoding(Table("items.csv", columns), "id")
    return encoding, left_out, encoding.encode(Table("items.csv", columns))


def test_numbers_categories_and_missing_values():
    encoding, left_out, X = encoded(
        id=["a", "b", "c", "d"],
        price=["1", "", "3", "8"],
        colour=["red", "blue", "red", "?"],
        new=["yes", "no", "no", "yes"],
    )
    assert list(encoding.labels) == [
        "price",
        "price is missing",
        "colour = blue",
        "colour = red",
        "colour is missing",
        "new = yes",
    ]
    assert X.tolist() == [
        [1, 0, 0, 1, 0, 1],
        [3, 1, 1, 0, 0, 0],
        [3, 0, 0, 1, 0, 0],
        [8, 0, 0, 0, 1, 1],
    ]
    assert left_out == []


def test_columns_that_say_nothing_are_left_out_and_named():
    names = [f"name {k}" for k in range(8)]
    encoding, left_out, _ = encoded(id=names, title=names, same=["x"] * 8, size=list(range(8)))
    assert encoding.labels == ("size",)
    assert len(left_out) == 2
    assert "'title'" in left_out[0]
    assert "'same'" in left_out[1]


def test_a_slip_among_numbers_is_pointed_at():
    encoding, left_out, _ = encoded(id=list("abcd"), size=range(4), price=["1", "", "2", "3 Euro"])
    assert encoding.labels == ("size",)
    assert left_out[0].startswith("column 'price' row 4 is '3 Euro' among numbers: left out")


def test_an_unseen_level_is_zero_everywhere_and_a_word_among_numbers_is_an_error():
    encoding, _, _ = encoded(id=list("abcdef"), size=range(6), hue=list("rgbrgb"))
    new = Table("new.csv", {"id": ["z"], "size": ["4"], "hue": ["violet"]})
    assert encoding.encode(new).tolist() == [[4, 0, 0, 0]]
    bad = Table("new.csv", {"id": ["z"], "size": ["large"], "hue": ["r"]})
    with pytest.raises(DataError, match="'size' row 1 is 'large'"):
        encoding.encode(bad)
    with pytest.raises(DataError, match="lacks the columns 'hue'"):
        encoding.encode(Table("new.csv", {"id": ["z"], "size": ["4"]}))


cells = st.one_of(
    st.none(), st.sampled_from(["x", "y", "z", "NA", ""]), st.integers(-9, 9), st.booleans()
)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=12))
def test_any_table_gives_a_finite_matrix_that_survives_storing(rows):
    columns = {"id": list(range(len(rows))), "u": [u for u, _ in rows], "v": [v for _, v in rows]}
    table = Table("t", columns)
    encoding, _ = learn_encoding(table, "id")
    if not encoding.columns:
        return
    X = encoding.encode(table)
    assert X.shape == (len(rows), len(encoding.labels))
    assert np.isfinite(X).all()
    restored = Encoding.from_dict(json.loads(json.dumps(asdict(encoding))))
    assert np.array_equal(restored.encode(table), X)


def test_the_id_column_is_the_one_that_holds_the_names():
    table = Table("items.csv", {"body": [1, 2, 1], "Item ID": ["1", "2", "3"], "size": [9, 8, 7]})
    assert find_id_column(table, [1, 2, 3], "item") == "Item ID"
    with pytest.raises(DataError, match=r"no column of items\.csv holds the items"):
        find_id_column(table, ["tea", "milk"], "item")
    twice = Table("items.csv", {"name": ["tea", "tea", "milk"]})
    with pytest.raises(DataError, match="2 rows for item 'tea'"):
        find_id_column(twice, ["tea", "milk"], "item")
