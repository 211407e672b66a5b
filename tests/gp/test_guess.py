"""Beginning near the summit must lead to the same one."""

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.gp import ItemHyper, ItemProblem, Rows, Settings, maximize_evidence, start_at_mode
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Logit, Probit, Ties


def _problem(rng, ties=False, lost=False):
    n, m = 15, 4_000
    f = rng.standard_normal(n)
    a = rng.integers(n, size=m)
    b = (a + 1 + rng.integers(n - 1, size=m)) % n
    g = f[a] - f[b] + rng.standard_normal(m)
    g = np.where(a == 0, 1.0, np.where(b == 0, -1.0, g)) if lost else g
    tie = np.abs(g) < 0.3 if ties else None
    winner, loser = np.where(g > 0, a, b), np.where(g > 0, b, a)
    data = Comparisons.from_pairs(winner, loser, tie=tie, items=range(n))
    return ItemProblem(Inputs(None, {}, np.arange(n)), Rows.pooled(data), Settings())


@pytest.mark.parametrize("likelihood", [Probit(), Logit(), Ties()], ids=["probit", "logit", "ties"])
@pytest.mark.parametrize("lost", [False, True], ids=["usual", "one always wins"])
def test_the_summit_is_that_of_a_climb_from_the_start(monkeypatch, rng, likelihood, lost):
    monkeypatch.setattr("penchant.gp.items.problem.MANY", 0)
    problem = _problem(rng, isinstance(likelihood, Ties), lost)
    start = ItemHyper(Independent(), likelihood)
    begin = start_at_mode(problem, start)
    plain, near = maximize_evidence(problem, start), maximize_evidence(problem, start, begin=begin)
    assert near.inference.report.n_evaluations <= 1 + plain.inference.report.n_evaluations
    assert near.inference.report.converged
    # a climb ends where a step gains less than a millionth of the evidence
    assert near.log_evidence == pytest.approx(plain.log_evidence, rel=2e-6)
    mean, expected = near.inference.state.mean, plain.inference.state.mean
    np.testing.assert_allclose(mean, expected, atol=0.02 * np.sqrt(plain.inference.state.var).max())


def test_the_guess_is_near_what_inference_finds(monkeypatch, rng):
    monkeypatch.setattr("penchant.gp.items.problem.MANY", 0)
    problem = _problem(rng)
    start = ItemHyper(Independent(), Probit())
    begin = start_at_mode(problem, start)
    found = maximize_evidence(problem, start)
    assert begin.theta[0] == pytest.approx(found.hyper.theta[0], abs=0.3)
    tau = found.inference.sites.tau
    assert np.abs(begin.sites.tau - tau).max() < 0.1 * tau.max()


def test_nothing_is_guessed_where_it_would_not_fit(rng):
    problem = _problem(rng)
    assert start_at_mode(problem, ItemHyper(Independent(), Probit())) is None  # too few
