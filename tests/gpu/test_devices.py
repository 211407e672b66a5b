"""The contract of devices: SciPy's host, and torch on the CPU where it is installed."""

import ast
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from checks import CHECKS

import penchant as pc
from penchant.errors import DataError
from penchant.numerics import device

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("where", [pytest.param("torch:cpu", marks=needs_torch)])
def test_contract(name, where):
    CHECKS[name](where)


@pytest.mark.parametrize("name", ["check_factor", "check_algebra", "check_draws"])
def test_contract_of_the_host(name):
    CHECKS[name]("cpu")


def test_nothing_but_a_device_is_taken():
    data = pc.Comparisons.from_pairs(["a"], ["b"])
    for wrong in ("gpu", "cuda:x", 0, "torch"):
        with pytest.raises(DataError, match="device="):
            pc.PreferenceGP(device=wrong).fit(None, data)


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


def test_every_function_of_the_seam_has_its_twin():
    """By their sources: torch need not be installed."""
    package = Path(pc.__file__).parent
    twins = {f.name: f for f in functions(package / "numerics" / "torch_linalg.py")}
    seam = [f for file in package.rglob("*.py") for f in functions(file) if is_seam(f)]
    assert len(seam) > 20
    for host in seam:
        names = [argument.arg for argument in twins[host.name].args.args]
        assert names == [argument.arg for argument in host.args.args], host.name


def functions(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [node for node in tree.body if isinstance(node, ast.FunctionDef)]


def is_seam(function):
    return any(ast.unparse(decorator).startswith("seam(") for decorator in function.decorator_list)


def test_none_is_the_host():
    assert device.device_called(None) is device.HOST
    assert device.device_called("cpu") is device.HOST
