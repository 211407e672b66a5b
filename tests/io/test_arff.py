import numpy as np
import pytest

from penchant.datasets import REGRESSION_ROWS, load_regression, read_arff
from penchant.errors import DataError

TEXT = """% a comment
@relation things
@attribute size real
@attribute river {0, 1}
@attribute 'kind of' {red, green}
@attribute value numeric
@data
1.5, 1, green, 10
?, 0, red, 20
2.5, 1, ?, 30
"""


def test_numbers_stay_numbers_and_words_become_columns(write):
    X, y, names = read_arff(write(TEXT, "things.arff"))
    assert names == ("size", "river", "kind of=red", "kind of=green")
    np.testing.assert_array_equal(X, [[1.5, 1, 0, 1], [np.nan, 0, 1, 0], [2.5, 1, np.nan, np.nan]])
    assert y.tolist() == [10, 20, 30]


def test_a_nominal_target_is_the_position_of_its_value(write):
    text = "@relation r\n@attribute x real\n@attribute y {low,high}\n@data\n1,high\n2,low\n"
    assert read_arff(write(text, "things.arff"))[1].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no arff", "is not an ARFF table|holds no data"),
        ("@relation r\n@attribute x string\n@attribute y real\n@data\na,1\n", "not an ARFF table"),
        ("@relation r\n@attribute y real\n@data\n1\n", "holds no data"),
        ("@relation r\n@attribute x real\n@attribute y real\n@data\n", "holds no data"),
    ],
)
def test_broken_files(write, text, message):
    with pytest.raises(DataError, match=message):
        read_arff(write(text, "things.arff"))


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="there is no file"):
        read_arff(tmp_path / "none.arff")


@pytest.mark.parametrize("name", REGRESSION_ROWS)
def test_regression_sets(data_folder, name):
    table = load_regression(name)
    assert table.X.shape == (REGRESSION_ROWS[name], len(table.feature_names))
    assert np.isfinite(table.X).all()
    assert np.isfinite(table.y).all()


def test_an_unknown_regression_set():
    with pytest.raises(DataError, match="must be one of pyrim, triazines"):
        load_regression("boston")
