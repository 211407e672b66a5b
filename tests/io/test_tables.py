"""Tables of features and links."""

import numpy as np
import pytest

from penchant.errors import DataError
from penchant.io import read_relation, read_table

pytest.importorskip("duckdb")


def test_cells_are_text_as_written(write):
    table = read_table(write("item,price,\ntea, 007 ,x\nmilk,NA,\n"))
    assert table.columns == {"item": ["tea", "milk"], "price": ["007", "NA"]}
    assert len(table) == 2


def test_a_comma_in_numbers_between_semicolons(write):
    table = read_table(write("item;price;note\ntea;1,5;a,b\n"))
    assert table.columns == {"item": ["tea"], "price": ["1.5"], "note": ["a,b"]}


def test_json_cells_keep_their_types(write):
    table = read_table(write('{"item": "tea", "price": 1.5, "hot": true}', "t.jsonl"))
    assert table.columns == {"item": ["tea"], "price": [1.5], "hot": [True]}


def test_rows_by_name(write):
    table = read_table(write("id,x\n2,a\n1,b\n3,c\n"))
    assert table.row_of("id", [1, 2]).tolist() == [1, 0]
    assert table.names("id", [1, 2]) == [2, 1, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,x\n1,a\n2,b\n1,c\n", "v.csv has rows 1 and 3 for 1 "),
        ("id,x\n1,a\n\n,b\n2,c\n", "column 'id' row 2 is empty"),
        ("id,x\n1,a\n", "1 of 2 names have no row in v.csv"),
    ],
)
def test_every_name_has_one_row(write, text, message):
    with pytest.raises(DataError, match=message):
        read_table(write(text)).row_of("id", [1, 2])


def test_names_that_read_alike_cannot_be_looked_up(write):
    with pytest.raises(DataError, match="1 and '1' read alike"):
        read_table(write("id\n1\n")).names("id", [1, "1"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", "row 2 has fewer cells"),
        ("a,a\n1,2\n", "2 columns called 'a'"),
        ("a,b\n", "no rows below its header"),
    ],
)
def test_tables_that_cannot_be_read(write, text, message):
    with pytest.raises(DataError, match=message):
        read_table(write(text))


def test_links(write):
    links = read_relation(write("from,to,weight\na,b,2\nb,c,1\nb,a,2\n"))
    assert links.items("undirected") == ("a", "b", "c")
    expected = np.array([[0, 2, 0], [2, 0, 1], [0, 1, 0]])
    assert np.array_equal(links.matrix("abc", "undirected").toarray(), expected)
    directed = np.array([[0, 2, 0], [2, 0, 1], [0, 0, 0]])
    assert np.array_equal(links.matrix("abc", "directed").toarray(), directed)


def test_links_to_other_things(write):
    links = read_relation(write("item,tag\na,hot\nb,hot\nb,sweet\n"))
    assert links.items("bipartite") == ("a", "b")
    assert np.array_equal(links.matrix("abc", "bipartite").toarray(), [[1, 0], [1, 1], [0, 0]])


def test_names_that_are_known_are_found_by_their_text(write):
    links = read_relation(write("from,to\n1,2\n"), [1, 2])
    assert (links.first, links.second) == ((1,), (2,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("from,to,weight\na,b,-1\n", "row 1 is '-1': the weight of a link must be a positive"),
        ("from,to,weight\na,b,0\n", "positive"),
        ("from,to,weight\na,b,nan\n", "positive"),
        ("from,to,weight\na,b,inf\n", "positive"),
        ("from,to,weight\na,b,\n", "row 1 is None: the weight"),
        ("from,to\na,\n", "column 'to' row 1 is empty"),
        ("from,to\n ,b\n", "column 'from' row 1 is empty"),
        ("from\na\n", "a relation needs two"),
    ],
)
def test_links_that_cannot_be_used(write, text, message):
    with pytest.raises(DataError, match=message):
        read_relation(write(text))


def test_a_link_with_two_weights(write):
    links = read_relation(write("from,to,weight\na,b,2\nb,a,3\n"))
    with pytest.raises(DataError, match="links 'b' and 'a' twice, with weights 2 and 3"):
        links.matrix("ab", "undirected")
    assert links.matrix("ab", "directed").toarray().tolist() == [[0, 2], [3, 0]]


def test_a_link_to_something_unknown(write):
    with pytest.raises(DataError, match=r"links 'bb' \(did you mean 'b'\?\), which is not one"):
        read_relation(write("from,to\na,bb\n")).matrix("ab", "directed")
