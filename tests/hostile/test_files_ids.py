"""Names are what is written: never merged, never rounded, never shifted."""

import json
from decimal import Decimal

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.io import read_comparisons

duckdb = pytest.importorskip("duckdb")
pd = pytest.importorskip("pandas")


def votes_by_user(data):
    return {
        data.users[u]: [
            (data.items[w], data.items[lo], int(n))
            for v, w, lo, n in zip(data.user, data.winner, data.loser, data.count, strict=True)
            if v == u
        ]
        for u in range(data.n_users)
    }


def write_json(path, rows):
    path.write_text("\n".join(rows))
    return path


def test_json_ids_that_python_takes_for_equal_stay_apart(tmp_path):
    """1 == 1.0 == True: their votes must not go to somebody else."""
    rows = [
        f'{{"user": {user}, "winner": "{w}", "loser": "{lo}"}}'
        for user, w, lo in [
            ("1", "a", "b"),
            ("1.0", "b", "a"),
            ("true", "a", "c"),
            ('"1"', "c", "a"),
            ("2", "b", "c"),
            ("0", "c", "b"),
        ]
    ]
    data = read_comparisons(write_json(tmp_path / "v.jsonl", rows))
    assert votes_by_user(data) == {
        0: [("c", "b", 1)],
        1: [("a", "b", 1)],
        2: [("b", "c", 1)],
        "1": [("c", "a", 1)],
        "1.0": [("b", "a", 1)],
        "true": [("a", "c", 1)],
    }


def test_a_number_and_its_text_that_cannot_be_told_apart_are_refused(tmp_path):
    rows = [
        '{"winner": 1, "loser": 2}',
        '{"winner": 1.0, "loser": 2}',
        '{"winner": "1.0", "loser": 2}',
    ]
    with pytest.raises(DataError, match=r'both 1\.0 and the text "1\.0" occur as names'):
        read_comparisons(write_json(tmp_path / "v.jsonl", rows))


def test_json_numbers_too_long_for_an_integer_are_kept_or_refused(tmp_path):
    """DuckDB 1.0 reads them as floating-point numbers, later ones as they are."""
    long = 18446744073709551617
    path = write_json(tmp_path / "v.jsonl", [f'{{"winner": {long}, "loser": {long + 1}}}'])
    query = f"SELECT ('[{long}]'::JSON -> '$[0]')::VARCHAR"
    rounds = duckdb.connect().execute(query).fetchone()[0] != str(long)
    if rounds:
        with pytest.raises(DataError, match="can merge"):
            read_comparisons(path)
    else:
        assert read_comparisons(path).items == (long, long + 1)


def test_json_integers_above_2_to_the_53_keep_all_digits(tmp_path):
    path = write_json(tmp_path / "v.jsonl", [f'{{"winner": {2**53 + 1}, "loser": {2**53}}}'])
    assert read_comparisons(path).items == (2**53, 2**53 + 1)


def test_the_same_text_escaped_in_two_ways_is_one_name(tmp_path):
    rows = ['{"winner": "\\u00e9", "loser": "b"}', '{"winner": "é", "loser": "b"}']
    data = read_comparisons(write_json(tmp_path / "v.jsonl", rows))
    assert (data.items, data.count.tolist()) == (("b", "é"), [2])


@pytest.mark.parametrize("n_before", [0, 5000])
def test_object_columns_are_never_sampled(n_before):
    """DuckDB looks at some values of a column of objects and casts the others."""
    before = [(1, 2)] * n_before
    rows = [*before, ("007", "7.9"), (7, 8), ("a", 3)]
    frame = pd.DataFrame(rows, columns=["winner", "loser"], dtype=object)
    data = Comparisons.from_frame(frame)
    assert set(data.items) == {1, 2, 3, 7, 8, "007", "7.9", "a"} - (
        {1, 2} if not n_before else set()
    )


def test_leading_zeros_in_an_object_column_of_text():
    frame = pd.DataFrame({"winner": ["007", "7"], "loser": ["8", "008"]}, dtype=object)
    assert Comparisons.from_frame(frame).items == ("007", "008", "7", "8")


