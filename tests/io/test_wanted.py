"""What a message says that a shape wants is read as that shape."""

import pytest

import penchant as pc
from penchant.io import SHAPES, WANTED

CELLS = {
    "pairs": ["tea", "milk"],
    "outcome": ["tea", "milk", "tea"],
    "points": ["tea", "milk", "1"],
    "numbered": ["tea", "milk", "2"],
    "scores": ["tea", "milk", "3", "1"],
    "marks": ["tea", "milk", "1", "0"],
    "rankings": ["b1", "tea", "1"],
    "ranks": ["ann", "2", "1"],
    "ratings": ["ann", "2", "1"],
    "grades": ["ann", "tea", "5"],
    "questions": ["ann", "tea"],
    "best-worst": ["tea", "milk", "tea", "milk", "water"],
    "top": ["ann", "tea", "milk"],
    "approvals": ["ann", "tea; milk"],
}
HEADS = {
    "ranks": ["user", "tea", "milk"],
    "ratings": ["user", "tea", "milk"],
    "questions": ["user", "tea or milk?"],
    "best-worst": ["best", "worst", "item_1", "item_2", "item_3"],
    "top": ["user", "choice 1", "choice 2"],
    "approvals": ["user", "likes"],
}
MORE = {
    "rankings": ["b1", "milk", "2"],
    "grades": ["ann", "milk", "3"],
    "approvals": ["bob", "water; tea"],
    "points": ["milk", "tea", "0"],
    "numbered": ["milk", "tea", "1"],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_columns_that_a_shape_wants_are_read(shape, tmp_path):
    head = HEADS.get(shape) or WANTED[shape].split(", ")
    lines = [head, CELLS[shape], *([MORE[shape]] if shape in MORE else [])]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(map(",".join, lines)) + "\n")
    assert "tea" in pc.read_comparisons(path, shape=shape).items
    if shape in ("ranks", "ratings", "approvals"):  # any columns will do
        return
    path.write_text("foo,bar,baz\nx,y,z\n")
    with pytest.raises(pc.DataError) as caught:
        pc.read_comparisons(path, shape=shape)
    wanted = "winner='NAME', loser='NAME'" if shape == "pairs" else WANTED[shape]
    assert wanted in str(caught.value)


def test_what_cannot_be_read_is_shown(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("winner,loser,when,length\na,b,2024-05-01,3\nb,c,someday,blue\n")
    for name, column, cell in (("time", "when", "someday"), ("margin", "length", "blue")):
        with pytest.raises(pc.DataError, match=rf"column '{column}' row 2 is '{cell}'"):
            pc.read_comparisons(path, **{name: column})
    with pytest.raises(pc.DataError, match="the covariates of row 2 are not all numbers"):
        pc.read_comparisons(path, covariates=["length"])
