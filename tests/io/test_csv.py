"""Text tables as people, spreadsheets and enemies write them: one table of cases."""

import gzip
import subprocess
import sys
import warnings

import pytest

from penchant.data import Comparisons
from penchant.errors import DataError, DataWarning
from penchant.io import read_comparisons

EXPECTED = Comparisons.from_pairs(["a", "c"], ["b", "d"])
VOTES = Comparisons.from_pairs(
    ["tea", "tea", "milk", "tea", "tea"],
    ["milk", "milk", "water", "water", "milk"],
    user=[3, 3, 10, 10, 3],
    tie=[False, False, True, False, False],
    count=[1, 2, 1, 4, 1],
)
ROWS = "rater,chosen,rejected,tie,count\n3,tea,milk,no,4\n10,milk,water,yes,1\n10,tea,water,no,4\n"


def complaint(path, **options):
    with pytest.raises(DataError) as caught:
        read_comparisons(path, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("v.csv", ROWS),
        ("V.CSV", ROWS.replace(",", ";")),
        ("v.tsv", ROWS.replace(",", "\t")),
        ("v.txt", ROWS.replace(",", "|")),
        ("v.csv.gz", gzip.compress(("\ufeff" + ROWS.replace("\n", "\r\n")).encode(), mtime=0)),
    ],
)
def test_separators_zips_and_byte_order_marks(write, name, text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # good files do not warn
        assert read_comparisons(write(text, name), skip_bad=True) == VOTES
    assert read_comparisons(write(text, name)) == VOTES


def test_rows_of_many_possible_pairs_are_grouped(write):
    """DuckDB groups rows where the items allow few pairs, NumPy where they allow many."""
    winner, loser = range(1500), range(1, 1501)
    lines = [f"{one},{two}" for one, two in zip(winner, loser, strict=True)]
    data = read_comparisons(write("\n".join(["winner,loser", *lines, *reversed(lines)])))
    assert data == Comparisons.from_pairs(winner, loser, count=[2] * 1500)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        # line ends may be mixed
        ("winner,loser\r\na,b\nc,d\r\n", {}),
        ("winner,loser\na,b\r\nc,d\n", {}),
        ("winner,loser\r\na,b\r\nc,d\n", {}),
        ("winner,loser\ra,b\rc,d\r", {}),
        ("winner,loser\r\na,b\rc,d\n", {}),
        ("winner,loser\n\n\r\na,b\r\n\n\nc,d", {}),
        # columns without a name: pandas writes its index so; spreadsheets leave separators behind
        (",winner,loser\n0,a,b\n1,c,d\n", {}),
        ("winner,loser,\na,b,\nc,d,\n", {}),
        (",,winner,loser,,\n1,2,a,b,,\n3,4,c,d,,x\n", {}),
        (";winner;loser\n0;a;b\n1;c;d\n", {}),
        # spaces around names, and columns that differ in case only
        ("winner, loser\n a , b\nc,d \n", {}),
        ("Winner,winner,loser\nx,a,b\ny,c,d\n", {"winner": "winner"}),
        # names of columns reach neither the database nor the next line
        (
            '"a\', (SELECT 1)) --",\'); DROP TABLE items; --,""""\na,b,1\nc,d,2\n',
            {"winner": "a', (SELECT 1)) --", "loser": "'); DROP TABLE items; --"},
        ),
        ('it\'s,"the ""best"""\na,b\nc,d\n', {"winner": "it's", "loser": 'the "best"'}),
        ('"the; winner,\nof, all",loser\na,b\nc,d\n', {"winner": "the; winner,\nof, all"}),
    ],
)
def test_tables_that_all_say_the_same(write, text, options):
    assert read_comparisons(write(text), **options) == EXPECTED


