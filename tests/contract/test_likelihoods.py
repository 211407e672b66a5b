"""What every likelihood must keep, walked over all of them: nothing is untested by omission."""

import copy
import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_expit, log_ndtr, ndtr
from scipy.stats import norm

from penchant import likelihoods
from penchant.likelihoods import (
    Abstain,
    Gaussian,
    Lapse,
    Likelihood,
    Logit,
    Outcomes,
    Probit,
    Raters,
    Ties,
)

EXAMPLES = {
    Abstain: [Abstain(Probit(), 0.2), Abstain(Logit(), 0.6)],
    Probit: [Probit()],
    Logit: [Logit()],
    Gaussian: [Gaussian(), Gaussian(noise=0.3), Gaussian(noise=0.6, unit=2.5)],
    Ties: [Ties(0.5), Ties(0.05), Ties(2.0), Ties(0.5, "logit"), Ties(0.05, "logit")],
    Lapse: [
        Lapse(Probit(), 0.05),
        Lapse(Logit(), 0.02),
        Lapse(Ties(0.7), 0.1),
        Lapse(Ties(0.7, "logit"), 0.1, learn=False),
    ],
    Raters: [
        Raters(Probit(), "lapse", (0.3, 0.6), 0.1),
        Raters(Ties(0.7), "lapse", (0.3, 0.6), 0.1),
        Raters(Logit(), "noise", (0.5,), 1.4),
    ],
}


def outcomes_of(likelihood: Likelihood, size: int) -> list[Outcomes]:
    """Every kind of answer that the likelihood explains, one kind for all edges."""
    if isinstance(likelihood, Gaussian):
        return [Outcomes(margin=np.full(size, margin)) for margin in (0.0, 2.5)]
    if likelihood.n_answers == 3:
        return [Outcomes(tie=np.full(size, tie)) for tie in (False, True)]
    return [Outcomes()]


def reference_log_prob(likelihood: Likelihood, g: np.ndarray, outcome: Outcomes) -> np.ndarray:
    """The definitions, written without any of the package's arithmetic."""
    tie = outcome.tie is not None and bool(outcome.tie[0])
    match likelihood:
        case Abstain(rate=rate) if tie:
            return np.full(g.shape, np.log(rate))
        case Abstain(base=base, rate=rate):
            return np.log1p(-rate) + reference_log_prob(base, g, Outcomes())
        case Lapse(base=base, rate=rate):
            lapse = rate / (3 if isinstance(base, Ties) else 2)
            return np.log((1 - rate) * np.exp(reference_log_prob(base, g, outcome)) + lapse)
        case Raters(base=base, kind="lapse", typical=rate):
            return reference_log_prob(Lapse(base, rate), g, outcome)
        case Raters(base=base, kind="noise", typical=scale):
            return reference_log_prob(base, scale * g, outcome)
        case Ties(threshold=t, link="logit") if tie:
            return np.log(np.expm1(2 * t)) + log_expit(g - t) + log_expit(-g - t)
        case Ties(threshold=t) if tie:
            return _log_band(np.abs(g), t)
        case Ties(threshold=t, link="logit"):
            return log_expit(g - t)
        case Ties(threshold=t):
            return log_ndtr(g - t)
        case Gaussian(noise=noise, unit=unit):
            return norm.logpdf(outcome.margin[0] / unit, g, np.sqrt(noise))
        case Logit():
            return log_expit(g)
        case Probit():
            return log_ndtr(g)
    pytest.fail(f"{likelihood!r} has no reference here: write its definition down")


def _log_band(size: np.ndarray, t: float) -> np.ndarray:
    """log P(|g + noise| < t): Gauss–Legendre over the band, exact for bands of a few units."""
    x, w = np.polynomial.legendre.leggauss(30)
    terms = norm.logpdf(t * x[:, None], size.ravel())
    top = terms.max(axis=0)
    return (top + np.log(t * w @ np.exp(terms - top))).reshape(size.shape)


