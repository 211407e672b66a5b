import csv
import gzip
import json
import subprocess
import sys
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penchant.data import Comparisons
from penchant.errors import DataError, DataWarning
from penchant.io import read_comparisons

duckdb = pytest.importorskip("duckdb")

VOTES = Comparisons.from_pairs(
    ["tea", "tea", "milk", "tea", "tea"],
    ["milk", "milk", "water", "water", "milk"],
    user=[3, 3, 10, 10, 3],
    tie=[False, False, True, False, False],
    count=[1, 2, 1, 4, 1],
)


def write_rows(data, path, separator=","):
    """The comparisons as a text table, one line per distinct row."""
    lines = [separator.join(["rater", "chosen", "rejected", "tie", "count"])]
    for i in range(len(data)):
        cells = (
            data.users[data.user[i]],
            data.items[data.winner[i]],
            data.items[data.loser[i]],
            "yes" if data.tie[i] else "no",
            data.count[i],
        )
        lines.append(separator.join(map(str, cells)))
    path.write_text("\n".join(lines) + "\n")
    return path


def records(data):
    return [
        {
            "user": data.users[data.user[i]],
            "winner": data.items[data.winner[i]],
            "loser": data.items[data.loser[i]],
            "tie": bool(data.tie[i]),
            "count": int(data.count[i]),
        }
        for i in range(len(data))
    ]


def complaint(path, **options):
    with pytest.raises(DataError) as caught:
        read_comparisons(path, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "separator"),
    [("v.csv", ","), ("v.csv", ";"), ("v.tsv", "\t"), ("v.txt", "|"), ("V.CSV", ",")],
)
def test_text_tables(tmp_path, name, separator):
    assert read_comparisons(write_rows(VOTES, tmp_path / name, separator)) == VOTES


def test_zipped_text_with_byte_order_mark_and_windows_lines(tmp_path):
    text = write_rows(VOTES, tmp_path / "v.csv").read_text().replace("\n", "\r\n")
    path = tmp_path / "v.csv.gz"
    path.write_bytes(gzip.compress("\ufeff".encode() + text.encode()))
    assert read_comparisons(path) == VOTES


def test_parquet_json_lines_and_json(tmp_path):
    parquet, lines, array = tmp_path / "v.parquet", tmp_path / "v.jsonl", tmp_path / "v.json"
    lines.write_text("\n".join(map(json.dumps, records(VOTES))))
    array.write_text(json.dumps(records(VOTES)))
    duckdb.sql(f"COPY (FROM read_json('{lines}')) TO '{parquet}' (FORMAT parquet)")
    assert read_comparisons(parquet) == VOTES
    assert read_comparisons(lines) == VOTES
    assert read_comparisons(array) == VOTES


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_data_frames(library):
    module = pytest.importorskip(library)
    if library == "pyarrow":
        frame = module.Table.from_pylist(records(VOTES))
    else:
        frame = module.DataFrame(records(VOTES))
    assert Comparisons.from_frame(frame, user="user", tie="tie", count="count") == VOTES


# The letter keeps names from looking like numbers or being blank.
letters = st.characters(exclude_categories=["Cs", "Cc"])
names = st.text(letters, max_size=6).map(lambda text: f"x{text}".strip())
votes = st.lists(
    st.tuples(names, names).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=8
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(votes)
def test_any_text_survives_every_format(tmp_path, pairs):
    winner, loser = zip(*pairs, strict=True)
    expected = Comparisons.from_pairs(winner, loser)
    text, lines = tmp_path / "any.csv", tmp_path / "any.jsonl"
    with text.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("winner", "loser"), *pairs])
    lines.write_text("\n".join(json.dumps({"winner": p[0], "loser": p[1]}) for p in pairs))
    assert read_comparisons(lines) == expected
    assert read_comparisons(text) == expected


