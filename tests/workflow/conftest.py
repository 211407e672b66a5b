"""What tests of pages share with those of the command line, and a small study."""

import runpy
from pathlib import Path

import pytest

import penchant as pc

_CLI = runpy.run_path(str(Path(__file__).resolve().parents[1] / "cli" / "conftest.py"))


@pytest.fixture
def outline_of():
    """Parse a page."""
    return _CLI["Outline"]


@pytest.fixture(scope="session")
def study():
    """Twelve people of two tastes and ten items with features and links."""
    return pc.datasets.simulate_study(n_users=12, n_items=10, n_tastes=2, n_answers=12)