def reference_tilted(likelihood, mean, var, outcome, power=1.0):
    """log Z, tilted mean and tilted variance by a trapezoidal sum far finer than needed."""
    sd = np.sqrt(var)
    step = 0.1 * min(1.0, sd)
    g = np.arange(mean - 14 * sd, mean + 14 * sd, step)
    terms = power * reference_log_prob(likelihood, g, outcome) + norm.logpdf(g, mean, sd)
    top = terms.max()
    mass = np.exp(terms - top)
    total = mass.sum()
    centre = (mass @ g) / total
    return top + np.log(total * step), centre, mass @ (g - centre) ** 2 / total


CASES = [
    pytest.param(likelihood, index, id=f"{likelihood}-{index}")
    for examples in EXAMPLES.values()
    for likelihood in examples
    for index in range(len(outcomes_of(likelihood, 1)))
]
every_case = pytest.mark.parametrize(("likelihood", "index"), CASES)
every_likelihood = pytest.mark.parametrize(
    "likelihood", [pytest.param(x, id=str(x)) for xs in EXAMPLES.values() for x in xs]
)
MEANS, VARS = (
    grid.ravel()
    for grid in np.meshgrid(
        [-8.0, -5.0, -2.0, -0.5, 0.0, 1.0, 3.0, 8.0],
        [0.01, 0.2, 0.3, 1.0, 1.5, 4.0, 9.0, 16.0, 20.0, 64.0, 256.0],
    )
)


@pytest.fixture
def outcome(likelihood, index):
    """Answers of the case at every one of MEANS."""
    return outcomes_of(likelihood, MEANS.size)[index]


def test_every_likelihood_has_an_example():
    def leaves(cls):
        below = [leaf for sub in cls.__subclasses__() for leaf in leaves(sub)]
        return below if inspect.isabstract(cls) else [cls, *below]

    ours = {leaf for leaf in leaves(Likelihood) if leaf.__module__.startswith("penchant.")}
    assert ours == set(EXAMPLES)
    assert {leaf.__name__ for leaf in ours} <= set(likelihoods.__all__)


@every_case
def test_value_is_the_definition(likelihood, index):
    g = np.linspace(-9.0, 9.0, 37)
    outcome = outcomes_of(likelihood, g.size)[index]
    expected = reference_log_prob(likelihood, g, outcome)
    np.testing.assert_allclose(likelihood.log_prob(g, outcome).value, expected, atol=1e-11)


@every_case
def test_derivatives_match_finite_differences(likelihood, index):
    g = np.linspace(-15.0, 15.0, 62)
    outcome = outcomes_of(likelihood, g.size)[index]
    step = 1e-4
    above, below = likelihood.log_prob(g + step, outcome), likelihood.log_prob(g - step, outcome)
    at = likelihood.log_prob(g, outcome)
    for order in range(3):
        slope = (above[order] - below[order]) / (2 * step)
        np.testing.assert_allclose(at[order + 1], slope, atol=2e-6, rtol=1e-6)


@every_case
def test_nodes_on_the_leading_axis_broadcast(likelihood, index):
    g = np.linspace(-3.0, 3.0, 12).reshape(4, 3)
    outcome = outcomes_of(likelihood, 3)[index]
    together = likelihood.log_prob(g, outcome)
    for row in range(4):
        apart = likelihood.log_prob(g[row], outcome)
        np.testing.assert_array_equal([c[row] for c in together], list(apart))


@every_likelihood
def test_log_concave_flag_is_honest(likelihood):
    g = np.linspace(-12.0, 12.0, 481)
    bends = [likelihood.log_prob(g, o).d2.max() for o in outcomes_of(likelihood, g.size)]
    assert likelihood.log_concave == (max(bends) <= 1e-12)


def is_as_integrated(found, likelihood, index, power=1.0):
    """Whether log Z and its derivatives are those of `reference_tilted`."""
    log_z, d1, d2 = found
    one, powers = outcomes_of(likelihood, 1)[index], np.broadcast_to(power, MEANS.shape)
    reference = [
        reference_tilted(likelihood, m, v, one, c)
        for m, v, c in zip(MEANS, VARS, powers, strict=True)
    ]
    true_log_z, centre, spread = np.array(reference).T
    np.testing.assert_allclose(log_z, true_log_z, atol=1e-8)
    np.testing.assert_allclose(d1 * np.sqrt(VARS), (centre - MEANS) / np.sqrt(VARS), atol=1e-6)
    np.testing.assert_allclose(d2 * VARS, 1.0 - spread / VARS, atol=1e-6)


