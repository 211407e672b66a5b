"""The paper's sinc experiment: KPCRank's part in a few seeds, everything in twenty (slow)."""

import numpy as np
import pytest

from penchant.reproduce.kpcrank import draw_sinc, fit_kpcrank, sinc_experiment


def test_kpcrank_learns_the_sinc_from_score_differences():
    draws = [draw_sinc(seed) for seed in range(4)]
    errors = [d.error(fit_kpcrank(d, d.clean).predict(d.test)) for d in draws]
    assert np.mean(errors) <= 0.025


def test_the_draw_is_the_papers():
    draw = draw_sinc(0)
    assert len(draw.train) == 1000
    assert len(draw.test) == 338
    assert draw.clean.n_comparisons == draw.flipped.n_comparisons == 379
    assert len(draw.test_pairs[0]) == 48
    values = np.sinc(draw.train[:, 0])
    assert np.all(values[draw.clean.winner] > values[draw.clean.loser])
    assert 5 <= np.sum(values[draw.flipped.winner] < values[draw.flipped.loser]) <= 35


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::penchant.errors.ConvergenceWarning")
def test_errors_of_the_paper():
    errors = {name: values.mean() for name, values in sinc_experiment(20).items()}
    assert errors["KPCRank, score differences"] <= 0.025
    assert errors["probit GP, directions"] <= 0.035
    assert errors["probit GP, directions, 5 % flipped"] <= 0.07
    assert errors["probit GP with a lapse rate, 5 % flipped"] < 0.05
