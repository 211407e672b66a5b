"""Written by any library in any format and read back: the same names, people, ties and counts."""

import csv
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penchant.data import Comparisons
from penchant.io import read_comparisons

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NASTY = (
    *("007", "7", "7.0", "NA", "None", "nan", "NULL", "null", "N/A", "true", "1e5", "inf", "-0"),
    *('say "hi"', '"', '""', "a,b", ";", "a\tb", "two\nlines", "a\r\nb", "'", "\\", "\\N", "a|b"),
    *("ä", "日本", "🍵", "\u202eabc", "a\u2028b", "a\x85b", "x y", "=1+1", "@x", "#c", "--", "/*"),
)
names = st.sampled_from(NASTY) | st.text(
    st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=5
).filter(lambda text: text.strip() == text and text)
row = st.tuples(names, names, names, st.booleans(), st.integers(1, 9)).filter(
    lambda r: r[1] != r[2]
)
tables = st.lists(row, min_size=1, max_size=6).filter(
    lambda rows: [r[4] for r in rows] != list(range(1, len(rows) + 1))
)
COLUMNS = ("user", "winner", "loser", "tie", "count")


def write_csv(rows, path):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *rows])


def records(rows):
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


FRAMES = {
    "pandas": lambda rows: pd.DataFrame(rows, columns=COLUMNS),
    "objects": lambda rows: pd.DataFrame(rows, columns=COLUMNS, dtype=object),
    "polars": lambda rows: pl.DataFrame(records(rows)),
    "arrow": lambda rows: pa.Table.from_pylist(records(rows)),
}
WRITERS = {
    "pandas.csv": lambda frame, path: frame.to_csv(path, index=False),
    "pandas_index.csv": lambda frame, path: frame.to_csv(path),
    "pandas.csv.gz": lambda frame, path: frame.to_csv(path, index=False),
    "pandas.jsonl": lambda frame, path: frame.to_json(path, orient="records", lines=True),
    "pandas.parquet": lambda frame, path: frame.to_parquet(path),
    "polars.csv": lambda frame, path: frame.write_csv(path),
    "polars.ndjson": lambda frame, path: frame.write_ndjson(path),
    "polars.parquet": lambda frame, path: frame.write_parquet(path),
    "arrow.parquet": lambda frame, path: pq.write_table(frame, path),
    "csv.csv": write_csv,
    "json.json": lambda rows, path: path.write_text(json.dumps(records(rows))),
}
"""How each library writes its frames, and Python its rows."""


def expected(rows, *, text=False):
    user, winner, loser, tie, count = zip(*rows, strict=True)
    if text:  # a text file does not tell numbers and their text apart
        user, (winner, loser) = whole([user])[0], whole([winner, loser])
    return Comparisons.from_pairs(winner, loser, user=user, tie=tie, count=count)


def whole(columns):
    """Integers where every name is one, written as Python writes it."""
    everything = [name for column in columns for name in column]
    if all(name.lstrip("-").isdecimal() and str(int(name)) == name for name in everything):
        return [[int(name) for name in column] for column in columns]
    return columns


few = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@few
@given(rows=tables)
@pytest.mark.parametrize("file", WRITERS)
def test_files(tmp_path, file, rows):
    path = tmp_path / file
    library = file.split(".")[0].split("_")[0]
    WRITERS[file](FRAMES[library](rows) if library in FRAMES else rows, path)
    assert read_comparisons(path, count="count") == expected(rows, text=".csv" in file)


@few
@given(rows=tables)
@pytest.mark.parametrize("library", FRAMES)
def test_frames(library, rows):
    frame = FRAMES[library](rows)
    assert Comparisons.from_frame(frame, count="count") == expected(rows)
