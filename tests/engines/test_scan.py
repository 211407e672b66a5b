"""Scanned comparisons hold every row once, whatever the files, and complain as readers do."""

import json

import numpy as np
import pytest

import penchant as pc
from penchant.communities import Answers, MixturePart, answer_keys
from penchant.data import bucket_of, side_by_side
from penchant.gp import UserPart


def named_rows(data):
    """Every row by names, with its count."""
    return sorted(
        (data.users[u], data.items[w], data.items[x], bool(t), int(c))
        for u, w, x, t, c in zip(
            data.user, data.winner, data.loser, data.tie, data.count, strict=True
        )
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("votes")
    rng = np.random.default_rng(5)
    lines = [
        f"{a},{(a + 1 + b) % 6},person {u},{'yes' if t else 'no'}"
        for a, b, u, t in zip(
            rng.integers(6, size=400),
            rng.integers(5, size=400),
            rng.integers(90, size=400),
            rng.random(400) < 0.2,
            strict=True,
        )
    ]
    head = "winner,loser,user,tie\n"
    (folder / "whole.csv").write_text(head + "\n".join(lines) + "\n")
    (folder / "part-a.csv").write_text(head + "\n".join(lines[:150]) + "\n")
    (folder / "part-b.csv").write_text(head + "\n".join(lines[150:]) + "\n")
    return folder


def test_every_row_is_there_once(folder):
    read = pc.read_comparisons(folder / "whole.csv")
    with pc.scan_comparisons(str(folder / "part-?.csv"), shards=7) as votes:
        found = side_by_side(list(votes.shards()), votes.items)
        assert votes.items == read.items
        assert named_rows(found) == named_rows(read)
        assert (votes.n_users, votes.n_comparisons, len(votes)) == (
            read.n_users,
            read.n_comparisons,
            len(read),
        )
        assert votes.pooled == read.pooled()
        place = votes.files.folder
    assert not place.exists()


def test_a_user_is_in_the_bucket_of_their_name(folder):
    with pc.scan_comparisons(folder / "whole.csv", shards=64) as votes:
        for number in range(len(votes.sizes)):
            for name in votes.files.load(number).users:
                assert bucket_of(name, 64) == number


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_typed_files(folder, tmp_path, ending):
    import duckdb

    rows = [{"winner": 3, "loser": 10, "user": 7}, {"winner": 10, "loser": 3, "user": 12}]
    lines = tmp_path / "votes.jsonl"
    lines.write_text("\n".join(map(json.dumps, rows)))
    path = tmp_path / f"votes.{ending}"
    if ending == "parquet":
        duckdb.sql(f"COPY (FROM '{lines}') TO '{path}' (FORMAT parquet)")
    with pc.scan_comparisons(path) as votes:
        found = side_by_side(list(votes.shards()), votes.items)
        assert named_rows(found) == named_rows(pc.read_comparisons(path))


def test_bad_rows_are_told_as_a_reader_tells_them(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("winner,loser,user\na,b,NaN\na,a,bob\n,b,cem\na,b,\nb,a,dee\n")
    with pytest.raises(pc.DataError) as read:
        pc.read_comparisons(path)
    with pytest.raises(pc.DataError) as scanned:
        pc.scan_comparisons(path)
    assert str(scanned.value) == str(read.value)
    with pytest.warns(pc.DataWarning, match="3 of 5 rows"):
        votes = pc.scan_comparisons(path, skip_bad=True)
    assert (votes.n_comparisons, votes.n_users) == (2, 2)
    votes.close()


def test_names_are_of_one_kind_in_all_files(tmp_path):
    (tmp_path / "a.csv").write_text("winner,loser,user\n1,2,7\n")
    (tmp_path / "b.csv").write_text("winner,loser,user\n2,x,eve\n1,2,7\n")
    with pc.scan_comparisons(str(tmp_path / "*.csv")) as votes:
        found = side_by_side(list(votes.shards()), votes.items)
        assert found.items == ("1", "2", "x")
        assert named_rows(found) == [("7", "1", "2", False, 2), ("eve", "2", "x", False, 1)]
    (tmp_path / "c.jsonl").write_text('{"winner": 1, "loser": 2, "user": "7"}\n')
    with pytest.raises(pc.DataError, match=r"users are called by text in a\.csv and by json"):
        pc.scan_comparisons([tmp_path / "a.csv", tmp_path / "c.jsonl"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("winner,loser\na,b\n", "does not say who made each comparison"),
        ("rank,ballot,item\n1,1,a\n2,1,b\n", "cannot be scanned"),
        ("winner,loser,user\n", "there are no comparisons"),
    ],
)
def test_files_that_cannot_be_scanned(tmp_path, text, message):
    path = tmp_path / "votes.csv"
    path.write_text(text)
    with pytest.raises(pc.DataError, match=message):
        pc.scan_comparisons(path)


def test_what_is_asked_must_be_there(tmp_path):
    with pytest.raises(pc.DataError, match="no file is called"):
        pc.scan_comparisons(str(tmp_path / "*.parquet"))
    with pytest.raises(pc.DataError, match="there is no folder"):
        pc.scan_comparisons(str(tmp_path / "*.parquet"), scratch=tmp_path / "nowhere")
    with pytest.raises(pc.DataError, match="max_memory is -1"):
        pc.scan_comparisons(str(tmp_path / "*.parquet"), max_memory=-1)
    with pytest.raises(pc.DataError, match="shards is 0"):
        pc.scan_comparisons(str(tmp_path / "*.parquet"), shards=0)


def test_a_bucket_that_is_gone_is_named(folder):
    with pc.scan_comparisons(folder / "whole.csv") as votes:
        (votes.files.folder / "bucket-00003.npz").unlink()
        with pytest.raises(pc.DataError, match="bucket-00003"):
            list(votes.shards())


def test_what_is_not_kept_is_said(tmp_path):
    file = tmp_path / "battles.csv"
    file.write_text("model_a,model_b,winner,user\nx,y,model_a,ann\ny,x,tie,bob\n")
    with pytest.warns(pc.DataWarning, match="leave out who was shown first"):
        pc.scan_comparisons(file).close()


def test_files_elsewhere(vote_files, whole):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for name in ("part-a.csv", "part-b.csv"):
        memory.pipe(f"/votes/{name}", (vote_files / name).read_bytes())
    with pc.scan_comparisons("memory://votes/*.csv") as votes:
        assert votes.n_comparisons == whole.n_comparisons
        assert votes.items == whole.items
        assert not any((votes.files.folder / "fetched").iterdir())
    for files, message in (
        ("memory://votes/*.parquet", "no file is called"),
        ("nowhere://votes/a.csv", "what fsspec needs for nowhere://"),
    ):
        with pytest.raises(pc.DataError, match=message):
            pc.scan_comparisons(files)


def test_what_parts_take_in_memory(whole):
    answers = Answers.of(whole)
    for part in (
        MixturePart.of(0, whole, answer_keys(answers, whole.n_items)),
        UserPart.of(0, whole, np.arange(whole.n_items)),
    ):
        assert 40 * len(whole) < part.nbytes < 120 * len(whole)
