"""Pieces of personal variation that can be worked out by hand."""

import numpy as np

from penchant.communities.population import Modes, _joined, _stretched
from penchant.gp import Sites


def test_a_step_of_the_spread_is_taken_on_the_logarithmic_scale():
    S, wanted = np.diag([1.0, 2.0]), np.diag([4.0, 2.0])
    np.testing.assert_allclose(_stretched(S, wanted, 1.0), wanted, atol=1e-12)
    np.testing.assert_allclose(_stretched(S, wanted, 0.5), np.diag([2.0, 2.0]), atol=1e-12)
    np.testing.assert_allclose(_stretched(S, wanted, 2.0), np.diag([16.0, 2.0]), atol=1e-9)


def test_the_nearest_two_are_joined_by_their_sizes():
    """Near in units of the spread: the wide direction counts for little."""
    membership = np.array([[1.0, 0.0, 0.0]] * 3 + [[0.0, 1.0, 0.0]] + [[0.0, 0.0, 1.0]] * 4)
    means = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, -2.0]])
    spread = np.diag([100.0, 0.01])
    modes = Modes(membership, means, np.zeros((3, 2, 2)), spread, Sites.zeros(1))
    fewer = _joined(modes)
    np.testing.assert_allclose(fewer.means, [[1.0, 0.0], [0.0, -2.0]])
    np.testing.assert_array_equal(fewer.membership.sum(axis=0), [4.0, 4.0])
