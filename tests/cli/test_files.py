"""Files of the command line: comparisons, features, relations, tables of every format."""

import gzip

import pytest
from scipy import sparse

from penchant.cli.source import SourceOptions, read_table
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
    study = SourceOptions("votes.csv", *arguments, **keywords).read(notes.append)
    return study, notes


@pytest.mark.parametrize(
    ("votes", "items", "names", "sizes"),
    [
        ("winner,loser\na,b\nb,c\n", "name,size\nd,4\nc,3\nb,2\na,1\n", "abcd", [1, 2, 3, 4]),
        ("winner,loser\n1,2\n2,3\n", "id,size\n1,5\n2,6\n3,7\n4,8\n", (1, 2, 3, 4), [5, 6, 7, 8]),
        ("winner,loser\n007,08\n", "id,size\n007,5\n08,6\n", ("007", "08"), [5, 6]),
    ],
    ids=["new items join", "whole numbers", "leading zeros are text"],
)
def test_features_follow_the_order_of_the_data(write, votes, items, names, sizes):
    write(votes=votes, items=items)
    study, _ = read("items.csv")
    assert study.data.items == tuple(names)
    assert study.X.values.ravel().tolist() == sizes


def test_features_of_people(write):
    write(users="id,age\nbob,30\nann,20\n")
    study, _ = read(users="users.csv")
    assert study.user_features.values.ravel().tolist() == [20, 30]


def test_what_is_left_out_is_told(write):
    write(items="name,size,unit\na,1,cm\nb,2,cm\nc,3,cm\n")
    _, notes = read("items.csv")
    assert notes[-1] == "items.csv: column 'unit' is the same in every row: left out"
    assert notes[0].startswith("read ")


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


NEAR = (("near", "undirected", "links.csv"),)


@pytest.mark.parametrize(
    ("files", "about", "message"),
    [
        (
            {"items": "name,size\na,1\nb,2\n"},
            {"items": "items.csv"},
            r"1 of 3 items have no row in items.csv \(for example 'c'",
        ),
        (
            {"votes": "winner,loser\na,b\n", "users": "id,age\nann,20\n"},
            {"users": "users.csv"},
            "--column user=NAME",
        ),
        (
            {"items": "name,size\na,1\nb,2\nc,3\n", "links": "from,to\na,b\na,x\n"},
            {"items": "items.csv", "relations": NEAR},
            r"links\.csv links 'x'",
        ),
        ({"links": "from,to,weight\na,b,much\n"}, {"relations": NEAR}, "must be a positive number"),
        (
            {"votes": "better one,worse one\na,b\n"},
            {},
            "--column winner='better one' --column loser='worse one'",
        ),
        (
            {"votes": "winner,loser\na,b\na,\n"},
            {},
            r"votes\.csv: column 'loser' row 2 (.|\n)*--skip-bad leaves",
        ),
        (
            {"votes": "a,b,preference\nx,y,-3\ny,z,1\nz,x,0\n"},
            {},
            "on the command line: --shape points, --shape numbered",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused_with_advice(write, files, about, message):
    write(**files)
    with pytest.raises(DataError, match=message):
        read(**about)


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
