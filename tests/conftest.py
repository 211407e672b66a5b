"""Small problems that many tests share, and where the real data are."""

import os
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from tests.simulation import duel_data

# `make test` must say the same twice; `make slow` looks for new counterexamples
settings.register_profile("steady", derandomize=True)
settings.load_profile("steady")


@pytest.fixture
def rng():
    return np.random.default_rng(20261115)


@pytest.fixture
def data_folder():
    """The folder of real data sets; tests that need it are skipped where it is absent."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("PENCHANT_DATA", default))
    if not folder.is_dir():
        pytest.skip("real data are not here: set PENCHANT_DATA to their folder")
    return folder


@pytest.fixture
def make_comparisons(rng):
    """Probit choices between random pairs; items that never occur still exist."""

    def make(n_items=8, n_pairs=30, utilities=None):
        f = rng.standard_normal(n_items) if utilities is None else utilities
        return duel_data(rng, f, n_pairs)

    return make


@pytest.fixture
def seconds():
    """Least time of a few runs by the clock: processor time counts threads that only spin."""

    def seconds(action, repeats=5):
        taken = []
        for _ in range(repeats):
            start = time.perf_counter()
            action()
            taken.append(time.perf_counter() - start)
        return min(taken)

    return seconds


@pytest.fixture
def run_snippet():
    """Runs a documentation's snippet: `code  # → value` must hold; returns how many did."""

    def run(block, scope):
        pending, n_claims = "", 0
        for line in block.splitlines():
            code, arrow, claim = line.partition("  # → ")
            if not arrow:
                pending += line + "\n"
                continue
            exec(pending, scope)
            pending = ""
            assert repr(eval(code, scope)) == claim, line
            n_claims += 1
        exec(pending, scope)
        return n_claims

    return run


class Outline(HTMLParser):
    """Tags, attributes and text of a document; complains about tags that do not match."""

    VOID = ("meta", "img", "br", "link")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def find(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def outline_of():
    """Parses a page."""
    return Outline
