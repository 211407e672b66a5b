"""Files of several shapes, ranked by the command; tests/io has every shape."""

import csv
import io
import json

import pandas as pd
import pytest

import penchant as pc

SHAPES = {
    "arena": ("model_a,model_b,winner\nx,y,model_a\nz,y,model_b\nx,z,tie (bothbad)\n", ()),
    "zero-one": ("a,b,choice\nx,y,1\nz,y,0\nx,z,1\n", ("--shape", "points")),
    "goals": ("Date,HomeTeam,AwayTeam,FTHG,FTAG\n2024-01-01,x,y,2,0\n2024-01-08,z,y,0,1\n", ()),
    "questions": ("X or Y?,Y or Z?\nx,y\nX,Y\n", ()),
    "ranks": ("Rank these [x],Rank these [y],Rank these [z]\n1,2,3\n1,3,2\n1,2,3\n", ()),
    "best-worst": ("best,worst,item 1,item 2,item 3\nx,z,x,y,z\nx,z,z,y,x\ny,z,y,z,x\n", ()),
    "long rankings": ("ballot,item,position\n1,x,1\n1,y,2\n1,z,3\n2,x,1\n2,y,2\n", ()),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_file_of_every_shape(name, run, tmp_path):
    text, options = SHAPES[name]
    path = tmp_path / "answers.csv"
    path.write_text(text, encoding="utf-8")
    result = run("rank", path, *options, "--model", "gp", "--json")
    order = [row["item"].casefold() for row in json.loads(result.stdout)["rows"]]
    assert order == ["x", "y", "z"]
    assert "read " in result.stderr
    shape = options[1] if options else None
    data = pc.read_comparisons(path, shape=shape)
    head, *rows = csv.reader(io.StringIO(text))
    frame = pd.DataFrame(rows, columns=head)
    assert pc.Comparisons.from_frame(frame, shape=shape).n_comparisons == data.n_comparisons
