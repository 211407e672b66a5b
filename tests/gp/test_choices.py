"""Choices as cliques: against dense Laplace of the likelihood itself, and finite differences."""

from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.special import logsumexp

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.gp import ItemHyper, Rows, Settings, UserHyper, UserProblem, clique_edges, solve
from penchant.kernels import RBF, Constant, Inputs
from penchant.likelihoods import Gaussian, Lapse, Logit, Probit
from tests.gp.problems import assert_posterior, dense_rows, item_problem, solved

N = 7
KERNEL = RBF(np.array([1.0, 1.5]), 1.4)


@pytest.fixture
def items():
    return Inputs(np.random.default_rng(3).normal(size=(N, 2)), {}, np.arange(N))


def orders(rng, m, k=4):
    return [rng.permutation(N)[:k].tolist() for _ in range(m)]


@pytest.fixture
def answers():
    """Full and partial rankings, ties inside, the best, the worst, and both."""
    rng = np.random.default_rng(0)
    rankings = orders(rng, 6) + [[0, [1, 2], [3, 4]], [[5, 6], [0, 1, 2]]]
    data = Comparisons.from_rankings(rankings, items=range(N))
    sets = orders(rng, 5, 5)
    best, worst = [s[0] for s in sets], [s[-1] for s in sets]
    both = Comparisons.from_choices(best, sets, worst=worst, items=range(N))
    last = Comparisons.from_choices(None, sets[:2], worst=worst[:2], items=range(N))
    return data + both + last


def choices_in(data):
    """(marks of all ways, marks of what was taken, count) of every choice, by its definition:
    each place out of all that are left."""
    for tied in (True, False):
        for places, _, count in data.named_rankings(tied):
            for at in range(len(places) - 1):
                left = [i for place in places[at:] for i in place]
                ways = list(combinations(left, len(places[at])))
                marks = np.array([np.isin(np.arange(N), way) for way in ways], dtype=float)
                yield marks, np.isin(np.arange(N), places[at]).astype(float), count


def log_prob(choices, f, scale):
    return sum(n * (scale * taken @ f - logsumexp(scale * m @ f)) for m, taken, n in choices)


def slope_and_curvature(choices, f, scale):
    slope, curvature = np.zeros(N), np.zeros((N, N))
    for marks, taken, count in choices:
        score = scale * marks @ f
        p = np.exp(score - logsumexp(score))
        rate = p @ marks
        slope += count * scale * (taken - rate)
        spread = marks.T @ (p[:, None] * marks) - np.outer(rate, rate)
        curvature += count * scale**2 * spread
    return slope, curvature


def dense_laplace(K, derivatives, value):
    """Mode, covariance and log evidence by Newton's method on everything written out."""
    f, inverse = np.zeros(len(K)), np.linalg.inv(K)
    for step in [0.7] * 10 + [1.0] * 10:
        slope, curvature = derivatives(f)
        precision = inverse + curvature
        f = f + step * np.linalg.solve(precision, slope - inverse @ f)
    log_z = value(f) - 0.5 * f @ inverse @ f - 0.5 * np.linalg.slogdet(K @ precision)[1]
    return f, np.linalg.inv(precision), log_z


@pytest.mark.parametrize("likelihood", [Probit(), Logit()])
def test_inference_is_laplace_of_the_choices(items, answers, likelihood):
    _, solution, posterior = solved(answers, KERNEL, likelihood, items, tolerance=1e-11)
    choices, scale = list(choices_in(answers)), likelihood.choice_scale
    mode, cov, log_z = dense_laplace(
        KERNEL(items),
        lambda f: slope_and_curvature(choices, f, scale),
        lambda f: log_prob(choices, f, scale),
    )
    assert_posterior(posterior, mode, cov, 1e-8)
    assert solution.log_evidence == pytest.approx(log_z, abs=1e-8)


@pytest.mark.parametrize("likelihood", [Probit(), Logit()])
def test_sites_are_gradient_and_curvature_of_the_log_likelihood(answers, likelihood):
    """To 1e-8: Aᵀ(ν − τ g) is the gradient, and Aᵀ τ A the curvature, written out by subsets."""
    edges = Rows.pooled(answers)
    f = np.random.default_rng(1).normal(size=N)
    winner, loser = edges.ends
    cliques, scale = edges.outcomes.cliques, likelihood.choice_scale
    g = f[winner] - f[loser]
    tau, nu, value = cliques.sites(g, scale)
    A, choices = dense_rows(winner, loser, N), list(choices_in(answers))
    slope, curvature = slope_and_curvature(choices, f, scale)
    np.testing.assert_allclose(A.T @ (nu - tau * g), slope, atol=1e-10)
    np.testing.assert_allclose(A.T @ (tau[:, None] * A), curvature, atol=1e-10)
    assert value.sum() == pytest.approx(log_prob(choices, f, scale), abs=1e-10)
    assert (tau >= 0).all()


