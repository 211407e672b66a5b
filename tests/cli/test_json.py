"""The output of --json is what docs/json.md says it is."""

import json
import re
from pathlib import Path

import jsonschema
import pytest

from penchant.cli import COMMANDS

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "json.md"
SCHEMAS = {
    name: json.loads(schema)
    for name, schema in re.findall(
        r"^## (\S+)\n.*?```json\n(.*?)```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL
    )
}
CALLS = [
    "fit votes.csv --model gp -o json.penchant",
    "fit votes.csv --model rank-rls --items items.csv -o json.penchant",
    "rank model.penchant",
    "rank votes.csv --model kpc-rank --items items.csv",
    "rank votes.csv --model gp --raters",
    "rank votes.csv --model multi-user --raters",
    "predict model.penchant pairs.csv",
    "predict model.penchant pairs.csv --ties",
    "predict votes.csv --model gp --items items.csv --new-items items.csv",
    "predict votes.csv --model rank-rls --items items.csv --new-items items.csv",
    "ask model.penchant",
    "ask model.penchant --set-size 3",
    "groups votes.csv",
    "groups votes.csv --members",
    "evaluate votes.csv --with gp --with rank-rls --items items.csv --folds 2",
    "report votes.csv --model gp",
    "bench --items 6 --users 4 --answers 4 --with gp",
    "doctor",
    pytest.param("demo --folder json-demo", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("call", CALLS)
def test_output_validates(run, call):
    name, *arguments = call.split()
    content = json.loads(run(name, *arguments, "--json").stdout)
    jsonschema.validate(content, SCHEMAS[name], cls=jsonschema.Draft202012Validator)


def test_output_with_effects_validates(run, tmp_path):
    path = tmp_path / "battles.csv"
    path.write_text("model_a,model_b,winner,x\na,b,model_a,1\nb,c,model_b,2\nc,a,tie,-1\n")
    content = json.loads(run("rank", path, "--covariate", "x", "--json").stdout)
    assert len(content["effects"]) == 2
    jsonschema.validate(content, SCHEMAS["rank"], cls=jsonschema.Draft202012Validator)


def test_every_command_with_json_has_a_schema():
    assert set(SCHEMAS) == set(COMMANDS) - {"study"}
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)
