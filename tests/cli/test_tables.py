import gzip

import pytest

from penchant.cli.files import read_table
from penchant.errors import DataError


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.csv", b"id,size\n007,1.5\nb,\n"),
        ("excel.csv", b"\xef\xbb\xbfid;size\r\n007;1,5\r\nb;\r\n"),
        ("tab.tsv", b"id\tsize\n007\t1.5\nb\t\n"),
        ("small.csv.gz", gzip.compress(b"id,size\n007,1.5\nb,\n", mtime=0)),
        ("quoted.csv", b'"id","size"\n"007","1.5"\n"b",""\n\n'),
    ],
)
def test_text_tables_read_alike_and_ids_stay_text(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    table = read_table(str(tmp_path / name))
    assert table.columns == {"id": ["007", "b"], "size": ["1.5", None]}


def test_json_lines_and_parquet_keep_types(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"id": ["007", "b"], "size": [1.5, None]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    for name in ("t.parquet", "t.jsonl"):
        columns = read_table(str(tmp_path / name)).columns
        assert columns["id"] == ["007", "b"]
        assert columns["size"][0] == 1.5
        assert columns["size"][1] is None or columns["size"][1] != columns["size"][1]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "a,b\n1\n", "row 1 has fewer cells"),
        ("t.csv", "a,a\n1,2\n", "2 columns called"),
        ("t.csv", "a,b\n", "no rows"),
        ("t.csv", "", "is empty"),
        ("t.doc", "a,b\n1,2\n", "must end in"),
        ("t.csv", b"a,b\n\xff\xfe,1\n", "UTF-8"),
        ("t.parquet", "nonsense", "cannot be read"),
    ],
)
def test_broken_tables_say_what_is_wrong(tmp_path, name, content, message):
    content = content if isinstance(content, bytes) else content.encode()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(str(tmp_path / name))


def test_a_missing_file_is_named():
    with pytest.raises(DataError, match=r"there is no file nowhere\.csv"):
        read_table("nowhere.csv")
