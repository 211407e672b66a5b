import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.errors import DataError


def complaint(*columns, **options):
    with pytest.raises(DataError) as caught:
        Comparisons.from_pairs(*columns, **options)
    return str(caught.value)


@pytest.mark.parametrize("nothing", [None, float("nan"), "", "  ", np.float64("nan")])
def test_a_missing_loser_is_named_with_its_row(nothing):
    assert complaint(["a", "b"], ["b", nothing]).startswith(
        "column 'loser' row 1 is empty: every comparison needs a winner and a loser; drop the row "
        "or mark a tie"
    )


@pytest.mark.parametrize(
    ("winner", "loser", "options", "message"),
    [
        (np.array([1.0, np.nan]), [2, 3], {}, "column 'winner' row 1 is empty"),
        (["a"], ["b"], {"user": [None]}, "column 'user' row 0 is empty: where users are given"),
        (["a", "c"], ["b", "c"], {}, "row 1 compares 'c' with itself"),
        (["a"], ["a"], {"tie": [True]}, "row 0 compares 'a' with itself"),
        (["a", "b"], ["b"], {}, "winner has 2 entries and loser has 1: every column must have one"),
        (["a"], ["b"], {"tie": [True] * 3}, "winner has 1 entries and tie has 3"),
        (
            ["apple"],
            ["paer"],
            {"items": ["apple", "pear"]},
            "column 'loser' row 0 names 'paer' (did you mean 'pear'?), which is not one of the 2 "
            "items",
        ),
        (
            ["a"],
            ["b"],
            {"user": ["v"], "users": ["u"]},
            "column 'user' row 0 names 'v', which is not one of the 1 users",
        ),
        (["a"], ["b"], {"users": ["u"]}, "users names the users, but no user column"),
        (
            ["a"],
            ["b"],
            {"tie": [True], "margin": [1.0]},
            "column 'margin' row 0 is 1.0: it must be finite, not negative (else swap winner and "
            "loser), and 0 in a tie",
        ),
        ([], [], {}, "there are no comparisons: the data are empty"),
    ],
)
def test_each_fault_is_named(winner, loser, options, message):
    assert complaint(winner, loser, **options).startswith(message)


def test_an_unknown_item_compared_with_itself_is_reported_once_per_fault():
    message = complaint([9], [9], items=range(2))
    assert "1 of 1 rows" in message
    assert message.count("names 9") == 2


@pytest.mark.parametrize("kind", ["items", "users"])
def test_names_in_a_universe_must_be_distinct_and_say_something(kind):
    for names, message in (
        (["a", "b", "a"], "names 'a' more than once"),
        (["a", None], r"\[1\] is empty"),
        ("ab", "is the single text 'ab'"),
        (3, r"is 3: .* give range\(n\)"),
    ):
        with pytest.raises(DataError, match=f"{kind} ?{message}"):
            Comparisons.from_pairs(["a"], ["b"], user=["a"], **{kind: names})


@pytest.mark.parametrize("count", [0, -1, 1.5, float("inf"), float("nan"), "many", None])
def test_counts_must_be_positive_whole_numbers(count):
    assert f"column 'count' row 1 is {count!r}: it must be a whole number" in complaint(
        ["a", "b"], ["b", "c"], count=[1, count]
    )


@pytest.mark.parametrize("margin", [float("nan"), float("inf"), -0.5, "far"])
def test_margins_must_be_finite_and_not_negative(margin):
    assert f"column 'margin' row 0 is {margin!r}" in complaint(["a"], ["b"], margin=[margin])


@pytest.mark.parametrize("wrong", [np.array([0, 2]), np.array([0.0, 0.5]), ["no", "maybe"], [1, 3]])
def test_ties_must_be_boolean_like(wrong):
    assert "column 'tie' row 1 is" in complaint(["a", "b"], ["b", "c"], tie=wrong)


@pytest.mark.parametrize(
    "marks",
    [
        *([True, False], ["Yes", "n"], ["TRUE", None], ["1", ""], [1.0, float("nan")], (1, 0)),
        *(np.array(pair) for pair in ([1, 0], [True, False], ["yes", "no"])),
    ],
)
def test_marks_of_ties(marks):
    data = Comparisons.from_pairs(["a", "b"], ["b", "c"], tie=marks)
    assert data.tie.tolist() == [True, False]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("ab", "is the single text 'ab'"),
        (7, "is 7: it must be a sequence"),
        (np.zeros((2, 2)), r"has shape \(2, 2\): it must be one-dimensional"),
        ([["a"], ["b"]], "cannot be a name"),
    ],
)
def test_columns_that_are_not_columns(column, message):
    with pytest.raises(DataError, match=f"winner .*{message}|winner {message}"):
        Comparisons.from_pairs(column, ["a", "b"])


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


@pytest.mark.parametrize(
    "count",
    [[True, False], np.array([True, True]), [np.True_, 2], np.array([True, 2], dtype=object)],
)
def test_true_and_false_are_no_counts(count):
    with pytest.raises(DataError, match="count holds true and false"):
        Comparisons.from_pairs(["a", "b"], ["b", "a"], count=count)