def test_numbers_in_text_are_integers_only_where_nothing_is_lost(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("winner,loser\n10,9\n9,2\n")
    assert read_comparisons(path).items == (2, 9, 10)
    path.write_text("winner,loser\n007,9\n9,10\n")
    assert read_comparisons(path).items == ("007", "10", "9")
    path.write_text("winner,loser\n7,x\n9,10\n")
    assert read_comparisons(path).items == ("10", "7", "9", "x")


def test_json_keeps_text_and_numbers_apart(tmp_path):
    path = tmp_path / "v.jsonl"
    path.write_text('{"winner": "7", "loser": 7}\n{"winner": "2020-01-01", "loser": 1.5}')
    assert read_comparisons(path).items == (1.5, 7, "2020-01-01", "7")


def test_spaces_around_names_in_text_do_not_matter(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("winner, loser\n a , b\n")
    assert read_comparisons(path).items == ("a", "b")


def test_columns_of_different_types_are_read_as_text(tmp_path):
    path = tmp_path / "v.parquet"
    duckdb.sql(f"COPY (SELECT 7 AS winner, 'x' AS loser) TO '{path}' (FORMAT parquet)")
    assert read_comparisons(path).items == ("7", "x")


def test_wide_integers_keep_all_digits(tmp_path):
    path = tmp_path / "v.parquet"
    query = "SELECT 18446744073709551615::UBIGINT AS winner, 9007199254740993 AS loser"
    duckdb.sql(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    assert read_comparisons(path).items == (9007199254740993, 18446744073709551615)


def test_a_path_with_wildcard_characters_is_one_file(tmp_path):
    write_rows(VOTES, tmp_path / "v1.csv")
    (tmp_path / "v[1].csv").write_text("winner,loser\na,b\n")
    assert len(read_comparisons(tmp_path / "v[1].csv")) == 1


def test_many_rows_are_grouped_alike_in_either_place(tmp_path, monkeypatch):
    path = write_rows(VOTES, tmp_path / "v.csv")
    monkeypatch.setattr("penchant.io.sql._GROUPED_ROWS", 0)
    assert read_comparisons(path) == VOTES


def test_bad_rows_are_listed_with_the_column_names_of_the_file(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("chosen,rejected,times,draw\na,b,1,no\na,,1,no\nc,c,x,no\na,b,1,perhaps\n")
    assert complaint(path).splitlines() == [
        "v.csv: 3 of 4 rows cannot be used (rows are counted from 1):",
        "  column 'rejected' row 2 is empty: every comparison needs a winner and a loser; drop "
        "the row or mark a tie",
        "  row 3 compares 'c' with itself: a comparison needs two different items; drop the row "
        "or correct a name",
        "  column 'times' row 3 is 'x': it must be a whole number of at least 1; drop rows that "
        "never happened",
        "  column 'draw' row 4 is 'perhaps': it must be true or false (yes/no, 1/0), or 'both bad'",
    ]


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "nan", "inf", ""])
def test_bad_counts_in_a_file(tmp_path, count):
    path = tmp_path / "v.csv"
    path.write_text(f"winner,loser,count\na,b,3\na,b,{count}\n")
    assert f"column 'count' row 2 is {count or None!r}" in complaint(path)


def test_skip_bad_leaves_rows_out_and_says_so(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("winner,loser\na,b\na,\nc,c\n")
    with pytest.warns(DataWarning, match="2 of 3 rows cannot be used") as caught:
        data = read_comparisons(path, skip_bad=True)
    assert "column 'loser' row 2" in str(caught[0].message)
    assert len(data) == 1
    assert data.items == ("a", "b")


def test_names_that_only_bad_rows_mention_are_left_out_too(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("winner,loser,user\na,a,u\nb,d,v\nc,,w\nd,e,x\n")
    with pytest.warns(DataWarning, match="2 of 4"):
        data = read_comparisons(path, skip_bad=True)
    assert data == Comparisons.from_pairs(["b", "d"], ["d", "e"], user=["v", "x"])


def test_skip_bad_with_nothing_left(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("winner,loser\na,\n")
    assert complaint(path, skip_bad=True).startswith(
        "no row is usable. v.csv: column 'loser' row 1"
    )


def test_rows_with_too_many_or_too_few_cells_are_bad_rows_like_others(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("winner,loser\na,b\na,b,c,d\nb,b\nc\nb,c\n,b\n")
    lines = complaint(path).splitlines()
    assert lines[0] == "v.csv: 4 of 6 rows cannot be used (rows are counted from 1):"
    assert [line.split(";")[0].split(":")[0].strip() for line in lines[1:]] == [
        "row 2 has more cells than the first line names columns",
        "row 3 compares 'b' with itself",
        "row 4 has fewer cells than the first line names columns",
        "column 'winner' row 6 is empty",
    ]
    with pytest.warns(DataWarning, match="4 of 6 rows cannot be used"):
        data = read_comparisons(path, skip_bad=True)
    assert data == Comparisons.from_pairs(["a", "b"], ["b", "c"])


@pytest.mark.parametrize("rows", ['"a,b\nc,d\ne,f\n', '"a,b\nc,"d"\ne,f\n', '"a"x,b\nc,d\n'])
@pytest.mark.parametrize("skip_bad", [True, False])
def test_a_quotation_mark_that_hides_rows_is_never_skipped(tmp_path, rows, skip_bad):
    path = tmp_path / "v.csv"
    path.write_text("winner,loser\nx,y\n" + rows)
    assert "v.csv: row 2 has a quotation mark" in complaint(path, skip_bad=skip_bad)


def test_names_may_span_lines_and_hold_separators_and_quotes(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text('winner,loser\n"two\nlines","a, b"\n\n"say ""hi""",c"d\n,x\n')
    assert "v.csv: column 'winner' row 3 is empty" in complaint(path)
    with pytest.warns(DataWarning):
        data = read_comparisons(path, skip_bad=True)
    assert data.items == ("a, b", 'c"d', 'say "hi"', "two\nlines")


def test_blank_lines_only(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text("\n\n")
    assert complaint(path).startswith("v.csv begins with an empty line")


def test_good_files_do_not_warn(tmp_path):
    path = write_rows(VOTES, tmp_path / "v.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_comparisons(path, skip_bad=True) == VOTES


def test_skip_bad_in_a_data_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"winner": ["a", None, "b"], "loser": ["b", "a", "c"]})
    with pytest.raises(DataError, match="column 'winner' row 1 is empty"):
        Comparisons.from_frame(frame)
    with pytest.warns(DataWarning, match="row 1"):
        data = Comparisons.from_frame(frame, skip_bad=True)
    assert data.items == ("a", "b", "c")
    assert len(data) == 2


def test_missing_numbers_in_a_data_frame():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for frame in (
        pd.DataFrame({"winner": [1, None], "loser": [2, 3]}),
        pl.DataFrame({"winner": [1, None], "loser": [2, 3]}),
        pl.DataFrame({"winner": [1.0, float("nan")], "loser": [2, 3]}),
    ):
        with pytest.raises(DataError, match="column 'winner' row 1 is empty"):
            Comparisons.from_frame(frame)


def test_categories_of_a_data_frame_are_text():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"winner": ["b", "a"], "loser": ["c", "b"]}, dtype="category")
    assert Comparisons.from_frame(frame).items == ("a", "b", "c")


def test_something_that_is_no_data_frame():
    with pytest.raises(DataError, match="frame is of type dict"):
        Comparisons.from_frame({"winner": ["a"], "loser": ["b"]})


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "empty.csv").touch()
    (tmp_path / "header.csv").write_text("winner,loser\n")
    assert "is a folder" in complaint(tmp_path)
    assert "there is no file" in complaint(tmp_path / "none.csv")
    assert "is empty: it must hold" in complaint(tmp_path / "empty.csv")
    assert "there are no comparisons" in complaint(tmp_path / "header.csv")


@pytest.mark.parametrize("name", ["v.doc", "votes", "v.parquet.gz", "v.soc.gz", ".gz"])
def test_unknown_formats(tmp_path, name):
    (tmp_path / name).write_text("x")
    assert complaint(tmp_path / name).startswith(f"{name} does not say its format: it must end in")


@pytest.mark.parametrize("content", [b"this is text", b"PAR1" + b"\0" * 40])
def test_what_is_not_parquet(tmp_path, content):
    path = tmp_path / "v.parquet"
    path.write_bytes(content)
    assert f"{path} cannot be read" in complaint(path)


def test_truncated_parquet(tmp_path):
    path = tmp_path / "v.parquet"
    rows = "SELECT range AS winner, range + 1 AS loser FROM range(10000)"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet)")
    path.write_bytes(path.read_bytes()[:-100])
    assert f"{path} cannot be read" in complaint(path)


def test_text_that_is_not_utf8_or_not_zipped(tmp_path):
    latin, fake = tmp_path / "v.csv", tmp_path / "v.csv.gz"
    latin.write_bytes("gewähr,loser\na,b\n".encode("latin-1"))
    fake.write_text("winner,loser\na,b\n")
    assert "save it as UTF-8" in complaint(latin)
    assert "with .gz only if zipped" in complaint(fake)
    latin.write_bytes(b"winner,loser\n" + b"a,b\n" * 10_000 + "ä,b\n".encode("latin-1"))
    assert "v.csv: row 10001 is not text in UTF-8" in complaint(latin)
    assert "v.csv: row 10001 is not text in UTF-8" in complaint(latin, skip_bad=True)


def test_json_that_is_broken_or_nested(tmp_path):
    path = tmp_path / "v.jsonl"
    path.write_text('{"winner": "a", "loser": ')
    assert f"{path} cannot be read" in complaint(path)
    path.write_text('{"winner": ["a"], "loser": "b"}')
    assert "cannot be a name" in complaint(path)


def test_columns_that_are_not_there(tmp_path):
    path = write_rows(VOTES, tmp_path / "v.csv")
    assert complaint(path, winner="chosn").startswith(
        "v.csv has no column 'chosn' for the winner (did you mean 'chosen'"
    )
    path.write_text("x,y\na,b\n")
    assert complaint(path).startswith(
        "v.csv has no column that is recognised as the winner or the loser: its columns are "
        "'x', 'y'; say which it is, as in winner='x', loser='y'"
    )
    path.write_text("winner,winner\na,b\n")
    assert "2 columns called 'winner'" in complaint(path)


def test_named_columns(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text('it\'s,the "best",u\na,b,9\n')
    data = read_comparisons(path, winner="it's", loser='the "best"', user="u")
    assert (data.items, data.users) == (("a", "b"), (9,))


@pytest.mark.slow
def test_ten_million_rows_in_seconds_and_under_two_gigabytes(tmp_path):
    path = tmp_path / "large.parquet"
    duckdb.sql(f"""COPY (
        SELECT 'user ' || u AS user, 'item ' || w AS winner, 'item ' || (w + 1 + d) % 1000 AS loser
        FROM (SELECT floor(random() * 100000)::INT AS u, floor(random() * 1000)::INT AS w,
                     floor(random() * 999)::INT AS d FROM range(10000000)))
        TO '{path}' (FORMAT parquet)""")
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
