"""docs/architecture.md: the ways through the package are those that the code takes."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import penchant as pc

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
INSIDE = Path(pc.__file__).parent
RNG = np.random.default_rng(0)
A = RNG.integers(8, size=60)
B = (A + 1 + RNG.integers(7, size=60)) % 8
WAYS = {
    "The way of one answer": lambda: (
        pc.PreferenceGP(random_state=0)
        .fit(np.arange(16.0).reshape(8, 2) ** 2, pc.Comparisons.from_pairs(A, B, items=range(8)))
        .predict_proba([(0, 1)])
    ),
    "The way of one person": lambda: (
        pc.MultiUserGP(random_state=0, progress=False)
        .fit(None, pc.Comparisons.from_pairs(A, B, user=A % 5, items=range(8)))
        .rank(user=3)
    ),
}


def called(job):
    """(file, function) in the order of their first calls."""
    job()  # imports are slow under a profiler
    seen = {}

    def look(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(INSIDE):
            seen.setdefault((path.relative_to(INSIDE).as_posix(), frame.f_code.co_qualname))

    sys.setprofile(look)
    try:
        job()
    finally:
        sys.setprofile(None)
    return list(seen)


@pytest.mark.parametrize("title", WAYS)
@pytest.mark.filterwarnings("ignore")
def test_the_ways_are_as_told(title):
    section = PAGE.split(f"## {title}")[1].split("\n## ")[0]
    told = re.findall(r"^\| `([\w/]+\.py)` `([\w.]+)` \|", section, flags=re.M)
    assert len(told) > 10
    places = {step: place for place, step in enumerate(called(WAYS[title]))}
    assert [step for step in told if step not in places] == []
    order = [places[step] for step in told]
    assert order == sorted(order)


def test_files_that_are_named_exist():
    for path in re.findall(r"`((?:src|tests)/[\w/]+\.py)`", PAGE):
        assert (ROOT / path).is_file(), path
