"""What is told about a comparison is kept, merged, split, joined, taken back and exported."""

import dataclasses
import datetime
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.io import as_comparisons, read_comparisons

N_ITEMS, N_USERS = 5, 3
PARTS = ("user", "margin", "first", "time", "covariates")

# One raw comparison: two different items, user, whether they tied, how often, and what else is told
row = st.tuples(
    st.permutations(range(N_ITEMS)).map(lambda items: tuple(items[:2])),
    st.integers(0, N_USERS - 1),
    st.booleans(),
    st.integers(1, 4),
    st.sampled_from([-1, 0, 1]),
    st.sampled_from([0.0, 1.5]),
    st.sampled_from([-2.0, 0.0, 1.0]),
    st.sampled_from([0.0, 0.5]),
)
rows = st.lists(row, min_size=1, max_size=30)
part_sets = st.sampled_from(
    [(), ("user",), ("margin",), ("first",), ("user", "time"), ("covariates",), PARTS]
)


def build(raw, parts=("user",), items=range(N_ITEMS)):
    pair, user, tie, count, first, time, covariate, margin = zip(*raw, strict=True)
    told = {
        "user": user,
        "margin": [0.0 if t else m for t, m in zip(tie, margin, strict=True)],
        "first": first,
        "time": time,
        "covariates": {"length": covariate},
    }
    universe = {"items": items} | ({"users": range(N_USERS)} if "user" in parts else {})
    given = universe | {part: told[part] for part in parts}
    return Comparisons.from_pairs(*zip(*pair, strict=True), tie=tie, count=count, **given)


def as_counts(data):
    """The comparisons as a dictionary by names, whatever the order of rows and indices."""
    return {
        (
            None if data.user is None else data.users[data.user[i]],
            data.items[data.winner[i]],
            data.items[data.loser[i]],
            bool(data.tie[i]),
        ): int(data.count[i])
        for i in range(len(data))
    }


@given(rows, st.permutations(range(N_ITEMS)))
def test_relabelling_items_permutes_the_indices(raw, place):
    """The universe in another order: the same comparisons by name, indices moved."""
    data = build(raw)
    moved = build(raw, items=[place.index(i) for i in range(N_ITEMS)])
    assert as_ignoring_tie_order(moved) == as_ignoring_tie_order(data)
    assert moved.item_index([0])[0] == place[0]


def as_ignoring_tie_order(data):
    return {
        (user, *(sorted((winner, loser)) if tie else (winner, loser)), tie): count
        for (user, winner, loser, tie), count in as_counts(data).items()
    }


@given(rows, st.integers(0, 2**32), st.floats(0.1, 0.9))
def test_split_by_comparison_divides_every_count(raw, seed, fraction):
    data = build(raw)
    part = round(fraction * data.n_comparisons)
    if not 0 < part < data.n_comparisons:
        with pytest.raises(DataError, match="leaves one side empty"):
            data.split(fraction, random_state=seed)
        return
    train, test = data.split(fraction, random_state=seed)
    assert test.n_comparisons == part
    assert train + test == data
    assert train.items == test.items == data.items
    assert train.users == test.users == data.users
    assert data.split(fraction, random_state=seed)[1] == test


def test_split_by_comparison_is_hypergeometric():
    """A row with 90 of 100 comparisons gives 18 of 20 on average, with the right spread."""
    data = Comparisons.from_pairs(["a", "c"], ["b", "d"], count=[90, 10])
    rng = np.random.default_rng(1)
    drawn = np.array([as_counts(data.split(0.2, random_state=rng)[1]) for _ in range(2000)])
    share = np.array([counts[None, "a", "b", False] for counts in drawn])
    variance = 20 * 0.9 * 0.1 * (100 - 20) / (100 - 1)
    assert abs(share.mean() - 18) < 4 * np.sqrt(variance / len(share))
    assert share.var() == pytest.approx(variance, rel=0.15)


def test_split_by_user_moves_whole_users():
    user = np.repeat(np.arange(10), 3)
    data = Comparisons.from_pairs([0, 1, 2] * 10, [1, 2, 0] * 10, user=user, users=range(12))
    train, test = data.split(0.3, by="user", random_state=0)
    assert len(np.unique(test.user)) == 3
    assert not set(train.user) & set(test.user)
    assert train + test == data
    assert test.n_users == 12


