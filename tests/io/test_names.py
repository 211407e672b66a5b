"""Parquet, JSON and data frames: names are what is written, never merged, rounded or shifted."""

import json
import subprocess
import sys
from decimal import Decimal

import duckdb
import pytest

from penchant.data import Comparisons
from penchant.errors import DataError, DataWarning
from penchant.io import read_comparisons

pd = pytest.importorskip("pandas")
LONG = 18446744073709551617


def votes_by_user(data):
    return {
        data.users[u]: (data.items[w], data.items[lo])
        for u, w, lo in zip(data.user, data.winner, data.loser, strict=True)
    }


def write_json(path, *rows):
    path.write_text("\n".join(rows))
    return path


def write_parquet(path, query):
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


def test_json_ids_that_python_takes_for_equal_stay_apart(tmp_path):
    """1 == 1.0 == True: their votes must not go to somebody else."""
    votes = [
        *(("1", "a", "b"), ("1.0", "b", "a"), ("true", "a", "c")),
        *(('"1"', "c", "a"), ("2", "b", "c"), ("0", "c", "b")),
    ]
    rows = [f'{{"user": {u}, "winner": "{w}", "loser": "{lo}"}}' for u, w, lo in votes]
    assert votes_by_user(read_comparisons(write_json(tmp_path / "v.jsonl", *rows))) == {
        0: ("c", "b"),
        1: ("a", "b"),
        2: ("b", "c"),
        "1": ("c", "a"),
        "1.0": ("b", "a"),
        "true": ("a", "c"),
    }


@pytest.mark.parametrize(
    ("rows", "items"),
    [
        ([("7", 7), ("2020-01-01", 1.5)], (1.5, 7, "2020-01-01", "7")),
        ([(2**53 + 1, 2**53)], (2**53, 2**53 + 1)),
        ([("é", "b")], ("b", "é")),
        *(([(w, "b")], tuple(sorted((w, "b")))) for w in ("NA", "None", "nan", "null", "true")),
    ],
)
def test_names_in_json(tmp_path, rows, items):
    """Escaped or not, a text is the same name."""
    lines = [
        json.dumps({"winner": w, "loser": lo}, ensure_ascii=a) for w, lo in rows for a in (0, 1)
    ]
    data = read_comparisons(write_json(tmp_path / "v.jsonl", *lines))
    assert (data.items, set(data.count.tolist())) == (items, {2})
    (tmp_path / "v.json").write_text(f"[{','.join(lines)}]")
    assert read_comparisons(tmp_path / "v.json") == data


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [f'{{"winner": {w}, "loser": 2}}' for w in ("1", "1.0", '"1.0"')],
            'both 1.0 and the text "1.0" occur as names',
        ),
        (['{"winner": "a", "loser": '], "v.jsonl cannot be read"),
        (['{"winner": ["a"], "loser": "b"}'], "cannot be a name"),
    ],
)
def test_json_that_is_refused(tmp_path, rows, message):
    with pytest.raises(DataError) as caught:
        read_comparisons(write_json(tmp_path / "v.jsonl", *rows))
    assert message in str(caught.value)


def test_json_numbers_too_long_for_an_integer_are_kept_or_refused(tmp_path):
    """DuckDB 1.0 reads them as floating-point numbers, later ones as they are."""
    path = write_json(tmp_path / "v.jsonl", f'{{"winner": {LONG}, "loser": {LONG + 1}}}')
    query = f"SELECT ('[{LONG}]'::JSON -> '$[0]')::VARCHAR"
    if duckdb.connect().execute(query).fetchone()[0] != str(LONG):
        with pytest.raises(DataError, match="can merge"):
            read_comparisons(path)
    else:
        assert read_comparisons(path).items == (LONG, LONG + 1)


@pytest.mark.parametrize(
    ("query", "items"),
    [
        (f"SELECT {LONG - 2}::UBIGINT AS winner, {2**53 + 1} AS loser", (2**53 + 1, LONG - 2)),
        (
            f"SELECT {10**30}::DECIMAL(38, 0) AS winner, {10**30 + 1}::DECIMAL(38, 2) AS loser",
            (10**30, 10**30 + 1),
        ),
        ("SELECT 7::BIGINT AS winner, 8::DOUBLE AS loser UNION ALL SELECT 8, 7", (7.0, 8.0)),
        ("SELECT 7 AS winner, 'x' AS loser", ("7", "x")),
    ],
)
def test_names_in_parquet(tmp_path, query, items):
    assert read_comparisons(write_parquet(tmp_path / "v.parquet", query)).items == items


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