@pytest.mark.parametrize(
    ("rows", "items"),
    [
        # whole numbers only where nothing is lost
        ("10,9\n9,2\n", (2, 9, 10)),
        ("007,9\n9,10\n", ("007", "10", "9")),
        ("7,x\n9,10\n", ("10", "7", "9", "x")),
        (f"{'9' * 5000},1\n", ("1", "9" * 5000)),
        (f"{'x' * 200_000},b\n", ("b", "x" * 200_000)),
        # quoted cells may hold lines, separators and quotes, also where line ends are mended
        ('"two\nlines","a, b"\n\n"say ""hi""",c"d\n', ("a, b", 'c"d', 'say "hi"', "two\nlines")),
        (
            '"two\r\nlines",b\n"say ""hi""\r\n",c"d\r\n',
            ("b", 'c"d', 'say "hi"\r\n', "two\r\nlines"),
        ),
        # words that other readers take for nothing
        *((f"{w},b\n", tuple(sorted([w, "b"]))) for w in ("NA", "None", "nan", "NULL", "null")),
        *((f"{w},b\n", tuple(sorted([w, "b"]))) for w in ("N/A", "true", "1e5", "-0")),
    ],
)
def test_names_are_as_written(write, rows, items):
    assert read_comparisons(write("winner,loser\n" + rows)).items == items


@pytest.mark.parametrize(
    ("header", "cells", "said"),
    [
        ("winner,loser", "a,b", "winner = winner, loser = loser"),
        ("Chosen,REJECTED", "a,b", "winner = Chosen, loser = REJECTED"),
        ("preferred item id,preferred,other", "x,a,b", "winner = preferred, loser = other"),
        ("winner_id,Loser ID", "a,b", "winner = winner_id, loser = Loser ID"),
        ("a,b", "a,b", "winner = a, loser = b"),
        ("first,second,n", "a,b,1", "winner = first, loser = second; n = count"),
        (
            "x,User_ID,better,worse,Draw,times",
            "x,u,a,b,no,1",
            "winner = better, loser = worse; User_ID = user; times = count",
        ),
        ("winner,loser,weight", "a,b,7", "winner = winner, loser = loser"),
    ],
)
def test_common_spellings_of_columns(write, header, cells, said):
    found = read_comparisons(write(f"{header}\n{cells}\n")).source
    assert found == f"1 comparisons; 0 ties; {said}"


def test_columns_that_are_named_win_over_those_that_look_right(write):
    data = read_comparisons(write("winner,loser,best\nx,b,a\n"), winner="best")
    assert data.items == ("a", "b")
    data = read_comparisons(write("User ID,W,L\nu,a,b\n"), winner="w", loser="l")
    assert (data.items, data.users) == (("a", "b"), ("u",))


