"""Where inference stops: at the fixed point, to what callers are promised, in few sweeps."""

from dataclasses import replace

import numpy as np
import pytest

from penchant.gp import ItemHyper, ItemProblem, Rows, Settings, infer, solve
from penchant.kernels import RBF, Independent, Inputs
from penchant.likelihoods import Lapse, Logit, Probit, Ties

KERNEL = RBF(1.0, 2.0) + Independent(0.1)


@pytest.fixture
def pose(rng, make_comparisons):
    """Problems of a size; only with few comparisons an item do frozen steps pay."""

    def pose(n_items, n_pairs):
        items = Inputs(rng.standard_normal((n_items, 2)), index=np.arange(n_items))
        return ItemProblem(items, Rows.pooled(make_comparisons(n_items, n_pairs)), Settings())

    return pose


def inference(problem, likelihood, **settings):
    problem = replace(problem, settings=replace(problem.settings, **settings))
    return solve(problem, ItemHyper(KERNEL, likelihood)).inference


@pytest.mark.parametrize("size", [(12, 40), (80, 150)], ids=["plain", "frozen"])
@pytest.mark.parametrize(
    ("likelihood", "rule"),
    [
        *[(x, rule) for x in (Probit(), Logit()) for rule in ("ep", "laplace", "variational")],
        (Ties(0.4), "ep"),
        (Lapse(Probit(), rate=0.05), "ep"),
    ],
    ids=str,
)
def test_default_settings_stop_within_a_millionth_of_the_fixed_point(likelihood, rule, size, pose):
    """A refit and an update must agree to 1e-6, so neither may stop further than that away."""
    for _ in range(10):
        problem = pose(*size)
        found = inference(problem, likelihood, rule=rule)
        limit = inference(problem, likelihood, rule=rule, tolerance=1e-12, max_sweeps=2_000)
        np.testing.assert_allclose(found.state.mean, limit.state.mean, rtol=0, atol=5e-7)
        assert found.report.converged


def test_frozen_steps_spare_sweeps(pose):
    plain = frozen = 0
    for _ in range(10):
        problem = pose(80, 150)
        solution = solve(problem, ItemHyper(KERNEL, Probit()))
        edges, refresh = problem.edges, solution.prior.refresh
        by_engine = infer(refresh, Probit(), edges.outcomes, edges.count, problem.settings)
        np.testing.assert_allclose(
            by_engine.state.mean, solution.inference.state.mean, rtol=0, atol=1e-6
        )
        plain += by_engine.report.n_sweeps
        frozen += solution.inference.report.n_sweeps
    assert frozen < 0.75 * plain


@pytest.mark.parametrize("most", [1, 4])
def test_a_run_that_is_cut_short_says_so(most, pose):
    report = inference(pose(80, 150), Probit(), max_sweeps=most).report
    assert not report.converged
    assert report.tolerance == Settings().tolerance
    assert report.n_sweeps == most
