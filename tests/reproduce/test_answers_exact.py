"""Importance sampling beside numerical integration, where both can be had."""

import numpy as np
from scipy.stats import norm

from penchant.reproduce.answers_exact import _log_likelihood, _mode, _sampled


def test_moments_and_evidence_are_those_of_numerical_integration():
    """Two items, of which only the difference d ~ N(0, 2 s²) counts: an integral over a line."""
    sets = np.array([[0, 1], [0, 1], [1, 0], [0, 1]])
    log_variance = 0.3
    mode, precision = _mode(sets, np.exp(log_variance), np.zeros(2))
    found = _sampled(sets, log_variance, mode, precision, np.random.default_rng(0))
    d = np.linspace(-15.0, 15.0, 20_001)
    density = np.exp(_log_likelihood(sets, np.stack([0.5 * d, -0.5 * d], axis=1)))
    density *= norm.pdf(d, scale=np.sqrt(2.0 * np.exp(log_variance)))
    step = d[1] - d[0]
    evidence = density.sum() * step
    mean = (d * density).sum() * step / evidence
    var = (d * d * density).sum() * step / evidence - mean**2
    # 2,000 draws: errors of a few hundredths are two standard errors
    assert abs(found.log_evidence - np.log(evidence)) < 0.03
    assert abs(found.mean[0] - found.mean[1] - mean) < 0.08
    across = found.covariance[0, 0] + found.covariance[1, 1] - 2.0 * found.covariance[0, 1]
    assert abs(across / var - 1.0) < 0.1
