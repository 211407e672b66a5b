"""Convergence of chains, in cases that can be worked out by hand."""

import numpy as np
import pytest

from penchant.communities.diagnostics import potential_scale_reduction


def test_chains_that_never_move_agree_or_never_will():
    still = np.full(5, 3.0)
    assert potential_scale_reduction([still, still]) == 1.0
    assert potential_scale_reduction([still, still + 1.0]) == np.inf


def test_scale_reduction_by_hand():
    """Means 1 and 3, variances 1 and 1: √(2/3 + 2/1)."""
    traces = [np.array([0.0, 1.0, 2.0]), np.array([2.0, 3.0, 4.0])]
    assert potential_scale_reduction(traces) == pytest.approx(np.sqrt(2.0 / 3.0 + 2.0))
