"""A model file of the current format must be read, and say what the model said."""

import json
import re
from pathlib import Path

import numpy as np

import penchant as pc
from penchant.models.store import KINDS, VERSION

GOLDEN = Path(__file__).parents[1] / "golden"
SAID = json.loads((GOLDEN / "model.json").read_text())


def test_a_golden_file_says_what_it_said(tmp_path):
    model = pc.load(GOLDEN / "model.penchant")
    model.save(tmp_path / "again")
    for read in (model, pc.load(tmp_path / "again")):
        users = read.comparisons_.users
        np.testing.assert_allclose(read.predict(users=users), SAID["utilities"], atol=1e-9)
        np.testing.assert_allclose(read.predict(), SAID["population"], atol=1e-9)
        effects = [row.estimate for row in read.effects_]
        np.testing.assert_allclose(effects, SAID["effects"], atol=1e-9)
        assert read.log_evidence_ == SAID["log_evidence"]
    assert model.tell([(1, 2)], user=3).comparisons_.n_comparisons > 0


def test_the_golden_file_is_of_this_version():
    assert SAID["version"] == VERSION, "run tests/golden/make.py"


def test_every_field_of_every_kind_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "model_files.md").read_text()
    for name, kind in KINDS.items():
        section = text.split(f"### {name}\n")[1].split("\n### ")[0]
        assert set(kind.declared) <= set(kind.hints), name
        assert set(re.findall(r"^- `(\w+)`", section, re.M)) == set(kind.hints), name
