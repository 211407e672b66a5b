"""Type checkers know what estimators have, and tools that complete names find them."""

import subprocess
import sys
from pathlib import Path

import pytest

import penchant as pc

SNIPPET = """
import penchant as pc

for model in (pc.PreferenceGP(), pc.MultiUserGP(), pc.CommunityGP()):
    model.rank()
    model.get_params()
pc.RankRLS().predict([[0.0]])
pc.PreferenceGP().rnak()
pc.MultiUserGP().rnak()
pc.CommunityGP().rnak()
pc.RankRLS().rnak()
pc.PreferencePerceptron().rnak()
"""


@pytest.mark.slow
def test_a_misspelt_method_is_found(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(SNIPPET)
    source = Path(pc.__file__).parents[1]
    command = [sys.executable, "-m", "mypy", "--config-file", str(source.parent / "pyproject.toml")]
    found = subprocess.run(
        [*command, str(tmp_path / "snippet.py")], capture_output=True, text=True, cwd=source.parent
    )
    lines = [line for line in found.stdout.splitlines() if ": error" in line]
    assert len(lines) == 5, found.stdout
    assert all('has no attribute "rnak"' in line for line in lines)


@pytest.mark.parametrize("module", [pc, pc.plots, pc.datasets])
def test_modules_list_their_names(module):
    assert dir(module) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)
