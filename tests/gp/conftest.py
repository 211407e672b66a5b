"""What tests of several models share: gradients against finite differences."""

import numpy as np
import pytest

from penchant.gp import gradient, solve


@pytest.fixture
def check_gradient():
    """The gradient of the evidence is that of central differences."""

    def check(problem, hyper, step=1e-5, rtol=1e-5, atol=1e-5):
        found, slopes = gradient(problem, solve(problem, hyper)), []
        for direction in step * np.eye(len(hyper.theta)):
            ends = (hyper.at(hyper.theta + sign * direction) for sign in (1, -1))
            ahead, behind = (solve(problem, end).log_evidence for end in ends)
            slopes.append((ahead - behind) / (2 * step))
        np.testing.assert_allclose(found, slopes, rtol=rtol, atol=atol)

    return check
