"""Kernels at the edges: each test fails on one small change that once went unnoticed."""

import numpy as np
import pytest

from penchant.kernels import FreeCovariance


def test_the_scale_of_a_free_covariance_is_held_near_its_start(rng):
    """Going away from the start's scale costs, more the further; the slope says the same."""
    start = FreeCovariance.of(2.0 * np.eye(4))
    values = []
    for log_factor in (0.0, 0.5, 1.0, 2.0):
        scaled = FreeCovariance(start.factor * np.exp(log_factor))
        values.append(scaled.log_prior(start)[0])
        mirrored = FreeCovariance(start.factor * np.exp(-log_factor))
        assert mirrored.log_prior(start)[0] == pytest.approx(values[-1])
    assert values == sorted(values, reverse=True)
    # log variance moves by 2 log_factor, and both priors are quadratic in it
    drops = values[0] - np.array(values[1:])
    assert drops / drops[0] == pytest.approx([1.0, 4.0, 16.0])
    far = FreeCovariance(start.factor * 3.0)
    _, slope = far.log_prior(start)
    for k, step in enumerate(1e-6 * np.eye(len(slope))):
        ahead = far.with_theta(far.theta + step).log_prior(start)[0]
        behind = far.with_theta(far.theta - step).log_prior(start)[0]
        assert slope[k] == pytest.approx((ahead - behind) / 2e-6, abs=1e-5)
