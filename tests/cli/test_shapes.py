"""Every shape of file that people have, ranked by the command with no option or the one named."""

import csv
import io
import json

import pytest

import penchant as pc

SHAPES = {
    "pairs": ("winner,loser\nx,y\ny,z\nx,z\n", ()),
    "arena": ("model_a,model_b,winner\nx,y,model_a\nz,y,model_b\nx,z,tie (bothbad)\n", ()),
    "sides": ("left,right,choice\nx,y,left\nz,y,right\nz,x,no preference\n", ()),
    "letters": ("option_a,option_b,preference\nx,y,A\nz,y,B\nx,z,A\n", ()),
    "points": ("player_a,player_b,result\nx,y,1\nz,y,0\nz,x,0.5\n", ()),
    "zero-one": ("a,b,choice\nx,y,1\nz,y,0\nx,z,1\n", ("--shape", "points")),
    "numbered": ("item 1,item 2,choice\nx,y,1\nz,y,2\nx,z,1\n", ()),
    "by name": ("a,b,winner\nx,y,x\nz,y,y\nx,z,x\n", ()),
    "goals": ("Date,HomeTeam,AwayTeam,FTHG,FTAG\n2024-01-01,x,y,2,0\n2024-01-08,z,y,0,1\n", ()),
    "marks": (
        "model_a,model_b,winner_model_a,winner_model_b,winner_tie\nx,y,1,0,0\nz,y,0,1,0\n",
        (),
    ),
    "questions": ("X or Y?,Y or Z?\nx,y\nX,Y\n", ()),
    "ranks": ("Rank these [x],Rank these [y],Rank these [z]\n1,2,3\n1,3,2\n1,2,3\n", ()),
    "unnamed ranks": ("x,y,z\n1,2,3\n1,3,2\n1,2,3\n", ("--shape", "ranks")),
    "likert": (
        "Good? [x],Good? [y],Good? [z]\nagree,neutral,disagree\nagree,neutral,\n",
        (),
    ),
    "best-worst": ("best,worst,item 1,item 2,item 3\nx,z,x,y,z\nx,z,z,y,x\ny,z,y,z,x\n", ()),
    "top": ("1st choice,2nd choice,3rd choice\nx,y,z\nx,y,\n", ()),
    "approvals": ('Select all you like\n"x; y"\nx\n"x; z"\nx; y\n', ()),
    "strength": ("a,b,preference\nx,y,A is much better\nz,y,B is slightly better\n", ()),
    "strength column": ("chosen,rejected,strength\nx,y,much better\ny,z,slightly better\n", ()),
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
    rows = list(csv.reader(io.StringIO(text)))
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows[1:], columns=rows[0]).replace("", None)
    assert pc.Comparisons.from_frame(frame, shape=shape).n_comparisons == data.n_comparisons


@pytest.mark.parametrize("suffix", ["xlsx", "ods"])
@pytest.mark.parametrize("name", ["arena", "ranks", "questions"])
def test_spreadsheets(name, suffix, run, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip({"xlsx": "openpyxl", "ods": "odf"}[suffix])
    path = tmp_path / f"answers.{suffix}"
    pd.read_csv(io.StringIO(SHAPES[name][0])).to_excel(path, index=False)
    result = run("rank", path, "--model", "gp", "--json")
    order = [row["item"].casefold() for row in json.loads(result.stdout)["rows"]]
    assert order == ["x", "y", "z"]
