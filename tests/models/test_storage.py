import json
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penchant as pc
from penchant.kernels import RBF, Independent, RegularizedLaplacian
from penchant.likelihoods import Lapse, Probit
from penchant.models.store import VERSION


@pytest.fixture
def fitted(rng):
    data = pc.Comparisons.from_pairs(
        ["tea", "tea", "café", "milk"], ["milk", "water", "water", "café"], items=None
    )
    n = data.n_items
    W = np.ones((n, n)) - np.eye(n)
    kernel = RBF((1.0, 2.0)) + RegularizedLaplacian("near") + 0.5 * Independent()
    gp = pc.PreferenceGP(kernel, likelihood=Lapse(Probit(), 0.05), optimize=None, random_state=4)
    return gp.fit(rng.standard_normal((n, 2)), data, relations={"near": W})


def test_round_trip_is_exact(fitted, tmp_path):
    path = tmp_path / "model.penchant"
    fitted.save(path)
    again = pc.load(path)
    assert again.get_params() == fitted.get_params()
    for name in ("kernel_", "likelihood_", "report_", "comparisons_"):
        assert getattr(again, name) == getattr(fitted, name)
    assert again.rank() == fitted.rank()
    assert again.predict().tobytes() == fitted.predict().tobytes()


def test_a_posterior_is_stored_only_where_sites_do_not_give_it_quickly(tmp_path, monkeypatch):
    from penchant.models.store import schema

    data = pc.Comparisons.from_pairs(["a", "a", "b"], ["b", "c", "c"], user=[1, 2, 2])
    for model in (pc.PreferenceGP(optimize=None), pc.MultiUserGP(optimize=None)):
        model.fit(None, data).save(tmp_path / "quick")
        with monkeypatch.context() as patch:
            patch.setattr(schema, "REBUILD_FLOPS", 0.0)
            model.save(tmp_path / "slow")
        stored = [path for path in ("quick", "slow") if '"posterior' in header_of(tmp_path / path)]
        assert stored == ["slow"]
        for path in ("quick", "slow"):
            np.testing.assert_allclose(pc.load(tmp_path / path).predict(), model.predict())


def header_of(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read("model.json").decode().replace('"posterior": null', "")


def test_names_keep_their_types_and_a_generator_its_state(tmp_path):
    data = pc.Comparisons.from_pairs([1, 7], [7, 3])
    gp = pc.PreferenceGP(optimize=None, random_state=np.random.default_rng(9)).fit(None, data)
    gp.save(tmp_path / "m")
    again = pc.load(tmp_path / "m")
    assert again.comparisons_.items == data.items
    assert again.rank() == gp.rank()


def test_a_saved_file_may_be_read_by_whom_other_files_may(fitted, tmp_path):
    plain = tmp_path / "plain"
    plain.touch()
    fitted.save(tmp_path / "model.penchant")
    assert (tmp_path / "model.penchant").stat().st_mode == plain.stat().st_mode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.penchant", "plain"]


def test_missing_and_truncated_files_and_pickles_are_refused(fitted, tmp_path):
    path = tmp_path / "model.penchant"
    with pytest.raises(pc.DataError, match="no file"):
        pc.load(path)
    fitted.save(path)
    content = path.read_bytes()
    for share in (0.1, 0.5, 0.9, 0.999):
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(pc.DataError, match=r"damaged|not a penchant"):
            pc.load(path)
    path.write_bytes(pickle.dumps({"format": "penchant model"}))
    with pytest.raises(pc.DataError, match="cannot be read"):
        pc.load(path)


OURS = {"format": "penchant model", "version": VERSION}
PLAIN = {"$estimator": "PreferenceGP", "params": {}}


ROCKET = {"$kind": "rocket", "number": 0, "fields": {}}


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"format": "other"}, "not a penchant model"),
        ({**OURS, "version": VERSION + 1, "model": None}, f"reads version {VERSION}"),
        ({**OURS, "model": {"$class": "os.system"}}, "cannot be read"),
        ({**OURS, "model": ROCKET}, "rocket"),
        ({**OURS, "model": {**PLAIN, "state": {"__class__": 1}}}, "unexpected attribute"),
        (OURS, "compressed"),
    ],
)
def test_foreign_and_hostile_headers(tmp_path, header, message):
    path = tmp_path / "m"
    compression = zipfile.ZIP_DEFLATED if message == "compressed" else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("model.json", json.dumps(header))
    with pytest.raises(pc.DataError, match=message):
        pc.load(path)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(position=st.floats(0, 0.9999), byte=st.integers(0, 255))
def test_a_changed_byte_is_noticed_or_harmless(fitted, tmp_path, position, byte):
    path = tmp_path / "model.penchant"
    if not path.exists():
        fitted.save(path)
    content = bytearray(path.read_bytes())
    content[int(position * len(content))] = byte
    changed = tmp_path / "changed"
    changed.write_bytes(content)
    try:
        again = pc.load(changed)
    except pc.DataError:
        return
    np.testing.assert_array_equal(again.predict(), fitted.predict())


def test_what_cannot_be_saved_says_so(tmp_path):
    data = pc.Comparisons.from_pairs(["a"], ["b"])
    gp = pc.PreferenceGP(optimize=None).fit(None, data)
    gp.extra_ = lambda x: x
    with pytest.raises(pc.DataError, match="cannot be saved"):
        gp.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_names_of_features_are_kept(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"sweet": [0.0, 1.0, 2.0, 3.0], "hot": [1.0, 0.0, 1.0, 0.0]})
    model = pc.RankRLS("linear", alpha=1.0).fit(frame, [0, 1, 2, 3])
    model.save(tmp_path / "m")
    again = pc.load(tmp_path / "m")
    assert again.feature_names_in_.tolist() == ["sweet", "hot"]
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
