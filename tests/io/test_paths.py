"""Where a file lies and what it is called says nothing about what is in it."""

import json
import os

import duckdb
import pytest

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.io import open_duck, read_comparisons, read_table

EXPECTED = Comparisons.from_pairs(["a", "b"], ["b", "c"])
ROWS = [("a", "b"), ("b", "c")]


def write(path):
    """Two votes in the format that the path's ending names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        path.write_text("winner,loser\n" + "".join(f"{w},{lo}\n" for w, lo in ROWS))
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps({"winner": w, "loser": lo}) for w, lo in ROWS))
    else:
        plain = path.parent / "plain.parquet"
        query = "SELECT * FROM (VALUES ('a', 'b'), ('b', 'c')) t(winner, loser)"
        duckdb.sql(f"COPY ({query}) TO '{plain}' (FORMAT parquet)")
        plain.rename(path)
    return path


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("folder", ["n=100", "winner=EVIL", "loser=EVIL/user=bob", "count=7"])
def test_folders_that_look_like_columns(tmp_path, ending, folder):
    assert read_comparisons(write(tmp_path / folder / f"votes.{ending}")) == EXPECTED


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_feature_tables_in_such_folders(tmp_path, ending):
    table = read_table(write(tmp_path / "winner=EVIL" / f"items.{ending}"))
    assert table.columns == {"winner": ["a", "b"], "loser": ["b", "c"]}


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    "name",
    ["a*", "[x]", "[!x]", "v?", "**", "{a,b}", "a\\b[1]", "it's", 'say "hi"', "a b", "ä-\u2028"],
)
def test_a_name_is_never_a_pattern(tmp_path, ending, name):
    """Beside it lie files that the pattern would match."""
    for decoy in ("ab", "x", "v1", "y", "a", "ab1"):
        decoy = tmp_path / f"{decoy}.{ending}"
        write(decoy)
        if ending == "csv":
            decoy.write_text("winner,loser\nwrong,file\n")
    assert read_comparisons(write(tmp_path / f"{name}.{ending}")) == EXPECTED


@pytest.mark.parametrize("folder", ["d[1]", "d*", "s3:", "http:", "a=b"])
def test_nor_is_a_folder(tmp_path, folder):
    write(tmp_path / "d1" / "v.csv").write_text("winner,loser\nwrong,file\n")
    assert read_comparisons(write(tmp_path / folder / "v.csv")) == EXPECTED


def test_relative_paths_that_look_like_addresses(tmp_path, monkeypatch):
    write(tmp_path / "s3:" / "bucket" / "v.csv")
    monkeypatch.chdir(tmp_path)
    assert read_comparisons("s3:/bucket/v.csv") == EXPECTED


def test_where_links_cannot_be_made(tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise OSError("no links here")

    monkeypatch.setattr(os, "symlink", refuse)
    monkeypatch.setattr("pathlib.Path.symlink_to", refuse)
    assert read_comparisons(write(tmp_path / "[x].csv")) == EXPECTED
    assert read_comparisons(write(tmp_path / "n=100" / "v.parquet")) == EXPECTED


def test_a_pattern_that_is_no_file_is_no_file(tmp_path):
    write(tmp_path / "v1.csv")
    with pytest.raises(DataError, match="there is no file"):
        read_comparisons(tmp_path / "v*.csv")


def test_files_that_are_not_there(tmp_path):
    (tmp_path / "empty.csv").touch()
    for path, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "none.csv", "there is no file"),
        (tmp_path / "empty.csv", "is empty: it must hold"),
    ):
        with pytest.raises(DataError, match=message):
            read_comparisons(path)


@pytest.mark.parametrize("name", ["v.doc", "votes", "v.parquet.gz", "v.soc.gz", ".gz"])
def test_unknown_formats(tmp_path, name):
    (tmp_path / name).write_text("x")
    with pytest.raises(DataError, match=f"{name} does not say its format: it must end in"):
        read_comparisons(tmp_path / name)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("autoinstall_known_extensions", False),
        ("autoload_known_extensions", False),
        ("memory_limit", "953.6 MiB"),
    ],
)
def test_the_one_connection_is_closed_to_the_network_and_bounded(setting, value):
    with open_duck("nothing") as duck:
        found = duck.con.execute(f"SELECT current_setting('{setting}')").fetchone()[0]
        assert found == value
        with pytest.raises(duckdb.Error):
            duck.con.execute("FROM read_csv('https://example.com/v.csv')")
