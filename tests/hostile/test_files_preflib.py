"""PrefLib files that are damaged or made to hurt."""

import pytest

from penchant.errors import DataError
from penchant.io import read_comparisons

HEAD = "# ALTERNATIVE NAME 1: a\n# ALTERNATIVE NAME 2: b\n# ALTERNATIVE NAME 3: c\n"


@pytest.fixture
def write(tmp_path):
    def write(votes, head=HEAD):
        path = tmp_path / "v.toi"
        path.write_text(head + votes, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(
    "vote",
    [
        "1: {x,y}",
        "1: {1,y},2",
        "1: {}",
        "1: {1,,2}",
        "1: {1,2},{",
        "9223372036854775808: 1,2",
        "1" + "0" * 5000 + ": 1,2",
        "1: 1," + "9" * 5000,
        "0: 1,2",
        "-1: 1,2",
        "1.5: 1,2",
        "1: 1,²",
        "١: 1,2",
    ],
)
def test_votes_that_are_none(write, vote):
    with pytest.raises(DataError, match=r"line 4 is .*a vote must look like"):
        read_comparisons(write(vote + "\n"))


def test_votes_beyond_counting(write):
    vote = "999999999999999: 1,2,3\n"
    with pytest.raises(DataError, match="that cannot be counted"):
        read_comparisons(write(vote * 4))


def test_an_alternative_that_is_named_twice(write):
    with pytest.raises(DataError, match="names alternative 1 again"):
        read_comparisons(write("1: 1,2\n", HEAD + "# ALTERNATIVE NAME 1: z\n"))


def test_line_separators_in_names_do_not_end_a_line(write):
    head = "# ALTERNATIVE NAME 1: a\u2028b\n# ALTERNATIVE NAME 2: c\x85d\n"
    assert read_comparisons(write("1: 1,2\r\n", head)).items == ("a\u2028b", "c\x85d")
