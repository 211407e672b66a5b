"""Evidence gradients against finite differences, for every rule and space."""

import numpy as np
import pytest

from penchant.data import Comparisons
from penchant.gp import (
    ItemHyper,
    expectation_maximize,
    gradient,
    maximize_evidence,
    solve,
    start_at_mode,
)
from penchant.kernels import (
    RBF,
    Diffusion,
    Independent,
    Inputs,
    RegularizedLaplacian,
    as_relations,
    undirected,
)
from penchant.likelihoods import Gaussian, Lapse, Logit, Probit, Ties
from penchant.numerics import optimize
from tests.gp.problems import item_problem
from tests.simulation import duel_data

N = 9


@pytest.fixture
def universe(rng):
    W = np.triu(rng.random((N, N)) < 0.35, 1).astype(float)
    relations = as_relations({"knows": undirected(W + W.T)}, N)
    return Inputs(rng.standard_normal((N, 2)), relations, np.arange(N))


SUM = RBF((0.8, 1.4), 1.5) + RegularizedLaplacian("knows", 0.7, 1.2)
PRODUCT = RBF(1.0) * Diffusion("knows", 0.3) + 0.1 * Independent()


@pytest.mark.parametrize(
    ("kernel", "rule", "rank"),
    [
        *[(kernel, "ep", None) for kernel in (RBF(1.1, 0.7), Independent(1.3), PRODUCT)],
        *[(SUM, rule, None) for rule in ("ep", "laplace", "variational")],
        *[(kernel, "ep", 4) for kernel in (RBF((0.8, 1.4), 1.5), SUM)],
    ],
    ids=repr,
)
def test_gradient(universe, make_comparisons, check_gradient, kernel, rule, rank):
    problem = item_problem(make_comparisons(N, 40), universe, rule, 1e-11, rank)
    hyper = ItemHyper(kernel, Probit())
    assert problem.prior(hyper).is_bounded == (rank is not None)
    check_gradient(problem, hyper)


def test_gradient_in_comparison_space(universe, check_gradient):
    data = Comparisons.from_pairs([0, 2, 4], [1, 3, 5], items=range(N))
    problem = item_problem(data, universe, tolerance=1e-11)
    hyper = ItemHyper(RBF(1.0) + RegularizedLaplacian("knows"), Probit())
    assert problem.prior(hyper).space == "comparisons"
    check_gradient(problem, hyper)


@pytest.mark.parametrize("likelihood", [Logit(), Ties(0.4), Lapse(Probit(), 0.1)], ids=repr)
def test_gradient_of_likelihood_parameters(universe, rng, check_gradient, likelihood):
    tie = rng.random(40) < 0.2 if isinstance(likelihood, Ties) else None
    data = duel_data(rng, np.zeros(N), 40, tie=tie)
    problem = item_problem(data, universe, tolerance=1e-11)
    check_gradient(problem, ItemHyper(RBF(1.0, 0.8), likelihood))


def test_gradient_of_gaussian_noise(universe, rng, check_gradient):
    data = Comparisons.from_scores(rng.standard_normal(N))
    problem = item_problem(data, universe, "exact", 1e-11)
    check_gradient(problem, ItemHyper(RBF(1.0), Gaussian(0.4)))


def test_climbing_reaches_a_stationary_point_and_em_agrees(universe, rng):
    f = np.linalg.cholesky(RBF(1.0, 4.0)(universe.X) + 1e-9 * np.eye(N)) @ rng.standard_normal(N)
    problem = item_problem(duel_data(rng, f, 400), universe, tolerance=1e-8)
    start = ItemHyper(RBF(2.0, 1.0), Probit())
    climbed = maximize_evidence(problem, start)
    assert climbed.inference.log_evidence > solve(problem, start).inference.log_evidence + 1
    # what the evidence still wants is what the weak prior around the start holds back
    drag = (climbed.hyper.theta - start.theta) / optimize.PRIOR_SPREAD**2
    np.testing.assert_allclose(gradient(problem, climbed), drag, atol=0.05)
    em = expectation_maximize(problem, start)
    assert em.inference.log_evidence == pytest.approx(climbed.inference.log_evidence, abs=0.5)


def test_a_bounded_problem_is_learned_from_some_of_its_comparisons(rng, monkeypatch):
    monkeypatch.setattr("penchant.gp.items.problem.LEARNING_EDGES", 150)
    X = rng.random((60, 1))
    data = duel_data(rng, 4.0 * np.sin(5 * X[:, 0]), 600)
    problem = item_problem(data, X, tolerance=1e-7, rank=15)
    start = ItemHyper(RBF(1.0, 0.1), Probit())
    learned = maximize_evidence(problem, start)
    assert len(learned.inference.sites.tau) == len(problem.edges) > 150
    assert learned.inference.log_evidence > solve(problem, start).inference.log_evidence + 10


# A start at the mode of a logistic model leads to the same optimum


def many_answers(rng, ties=False, lost=False):
    n, m = 15, 4_000
    f = rng.standard_normal(n)
    a = rng.integers(n, size=m)
    b = (a + 1 + rng.integers(n - 1, size=m)) % n
    g = f[a] - f[b] + rng.standard_normal(m)
    g = np.where(a == 0, 1.0, np.where(b == 0, -1.0, g)) if lost else g
    tie = np.abs(g) < 0.3 if ties else None
    winner, loser = np.where(g > 0, a, b), np.where(g > 0, b, a)
    data = Comparisons.from_pairs(winner, loser, tie=tie, items=range(n))
    return item_problem(data, tolerance=1e-7)


@pytest.mark.parametrize("likelihood", [Probit(), Logit(), Ties()], ids=["probit", "logit", "ties"])
@pytest.mark.parametrize("lost", [False, True], ids=["usual", "one always wins"])
def test_the_summit_is_that_of_a_climb_from_the_start(monkeypatch, rng, likelihood, lost):
    monkeypatch.setattr("penchant.gp.items.problem.MANY", 0)
    problem = many_answers(rng, isinstance(likelihood, Ties), lost)
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
    problem, start = many_answers(rng), ItemHyper(Independent(), Probit())
    assert start_at_mode(problem, start) is None  # too few
    monkeypatch.setattr("penchant.gp.items.problem.MANY", 0)
    begin = start_at_mode(problem, start)
    found = maximize_evidence(problem, start)
    assert begin.theta[0] == pytest.approx(found.hyper.theta[0], abs=0.3)
    tau = found.inference.sites.tau
    assert np.abs(begin.sites.tau - tau).max() < 0.1 * tau.max()