@pytest.mark.parametrize("content", [b"this is text", b"PAR1" + b"\0" * 40, None])
def test_what_is_not_parquet(tmp_path, content):
    path = tmp_path / "v.parquet"
    if content is None:
        rows = "SELECT range AS winner, range + 1 AS loser FROM range(10000)"
        content = write_parquet(path, rows).read_bytes()[:-100]
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"v\.parquet cannot be read"):
        read_comparisons(path)


@pytest.mark.parametrize("n_before", [0, 5000])
def test_object_columns_are_never_sampled(n_before):
    """DuckDB looks at some values of a column of objects and casts the others."""
    rows = [*[(1, 2)] * n_before, ("007", "7.9"), (7, 8), ("a", 3)]
    frame = pd.DataFrame(rows, columns=["winner", "loser"], dtype=object)
    few = {3, 7, 8, "007", "7.9", "a"}
    assert set(Comparisons.from_frame(frame).items) == (few | {1, 2} if n_before else few)


def test_lists_in_a_frame_matter_only_where_names_are_expected():
    frame = pd.DataFrame({"winner": [["a"], ["b"]], "loser": ["x", "y"]}, dtype=object)
    with pytest.raises(DataError, match="column 'winner' of the data frame holds lists"):
        Comparisons.from_frame(frame)
    frame = pd.DataFrame({"winner": ["a"], "loser": ["b"], "chat": [[{"role": "user"}]]})
    assert Comparisons.from_frame(frame).items == ("a", "b")
    with pytest.raises(DataError, match="frame is of type dict"):
        Comparisons.from_frame({"winner": ["a"], "loser": ["b"]})


@pytest.mark.parametrize(
    ("winner", "loser", "dtype", "items"),
    [
        (["007", "7"], ["8", "008"], object, {"007", "008", "7", "8"}),
        ([1, "1", True], [2, 2, 2], object, {1, "1", "true", 2}),
        ([Decimal("1.50"), "x"], ["y", "y"], object, {"1.50", "x", "y"}),
        *(([1, 2], [2, 3], kind, {1, 2, 3}) for kind in ("int8", "int32", "int64", "Int64")),
        ([2**53 + 1, 2**63], [1, 2], "uint64", {1, 2, 2**53 + 1, 2**63}),
        ([1, 2], [2, 3], str, {"1", "2", "3"}),
        (["b", "a"], ["c", "b"], "category", {"a", "b", "c"}),
    ],
)
def test_names_in_a_frame(winner, loser, dtype, items):
    frame = pd.DataFrame({"winner": pd.Series(winner, dtype=dtype), "loser": loser})
    found = Comparisons.from_frame(frame.astype({"loser": dtype})).items
    assert set(found) == items
    assert {type(name) for name in found} == {type(name) for name in items}


def test_missing_cells_of_a_frame():
    pl = pytest.importorskip("polars")
    for frame in (
        pd.DataFrame({"winner": ["a", None, "b"], "loser": ["b", "a", "c"]}),
        pd.DataFrame({"winner": [1, None], "loser": [2, 3]}),
        pl.DataFrame({"winner": [1, None], "loser": [2, 3]}),
        pl.DataFrame({"winner": [1.0, float("nan")], "loser": [2, 3]}),
    ):
        with pytest.raises(DataError, match="column 'winner' row 1 is empty"):
            Comparisons.from_frame(frame)
        with pytest.warns(DataWarning, match="row 1"):
            data = Comparisons.from_frame(frame, skip_bad=True)
        assert data.n_comparisons == len(frame) - 1


@pytest.mark.slow
def test_ten_million_rows_in_seconds_and_under_two_gigabytes(tmp_path):
    path = write_parquet(
        tmp_path / "large.parquet",
        """SELECT 'user ' || u AS user, 'item ' || w AS winner,
                  'item ' || (w + 1 + d) % 1000 AS loser
        FROM (SELECT floor(random() * 100000)::INT AS u, floor(random() * 1000)::INT AS w,
                     floor(random() * 999)::INT AS d FROM range(10000000))""",
    )
    program = (
        "import resource, sys, time\n"
        "from penchant.io import read_comparisons\n"
        "start = time.process_time()\n"
        "data = read_comparisons(sys.argv[1])\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print(data.n_comparisons, time.process_time() - start, peak)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    rows, seconds, kilobytes = done.stdout.split()
    assert int(rows) == 10_000_000
    assert float(seconds) < 10
    assert float(kilobytes) < 2e6