@pytest.mark.parametrize(
    ("rule", "likelihood", "rank", "beside_pairs", "atol"),
    [
        *[(rule, Probit(), None, False, 1e-5) for rule in ("ep", "laplace", "variational")],
        ("ep", Logit(), 4, False, 1e-5),
        ("laplace", Probit(), None, True, 1e-5),
        ("ep", Probit(), None, True, 5e-3),  # the sites of pairs are taken as fixed
    ],
    ids=str,
)
def test_the_gradient_is_that_of_the_evidence(
    items, answers, check_gradient, rule, likelihood, rank, beside_pairs, atol
):
    pairs = Comparisons.from_pairs([0, 1, 2, 5, 6], [1, 2, 3, 4, 0], items=range(N))
    data = answers + pairs if beside_pairs else answers
    problem = item_problem(data, items, rule, 1e-12, rank)
    check_gradient(problem, ItemHyper(KERNEL, likelihood), 1e-4, 1e-7, atol)


def test_a_choice_of_two_is_the_pair_under_laplace_and_logit(items):
    """The last choice of a ranking is one of two: beside it, the pair gives the same."""
    ranked = Comparisons.from_rankings([[0, 1, 2]], items=range(N))
    staged = Comparisons.from_choices([0], [[0, 1, 2]], items=range(N))
    staged = staged + Comparisons.from_pairs([1], [2], items=range(N))
    how = {"X": items, "rule": "laplace", "tolerance": 1e-12}
    (_, one, known), (_, two, same) = (
        solved(data, RBF(np.ones(2), 1.0), Logit(), **how) for data in (ranked, staged)
    )
    assert one.log_evidence == pytest.approx(two.log_evidence, abs=1e-10)
    np.testing.assert_allclose(known.mean, same.mean, atol=1e-9)


def test_counts_are_repetitions(items):
    once = Comparisons.from_rankings([[0, 1, 2], [3, 2, 1, 0]], items=range(N))
    thrice = Comparisons.from_rankings([[0, 1, 2], [3, 2, 1, 0]] * 3, items=range(N))
    one, three = (clique_edges(d.rankings, N).cliques for d in (once, thrice))
    g = np.linspace(-1, 1, one.n_edges)
    np.testing.assert_allclose(3 * one.sites(g, 1.0)[0], three.sites(g, 1.0)[0])
    assert three.n_choices == 3 * one.n_choices
    assert solved(thrice, RBF(np.ones(2), 1.0), X=items)[1].inference.report.converged


def test_many_ways_are_taken_one_item_at_a_time():
    """16 out of 40 in more ways than atoms: each of the 16 against the 24, and nothing lost."""
    liked, others = list(range(16)), list(range(16, 40))
    data = Comparisons.from_choices([liked], [liked + others], items=range(40))
    cliques = clique_edges(data.rankings, 40).cliques
    (group,) = cliques.groups
    assert group.chosen.shape == (16, 25)
    assert (group.chosen.sum(axis=1) == 1).all()
    f = np.random.default_rng(0).normal(size=40)
    first, second = (clique_edges(data.rankings, 40)[k] for k in (1, 2))
    value = cliques.sites(f[first] - f[second], 1.0)[2].sum()
    expected = sum(f[i] - logsumexp(f[[i, *others]]) for i in liked)
    assert value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("likelihood", [Gaussian(1.0), Lapse(Probit())])
def test_likelihoods_without_a_form_for_choices_say_so(answers, likelihood):
    with pytest.raises(DataError, match="choices out of several items"):
        likelihood.check(Rows.pooled(answers).outcomes)


def test_users_with_choices_are_the_dense_model(items, check_gradient):
    """Two users, K_u ⊗ K_x written out: means, evidence and gradient."""
    rng = np.random.default_rng(5)
    data = Comparisons.from_rankings(
        orders(rng, 8), items=range(N), users=["u", "v"] * 4
    ) + Comparisons.from_choices([0, 3], [[0, 1, 2], [3, 4, 0]], user=["v", "u"], items=range(N))
    users = Inputs(None, {}, np.arange(2))
    kernel = RBF(np.ones(2), 1.2)
    problem = UserProblem.of(items, users, Rows.by_user(data), Settings(tolerance=1e-12))
    hyper = UserHyper(kernel, Constant(1.0), 0.6, Logit())
    solution = solve(problem, hyper)
    K = np.kron(0.6 * np.ones((2, 2)) + 0.4 * np.eye(2), kernel(items))

    per_user = [list(choices_in(data.for_user(name))) for name in data.users]

    def of_users(what, f):
        return [what(per_user[u], f[u * N : (u + 1) * N], 1.0) for u in range(2)]

    def derivatives(f):
        slopes, curvatures = zip(*of_users(slope_and_curvature, f), strict=True)
        return np.concatenate(slopes), block_diag(*curvatures)

    def value(f):
        return sum(of_users(log_prob, f))

    mode, _, log_z = dense_laplace(K, derivatives, value)
    posterior = problem.posterior(solution)
    first, second = np.triu_indices(N, 1)
    for u in range(2):
        mean = posterior.differences(np.full(len(first), u), first, second).mean
        f = mode[u * N : (u + 1) * N]
        np.testing.assert_allclose(mean, f[first] - f[second], atol=1e-8)
    assert solution.log_evidence == pytest.approx(log_z, abs=1e-8)
    check_gradient(problem, hyper, 1e-4, 1e-7)
