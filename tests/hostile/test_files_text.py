"""Text tables as people, spreadsheets and enemies write them."""

import gzip
import subprocess
import sys

import pytest

from penchant.data import Comparisons
from penchant.errors import DataError, DataWarning
from penchant.io import read_comparisons

pytest.importorskip("duckdb")

EXPECTED = Comparisons.from_pairs(["a", "c"], ["b", "d"])


def complaint(path, **options):
    with pytest.raises(DataError) as caught:
        read_comparisons(path, **options)
    return str(caught.value)


@pytest.fixture
def write(tmp_path):
    def write(content, name="v.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    "text",
    [
        "winner,loser\r\na,b\nc,d\r\n",
        "winner,loser\na,b\r\nc,d\n",
        "winner,loser\r\na,b\r\nc,d\n",
        "winner,loser\ra,b\rc,d\r",
        "winner,loser\r\na,b\rc,d\n",
        "winner,loser\n\n\r\na,b\r\n\n\nc,d",
    ],
)
def test_line_ends_may_be_mixed(write, text):
    assert read_comparisons(write(text)) == EXPECTED


def test_mending_line_ends_leaves_quoted_cells_alone(write):
    path = write('winner,loser\r\n"two\r\nlines",b\n"say ""hi""\r\n",c"d\n')
    assert read_comparisons(path).items == ("b", 'c"d', 'say "hi"\r\n', "two\r\nlines")


def test_line_ends_over_the_border_of_a_chunk(write):
    rows = b"a,b\r\n" * (4 * 1024 * 1024)
    path = write(b"winner,loser\r\n" + rows)
    assert read_comparisons(path).count.tolist() == [4 * 1024 * 1024]


@pytest.mark.parametrize(
    "text",
    [
        ",winner,loser\n0,a,b\n1,c,d\n",
        "winner,loser,\na,b,\nc,d,\n",
        ",,winner,loser,,\n1,2,a,b,,\n3,4,c,d,,x\n",
        ";winner;loser\n0;a;b\n1;c;d\n",
    ],
)
def test_columns_without_a_name(write, text):
    """pandas writes its index so; spreadsheets leave separators behind."""
    assert read_comparisons(write(text)) == EXPECTED


def test_columns_that_differ_in_case_only(write):
    path = write("Winner,winner,loser\nx,a,b\ny,c,d\n")
    assert read_comparisons(path, winner="winner") == EXPECTED


def test_column_names_cannot_reach_the_database(write):
    path = write('"a\', (SELECT 1)) --",\'); DROP TABLE items; --,""""\na,b,1\nc,d,2\n')
    data = read_comparisons(path, winner="a', (SELECT 1)) --", loser="'); DROP TABLE items; --")
    assert data == EXPECTED


def test_a_header_may_span_lines_and_hold_separators(write):
    path = write('"the; winner,\nof, all",loser\na,b\nc,d\n')
    assert read_comparisons(path, winner="the; winner,\nof, all") == EXPECTED


def test_long_headers_and_cells(write):
    long = "x" * 200_000
    assert read_comparisons(write(f"winner,loser\n{long},b\n")).items == ("b", long)
    assert "the first line of v.csv cannot be read" in complaint(write(f"{long},loser\na,b\n"))
    assert "does not end" in complaint(write(b"a," * (3 << 20)))
    message = complaint(write(f"winner,loser\na,b\n\n{'x' * 3_000_000},b\n"))
    assert "row 2 is longer than 2,000,000 bytes" in message


def test_rows_are_counted_without_blank_lines(write):
    path = write('winner,loser\na,b\n\n\n"c\n\nx",d\n\ne\nf,f\n,g\n')
    assert complaint(path).splitlines()[1:] == [
        "  row 3 has fewer cells than the first line names columns; add the separators",
        "  row 4 compares 'f' with itself: a comparison needs two different items; drop the row "
        "or correct a name",
        "  column 'winner' row 5 is empty: every comparison needs a winner and a loser; drop the "
        "row or mark a tie",
    ]


def test_rows_of_bad_text_are_counted_alike(write):
    path = write(b"winner,loser\n\n\na,b\n\xe4,b\n")
    assert "row 2 is not text in UTF-8" in complaint(path)
    path = write('winner,loser\n\n\na,b\n"a"x,b\n')
    assert "row 2 has a quotation mark" in complaint(path)


