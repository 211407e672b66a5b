"""A model file of the current format must be read, and say what the model said."""

import json
import zipfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

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


def test_every_kind_is_documented_and_has_all_fields_of_its_class():
    text = (Path(__file__).parents[2] / "docs" / "model_files.md").read_text()
    for name, kind in KINDS.items():
        if kind.restore is None:
            own = getattr(kind.cls, "_fields", None)  # of a named tuple
            own = own or [each.name for each in fields(kind.cls) if each.init]
            assert set(kind.declared) == set(own), name
        assert f"### {name}\n" in text, name
        section = text.split(f"### {name}\n")[1].split("\n### ")[0]
        for field in kind.declared:
            assert f"`{field}`" in section, (name, field)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"version": VERSION + 1, "model": {}}, f"reads version {VERSION}"),
        ({"version": VERSION, "model": {"$kind": "rocket", "number": 0, "fields": {}}}, "rocket"),
    ],
)
def test_unknown_versions_and_kinds_are_refused(header, message, tmp_path):
    with zipfile.ZipFile(tmp_path / "m", "w") as archive:
        archive.writestr("model.json", json.dumps({"format": "penchant model", **header}))
    with pytest.raises(pc.DataError, match=message):
        pc.load(tmp_path / "m")
