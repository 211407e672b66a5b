"""Answers that count less than one: posterior, evidence and its gradient, half-lives."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr

import penchant as pc
from penchant.gp import ItemHyper, ItemProblem, Rows, Settings, solve
from penchant.kernels import RBF, Independent, Inputs
from penchant.likelihoods import Gaussian, Lapse, Logit, Outcomes, Probit, Ties
from tests.gp.problems import dense_rows
from tests.simulation import duel_data


def problem_of(winner, loser, count, tie=None, n=None):
    """Weighted comparisons of items on a line."""
    n = n or 1 + max(*winner, *loser)
    outcomes = Outcomes(tie=None if tie is None else np.array(tie))
    edges = Rows.between(np.array(winner), np.array(loser), np.ones(len(winner)), outcomes)
    items = Inputs(np.linspace(0.0, 1.0, n)[:, None], index=np.arange(n))
    return ItemProblem(items, edges.weighted(np.array(count)), Settings(tolerance=1e-10))


@pytest.mark.parametrize("count", [0.05, 0.3, 0.99, 1.0])
def test_one_answer_of_a_small_weight_is_exact(count):
    solution = solve(problem_of([0], [1], [count]), ItemHyper(Independent(4.0), Probit()))
    state = solution.inference.state

    def moment(k):
        return quad(lambda g: g**k * ndtr(g) ** count * np.exp(-(g**2) / 16.0), -40, 40, limit=400)

    z, first, second = (moment(k)[0] for k in range(3))
    mean = first / z
    assert state.mean[0] == pytest.approx(mean, abs=1e-6)
    assert state.var[0] == pytest.approx(second / z - mean**2, abs=1e-5)
    assert solution.log_evidence == pytest.approx(np.log(z / np.sqrt(16.0 * np.pi)), abs=1e-7)
    if count == 0.3:
        assert (state.mean[0], state.var[0]) == pytest.approx((1.386, 4.658), abs=1e-3)


PAIRS = {
    "winner": [0, 1, 2, 0, 3, 2, 1],
    "loser": [1, 2, 3, 2, 0, 1, 3],
    "count": [0.1, 0.5, 1.4, 0.9, 3.0, 0.01, 1.0],
}
LIKELIHOODS = [Probit(), Logit(), Ties(0.4), Lapse(Probit(), 0.1), Lapse(Ties(0.4, "logit"), 0.1)]


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_the_gradient_is_that_of_the_evidence(check_gradient, likelihood):
    tie = [False, True, False, True, False, False, False] if likelihood.n_answers == 3 else None
    problem = problem_of(**PAIRS, tie=tie)
    hyper = ItemHyper(RBF(0.5, 1.2) + Independent(0.7), likelihood)
    check_gradient(problem, hyper, step=1e-4, rtol=0, atol=2e-6)


@pytest.mark.parametrize("rule", ["exact", "ep"])
def test_weights_of_margins_are_a_larger_noise(check_gradient, rule):
    """c answers of noise σ² are one of σ²/c: what least squares does with weights."""
    problem = problem_of(**PAIRS)
    margin, likelihood = np.linspace(-1.0, 2.0, 7), Gaussian(0.6, unit=2.0)
    outcomes = problem.edges.outcomes._replace(margin=margin)
    edges = replace(problem.edges, outcomes=outcomes)
    problem = replace(problem, edges=edges, settings=Settings(rule, 1e-10))
    hyper = ItemHyper(RBF(0.5, 1.2) + Independent(0.7), likelihood)
    solution = solve(problem, hyper)
    A = dense_rows(PAIRS["winner"], PAIRS["loser"], 4)
    K, weight = hyper.kernel(problem.universe), np.array(PAIRS["count"]) / 0.6
    cov = np.linalg.inv(np.linalg.inv(K) + A.T @ (weight[:, None] * A))
    mean = A @ cov @ A.T @ (weight * margin / 2.0)
    np.testing.assert_allclose(solution.inference.state.mean, mean, atol=1e-6)
    check_gradient(problem, hyper, step=1e-4)


def test_counts_of_one_and_more_are_taken_as_before():
    many = problem_of([0, 1, 2], [1, 2, 0], [1.0, 1.4, 7.0])
    assert many.edges.outcomes.power is None
    # beside one that counts less, the others keep their rule: its weight goes to nothing
    hyper = ItemHyper(Independent(2.0), Probit())
    alone = solve(many, hyper).inference
    beside = solve(problem_of([0, 1, 2, 1], [1, 2, 0, 0], [1.0, 1.4, 7.0, 1e-9]), hyper).inference
    np.testing.assert_allclose(beside.state.mean[:3], alone.state.mean, atol=1e-7)
    np.testing.assert_allclose(beside.sites.tau[:3], alone.sites.tau, atol=1e-7)


def test_the_count_goes_through_one_without_a_step():
    hyper = ItemHyper(Independent(2.0), Probit())
    below, one, above = (
        solve(problem_of([0, 1, 2], [1, 2, 0], [count, 0.5, 2.0]), hyper).inference.state.mean
        for count in (1.0 - 1e-6, 1.0, 1.0 + 1e-6)
    )
    np.testing.assert_allclose([below, above], [one, one], atol=1e-5)


def years(seed, m=200, n=20, n_users=12):
    """A thousand days of answers; people differ in taste."""
    rng = np.random.default_rng(seed)
    f = 2.0 * rng.standard_normal(n) + 1.5 * rng.standard_normal((n_users, n))
    time = np.linspace(0.0, 1000.0, m).round()
    return duel_data(rng, f, user=rng.integers(n_users, size=m), time=time)


@pytest.mark.parametrize("likelihood", ["probit", "logit", "ties", Lapse(Probit())])
@pytest.mark.parametrize("kernel", [None, Independent(8.0)])
def test_short_half_lives_settle_with_nothing_skipped(likelihood, kernel):
    optimize = "evidence" if kernel is None else None
    with warnings.catch_warnings():
        warnings.simplefilter("error", pc.ConvergenceWarning)
        for half_life in (10.0, 0.01):
            model = pc.PreferenceGP(
                kernel, likelihood=likelihood, half_life=half_life, optimize=optimize
            ).fit(None, years(0))
            assert model.report_.converged
            assert model.report_.skipped == 0


HALF_LIFE = {"half_life": 400.0, "kernel": Independent(2.0), "optimize": None}


def test_a_very_long_half_life_is_none():
    data = years(1, m=900, n=8)
    faded, plain = (
        pc.PreferenceGP(half_life=half_life, random_state=0).fit(None, data)
        for half_life in (1e9, None)
    )
    assert plain.report_.widened > 1.1
    assert faded.report_.widened == pytest.approx(plain.report_.widened, rel=1e-4)
    for column in ("utility", "low", "high"):
        np.testing.assert_allclose(faded.rank()[column], plain.rank()[column], atol=1e-4)


@pytest.mark.parametrize("raters", ["lapse", "noise"])
def test_telling_withdrawing_and_files_keep_raters_and_half_lives(tmp_path, raters):
    data = years(2, m=300, n=6)
    whole = pc.PreferenceGP(**HALF_LIFE, raters=raters).fit(None, data)
    whole.save(tmp_path / "model")
    again = pc.load(tmp_path / "model")
    assert again.raters_ == whole.raters_
    late = data.split(0.3, random_state=0)[1]
    told = again.withdraw(late).tell(late)
    for name in ("utility", "low", "high"):
        np.testing.assert_allclose(told.rank()[name], whole.rank()[name], atol=1e-5)


def test_raters_are_judged_by_what_their_answers_count_now():
    data = years(3, m=900, n=6)
    answers = {row.user: row.answers for row in pc.PreferenceGP().fit(None, data).raters_}
    for how in ({"half_life": 100.0}, {"drift": "ou", "period": 100.0}):
        table = pc.PreferenceGP(**how).fit(None, data).raters_
        assert {row.user: row.answers for row in table} == answers
    # where hardly anything of an answer is left, hardly anything is known of who gave it
    gone = pc.PreferenceGP(half_life=1e-3).fit(None, data).raters_
    first = [row for row in gone if row.user != data.users[data.user[np.argmax(data.time)]]]
    assert np.ptp([row.low for row in first]) < 1e-9