def test_names_keep_their_python_type():
    text = Comparisons.from_pairs(np.array(["b", "a"]), np.array(["a", "c"]))
    numbers = Comparisons.from_pairs(np.array([30, 10], dtype=np.int32), np.array([20, 20]))
    mixed = Comparisons.from_pairs(["a", 1], [2, "b"])
    assert text.items == ("a", "b", "c")
    assert all(type(name) is str for name in text.items)
    assert numbers.items == (10, 20, 30)
    assert all(type(name) is int for name in numbers.items)
    assert mixed.items == (1, 2, "a", "b")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_integers_of_any_width_are_read_right(dtype):
    top = np.iinfo(dtype).max
    winner = np.array([top, top - 1, 0], dtype=dtype)
    loser = np.array([0, top, top - 1], dtype=dtype)
    assert Comparisons.from_pairs(winner, loser).items == (0, int(top) - 1, int(top))
    if dtype is np.int8:
        ends = Comparisons.from_pairs(np.array([-128], dtype), np.array([127], dtype))
        assert ends.items == (-128, 127)


def test_pandas_and_polars_columns_are_accepted():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    expected = Comparisons.from_pairs(["a", "b"], ["b", "c"])
    assert Comparisons.from_pairs(pd.Series(["a", "b"]), pd.Series(["b", "c"])) == expected
    assert Comparisons.from_pairs(pl.Series(["a", "b"]), pl.Series(["b", "c"])) == expected
    with pytest.raises(DataError, match="row 1 is empty"):
        Comparisons.from_pairs(pd.Series(["a", pd.NA]), pd.Series(["b", "c"]))


def test_arrays_are_read_only_and_fields_frozen():
    plain = Comparisons.from_pairs(["a"], ["b"])
    told = {"margin": [2.0], "user": ["u"], "first": [1], "time": [3.0], "covariates": [[1.0]]}
    data = Comparisons.from_pairs(["a"], ["b"], **told)
    for column in ("winner", "loser", "count", "tie", *told):
        with pytest.raises(ValueError, match="read-only"):
            getattr(data, column)[0] = 0
        assert (getattr(plain, column) is None) == (column in told)
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.items = ()


def test_fields_rebuild_an_equal_object():
    data = Comparisons.from_pairs(["a", "b"], ["b", "c"], user=[1, 2], margin=[1.0, 2.0])
    values = {f.name: getattr(data, f.name) for f in dataclasses.fields(data)}
    assert Comparisons(**values) == data
    assert pickle.loads(pickle.dumps(data)) == data
    assert data != Comparisons.from_pairs(["a", "b"], ["b", "c"], user=[1, 2], margin=[1.0, 3.0])
    assert data != "something else"


def test_types_of_the_columns():
    data = Comparisons.from_pairs(["a"], ["b"], count=[2.0], tie=["yes"], user=[7])
    assert [data.winner.dtype, data.loser.dtype, data.count.dtype, data.user.dtype] == [np.intp] * 4
    assert data.tie.dtype == bool
    assert data.tie.tolist() == [True]
    assert data.margin is None


def test_rankings_from_an_array_equal_rankings_from_lists():
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(6)[:4] for _ in range(50)])
    data = Comparisons.from_rankings(orders, items=range(6))
    assert data == Comparisons.from_rankings(orders.tolist(), items=range(6))
    assert data.n_comparisons == 50 * 6


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=2, max_size=12))
def test_scores_compare_all_pairs_within_a_group(scored):
    groups, scores = zip(*scored, strict=True)
    expected = {}
    for i in range(len(scored)):
        for j in range(i + 1, len(scored)):
            if groups[i] == groups[j]:
                winner, loser = (i, j) if scores[i] >= scores[j] else (j, i)
                expected[None, winner, loser, scores[i] == scores[j]] = 1
    if not expected:
        with pytest.raises(DataError, match="no group holds two scores"):
            Comparisons.from_scores(scores, groups=groups)
        return
    data = Comparisons.from_scores(scores, groups=groups)
    assert as_counts(data) == expected
    difference = np.array(scores)[data.winner] - np.array(scores)[data.loser]
    assert (data.margin == difference).all()
    assert data.items == tuple(range(len(scores)))


def test_pooled_and_for_user():
    data = Comparisons.from_pairs(
        ["a", "a", "b"], ["b", "b", "a"], user=["u", "v", "v"], items=["a", "b", "c"]
    )
    pooled, one = data.pooled(), data.for_user("v")
    assert as_counts(pooled) == {(None, "a", "b", False): 2, (None, "b", "a", False): 1}
    assert as_counts(one) == {(None, "a", "b", False): 1, (None, "b", "a", False): 1}
    assert pooled.users == one.users == ()
    assert pooled.items == one.items == ("a", "b", "c")
    with pytest.raises(DataError, match="no user column"):
        pooled.for_user("v")


