"""The example scripts run, and each says what to see and where its method is weak."""

import re
import runpy
import warnings
from pathlib import Path

import matplotlib
import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
QUICK = ("calibration", "choices", "ep", "league", "map", "preference_gp", "ranking")
QUICK += ("style_control", "ties", "win_matrix")
"""Examples that take less than a second; the others are for `make slow`, and `make docs`."""


def marked(path):
    marks = () if path.stem.removeprefix("plot_") in QUICK else (pytest.mark.slow,)
    return pytest.param(path, marks=marks, id=path.stem)


@pytest.mark.parametrize("path", [marked(path) for path in EXAMPLES])
def test_example_runs_and_draws(path, monkeypatch):
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = []
    monkeypatch.setattr(plt, "show", lambda *_, **__: shown.extend(plt.get_fignums()))
    with matplotlib.rc_context(), warnings.catch_warnings():
        header = runpy.run_path(str(path))["__doc__"]
    plt.close("all")
    assert shown, "the script must end in plt.show() with a figure"
    assert "What to see" in header
    assert "Where the method is weak" in header


def test_pages_show_pictures_of_examples_that_are_small_and_there():
    pictures = runpy.run_path(str(ROOT / "examples" / "pictures.py"))["PICTURES"]
    for name in pictures:
        assert (ROOT / "examples" / f"{name}.py").is_file()
    for name in (*pictures, "which_model"):
        for light in ("", "_dark"):
            image = ROOT / "docs" / "images" / f"{name}{light}.svg"
            assert image.stat().st_size <= 200_000
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = set(re.findall(r'"docs/images/(\w+)\.svg"', readme))
    assert {name.removesuffix("_dark") for name in shown} <= set(pictures)
    assert {f"{name}_dark" for name in shown if not name.endswith("_dark")} <= shown
