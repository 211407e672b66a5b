import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.errors import DataError


@pytest.fixture
def data():
    return Comparisons.from_pairs(["apple"], ["pear"], items=["apple", "pear", 0, 10, "plum"])


def test_a_name_beats_an_index(data):
    """0 and 10 are names here, at the places 2 and 3; 1 and 4 are not, so they are indices."""
    assert data.item_index(["plum", 0, 10, 1, 4]).tolist() == [4, 2, 3, 1, 4]


def test_one_name_gives_one_index(data):
    assert data.item_index("pear") == 1
    assert data.item_index(np.int64(10)) == 3
    assert isinstance(data.item_index("pear"), int)
    data = Comparisons.from_pairs([("a", 1)], [("b", 2)])
    assert data.item_index(("b", 2)) == 1
    assert data.item_index([("b", 2), ("a", 1)]).tolist() == [1, 0]


@pytest.mark.parametrize("wrong", ["aple", 5, -1, 1.5, None])
def test_unknown_names_are_refused(data, wrong):
    with pytest.raises(DataError, match=r"unknown item .* one of the 5 names, or an index from 0"):
        data.item_index([wrong])


def test_the_closest_name_is_suggested(data):
    with pytest.raises(DataError, match="did you mean 'apple'"):
        data.item_index("Aple")
    with pytest.raises(DataError, match=r"unknown user 'bop'.*did you mean 'bob'"):
        Comparisons.from_pairs(["a"], ["b"], user=["bob"]).user_index("bop")


def test_pairs_of_names_or_indices(data):
    assert data.pair_index([("pear", 0), ("apple", "plum")]).tolist() == [[1, 2], [0, 4]]
    assert data.pair_index(np.array([["pear", "plum"]])).tolist() == [[1, 4]]
    assert data.pair_index([]).shape == (0, 2)


@pytest.mark.parametrize("wrong", [0, np.int64(0), 5, -1])
def test_where_names_are_integers_an_integer_is_never_an_index(wrong):
    cars = Comparisons.from_pairs([1, 3], [2, 1], user=[7, 7])
    assert cars.pair_index([(1, 3)]).tolist() == [[0, 2]]
    with pytest.raises(
        DataError, match=r"named by integers \(1, 2, 3\), so an integer means a name"
    ):
        cars.item_index(wrong)
    with pytest.raises(DataError, match="unknown item"):
        cars.pair_index([(wrong, 1)])
    with pytest.raises(DataError, match="unknown user"):
        cars.user_index(wrong)


def test_integer_arrays_are_taken_as_they_are_where_names_are_indices():
    data = Comparisons.from_pairs([0], [1], items=range(4))
    pairs = np.array([[3, 0], [1, 2]])
    assert data.pair_index(pairs).tolist() == pairs.tolist()
    assert data.pair_index(np.empty((0, 2), dtype=int)).shape == (0, 2)
    for wrong in (4, -1):
        with pytest.raises(DataError, match=f"unknown item {wrong}"):
            data.pair_index(np.array([[0, wrong]]))


@pytest.mark.parametrize("pairs", [[("apple", "pear", "plum")], np.zeros((2, 3), int), np.zeros(2)])
def test_pairs_must_be_pairs(data, pairs):
    with pytest.raises(DataError, match=r"two items each, shape \(k, 2\)"):
        data.pair_index(pairs)