def test_a_user_without_comparisons_has_none():
    data = Comparisons.from_pairs(["a"], ["b"], user=["u"], users=["u", "v"])
    nothing = data.for_user("v")
    assert len(nothing) == nothing.n_comparisons == 0
    assert len(nothing.pooled()) == 0
    assert nothing + nothing == nothing
    assert nothing + data.for_user("u") == data.for_user("u")


@given(rows)
def test_laplacian_is_the_sum_over_comparisons(raw):
    data = build(raw)
    expected = np.zeros((N_ITEMS, N_ITEMS))
    for (winner, loser), _, _, count, *_ in raw:
        edge = np.zeros(N_ITEMS)
        edge[winner], edge[loser] = 1, -1
        expected += count * np.outer(edge, edge)
    np.testing.assert_array_equal(data.laplacian().toarray(), expected)


def test_components_and_compared():
    data = Comparisons.from_pairs([0, 3], [1, 4], items=range(6))
    n_components, labels = data.components()
    assert n_components == 4
    assert labels[0] == labels[1] != labels[3] == labels[4]
    assert data.compared().tolist() == [0, 1, 3, 4]


@given(rows, rows)
def test_extend_adds_counts(first, second):
    assert build(first) + build(second) == build(first + second)


def test_extend_puts_new_names_at_the_end():
    data = Comparisons.from_pairs(["b"], ["c"], user=["u"])
    more = Comparisons.from_pairs(["a", "c"], ["b", "b"], user=["t", "u"])
    both = data.extend(more)
    assert both.items == ("b", "c", "a")
    assert both.users == ("u", "t")
    assert as_counts(both) == {**as_counts(data), **as_counts(more)}


@pytest.mark.parametrize("column", ["user", "margin"])
def test_extend_needs_the_same_columns(column):
    with pytest.raises(DataError, match=f"only one of the two .* {column}"):
        Comparisons.from_pairs(["a"], ["b"]) + Comparisons.from_pairs(["a"], ["b"], **{column: [1]})


def test_adding_something_else_is_a_type_error():
    with pytest.raises(TypeError):
        Comparisons.from_pairs(["a"], ["b"]) + 1


def test_describe_tells_what_is_there():
    data = Comparisons.from_pairs(
        ["a", "c", "a"],
        ["b", "d", "b"],
        user=["u", "u", "v"],
        tie=[False, True, False],
        items=["a", "b", "c", "d", "e"],
    )
    assert data.describe().splitlines() == [
        "3 comparisons (3 distinct) between 5 items by 2 users",
        "comparisons per user: 1 to 2, median 1.5",
        "ties: 1 (33%)",
        "groups connected by comparisons: 2",
        "items never compared: 1",
        "most compared: a (2); least compared: e (0)",
    ]


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
    pd = pytest.importorskip("pandas")
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
    data = build(raw, PARTS)
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
    assert len(data) == len(found)
    ordered = [key[:4] for key in found]  # rows are sorted, whatever the order of the raw ones
    assert ordered == sorted(ordered)


@given(rows)
def test_pooling_keeps_apart_what_differs_and_adds_the_rest(raw):
    assert build(raw, PARTS).pooled() == build(raw, PARTS[1:])


def test_all_columns_of_a_data_frame_and_back():
    pytest.importorskip("pandas")
    data = Comparisons.from_pairs(
        ["a", "c", "a"],
        ["b", "b", "c"],
        user=["u", "v", "v"],
        tie=[False, True, False],
        count=[2, 1, 4],
        margin=[1.0, 0.0, 2.5],
        first=[-1, 1, 0],
        time=[1.5, 2.5, 3.5],
        covariates={"x": [1.0, -2.0, 0.0]},
    )
    further = {name: name for name in ("count", "margin", "first", "time")} | {"covariates": ["x"]}
    assert Comparisons.from_frame(data.to_frame(), **further) == data
    bad = data.to_frame().assign(first=[1, 2, 0])
    with pytest.raises(DataError, match=r"column 'first' row 1 is '2': it must be"):
        Comparisons.from_frame(bad, **further)


