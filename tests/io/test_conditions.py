import pytest

from penchant.errors import DataError
from penchant.io import read_comparisons, read_segments

TEXT = """winner,loser,lang,n turns,when
a,b,en,1,2024-01-01
b,c,en,2,2024-02-01
c,a,de,10,2024-03-01
a,c,,2.0,2024-04-01
b,a,o'r,9,2023-01-01
"""


@pytest.fixture
def votes(write):
    return write(TEXT, "votes.csv")


@pytest.mark.parametrize(
    ("where", "n"),
    [
        ("lang = en", 2),
        ("lang == 'en'", 2),
        ("lang != en", 3),
        ("lang = ''", 1),
        ("lang = ", 1),
        ("n turns > 2", 2),
        ("n turns >= 2", 4),
        ("n turns = 2", 2),
        ("n turns <> 2", 3),
        ("when >= 2024-02-01", 3),
        ("lang = en and n turns = 2", 1),
        ("lang = de or lang = en and n turns = 1", 2),  # and binds closer
        ("lang = en and n turns = 1 or lang = de and n turns = 1 or n turns > 8", 3),
        ("lang = 'o''r'", 1),
        ('"lang" = "o\'r"', 1),
        ("LANG=de OR Lang=en", 3),
        ("lang = 'x'' OR 1=1 --' or lang = de", 1),
    ],
)
def test_rows_that_pass(votes, where, n):
    data = read_comparisons(votes, where=where)
    assert data.n_comparisons == n
    assert "only where" in data.source


@pytest.mark.parametrize(
    "where",
    [
        *("", "lang", "lang en", "= en", "lang = en and", "lang = en; DROP TABLE picked"),
        *("lang = en)", "(lang = en", "1 = 1", "lang = 'en", "country = de", "lang = nobody"),
        *("lang = en or 1=1 or true", "lang = (SELECT 1)", "count(*) > 1", "lang = en -- x"),
    ],
)
def test_what_is_no_condition_is_refused_and_nothing_is_run(votes, where):
    with pytest.raises(DataError, match=r"must look like|no column|no row of votes.csv"):
        read_comparisons(votes, where=where)


def test_segments_share_items_and_hold_every_row(votes):
    parts = read_segments(votes, "lang")
    assert list(parts) == ["en", "", "de", "o'r"]
    assert len({part.items for part in parts.values()}) == 1
    whole = read_comparisons(votes)
    first, *others = parts.values()
    for part in others:
        first = first + part
    assert sorted(first.items) == list(whole.items)
    assert first.n_comparisons == whole.n_comparisons
    assert list(read_segments(votes, "lang", where="n turns >= 9")) == ["de", "o'r"]
    with pytest.raises(DataError, match="no column 'language'"):
        read_segments(votes, "language")


def test_segments_of_rankings_and_users(write):
    path = write("who,Rank [tea],Rank [milk],group\nann,1,2,x\nbob,2,1,y\n")
    parts = read_segments(path, "group", user="who")
    assert parts["y"].users == ("ann", "bob")
    assert parts["y"].user.tolist() == [1]
