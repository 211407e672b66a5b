"""Taking answers back, and what is told about a comparison beyond who won."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.io import as_comparisons, read_comparisons

N_ITEMS, N_USERS = 4, 3

row = st.tuples(
    st.permutations(range(N_ITEMS)).map(lambda items: tuple(items[:2])),
    st.integers(0, N_USERS - 1),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from([-1, 0, 1]),
    st.sampled_from([0.0, 1.5]),
    st.sampled_from([-2.0, 0.0, 1.0]),
    st.sampled_from([0.0, 0.5]),
)
rows = st.lists(row, min_size=1, max_size=25)


def build(raw, parts=("user", "margin", "first", "time", "covariates")):
    pair, user, tie, count, first, time, covariate, margin = zip(*raw, strict=True)
    winner, loser = zip(*pair, strict=True)
    told = {
        "user": user,
        "margin": [0.0 if t else m for t, m in zip(tie, margin, strict=True)],
        "first": first,
        "time": time,
        "covariates": {"length": covariate},
    }
    universe = {"users": range(N_USERS)} if "user" in parts else {}
    return Comparisons.from_pairs(
        winner,
        loser,
        tie=tie,
        count=count,
        items=range(N_ITEMS),
        **{part: told[part] for part in parts},
        **universe,
    )


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["tea", "tea", ""], [1, -1, 0]),
        (["1", "-1", "0"], [1, -1, 0]),
        (["", "", ""], None),  # nobody knows
        (["tea", "left", ""], None),  # no side: another kind of column
    ],
)
def test_a_column_that_names_who_was_shown_first_is_read(cells, first, tmp_path):
    """A study's export has one; ties are turned with their items."""
    frame = pd.DataFrame(
        {"winner": ["tea", "milk", "tea"], "loser": ["milk", "tea", "water"], "shown_first": cells}
    )
    frame.to_csv(tmp_path / "votes.csv", index=False)
    expected = Comparisons.from_pairs(frame.winner, frame.loser, first=first)
    assert Comparisons.from_frame(frame) == expected
    assert read_comparisons(tmp_path / "votes.csv") == expected
    if "left" in cells:
        with pytest.raises(DataError, match="shown first"):
            Comparisons.from_frame(frame, first="shown_first")


part_sets = st.sampled_from(
    [(), ("user",), ("margin",), ("first",), ("user", "time"), ("covariates",)]
    + [("user", "margin", "first", "time", "covariates")]
)


@given(rows, rows, part_sets)
def test_what_was_added_can_be_taken_back(raw, more, parts):
    data, added = build(raw, parts), build(more, parts)
    assert data.extend(added).without(added) == data
    assert len(data.without(data)) == 0


@given(rows, part_sets, st.integers(0, 100))
def test_nothing_else_can_be_taken_back(raw, parts, which):
    data = build(raw, parts)
    one = data.with_counts((np.arange(len(data)) == which % len(data)) * (data.count + 1))
    with pytest.raises(DataError, match="is to be taken back") as caught:
        data.without(one)
    assert f"{one.count[0]} times, but occurred {one.count[0] - 1} times" in str(caught.value)


@given(rows)
def test_rows_of_all_that_is_told_merge_like_a_dictionary(raw):
    data = build(raw)
    expected = {}
    for (winner, loser), user, tie, count, first, time, covariate, margin in raw:
        turn = -1 if tie and winner > loser else 1
        pair = (winner, loser) if turn == 1 else (loser, winner)
        key = (user, *pair, tie, 0.0 if tie else margin, turn * first, time, turn * covariate)
        expected[key] = expected.get(key, 0) + count
    found = {
        (
            int(data.user[i]),
            int(data.winner[i]),
            int(data.loser[i]),
            bool(data.tie[i]),
            data.margin[i],
            int(data.first[i]),
            data.time[i],
            data.covariates[i, 0],
        ): int(data.count[i])
        for i in range(len(data))
    }
    assert found == expected


@given(rows)
def test_pooling_keeps_apart_what_differs_and_adds_the_rest(raw):
    data = build(raw)
    assert data.pooled() == build(raw, ("margin", "first", "time", "covariates"))


@settings(max_examples=8, deadline=None)
@given(rows)
def test_a_data_frame_and_back(raw):
    pytest.importorskip("pandas")
    data = build(raw, ("user",))
    again = Comparisons.from_frame(data.to_frame(), count="count")
    seen = np.union1d(data.winner, data.loser)
    assert [data.items[i] for i in seen] == list(again.items)
    assert again.n_comparisons == data.n_comparisons
    assert np.array_equal(again.count, data.count)
    assert np.array_equal(again.tie, data.tie)