def test_splits_and_users_carry_everything():
    raw = [((0, 1), u, False, 3, 1, float(u), 1.0, 0.5) for u in range(3)]
    data = build(raw, PARTS)
    train, test = data.split(0.3, random_state=0)
    assert train + test == data
    assert test.covariate_names == ("length",)
    mine = data.for_user(2)
    assert (mine.time, mine.first, mine.covariates) == ([2.0], [1], [[1.0]])


def test_dates_become_days():
    dates = ["2024-01-01", datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 3, 12)]
    data = Comparisons.from_pairs(["a", "b", "c"], ["b", "c", "d"], time=dates)
    assert data.time.tolist() == [19723.0, 19724.0, 19725.5]
    dates = np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[s]")
    data = Comparisons.from_pairs(["a", "b"], ["b", "c"], time=dates)
    assert data.time.tolist() == [19723.0, 19724.0]


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


def split(**arguments):
    return Comparisons.from_pairs(["a"], ["b"], count=[9]).split(**arguments)


def told(**columns):
    return Comparisons.from_pairs(["a", "b"], ["b", "c"], **columns)


@pytest.mark.parametrize(
    ("make", "arguments", "options", "message"),
    [
        (split, (), {"fraction": 0.0}, "strictly between 0 and 1"),
        (split, (), {"fraction": 1.5}, "strictly between 0 and 1"),
        (split, (), {"fraction": 0.5, "by": "item"}, "must be 'comparison' or 'user'"),
        (split, (), {"fraction": 0.5, "by": "user"}, "do not tell them apart"),
        (told, (), {"first": [1, 3]}, r"column 'first' row 1 is 3: it must be \+1"),
        (told, (), {"first": [1, float("nan")]}, "column 'first' row 1 is nan"),
        (told, (), {"first": [1]}, "winner has 2 entries and first has 1"),
        (told, (), {"time": [1, "soon"]}, "column 'time' row 1 is 'soon': it must be a date"),
        (told, (), {"time": [1, None]}, "column 'time' row 1 is None"),
        (told, (), {"covariates": [[1.0], [np.nan]]}, "the covariates of row 1 are not all num"),
        (told, (), {"covariates": [[1.0]]}, "covariates have shape"),
        (told, (), {"covariates": {"x": [1.0, "long"]}}, "covariates hold something that is no"),
        *(
            (Comparisons.from_scores, (scores,), {"groups": groups}, message)
            for scores, groups, message in (
                ([1.0, float("nan")], None, r"scores\[1\] is nan"),
                ([1.0, "much"], None, r"scores\[1\] is 'much'"),
                ([1.0, 2.0], ["q"], "1 entries for 2 scores"),
                ([1.0], None, "no group holds two scores"),
            )
        ),
        *(
            (Comparisons.from_rankings, (rankings,), options, message)
            for rankings, options, message in (
                ([["a", "b"], ["a", "b", "a"]], {}, "ranking 1 names 'a' more than once"),
                ([["a"]], {}, "no pair of items"),
                ([], {}, "no pair of items"),
                (["abc"], {}, "ranking 0 is 'abc'"),
                ([["a", "b"], ["a", None]], {}, "ranking 1 is empty"),
                ([["apple", "peach"], ["aple"]], {"items": ["apple", "peach"]}, "mean 'apple'"),
                ([["a", "b"]], {"users": ["u", "v"]}, "2 entries for 1 rankings"),
                ([["a", "b"]], {"users": [None]}, r"users\[0\] is empty"),
            )
        ),
        *(
            (Comparisons.from_choices, (chosen, sets), options, message)
            for chosen, sets, options, message in (
                (["x"], [["a", "b"]], {}, r"chosen\[0\] is 'x', which is not in its set"),
                (["a"], [["a", "b"], ["a", "c"]], {}, "1 entries for 2 sets"),
                (["a"], ["ab"], {}, r"sets\[0\] is 'ab'"),
                (["a"], [["a", "b", "c"]], {"worst": ["a"]}, "both as the best and as the worst"),
                (["a"], [["a"]], {}, "something must be left"),
                (None, [["a", "b"]], {}, "give chosen="),
                (["a"], [["a", "b", "b"]], {}, "'b' more than once"),
                (["a"], [["a", "b", None]], {}, "is empty"),
                (["a"], [["a", "b", "c"]], {"user": ["u", "v"]}, "2 entries for 1"),
                (["a"], [["a", "b", "c"]], {"items": ["a", "b"]}, "not one of the 2 items"),
            )
        ),
    ],
)
def test_refused(make, arguments, options, message):
    with pytest.raises(DataError, match=message):
        make(*arguments, **options)
