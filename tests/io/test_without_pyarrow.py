"""Polars frames are read where pyarrow is not installed: penchant does not depend on it."""

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("polars")

PROGRAM = """
import sys
sys.modules["pyarrow"] = None
from datetime import date
import numpy as np, polars as pl, penchant as pc

frame = pl.DataFrame({
    "winner": ["tea", "milk", "tea", None], "loser": ["milk", "cola", "cola", "tea"],
    "rater": [7, 8, None, 9], "day": [date(2024, 1, d) for d in (1, 2, 3, 4)],
    "note": pl.Series([object()] * 4, dtype=pl.Object),
})
data = pc.Comparisons.from_frame(frame[:2], time="day")
assert data.items == ("cola", "milk", "tea"), data.items
assert data.users == (7, 8), data.users
assert np.diff(data.time).tolist() in ([86400.0], [1.0]), data.time
try:
    pc.Comparisons.from_frame(frame)
except pc.DataError as error:
    assert "row 2" in str(error) or "row 3" in str(error), error
else:
    raise AssertionError("an empty winner was taken")
kinds = pl.DataFrame({"winner": ["a", "b"], "loser": ["b", "a"]}).cast(pl.Categorical)
assert pc.Comparisons.from_frame(kinds).items == ("a", "b")
pairs = pc.Comparisons.from_pairs(frame["winner"][:2], frame["loser"][:2], user=frame["rater"][:2])
assert pairs.users == (7, 8)
about = pl.DataFrame({"name": ["tea", "milk", "cola"], "sugar": [0, 5, 11]})
model = pc.PreferenceGP(optimize=None).fit(pc.encode(about), data)
assert model.predict(about.select("sugar")).shape == (3,)
assert model.rank().to_polars().height == 3
"""


def test_polars_without_pyarrow():
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