def test_all_columns_of_a_data_frame_and_back():
    pytest.importorskip("pandas")
    data = Comparisons.from_pairs(
        ["a", "c", "a"],
        ["b", "b", "c"],
        user=["u", "v", "v"],
        tie=[False, True, False],
        margin=[1.0, 0.0, 2.5],
        first=[-1, 1, 0],
        time=[1.5, 2.5, 3.5],
        covariates={"x": [1.0, -2.0, 0.0]},
    )
    further = {"margin": "margin", "first": "first", "time": "time", "covariates": ["x"]}
    assert Comparisons.from_frame(data.to_frame(), **further) == data
    bad = data.to_frame().assign(first=[1, 2, 0])
    with pytest.raises(DataError, match=r"column 'first' row 1 is '2': it must be"):
        Comparisons.from_frame(bad, **further)


def test_splits_and_users_carry_everything():
    data = build([((0, 1), u, False, 3, 1, float(u), 1.0, 0.5) for u in range(3)])
    train, test = data.split(0.3, random_state=0)
    assert train + test == data
    assert test.covariate_names == ("length",)
    mine = data.for_user(2)
    assert (mine.time.tolist(), mine.first.tolist(), mine.covariates.tolist()) == (
        [2.0],
        [1],
        [[1.0]],
    )


def test_dates_become_days():
    import datetime

    data = Comparisons.from_pairs(
        ["a", "b", "c"],
        ["b", "c", "a"],
        time=["2024-01-01", datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 3, 12)],
    )
    assert sorted(data.time.tolist()) == [19723.0, 19724.0, 19725.5]
    dates = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[s]")
    assert Comparisons.from_pairs(["a", "b"], ["b", "c"], time=dates).time.tolist() == [
        19723.0,
        19724.0,
    ]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"first": [1, 3]}, "column 'first' row 1 is 3: it must be \\+1"),
        ({"first": [1, float("nan")]}, "column 'first' row 1 is nan"),
        ({"time": [1, "soon"]}, "column 'time' row 1 is 'soon': it must be a date"),
        ({"time": [1, None]}, "column 'time' row 1 is None"),
        ({"covariates": [[1.0], [np.nan]]}, "the covariates of row 1 are not all numbers"),
        ({"covariates": [[1.0]]}, "covariates have shape"),
        ({"covariates": {"x": [1.0, "long"]}}, "covariates hold something that is no number"),
        ({"first": [1]}, "winner has 2 entries and first has 1"),
    ],
)
def test_columns_that_cannot_be_used(columns, message):
    with pytest.raises(DataError, match=message):
        Comparisons.from_pairs(["a", "b"], ["b", "c"], **columns)


def test_what_is_taken_back_must_be_told_alike():
    data = Comparisons.from_pairs(["a", "a"], ["b", "b"], user=["ann", "bob"])
    with pytest.raises(DataError, match="only one of the two sets of comparisons has a user"):
        data.without(Comparisons.from_pairs(["a"], ["b"]))
    with pytest.raises(DataError, match="'cleo' said: 'a' beat 'b' is to be taken back"):
        data.without(Comparisons.from_pairs(["a"], ["b"], user=["cleo"]))
    with pytest.raises(DataError, match="'ann' said: 'a' tied with 'b'"):
        data.without(Comparisons.from_pairs(["b"], ["a"], user=["ann"], tie=[True]))
    left = data.without(Comparisons.from_pairs(["a"], ["b"], user=["bob"]))
    assert (left.items, left.users, left.user.tolist()) == (data.items, data.users, [0])
    with pytest.raises(DataError, match="covariates are"):
        data.without(Comparisons.from_pairs(["a"], ["b"], user=["ann"], covariates={"x": [1]}))


def test_answers_that_do_not_tell_who_was_shown_first_join_those_that_do():
    told = Comparisons.from_pairs(["a", "a"], ["b", "b"], first=[1, -1])
    more = Comparisons.from_pairs(["a"], ["b"])
    both = told + more
    assert (both.first.tolist(), both.count.tolist()) == ([-1, 0, 1], [1, 1, 1])
    assert (more + told) == both
    assert both.without(more) == told


def test_a_page_of_a_notebook_shows_what_is_there():
    names = [f"<b>{k}" for k in range(12)]
    data = Comparisons.from_pairs(names, ["&"] * 12, user=["ann"] * 12)
    html = data._repr_html_()
    assert "&lt;b&gt;0" in html
    assert "<b>0" not in html
    assert "… and 2 more" in html
    assert "12 comparisons (12 distinct) between 13 items by 1 user" in html


def test_paths_and_frames_stand_for_comparisons(tmp_path):
    pd = pytest.importorskip("pandas")
    path = tmp_path / "v.csv"
    path.write_text("winner,loser\na,b\n")
    data = Comparisons.from_pairs(["a"], ["b"])
    frame = pd.DataFrame({"winner": ["a"], "loser": ["b"]})
    assert all(as_comparisons(given) == data for given in (data, path, str(path), frame))
    with pytest.raises(DataError, match="frame is of type list"):
        as_comparisons([("a", "b")])
