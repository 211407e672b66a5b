"""A small study."""

import pytest

import penchant as pc


@pytest.fixture(scope="session")
def study():
    """Twelve people of two tastes and ten items with features and links."""
    return pc.datasets.simulate_study(n_users=12, n_items=10, n_tastes=2, n_answers=12)
