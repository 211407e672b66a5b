"""The contract of devices: SciPy's host, and torch on the CPU where it is installed."""

import ast
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import checks
import model_checks
import numpy as np
import pytest
import user_checks

import penchant as pc
from penchant.errors import DataError
from penchant.numerics import dispatch as device

CHECKS = checks.CHECKS | user_checks.CHECKS | model_checks.CHECKS
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
needs_card = pytest.mark.skipif(not device.cards(), reason="there is no card")
DEVICES = [
    pytest.param("torch:cpu", marks=needs_torch),
    pytest.param("cuda", marks=needs_card),
]


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("where", DEVICES)
def test_contract(name, where):
    CHECKS[name](where)


@pytest.mark.parametrize("name", ["check_factor", "check_algebra", "check_draws", "check_stacks"])
def test_contract_of_the_host(name):
    CHECKS[name]("cpu")


@pytest.mark.parametrize("model", [pc.PreferenceGP, pc.MultiUserGP])
def test_nothing_but_a_device_is_taken(model):
    data = pc.Comparisons.from_pairs(["a"], ["b"])
    for wrong in ("gpu", "cuda:x", 0, "torch"):
        with pytest.raises(DataError, match="device="):
            model(device=wrong).fit(None, data)


@needs_torch
def test_a_copy_that_a_card_would_refuse_is_refused_here():
    tensor = device.device_called("torch:cpu").matrix(np.eye(2))
    for copies in (np.asarray, np.trace, np.sqrt, lambda t: np.ones(2) @ t):
        with pytest.raises(TypeError):
            copies(tensor)


@needs_torch
def test_shards_are_refused(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("user,winner,loser\nann,tea,milk\nbob,milk,tea\n", encoding="utf-8")
    with pytest.raises(DataError, match="scanned comparisons do not go together with device"):
        pc.MultiUserGP(device="torch:cpu").fit(None, pc.scan_comparisons(file, shards=2))


def test_a_card_that_is_not_there_is_named():
    data = pc.Comparisons.from_pairs(["a"], ["b"])
    with pytest.raises(DataError, match="cuda:99"):
        pc.PreferenceGP(device="cuda:99").fit(None, data)


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(device, "_torch", lambda: None)
    device._torch_device.cache_clear()
    with pytest.raises(DataError, match=r"penchant\[gpu\]"):
        device.device_called("cuda:98")
    assert device.cards() == []
    assert device.torch_version() is None


def test_every_dispatched_function_has_its_twin():
    """By their sources: torch need not be installed."""
    package = Path(pc.__file__).parent
    twins = functions(package / "numerics" / "torch_backend.py")
    found = 0
    for file in package.rglob("*.py"):
        for to_numpy in functions(file).values():
            kinds = {ast.unparse(each).partition("(")[0] for each in to_numpy.decorator_list}
            if "dispatched" in kinds:
                found += 1
                assert names(twins[to_numpy.name]) == names(to_numpy), to_numpy.name
    assert found > 20


def functions(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def names(function):
    return [argument.arg for argument in function.args.args]


def test_none_is_the_host():
    assert device.device_called(None) is device.CPU
    assert device.device_called("cpu") is device.CPU


@pytest.mark.parametrize(("n_cards", "index"), [(0, None), (0, 0), (1, 1), (2, 5)])
def test_a_card_beyond_the_last_is_refused(n_cards, index, monkeypatch):
    torch = SimpleNamespace(
        __version__="2",
        cuda=SimpleNamespace(device_count=lambda: n_cards),
        device=lambda name: SimpleNamespace(type="cuda", index=index),
    )
    monkeypatch.setattr(device, "_torch", lambda: torch)
    device._torch_device.cache_clear()
    with pytest.raises(pc.DataError, match=f"sees {n_cards} CUDA cards"):
        device.device_called("cuda" if index is None else f"cuda:{index}")


def test_a_fit_beyond_a_card_says_what_it_would_need():
    card = SimpleNamespace(name="cuda:0", most_items=10_000)
    device.check_room(card, 10_000)
    need = f"{device.MATRICES * 3.2:,.0f} GB"  # 20,000² numbers of 8 bytes are 3.2 GB
    with pytest.raises(pc.DataError, match=need):
        device.check_room(card, 20_000)
