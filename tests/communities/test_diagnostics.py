"""Convergence of chains, in cases that can be worked out by hand."""

import numpy as np
import pytest

from penchant.communities import Diagnostics
from penchant.communities.chains import effective_size, potential_scale_reduction


@pytest.mark.parametrize(
    ("said", "changed"),
    [
        (None, {}),
        ("interrupted", {"completed": False}),
        ("different communities", {"agreement": 0.1}),
    ],
)
def test_chains_have_converged_where_there_is_no_advice(said, changed):
    settled = {"rhat": 1.0, "effective_size": 500.0, "agreement": 1.0, "completed": True}
    trace = (np.zeros(400),)
    found = Diagnostics(trace, trace, 100, split_rate=0.1, merge_rate=0.1, **settled | changed)
    assert found.converged == (said is None)
    assert (found.advice() or "").find(said or "") >= 0


def test_chains_that_never_move_agree_or_never_will():
    still = np.full(5, 3.0)
    assert potential_scale_reduction([still, still]) == 1.0
    assert potential_scale_reduction([still, still + 1.0]) == np.inf


def test_scale_reduction_by_hand():
    """Means 1 and 3, variances 1 and 1: √(2/3 + 2/1)."""
    traces = [np.array([0.0, 1.0, 2.0]), np.array([2.0, 3.0, 4.0])]
    assert potential_scale_reduction(traces) == pytest.approx(np.sqrt(2.0 / 3.0 + 2.0))


def test_effective_size_of_an_autoregression():
    """x_t = x_{t−1}/2 + noise: n (1 − ½)/(1 + ½) = n/3."""
    rng = np.random.default_rng(0)
    trace = np.zeros(20_000)
    for t in range(1, len(trace)):
        trace[t] = 0.5 * trace[t - 1] + rng.standard_normal()
    assert effective_size(trace) == pytest.approx(len(trace) / 3.0, rel=0.1)
    assert effective_size(rng.standard_normal(20_000)) == pytest.approx(20_000, rel=0.1)