_NO_ROLE = "no column that is recognised as the"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        # columns
        (ROWS, {"winner": "chosn"}, "v.csv has no column 'chosn' for the winner (did you mean"),
        ("x,y\na,b\n", {}, f"v.csv has {_NO_ROLE} winner or the loser: its columns are 'x', 'y'"),
        ("x,y\na,b\n", {}, "say which it is, as in winner='x', loser='y'"),
        ("winner,colour,size\na,red,2\n", {}, f"{_NO_ROLE} loser: its"),
        ("winner,winner\na,b\n", {}, "2 columns called 'winner'"),
        ("a,b\nx,y\n", {"winner": "a", "loser": "a"}, "cannot be both winner and loser"),
        ("\n\n", {}, "v.csv begins with an empty line"),
        ("winner,loser\n", {}, "there are no comparisons"),
        # lines and cells that are too long
        (f"{'x' * 200_000},loser\na,b\n", {}, "the first line of v.csv cannot be read"),
        ("a," * (3 << 20), {}, "does not end"),
        (f"winner,loser\na,b\n\n{'x' * 3_000_000},b\n", {}, "row 2 is longer than 2,000,000 bytes"),
        # bytes that are no text
        ("gewähr,loser\na,b\n".encode("latin-1"), {}, "save it as UTF-8"),
        (b"winner,loser\n\n\na,b\n\xe4,b\n", {}, "v.csv: row 2 is not text in UTF-8"),
        (b"winner,loser\n\xe4,b\n", {"skip_bad": True}, "v.csv: row 1 is not text in UTF-8"),
        # a quotation mark that hides rows is never skipped
        *(
            (
                f"winner,loser\n\nx,y\n{rows}",
                {"skip_bad": skip},
                "v.csv: row 2 has a quotation mark",
            )
            for rows in ('"a,b\nc,d\ne,f\n', '"a,b\nc,"d"\ne,f\n', '"a"x,b\nc,d\n')
            for skip in (True, False)
        ),
        # counts
        *(
            (f"winner,loser,count\na,b,3\na,b,{n}\n", {}, f"column 'count' row 2 is {n or None!r}")
            for n in ("0", "-1", "1.5", "nan", "inf", "", "9223372036854775808", "1e30", "9" * 30)
        ),
        ("winner,loser,count\na,b,9007199254740993\n", {}, "at most 9007199254740991"),
        (
            "winner,loser,count\na,b,9007199254740991\na,b,9007199254740991\n",
            {},
            "the counts add up to",
        ),
        *(
            (
                f"{name},winner,loser\n" + "".join(f"{k + s},a,b\n" for k in range(4)),
                {},
                f"column '{name}' of v.csv holds {s}, {s + 1}, … {s + 3}: that looks like a row",
            )
            for name in ("n", "count", "times", "N")
            for s in (0, 1)
        ),
        (
            "n,winner,loser\n" + "".join(f"{(7 * k) % 30 + 1},a,b\n" for k in range(30)),
            {},
            "looks like a row number",
        ),
        ("winner,loser\na,\n", {"skip_bad": True}, "no row is usable. v.csv: column 'loser' row 1"),
    ],
)
def test_tables_that_are_refused(write, text, options, message):
    assert message in complaint(write(text), **options)


def test_counts_that_are_named_or_do_not_look_like_an_index_are_counts(write):
    path = write("winner,loser,n\na,b,1\na,b,2\na,b,3\n")
    assert read_comparisons(path, count="n").n_comparisons == 6
    assert read_comparisons(write("winner,loser,n\na,b,2\na,b,1\na,b,3\n")).n_comparisons == 6
    assert read_comparisons(write("winner,loser,n\na,b,1\n")).n_comparisons == 1


EMPTY = "every comparison needs a winner and a loser; drop the row or mark a tie"
ITSELF = "a comparison needs two different items; drop the row or correct a name"
FEWER = "has fewer cells than the first line names columns; add the separators"
MORE = (
    "has more cells than the first line names columns; put quotes around text that holds a "
    "separator"
)


@pytest.mark.parametrize(
    ("text", "lines", "left"),
    [
        (
            "chosen,rejected,times,draw\na,b,1,no\na,,1,no\nc,c,x,no\na,b,1,perhaps\n",
            [
                "v.csv: 3 of 4 rows cannot be used (rows are counted from 1):",
                f"  column 'rejected' row 2 is empty: {EMPTY}",
                f"  row 3 compares 'c' with itself: {ITSELF}",
                "  column 'times' row 3 is 'x': it must be a whole number of at least 1; drop rows "
                "that never happened",
                "  column 'draw' row 4 is 'perhaps': it must be true or false (yes/no, 1/0), or "
                "'both bad'",
            ],
            (["a"], ["b"]),
        ),
        (
            "winner,loser\na,b\na,b,c,d\nb,b\nc\nb,c\n,b\n",
            [
                "v.csv: 4 of 6 rows cannot be used (rows are counted from 1):",
                f"  row 2 {MORE}",
                f"  row 3 compares 'b' with itself: {ITSELF}",
                f"  row 4 {FEWER}",
                f"  column 'winner' row 6 is empty: {EMPTY}",
            ],
            (["a", "b"], ["b", "c"]),
        ),
        (  # blank lines are no rows, and a row may span several lines
            'winner,loser\na,b\n\n\n"c\n\nx",d\n\ne\nf,f\n,g\n',
            [
                "v.csv: 3 of 5 rows cannot be used (rows are counted from 1):",
                f"  row 3 {FEWER}",
                f"  row 4 compares 'f' with itself: {ITSELF}",
                f"  column 'winner' row 5 is empty: {EMPTY}",
            ],
            (["a", "c\n\nx"], ["b", "d"]),
        ),
    ],
)
def test_bad_rows_are_listed_or_left_out_with_their_names(write, text, lines, left):
    path = write(text)
    assert complaint(path).splitlines() == lines
    with pytest.warns(DataWarning) as caught:
        data = read_comparisons(path, skip_bad=True)
    assert lines[1] in str(caught[0].message)
    assert data == Comparisons.from_pairs(*left)


