import pytest

from penchant.datasets import load_preflib
from penchant.errors import DataError
from penchant.io import read_comparisons

HEADER = """# FILE NAME: small.toc
# NUMBER ALTERNATIVES: 4
# ALTERNATIVE NAME 1: Ada
# ALTERNATIVE NAME 2: Bo: the second
# ALTERNATIVE NAME 3: Cy
# ALTERNATIVE NAME 4: Dee
"""


def as_counts(data):
    return {
        (data.items[data.winner[i]], data.items[data.loser[i]], bool(data.tie[i])): data.count[i]
        for i in range(len(data))
    }


def test_ties_multiplicities_and_names(write):
    data = read_comparisons(write(HEADER + "10: 3,{1, 2},4\n2: 1 , 3\n", "small.toc"))
    ((places, who, count),) = data.named_rankings(tied=True)
    assert (places, who, count) == ([["Cy"], ["Ada", "Bo: the second"], ["Dee"]], None, 10)
    assert data.items == ("Ada", "Bo: the second", "Cy", "Dee")
    assert as_counts(data) == {
        ("Cy", "Ada", False): 10,
        ("Cy", "Bo: the second", False): 10,
        ("Cy", "Dee", False): 10,
        ("Ada", "Bo: the second", True): 10,
        ("Ada", "Dee", False): 10,
        ("Bo: the second", "Dee", False): 10,
        ("Ada", "Cy", False): 2,
    }


def test_an_incomplete_order_compares_only_what_it_lists(write):
    data = read_comparisons(write(HEADER + "5: 2,1\n1: 3\n1: {1,2}\n", "small.soi"))
    assert as_counts(data) == {
        ("Bo: the second", "Ada", False): 5, ("Ada", "Bo: the second", True): 1
    }  # fmt: skip
    assert data.rankings is None
    assert data.n_items == 4


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ("ten: 1,2\n", "line 7 is 'ten: 1,2': a vote must look like"),
        ("10: 1,{2,3\n", "line 7"),
        ("10: 1,,2\n", "line 7"),
        *(
            (f"{vote}\n", r"line 7 is .*a vote must look like")
            for vote in (
                *("1: {x,y}", "1: {1,y},2", "1: {}", "1: {1,,2}", "1: {1,2},{"),
                *("9223372036854775808: 1,2", "1" + "0" * 5000 + ": 1,2", "1: 1," + "9" * 5000),
                *("0: 1,2", "-1: 1,2", "1.5: 1,2", "1: 1,²", "١: 1,2"),
            )
        ),
        ("999999999999999: 1,2,3\n" * 4, "that cannot be counted"),
        ("# ALTERNATIVE NAME 1: z\n1: 1,2\n", "names alternative 1 again"),
        ("1: 1,9\n", "votes for alternative 9, but no line"),
        ("1: 1,2,1\n", "more than once"),
        ("", "holds no votes"),
    ],
)
def test_broken_files(write, votes, message):
    with pytest.raises(DataError, match=message):
        read_comparisons(write(HEADER + votes, "small.toc"))


def test_line_separators_in_names_do_not_end_a_line(write):
    head = "# ALTERNATIVE NAME 1: a\u2028b\n# ALTERNATIVE NAME 2: c\x85d\n"
    assert read_comparisons(write(head + "1: 1,2\r\n", "v.toi")).items == ("a\u2028b", "c\x85d")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("# ALTERNATIVE NAME 1: x\n# ALTERNATIVE NAME 2: x\n3: 1,2\n", "same name"),
        ("# ALTERNATIVE NAME 1: Zoë\n1: 1\n".encode("latin-1"), "save it as UTF-8"),
    ],
)
def test_broken_headers(write, content, message):
    with pytest.raises(DataError, match=message):
        read_comparisons(write(content, "v.soc"))


def test_published_files_hold_what_their_header_says(data_folder):
    files = sorted((data_folder / "preflib").glob("*/*.[st]o[ci]"))
    assert files
    for path in files:
        data = load_preflib(f"{path.parent.name}/{path.name}")
        header = dict(
            line[2:].split(": ", 1)
            for line in path.read_text().splitlines()
            if line.startswith("# NUM")
        )
        voters, alternatives = int(header["NUMBER VOTERS"]), int(header["NUMBER ALTERNATIVES"])
        assert data.n_items == alternatives
        complete = voters * alternatives * (alternatives - 1) // 2
        if path.suffix in (".soc", ".toc"):
            assert data.n_comparisons == complete
        else:
            assert data.n_comparisons < complete
        assert data.tie.any() == (path.suffix in (".toc", ".toi"))


def test_an_unknown_file_is_told_where_to_get(data_folder):
    with pytest.raises(DataError, match=r"PrefLib's file from https://preflib\.org"):
        load_preflib("none.soc")
    with pytest.raises(DataError, match="must end in one of"):
        load_preflib("debian")