@pytest.mark.parametrize("own", [True, False], ids=["closed form", "default quadrature"])
@every_case
def test_tilted_matches_integration(likelihood, index, outcome, own):
    tilted = (type(likelihood) if own else Likelihood).tilted
    is_as_integrated(tilted(likelihood, MEANS, VARS, outcome), likelihood, index)


@every_case
def test_default_quadrature_reaches_zero_variance(likelihood, index):
    var = np.repeat([0.0, 1e-300, 1e-12, 1e-9, 1e-7, 1e-5], 8)
    mean = np.tile(MEANS[:8], 6)
    outcome = outcomes_of(likelihood, mean.size)[index]
    own = likelihood.tilted(mean, var, outcome)
    default = Likelihood.tilted(likelihood, mean, var, outcome)
    for one, other in zip(own, default, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=2e-6)
    certain = Likelihood.prob(likelihood, mean, var) if outcome.margin is None else 0.5
    assert np.all((certain >= 0.0) & (certain <= 1.0))


@every_case
def test_tilting_by_a_power_matches_integration(likelihood, index, outcome):
    power = np.resize([0.02, 0.3, 0.6, 0.95, 1.0], MEANS.size)
    found = power * np.array(likelihood.tilted_power(power, MEANS, VARS, outcome))
    is_as_integrated(found, likelihood, index, power)


@every_case
def test_a_vanishing_power_leaves_the_expectation(likelihood, index, outcome):
    power = np.full(MEANS.size, np.finfo(float).tiny)
    _, d1, d2 = likelihood.tilted_power(power, MEANS, VARS, outcome)
    expected = likelihood.expected(MEANS, VARS, outcome)
    np.testing.assert_allclose(d1, expected.d_mean, atol=1e-8)
    np.testing.assert_allclose(d2, -2.0 * expected.d_var, atol=1e-8)


@every_case
def test_tilted_stays_finite_far_out(likelihood, index):
    means, variances = (
        x.ravel()
        for x in np.meshgrid([-1e6, -1e4, -300.0, 300.0, 1e4, 1e6], [1e-8, 1e-3, 1.0, 100.0, 1e5])
    )
    outcome = outcomes_of(likelihood, means.size)[index]
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        log_z, d1, d2 = likelihood.tilted(means, variances, outcome)
    assert np.isfinite([log_z, d1, d2]).all()
    if likelihood.log_concave:
        # The tilted variance v − v² d2 lies between 0 and v.
        assert np.all(d2 * variances > -1e-9)
        assert np.all(d2 * variances < 1.0 + 1e-9)


@every_case
def test_expected_matches_integration(likelihood, index, outcome):
    value = likelihood.expected(MEANS, VARS, outcome).value
    x = np.linspace(-12.0, 12.0, 1601)
    weight = norm.pdf(x) * (x[1] - x[0])
    one = outcomes_of(likelihood, 1)[index]
    g = MEANS + np.multiply.outer(x, np.sqrt(VARS))
    np.testing.assert_allclose(
        value, weight @ reference_log_prob(likelihood, g, one), atol=1e-9, rtol=1e-9
    )


@every_likelihood
def test_probabilities_sum_to_one(likelihood):
    total = likelihood.prob(MEANS, VARS) + likelihood.prob(-MEANS, VARS)
    tie = likelihood.prob_tie(MEANS, VARS)
    np.testing.assert_allclose(total + tie, 1.0, atol=1e-10)
    np.testing.assert_allclose(tie, likelihood.prob_tie(-MEANS, VARS), atol=1e-12)
    assert (tie > 0).all() == (likelihood.n_answers == 3)


