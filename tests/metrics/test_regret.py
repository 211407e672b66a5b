import numpy as np
import pytest

from penchant.errors import DataError
from penchant.metrics import regret


def test_regret_is_the_mean_loss_so_far():
    best, achieved = np.random.default_rng(0).random((2, 30))
    running = regret(best, achieved)
    for t in range(30):
        assert running[t] == pytest.approx(np.mean(best[: t + 1] - achieved[: t + 1]))


def test_lengths_must_match():
    with pytest.raises(DataError, match="achieved has 1 entries: it must have 2"):
        regret([1, 2], [1])
