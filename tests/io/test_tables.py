"""Tables of features and links."""

import numpy as np
import pytest

from penchant.errors import DataError
from penchant.io import read_relation, read_table


@pytest.mark.parametrize(
    ("text", "name", "columns"),
    [
        (
            "item,price,\ntea, 007 ,x\nmilk,NA,\n",
            "v.csv",
            {"item": ["tea", "milk"], "price": ["007", "NA"]},
        ),
        (  # a comma in numbers between semicolons
            "item;price;note\ntea;1,5;a,b\n",
            "v.csv",
            {"item": ["tea"], "price": ["1.5"], "note": ["a,b"]},
        ),
        (
            '{"item": "tea", "price": 1.5, "hot": true}',
            "t.jsonl",
            {"item": ["tea"], "price": [1.5], "hot": [True]},
        ),
    ],
)
def test_cells_are_as_written(write, text, name, columns):
    table = read_table(write(text, name))
    assert table.columns == columns
    assert len(table) == len(columns["item"])


def test_rows_by_name(write):
    table = read_table(write("id,x\n2,a\n1,b\n3,c\n"))
    assert table.row_of("id", [1, 2]).tolist() == [1, 0]
    assert table.names("id", [1, 2]) == [2, 1, 3]


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


def test_a_link_may_have_two_weights_where_it_has_two_directions(write):
    links = read_relation(write("from,to,weight\na,b,2\nb,a,3\n"))
    assert links.matrix("ab", "directed").toarray().tolist() == [[0, 2], [3, 0]]


def rows_of(path):
    return read_table(path).row_of("id", [1, 2])


def names_of(path):
    return read_table(path).names("id", [1, "1"])


def undirected(path):
    return read_relation(path).matrix("ab", "undirected")


@pytest.mark.parametrize(
    ("use", "text", "message"),
    [
        (read_table, "a,b\n1,2\n3\n", "row 2 has fewer cells"),
        (read_table, "a,a\n1,2\n", "2 columns called 'a'"),
        (read_table, "a,b\n", "no rows below its header"),
        (rows_of, "id,x\n1,a\n2,b\n1,c\n", "v.csv has rows 1 and 3 for 1 "),
        (rows_of, "id,x\n1,a\n\n,b\n2,c\n", "column 'id' row 2 is empty"),
        (rows_of, "id,x\n1,a\n", "1 of 2 names have no row in v.csv"),
        (names_of, "id\n1\n", "1 and '1' read alike"),
        (read_relation, "from,to,weight\na,b,-1\n", "row 1 is '-1': the weight of a link must be"),
        *(
            (read_relation, f"from,to,weight\na,b,{weight}\n", "must be a positive number")
            for weight in ("0", "nan", "inf")
        ),
        (read_relation, "from,to,weight\na,b,\n", "row 1 is None: the weight"),
        (read_relation, "from,to\na,\n", "column 'to' row 1 is empty"),
        (read_relation, "from,to\n ,b\n", "column 'from' row 1 is empty"),
        (read_relation, "from\na\n", "a relation needs two"),
        (undirected, "from,to,weight\na,b,2\nb,a,3\n", "'b' and 'a' twice, with weights 2 and 3"),
        (undirected, "from,to\na,bb\n", r"links 'bb' \(did you mean 'b'\?\), which is not one"),
    ],
)
def test_tables_that_cannot_be_used(write, use, text, message):
    with pytest.raises(DataError, match=message):
        use(write(text))
