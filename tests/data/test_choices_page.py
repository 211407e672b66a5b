"""The examples of docs/choices.md run, in order."""

import re
from pathlib import Path

import numpy as np

PAGE = (Path(__file__).parents[2] / "docs" / "choices.md").read_text(encoding="utf-8")


def test_examples_run_in_order():
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    assert len(blocks) == 2
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
    assert len(space["sets"]) == 2
    assert np.isfinite(space["gp"].predict()).all()
