"""The one checker: every fault of a row is named with its row, all of them together."""

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.errors import DataError

NAN, INF = float("nan"), float("inf")
ONE = (["a"], ["b"])
TWO = (["a", "b"], ["b", "c"])
EMPTY = "every comparison needs a winner and a loser; drop the row or mark a tie"
MARGIN = "it must be finite, not negative (else swap winner and loser), and 0 in a tie"


def complaint(*columns, **options):
    with pytest.raises(DataError) as caught:
        Comparisons.from_pairs(*columns, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        *(
            ((["a", "b"], ["b", nothing]), {}, f"column 'loser' row 1 is empty: {EMPTY}")
            for nothing in (None, NAN, "", "  ", np.float64("nan"))
        ),
        ((np.array([1.0, np.nan]), [2, 3]), {}, "column 'winner' row 1 is empty"),
        (ONE, {"user": [None]}, "column 'user' row 0 is empty: where users are given"),
        ((["a", "c"], ["b", "c"]), {}, "row 1 compares 'c' with itself"),
        ((["a"], ["a"]), {"tie": [True]}, "row 0 compares 'a' with itself"),
        ((["a", "b"], ["b"]), {}, "winner has 2 entries and loser has 1: every column must have"),
        (ONE, {"tie": [True] * 3}, "winner has 1 entries and tie has 3"),
        (
            (["apple"], ["paer"]),
            {"items": ["apple", "pear"]},
            "column 'loser' row 0 names 'paer' (did you mean 'pear'?), which is not one of the 2 "
            "items",
        ),
        (
            ONE,
            {"user": ["v"], "users": ["u"]},
            "column 'user' row 0 names 'v', which is not one of the 1 users",
        ),
        (ONE, {"users": ["u"]}, "users names the users, but no user column"),
        (([], []), {}, "there are no comparisons: the data are empty"),
        (ONE, {"tie": [True], "margin": [1.0]}, f"column 'margin' row 0 is 1.0: {MARGIN}"),
        *(
            (ONE, {"margin": [margin]}, f"column 'margin' row 0 is {margin!r}")
            for margin in (NAN, INF, -0.5, "far")
        ),
        *(
            (TWO, {"count": [1, count]}, f"column 'count' row 1 is {count!r}: it must be a whole")
            for count in (0, -1, 1.5, INF, NAN, "many", None)
        ),
        *(
            (TWO, {"count": count}, "count holds true and false")
            for count in (
                *([True, False], np.array([True, True]), [np.True_, 2]),
                np.array([True, 2], dtype=object),
            )
        ),
        *(
            (TWO, {"tie": tie}, "column 'tie' row 1 is")
            for tie in (np.array([0, 2]), np.array([0.0, 0.5]), ["no", "maybe"], [1, 3])
        ),
        *(
            (ONE, {"user": ["a"], kind: names}, f"{kind}{message}")
            for kind in ("items", "users")
            for names, message in (
                (["a", "b", "a"], " names 'a' more than once"),
                (["a", None], "[1] is empty"),
                ("ab", " is the single text 'ab'"),
                (3, " is 3: it must be a sequence of names; where the names are the indices"),
            )
        ),
        (("ab", ["a", "b"]), {}, "winner is the single text 'ab'"),
        ((7, ["a", "b"]), {}, "winner is 7: it must be a sequence"),
        ((np.zeros((2, 2)), ["a", "b"]), {}, "winner has shape (2, 2): it must be one-dimensional"),
        (([["a"], ["b"]], ["a", "b"]), {}, "winner holds a value that cannot be a name"),
    ],
)
def test_each_fault_is_named(columns, options, message):
    assert complaint(*columns, **options).startswith(message)


def test_an_unknown_item_compared_with_itself_is_reported_once_per_fault():
    message = complaint([9], [9], items=range(2))
    assert "1 of 1 rows" in message
    assert message.count("names 9") == 2


@pytest.mark.parametrize(
    "marks",
    [
        *([True, False], ["Yes", "n"], ["TRUE", None], ["1", ""], [1.0, NAN], (1, 0)),
        *(np.array(pair) for pair in ([1, 0], [True, False], ["yes", "no"])),
    ],
)
def test_marks_of_ties(marks):
    assert Comparisons.from_pairs(*TWO, tie=marks).tie.tolist() == [True, False]


def test_all_bad_rows_are_collected_and_the_first_few_told():
    message = complaint(["a", None, "b", "a", *["c"] * 4], ["b", "a", "b", "", *["c"] * 4])
    lines = message.splitlines()
    assert lines[0] == "7 of 8 rows cannot be used (rows are counted from 0):"
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        "column 'winner' row 1 is empty",
        "row 2 compares 'b' with itself",
        "column 'loser' row 3 is empty",
        "row 4 compares 'c' with itself",
        "row 5 compares 'c' with itself",
        "… and 2 more",
    ]
