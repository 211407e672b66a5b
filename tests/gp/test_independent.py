"""Independent items are conditioned without a factor, with the numbers of the general algebra."""

import numpy as np
import pytest

import penchant as pc
from penchant.gp import ItemHyper, ItemProblem, Rows, Settings, factor_prior, gradient, solve
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Probit
from penchant.numerics.threads import for_row_blocks

ALONE, GENERAL = Independent(0.7), 1.0 * Independent(0.7)


@pytest.fixture
def edges():
    rng = np.random.default_rng(0)
    a = rng.integers(12, size=90)
    b = (a + 1 + rng.integers(11, size=90)) % 12
    return Rows.pooled(pc.Comparisons.from_pairs(a, b, items=range(12)))


def test_sites_meet_the_same_gaussian(edges):
    items, rng = Inputs(index=np.arange(12)), np.random.default_rng(1)
    weight, shift = rng.random(len(edges)), rng.standard_normal(len(edges))
    quick, general = (
        factor_prior(kernel, items, edges).refresh(weight, shift) for kernel in (ALONE, GENERAL)
    )
    assert quick.prior.variance == 0.7
    assert general.prior.variance is None
    for name in ("mean", "var", "log_det", "quadratic"):
        np.testing.assert_allclose(getattr(quick, name), getattr(general, name), rtol=1e-10)
    pull = rng.standard_normal(len(edges))
    np.testing.assert_allclose(
        quick.covariance_times(pull), general.covariance_times(pull), atol=1e-12
    )


@pytest.mark.parametrize("rule", ["ep", "laplace"])
def test_evidence_has_the_same_slope(edges, rule):
    problem = ItemProblem(Inputs(index=np.arange(12)), edges, Settings(rule))
    quick, general = (solve(problem, ItemHyper(k, Probit())) for k in (ALONE, GENERAL))
    assert quick.log_evidence == pytest.approx(general.log_evidence, abs=1e-9)
    slopes = gradient(problem, quick), gradient(problem, general)[-1:]
    np.testing.assert_allclose(*slopes, rtol=1e-7)


def test_blocks_cover_every_row_once_in_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("penchant.numerics.threads.n_cores", lambda: 3)
    seen = np.zeros(1_003, dtype=int)

    def count(rows):
        seen[rows] += 1

    for_row_blocks(count, len(seen), 10)
    assert (seen == 1).all()
