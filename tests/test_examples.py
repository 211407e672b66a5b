"""The example scripts run, and each says what to see and where its method is weak."""

import re
import runpy
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


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


def test_the_readme_shows_pictures_of_examples_that_are_small_and_there():
    pictures = runpy.run_path(str(ROOT / "examples" / "pictures.py"))["PICTURES"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[[^]]+\]\(docs/images/(\w+)\.png\)", readme)
    assert shown == list(pictures)
    for name in shown:
        assert (ROOT / "examples" / f"{name}.py").is_file()
        assert (ROOT / "docs" / "images" / f"{name}.png").stat().st_size <= 150_000