@every_likelihood
@settings(max_examples=25, deadline=None)
@given(mean=st.floats(-50, 50), var=st.floats(0, 1e4))
def test_probability_is_one_and_increasing(likelihood, mean, var):
    m, v = np.array([mean, mean + 0.5]), np.array([var, var])
    low, high = likelihood.prob(m, v)
    assert 0.0 <= low <= high <= 1.0 + 1e-12
    whole = likelihood.prob(m, v) + likelihood.prob(-m, v) + likelihood.prob_tie(m, v)
    np.testing.assert_allclose(whole, 1.0, atol=1e-10)


@every_likelihood
def test_probability_takes_any_shape(likelihood):
    mean, var = np.linspace(-2, 2, 6).reshape(2, 3), np.array([0.5, 1.0, 30.0])
    for f in (likelihood.prob, likelihood.prob_tie):
        flat = f(mean.ravel(), np.tile(var, 2))
        np.testing.assert_allclose(f(mean, var), flat.reshape(2, 3), rtol=1e-14)


@every_likelihood
def test_prob_is_the_evidence_of_a_win(likelihood):
    if isinstance(likelihood, Gaussian):
        expected = ndtr(MEANS / np.sqrt(VARS + likelihood.noise))
    else:
        expected = np.exp(likelihood.tilted(MEANS, VARS).log_z)
    np.testing.assert_allclose(likelihood.prob(MEANS, VARS), expected, atol=1e-12)


@every_likelihood
def test_draws_have_the_right_frequencies(likelihood):
    n = 40_000
    for g in (-1.0, 0.0, 1.5):
        answers = likelihood.draw(np.full(n, g), np.random.default_rng(7))
        point, known = np.array([g]), np.zeros(1)
        win, loss = likelihood.prob(point, known)[0], likelihood.prob(-point, known)[0]
        for answer, p in ((1, win), (-1, loss), (0, 1.0 - win - loss)):
            sigma = np.sqrt(max(p * (1 - p), 0.0) / n)
            assert abs(np.mean(answers == answer) - p) <= 4 * sigma + 1e-12


@every_likelihood
def test_theta_round_trip(likelihood):
    theta = likelihood.theta
    assert theta.shape == (len(likelihood.names),)
    assert likelihood.bounds.shape == (theta.size, 2)
    assert np.all((likelihood.bounds[:, 0] < theta) & (theta < likelihood.bounds[:, 1]))
    np.testing.assert_allclose(likelihood.with_theta(theta + 0.3).theta, theta + 0.3)
    np.testing.assert_allclose(likelihood.theta, theta)  # the original is untouched


@pytest.mark.parametrize(
    ("method", "power", "atol"),
    [("tilted", (), 1e-6), ("tilted_power", (np.resize([0.02, 0.3, 0.95], MEANS.size),), 2e-6)],
    ids=["whole", "power"],
)
@every_case
def test_tilted_gradient_matches_finite_differences(likelihood, index, method, power, atol):
    at = (*power, MEANS, VARS, outcomes_of(likelihood, MEANS.size)[index])
    gradient = getattr(likelihood, f"{method}_gradient")(*at)
    theta, step = likelihood.theta, 1e-4
    assert gradient.shape == (theta.size, MEANS.size)
    for row, move in zip(gradient, step * np.eye(theta.size), strict=True):
        ahead, behind = (
            getattr(likelihood.with_theta(moved), method)(*at).log_z
            for moved in (theta + move, theta - move)
        )
        np.testing.assert_allclose(row, (ahead - behind) / (2 * step), rtol=1e-5, atol=atol)


@every_likelihood
def test_value_semantics(likelihood):
    names = {leaf.__name__: leaf for leaf in EXAMPLES}
    assert eval(repr(likelihood), names) == likelihood
    assert copy.deepcopy(likelihood) == likelihood
    assert hash(copy.copy(likelihood)) == hash(likelihood)
    with pytest.raises(AttributeError):
        likelihood.anything = 1


@every_likelihood
def test_check_accepts_what_it_explains(likelihood):
    for outcome in outcomes_of(likelihood, 3):
        likelihood.check(outcome)