def test_users_whom_only_bad_rows_mention_are_left_out(write):
    path = write("winner,loser,user\na,a,u\nb,d,v\nc,,w\nd,e,x\n")
    with pytest.warns(DataWarning, match="2 of 4"):
        data = read_comparisons(path, skip_bad=True)
    assert data == Comparisons.from_pairs(["b", "d"], ["d", "e"], user=["v", "x"])


def test_line_ends_over_the_border_of_a_chunk(write):
    path = write(b"winner,loser\r\n" + b"a,b\r\n" * 1_300_000)  # six chunks
    assert read_comparisons(path).count.tolist() == [1_300_000]


def zipped(n, row=b"item %d,item %d\n", head=b"winner,loser\n"):
    rows = (row % (k % 97, k % 89 + 97) for k in range(n))
    return gzip.compress(head + b"".join(rows), mtime=0)


@pytest.mark.parametrize("share", [0.999, 0.9, 0.5, 0.1])
def test_truncated_zip_files_are_refused(write, share):
    content = zipped(20_000)
    path = write(content[: int(share * len(content))], "v.csv.gz")
    assert "is damaged or not zipped at all" in complaint(path)
    assert "is damaged or not zipped at all" in complaint(path, skip_bad=True)


@pytest.mark.parametrize("at", [-8, -5, -4, -1, 200])
def test_damaged_zip_files_are_refused(write, at):
    content = bytearray(zipped(10_000))
    content[at] ^= 1
    assert "is damaged" in complaint(write(bytes(content), "v.csv.gz"))
    assert "with .gz only if zipped" in complaint(write("winner,loser\na,b\n", "v.csv.gz"))


def test_zipped_json_and_zips_of_several_parts(write):
    content = zipped(10_000, b'{"winner": "a%d", "loser": "b%d"}\n', b"")
    assert read_comparisons(write(content, "v.jsonl.gz")).n_comparisons == 10_000
    assert "is damaged" in complaint(write(content[:-6], "v.jsonl.gz"))
    content = gzip.compress(b"winner,loser\na,b\n") + gzip.compress(b"c,d\n")
    assert read_comparisons(write(content, "v.csv.gz")) == EXPECTED


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells about memory")
def test_a_zip_bomb_is_refused_before_it_fills_memory(write):
    bomb = gzip.compress(b"winner,loser\n" + b"a,b\n" * (72 << 20 >> 2), mtime=0)
    path = write(bomb, "v.csv.gz")
    program = (
        "import re, sys\n"
        "import penchant as pc\n"
        "try:\n    pc.read_comparisons(sys.argv[1])\n"
        "except pc.DataError as error:\n    print(error)\n"
        "status = open('/proc/self/status').read()\n"
        "print(re.search(r'VmHWM:\\s*(\\d+)', status)[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True)
    message, peak = done.stdout.strip().splitlines()
    assert "unzips to more than 200 times its size" in message
    assert int(peak) < 500_000, "kilobytes"
