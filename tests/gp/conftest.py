"""What tests of several models share: gradients against finite differences."""

import numpy as np
import pytest

from penchant.gp import gradient, solve


@pytest.fixture
def check_gradient():
    """The gradient of the evidence is that of central differences: along every parameter, or along
    four random directions where there are more."""

    def check(problem, hyper, step=1e-5, rtol=1e-5, atol=1e-5):
        solution, p = solve(problem, hyper), len(hyper.theta)
        sites = solution.inference.sites
        random = np.random.default_rng(0).standard_normal((4, p)) / np.sqrt(p)
        directions, slopes = np.eye(p) if p <= 4 else random, []
        for direction in step * directions:
            ends = (hyper.at(hyper.theta + sign * direction) for sign in (1, -1))
            ahead, behind = (solve(problem, end, sites).log_evidence for end in ends)
            slopes.append((ahead - behind) / (2 * step))
        found = directions @ gradient(problem, solution)
        np.testing.assert_allclose(found, slopes, rtol=rtol, atol=atol)

    return check