@pytest.mark.parametrize(
    "count", ["9223372036854775808", "1e30", "1" + "0" * 30, "9007199254740993"]
)
def test_counts_beyond_counting(write, count):
    path = write(f"winner,loser,count\na,b,2\nc,d,{count}\n")
    assert "row 2 is" in complaint(path)
    assert "at most 9007199254740991" in complaint(path)
    with pytest.warns(DataWarning):
        assert read_comparisons(path, skip_bad=True).count.tolist() == [2]


def test_counts_that_add_up_beyond_counting(write):
    path = write("winner,loser,count\na,b,9007199254740991\na,b,9007199254740991\n")
    assert "the counts add up to" in complaint(path)
    with pytest.raises(DataError, match="the counts add up to"):
        Comparisons.from_pairs(["a", "a"], ["b", "b"], count=[2**53 - 1, 2**53 - 1])


@pytest.mark.parametrize("column", ["n", "count", "times", "N"])
@pytest.mark.parametrize("start", [0, 1])
def test_a_row_number_is_no_count(write, column, start):
    rows = "".join(f"{k},a,b\n" for k in range(start, start + 4))
    path = write(f"{column},winner,loser\n{rows}")
    message = complaint(path)
    assert f"column '{column}' of v.csv holds {start}, {start + 1}, … {start + 3}" in message
    assert f"say count='{column}'" in message


def test_a_row_number_in_any_order_is_no_count(write):
    rows = "".join(f"{(7 * k) % 30 + 1},a,b\n" for k in range(30))
    assert "looks like a row number" in complaint(write(f"n,winner,loser\n{rows}"))


def test_counts_that_are_named_or_do_not_look_like_an_index_are_counts(write):
    path = write("winner,loser,n\na,b,1\na,b,2\na,b,3\n")
    assert read_comparisons(path, count="n").n_comparisons == 6
    assert read_comparisons(write("winner,loser,n\na,b,2\na,b,1\na,b,3\n")).n_comparisons == 6
    assert read_comparisons(write("winner,loser,n\na,b,1\n")).n_comparisons == 1


def table_of(n):
    return b"winner,loser\n" + b"".join(
        b"item %d,item %d\n" % (k % 97, k % 89 + 97) for k in range(n)
    )


@pytest.mark.parametrize("share", [0.999, 0.9, 0.5, 0.1])
def test_truncated_zip_files_are_refused(write, share):
    content = gzip.compress(table_of(100_000))
    path = write(content[: int(share * len(content))], "v.csv.gz")
    assert "is damaged or not zipped at all" in complaint(path)
    assert "is damaged or not zipped at all" in complaint(path, skip_bad=True)


@pytest.mark.parametrize("at", [-8, -5, -4, -1, 200])
def test_damaged_zip_files_are_refused(write, at):
    content = bytearray(gzip.compress(table_of(10_000)))
    content[at] ^= 1
    assert "is damaged" in complaint(write(bytes(content), "v.csv.gz"))


def test_zipped_json_is_checked_too(write):
    content = gzip.compress(b'{"winner": "a", "loser": "b"}\n' * 10_000)
    assert read_comparisons(write(content, "v.jsonl.gz")).n_comparisons == 10_000
    assert "is damaged" in complaint(write(content[:-6], "v.jsonl.gz"))


def test_zip_files_of_several_parts_are_read_whole(write):
    content = gzip.compress(b"winner,loser\na,b\n") + gzip.compress(b"c,d\n")
    assert read_comparisons(write(content, "v.csv.gz")) == EXPECTED


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells about memory")
def test_a_zip_bomb_is_refused_before_it_fills_memory(write):
    bomb = gzip.compress(b"winner,loser\n" + b"a,b\n" * (100 << 20 >> 2), compresslevel=9)
    path = write(bomb, "v.csv.gz")
    program = (
        "import re, sys\n"
        "from penchant.io import read_comparisons\n"
        "from penchant.errors import DataError\n"
        "try:\n    read_comparisons(sys.argv[1])\n"
        "except DataError as error:\n    print(error)\n"
        "status = open('/proc/self/status').read()\n"
        "print(re.search(r'VmHWM:\\s*(\\d+)', status)[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    message, peak = done.stdout.strip().splitlines()
    assert "unzips to more than 200 times its size" in message
    assert int(peak) < 500_000, "kilobytes"
