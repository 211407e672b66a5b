"""The example scripts run, and each says what to see and where its method is weak."""

import runpy
from pathlib import Path

import matplotlib
import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs_and_draws(path, monkeypatch):
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = []
    monkeypatch.setattr(plt, "show", lambda *_, **__: shown.extend(plt.get_fignums()))
    try:
        header = runpy.run_path(str(path))["__doc__"]
    finally:
        plt.close("all")
    assert shown, "the script must end in plt.show() with a figure"
    assert "What to see" in header
    assert "Where the method is weak" in header
