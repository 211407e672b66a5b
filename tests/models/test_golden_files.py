"""Model files of every version that was ever written must be read, and say what they said."""

import json
from pathlib import Path

import numpy as np
import pytest

import penchant as pc
from penchant.models import schema
from penchant.models.schema import KINDS, VERSION, Kind

GOLDEN = Path(__file__).parent.parent / "golden"
RECORDED = json.loads(
    (Path(__file__).parent.parent / "reference" / "recorded_fits.json").read_text()
)
FILES = sorted(GOLDEN.glob("v*/*.penchant"))


def test_there_are_files_of_every_version():
    assert {file.parent.name for file in FILES} == {f"v{k}" for k in range(1, VERSION + 1)}


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_golden_file_says_what_it_said(file, tmp_path):
    model = pc.load(file)
    model.save(tmp_path / "again")
    again = pc.load(tmp_path / "again")
    assert again.get_params().keys() == model.get_params().keys()
    if not isinstance(model, pc.PreferenceGP | pc.MultiUserGP | pc.CommunityGP):
        return
    everybody = model.comparisons_.users or None
    mean = np.ravel(model.predict(users=everybody))
    np.testing.assert_array_equal(np.ravel(again.predict(users=everybody)), mean)
    who = {} if model.state_.learned.data.user is None else {"user": 3}
    assert model.tell([(1, 2)], **who).comparisons_.n_comparisons > 0
    if file.parent.name == "v1" and file.stem != "communities-collapsed":  # then over draws
        recorded = np.reshape(RECORDED[file.stem]["mean"], (-1, model.comparisons_.n_items))
        above = recorded - recorded.mean(axis=1, keepdims=True)  # the latent then
        np.testing.assert_allclose(mean, np.ravel(above), atol=1e-9)


def test_a_renamed_class_and_field_still_load(monkeypatch):
    """What a class is called inside is nobody's business: the file knows kinds."""
    from dataclasses import dataclass

    from penchant.numerics.types import FloatArray

    @dataclass(frozen=True)
    class Standardisation:
        middle: FloatArray
        spread: FloatArray

        def apply(self, X):
            return (X - self.middle) / self.spread

    renamed = Kind(
        "nowhere:Standardisation", ("center", "scale"), {"center": "middle", "scale": "spread"}
    )
    monkeypatch.setattr(Kind, "cls", property(lambda kind: _class(kind, Standardisation)))
    monkeypatch.setitem(KINDS, "scaling", renamed)
    model = pc.load(GOLDEN / "v1" / "items-learned-features.penchant")
    assert isinstance(model.state_.columns.scaling, Standardisation)
    assert np.isfinite(model.predict(np.zeros((1, 3)))).all()


def _class(kind, stand_in):
    from importlib import import_module

    module, _, name = kind.where.partition(":")
    return stand_in if module == "nowhere" else getattr(import_module(module), name)


def test_every_kind_has_all_fields_of_its_class_and_is_documented():
    from dataclasses import fields

    text = (Path(__file__).parents[2] / "docs" / "model_files.md").read_text()
    for name, kind in KINDS.items():
        inside = {field.name for field in fields(kind.cls) if field.init}
        assert {kind.attributes.get(f, f) for f in kind.fields} == inside, name
        assert f"### {name}\n" in text, name
        section = text.split(f"### {name}\n")[1].split("\n### ")[0]
        for field in kind.fields:
            assert f"`{field}`" in section, (name, field)


def test_an_unknown_version_names_those_that_are_read(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "m", "w") as archive:
        header = {"format": "penchant model", "version": VERSION + 1, "model": {}}
        archive.writestr("model.json", json.dumps(header))
    with pytest.raises(pc.DataError, match=f"reads versions 1 to {VERSION}"):
        pc.load(tmp_path / "m")


def test_foreign_kinds_are_refused():
    with pytest.raises(pc.DataError, match="does not know"):
        schema.kind_called("rocket")
