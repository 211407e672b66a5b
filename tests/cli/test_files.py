"""Files of the command line: comparisons, features, relations, tables of every format."""

import gzip

import pytest
from scipy import sparse

from penchant.cli.source import Source, read_table
from penchant.errors import DataError


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def make(**files):
        for name, text in files.items():
            (tmp_path / f"{name}.csv").write_text(text)

    make(votes="user,winner,loser\nann,a,b\nann,b,c\nbob,c,a\n")
    return make


def read(*arguments, **keywords):
    notes = []
    study = Source("votes.csv", *arguments, **keywords).read(notes.append)
    return study, notes


def test_features_follow_the_order_of_the_data_and_new_items_join(write):
    write(items="name,size\nd,4\nc,3\nb,2\na,1\n")
    study, _ = read("items.csv")
    assert study.data.items == ("a", "b", "c", "d")
    assert study.X.values.ravel().tolist() == [1, 2, 3, 4]


def test_whole_numbers_stay_whole_numbers(write):
    write(votes="winner,loser\n1,2\n2,3\n", items="id,size\n1,5\n2,6\n3,7\n4,8\n")
    study, _ = read("items.csv")
    assert study.data.items == (1, 2, 3, 4)


def test_leading_zeros_are_text(write):
    write(votes="winner,loser\n007,08\n", items="id,size\n007,5\n08,6\n")
    study, _ = read("items.csv")
    assert study.data.items == ("007", "08")


def test_features_of_people(write):
    write(users="id,age\nbob,30\nann,20\n")
    study, _ = read(users="users.csv")
    assert study.user_features.values.ravel().tolist() == [20, 30]


def test_a_compared_item_without_features_is_an_error(write):
    write(items="name,size\na,1\nb,2\n")
    with pytest.raises(DataError, match=r"1 of 3 items have no row in items.csv \(for example 'c'"):
        read("items.csv")


def test_what_is_left_out_is_told(write):
    write(items="name,size,unit\na,1,cm\nb,2,cm\nc,3,cm\n")
    _, notes = read("items.csv")
    assert notes[-1] == "items.csv: column 'unit' is the same in every row: left out"
    assert notes[0].startswith("read ")


def test_users_without_a_user_column(write):
    write(votes="winner,loser\na,b\n", users="id,age\nann,20\n")
    with pytest.raises(DataError, match="--column user=NAME"):
        read(users="users.csv")


def test_undirected_links_are_symmetric_and_bring_items_of_their_own(write):
    write(links="from,to,weight\na,b,2\nb,a,2\nc,z,1\n")
    study, _ = read(relations=(("near", "undirected", "links.csv"),))
    assert study.data.items == ("a", "b", "c", "z")
    W = study.relations["near"]
    assert sparse.issparse(W)
    assert W.toarray()[0, 1] == W.toarray()[1, 0] == 2
    assert W.toarray()[3, 2] == W.toarray()[2, 3] == 1


def test_directed_and_bipartite_relations(write):
    write(links="from,to\na,b\nc,b\n", makers="item,maker\na,X\nb,X\nc,Y\n")
    relations = (("cites", "directed", "links.csv"), ("maker", "bipartite", "makers.csv"))
    study, _ = read(relations=relations)
    assert set(study.relations["cites"]) == {"linking", "linked"}
    assert study.relations["maker"].weights.toarray()[0].tolist() == [0, 1, 0]


def test_a_link_to_nowhere_is_named_where_items_are_listed(write):
    write(items="name,size\na,1\nb,2\nc,3\n", links="from,to\na,b\na,x\n")
    with pytest.raises(DataError, match=r"links\.csv links 'x'"):
        read("items.csv", relations=(("near", "undirected", "links.csv"),))


def test_a_weight_that_is_no_number(write):
    write(links="from,to,weight\na,b,much\n")
    with pytest.raises(DataError, match="must be a positive number"):
        read(relations=(("near", "undirected", "links.csv"),))


def test_an_unknown_column_gets_a_hint_for_the_command_line(write):
    write(votes="better one,worse one\na,b\n")
    with pytest.raises(DataError, match="--column winner='better one' --column loser='worse one'"):
        read()


def test_bad_rows_get_a_hint_for_the_command_line_where_it_helps(write):
    write(votes="winner,loser\na,b\na,\n")
    with pytest.raises(
        DataError, match=r"votes\.csv: column 'loser' row 2 (.|\n)*--skip-bad leaves"
    ):
        read()


def test_shapes_to_choose_from_get_a_hint_for_the_command_line(write):
    write(votes="a,b,preference\nx,y,-3\ny,z,1\nz,x,0\n")
    with pytest.raises(DataError, match="on the command line: --shape points, --shape numbered"):
        read()


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