def test_objects_that_are_equal_in_python_stay_apart_where_written_differently():
    frame = pd.DataFrame({"winner": [1, "1", True], "loser": [2, 2, 2]}, dtype=object)
    assert set(Comparisons.from_frame(frame).items) == {1, "1", "true", 2}


def test_decimals_and_dates_as_objects_are_text():
    frame = pd.DataFrame({"winner": [Decimal("1.50"), "x"], "loser": ["y", "y"]}, dtype=object)
    assert Comparisons.from_frame(frame).items == ("1.50", "x", "y")


def test_objects_that_are_no_names():
    frame = pd.DataFrame({"winner": [["a"], ["b"]], "loser": ["x", "y"]}, dtype=object)
    with pytest.raises(DataError, match="column 'winner' of the data frame holds lists"):
        Comparisons.from_frame(frame)


def test_other_columns_of_objects_do_not_matter():
    frame = pd.DataFrame({"winner": ["a"], "loser": ["b"], "chat": [[{"role": "user"}]]})
    assert Comparisons.from_frame(frame).items == ("a", "b")


def write_parquet(path, query):
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT {2**53 + 1}::BIGINT AS winner, 5::DOUBLE AS loser",
        f"SELECT {2**53}::DOUBLE AS winner, 5::DOUBLE AS loser",
        f"SELECT {2**24}::FLOAT AS winner, 5::FLOAT AS loser",
        "SELECT 12345678901234567.12::DECIMAL(20, 2) AS winner, 5 AS loser",
        "SELECT 7.0::DOUBLE AS winner, 'x' AS loser",
        "SELECT [1] AS winner, [2] AS loser",
        "SELECT {'a': 1} AS winner, {'a': 2} AS loser",
    ],
)
def test_casts_that_lose_something_are_refused(tmp_path, query):
    with pytest.raises(DataError, match=r"give|cannot be a name"):
        read_comparisons(write_parquet(tmp_path / "v.parquet", query))


def test_whole_decimals_keep_all_digits(tmp_path):
    big = 10**30
    query = f"SELECT {big}::DECIMAL(38, 0) AS winner, {big + 1}::DECIMAL(38, 2) AS loser"
    assert read_comparisons(write_parquet(tmp_path / "v.parquet", query)).items == (big, big + 1)


def test_small_numbers_of_different_types_match(tmp_path):
    query = "SELECT 7::BIGINT AS winner, 8::DOUBLE AS loser UNION ALL SELECT 8, 7"
    assert read_comparisons(write_parquet(tmp_path / "v.parquet", query)).items == (7.0, 8.0)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64", "Int64"])
def test_integers_of_frames_stay_integers(dtype):
    frame = pd.DataFrame({"winner": [1, 2], "loser": [2, 3]}).astype(dtype)
    items = Comparisons.from_frame(frame).items
    assert items == (1, 2, 3)
    assert all(type(name) is int for name in items)


def test_large_integers_of_a_frame():
    frame = pd.DataFrame({"winner": np.array([2**53 + 1, 2**63], dtype=np.uint64), "loser": [1, 2]})
    assert Comparisons.from_frame(frame).items == (1, 2, 2**53 + 1, 2**63)


@pytest.mark.parametrize("word", ["NA", "None", "nan", "NULL", "null", "N/A", "true", "1e5", "-0"])
def test_words_that_other_readers_take_for_nothing_are_names(tmp_path, word):
    path = tmp_path / "v.csv"
    path.write_text(f"winner,loser\n{word},b\n")
    assert word in read_comparisons(path).items
    path = tmp_path / "v.jsonl"
    path.write_text(json.dumps({"winner": word, "loser": "b"}))
    assert word in read_comparisons(path).items


def test_a_number_of_thousands_of_digits_is_text(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text(f"winner,loser\n{'9' * 5000},1\n")
    assert read_comparisons(path).items == ("1", "9" * 5000)
