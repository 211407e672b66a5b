"""Fits that are made once, for the tests of chains and of their moves."""

import pytest

from penchant.communities import fit_community


@pytest.fixture
def remembered_fits(monkeypatch):
    """Chains and their moves ask again and again for fits of the same few groups of users."""
    fits = {}

    def fit_once(mixture, counts, theta, start=None):
        key = (id(mixture), counts.tobytes())
        if key not in fits:
            fits[key] = fit_community(mixture, counts, theta)
        return fits[key]

    for module in ("chains", "split_merge"):
        monkeypatch.setattr(f"penchant.communities.{module}.fit_community", fit_once)
