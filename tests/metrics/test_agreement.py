from itertools import combinations

import numpy as np
import pytest

from penchant.errors import DataError
from penchant.metrics import adjusted_rand, kendall_tau


def test_kendall_tau_by_counting_pairs():
    a, b = np.random.default_rng(0).normal(size=(2, 15))
    signs = [np.sign((a[i] - a[j]) * (b[i] - b[j])) for i, j in combinations(range(15), 2)]
    assert kendall_tau(a, b) == pytest.approx(np.mean(signs))
    assert kendall_tau(a, -a) == pytest.approx(-1.0)


def test_kendall_tau_of_a_constant_is_undefined():
    assert np.isnan(kendall_tau([1, 1, 1], [1, 2, 3]))
    with pytest.raises(DataError, match="b has 2 entries"):
        kendall_tau([1, 2, 3], [1, 2])


def test_adjusted_rand_ignores_the_names_of_the_groups():
    assert adjusted_rand([0, 0, 1, 2], ["c", "c", "a", "b"]) == 1.0
    rng = np.random.default_rng(1)
    assert abs(adjusted_rand(*rng.integers(0, 4, (2, 5000)))) < 0.01
