"""The README's Python runs as printed."""

import re
from pathlib import Path

import numpy as np

README = Path(__file__).parents[1] / "README.md"


def test_python_blocks_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ["winner,loser,user"]
    rng = np.random.default_rng(0)
    names = ["tea", "coffee", "milk", "water"]
    for _ in range(60):
        a, b = rng.choice(4, 2, replace=False)
        rows.append(f"{names[min(a, b)]},{names[max(a, b)]},user{rng.integers(6)}")
    Path("votes.csv").write_text("\n".join(rows) + "\n")
    namespace = {
        "X": rng.standard_normal((4, 2)),
        "X_new": rng.standard_normal((3, 2)),
        "links": np.ones((4, 4)) - np.eye(4),
    }
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
