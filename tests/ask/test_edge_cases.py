"""Questions at the edges: each test fails on one small change that once went unnoticed."""

import numpy as np
import pytest

from penchant.ask import StudyDesign, criteria
from penchant.errors import DataError
from penchant.likelihoods import Gaussian


@pytest.mark.parametrize("likelihood", [Gaussian(1e-3), Gaussian(1e-8)])
def test_entropies_are_looked_at_as_far_as_they_change(likelihood):
    """Of narrow likelihoods: a thousandth of the bump is left there, and less at the next probe."""
    reach = 4.0 * criteria._grid_of(likelihood)[-1] / criteria._GRID[-1]
    probes = criteria._PROBES
    entropy = criteria._entropy(likelihood, probes, np.zeros(len(probes)))
    bump = np.abs(entropy - entropy[-1])
    at = int(np.argmin(np.abs(probes - reach)))
    assert probes[at] == pytest.approx(reach)
    assert bump[at] > 1e-3 * bump.max() >= bump[at + 1]


def test_a_study_of_three_items_can_be_planned():
    assert StudyDesign(3).n_items == 3
    with pytest.raises(DataError, match="at least three items"):
        StudyDesign(2)
