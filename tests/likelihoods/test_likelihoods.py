"""Likelihoods beyond their contract: tails, extremes, rules that meet, and parameters."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import log_expit, log_ndtr
from scipy.stats import cauchy, norm

from penchant import likelihoods
from penchant.errors import DataError
from penchant.likelihoods import (
    Abstain,
    Gaussian,
    Lapse,
    Likelihood,
    Logit,
    LogProb,
    Outcomes,
    Probit,
    Ties,
)

BULK = np.linspace(-40.0, 40.0, 2001)


@dataclass(frozen=True)
class Cauchit(Likelihood):
    """A newcomer that gives log_prob alone, and whose tails are nothing like a Gaussian's."""

    log_concave: ClassVar[bool] = False

    def log_prob(self, g, outcomes=None):
        p, density = cauchy.cdf(g), cauchy.pdf(g)
        slope = density / p
        bend = -2 * g / (1 + g**2) * slope - slope**2
        return LogProb(np.log(p), slope, bend, np.zeros_like(g))


def test_a_leaf_needs_log_prob_only():
    leaf = Cauchit()
    mean, var = np.array([0.3, -1.0, 2.0]), np.array([0.5, 2.0, 40.0])
    g = mean + np.sqrt(var) * np.random.default_rng(0).normal(size=(400_000, 3))
    draws = cauchy.cdf(g)
    sigma = draws.std(axis=0) / np.sqrt(len(g))
    assert np.all(np.abs(leaf.prob(mean, var) - draws.mean(axis=0)) < 4 * sigma)
    np.testing.assert_allclose(leaf.prob(mean, var) + leaf.prob(-mean, var), 1.0, atol=1e-7)
    logs = np.log(draws)
    sigma = logs.std(axis=0) / np.sqrt(len(g))
    assert np.all(np.abs(leaf.expected(mean, var).value - logs.mean(axis=0)) < 4 * sigma)
    assert leaf.theta.size == 0
    assert leaf.with_theta(leaf.theta) is leaf


def test_ties_are_refused_with_the_likelihood_to_use():
    ties = Outcomes(tie=np.array([False, True, True]))
    with pytest.raises(DataError, match=r"2 of the 3 comparisons are ties.*likelihood='ties'"):
        Probit().check(ties)
    Probit().check(Outcomes(tie=np.zeros(3, dtype=bool)))


def test_outcomes_part_keeps_columns_together():
    columns = {"tie": np.array([1, 0, 1]), "margin": np.arange(3.0), "rater": np.arange(3)}
    part = Outcomes(**columns, power=np.arange(3) / 3).part(np.array([2, 1]))
    assert [None if c is None else c.tolist() for c in part] == [
        [1, 0],
        [2.0, 1.0],
        None,
        [2, 1],
        [2 / 3, 1 / 3],
    ]


def test_get_takes_names_and_instances_and_suggests_the_closest_name():
    assert likelihoods.get("ties") == Ties()
    mine = Ties(0.2)
    assert likelihoods.get(mine) is mine
    with pytest.raises(
        DataError, match=r"'probt'.*'gaussian', 'logit', 'probit', 'ties'.*'probit'"
    ):
        likelihoods.get("probt")
    with pytest.raises(DataError, match=r"likelihood is 3: it must be one of"):
        likelihoods.get(3)


@pytest.mark.parametrize("value", ["0.5", None, np.nan, 0.0, -1.0, [0.5], np.inf])
@pytest.mark.parametrize(
    "made", [Ties, Gaussian, partial(Lapse, Probit()), partial(Abstain, Probit())]
)
def test_parameters_that_are_no_numbers_in_range_are_refused(made, value):
    with pytest.raises(DataError, match=r"(threshold|noise|rate) of \w+ is .*: it must"):
        made(value)


# log Φ and log σ, far into the tails


def test_log_ndtr_tail_follows_the_asymptotic_series():
    x = np.array([60.0, 200.0, 1e3, 1e5])
    _, hazard, second, third = Probit().log_prob(-x)
    np.testing.assert_allclose(hazard - x, 1 / x - 2 / x**3 + 10 / x**5, atol=1e-16 * 1e5)
    np.testing.assert_allclose(second, -1 + 1 / x**2 - 6 / x**4, rtol=1e-8)
    np.testing.assert_allclose(third * x**3, 2 - 24 / x**2, rtol=1e-4)


def test_log_ndtr_has_no_seam_where_the_fraction_takes_over():
    z = -8.0 + np.linspace(-1e-6, 1e-6, 9)
    for derivative in Probit().log_prob(z):
        line = np.polyval(np.polyfit(z + 8.0, derivative, 1), z + 8.0)
        np.testing.assert_allclose(derivative, line, rtol=5e-11)


def test_log_ndtr_agrees_with_scipy_and_is_finite_to_the_end_of_the_range():
    np.testing.assert_allclose(Probit().log_prob(BULK)[0], log_ndtr(BULK), rtol=1e-12, atol=1e-300)
    z = np.array([-1e150, -1e100, -1e20, -1e8, 0.0, 1e8, 1e150])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, hazard, second, third = Probit().log_prob(z)
    assert np.isfinite([value, hazard, second, third]).all()
    np.testing.assert_allclose(hazard[:4], -z[:4])
    np.testing.assert_allclose(second[:4], -1.0)
    assert (hazard[-2:] == 0).all()
    second = Probit().log_prob(np.linspace(-1e4, 30.0, 100_001))[2]
    assert second.min() >= -1.0
    assert second.max() <= 0.0


def test_log_ndtr_keeps_shape_and_does_not_depend_on_chunks():
    z = np.random.default_rng(0).normal(size=(3, 7001)) * 5
    whole = Probit().log_prob(z)
    row = Probit().log_prob(z[1])
    for a, b in zip(whole, row, strict=True):
        assert a.shape == z.shape
        np.testing.assert_array_equal(a[1], b)


def test_log_expit_agrees_with_scipy_and_survives_extremes():
    np.testing.assert_allclose(Logit().log_prob(BULK)[0], log_expit(BULK), rtol=1e-13)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        far = Logit().log_prob(np.array([-1e300, 1e300]))
    np.testing.assert_array_equal(far, [[-1e300, 0], [1, 0], [0, 0], [0, 0]])


# Probit and logit under Gaussians


def test_a_hopeless_answer_moves_the_mean_almost_all_the_way():
    """With m → −∞ the tilted mean m + v d1 tends to m/(1 + v), without overflow."""
    mean, var = np.array([-1e12]), np.array([4.0])
    _, d1, d2 = Probit().tilted(mean, var)
    np.testing.assert_allclose(mean + var * d1, mean / 5.0)
    np.testing.assert_allclose(var - var**2 * d2, var / 5.0)


@pytest.mark.parametrize("sd", [0.5, 1.0, 2.0, 4.0])
def test_no_seam_between_rules(sd):
    """Just below and just above each width another rule is in force; the answer is the same."""
    mean = np.linspace(-8, 8, 33)
    below, above = (Logit().tilted(mean, np.full(33, (sd * f) ** 2)) for f in (1 - 1e-9, 1 + 1e-9))
    np.testing.assert_allclose(below.log_z, above.log_z, atol=1e-8)
    np.testing.assert_allclose(below.d1 * sd, above.d1 * sd, atol=1e-8)
    np.testing.assert_allclose(below.d2 * sd**2, above.d2 * sd**2, atol=1e-7)


@pytest.mark.parametrize(("mean", "var"), [(-40.0, 9.0), (-3e3, 1e4), (-4900.0, 1e4), (50.0, 30.0)])
def test_far_tails_against_adaptive_integration(mean, var):
    sd = np.sqrt(var)
    own = Logit().tilted(np.array([mean]), np.array([var]))
    points = np.linspace(-60.0, 60.0, 13)

    def integrand(g, shift):
        return np.exp(-np.logaddexp(0.0, -g) + norm.logpdf(g, mean, sd) - shift)

    shift = own.log_z[0]
    window = (min(mean, mean + var) - 10 * sd, max(mean, mean + var) + 10 * sd)
    total = quad(integrand, *window, args=(shift,), points=points, limit=500, epsabs=1e-11)[0]
    assert abs(np.log(total)) < 1e-8


def test_deep_tail_falls_back_to_the_default():
    mean, var = np.array([-4e5, -3e5]), np.array([1e6, 1e6])
    own, default = Logit().tilted(mean, var), Likelihood.tilted(Logit(), mean, var)
    np.testing.assert_allclose(own.log_z, default.log_z, rtol=1e-12)
    np.testing.assert_allclose(own.d1, default.d1, rtol=1e-7)


# Ties and lapses


@pytest.mark.parametrize(("link", "plain"), [("probit", Probit()), ("logit", Logit())])
def test_a_vanishing_threshold_leaves_the_plain_link(link, plain):
    mean, var = np.linspace(-4, 4, 9), np.full(9, 2.0)
    model = Ties(1e-9, link)
    np.testing.assert_allclose(model.tilted(mean, var).log_z, plain.tilted(mean, var).log_z)
    assert model.prob_tie(mean, var).max() < 1e-8


@pytest.mark.parametrize("link", ["probit", "logit"])
def test_a_hopeless_tie_keeps_its_curvature(link):
    """Far from zero a tie looks like a loss of the leader: derivatives stay finite and right."""
    far = np.array([-1e8, -1e3, 1e3, 1e8])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, d1, d2, d3 = Ties(0.5, link).log_prob(far, Outcomes(tie=np.ones(4, dtype=bool)))
    assert np.isfinite([value, d1, d2, d3]).all()
    np.testing.assert_allclose(d2, -1.0 if link == "probit" else 0.0, atol=1e-5)


def test_mixed_outcomes_are_each_treated_as_their_own_kind():
    mean, var, tie = np.array([0.5, 0.5]), np.array([1.0, 1.0]), np.array([True, False])
    mixed = Ties(0.5).tilted(mean, var, Outcomes(tie=tie))
    apart = [Ties(0.5).tilted(mean[:1], var[:1], Outcomes(tie=tie[k : k + 1])) for k in (0, 1)]
    for column, parts in zip(mixed, zip(*apart, strict=True), strict=True):
        np.testing.assert_array_equal(column, np.concatenate(parts))


def test_a_lapse_far_out_its_parameters_and_its_check():
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        terms = Lapse(Probit(), 0.02).log_prob(np.array([-1e120, -1e5, 1e120]))
    assert np.isfinite(terms).all()
    learned, fixed = Lapse(Ties(0.5), 0.1), Lapse(Ties(0.5), 0.1, learn=False)
    assert learned.names == ("threshold", "rate")
    assert fixed.names == ("threshold",)
    assert fixed.with_theta(np.log([0.7])) == Lapse(Ties(np.exp(np.log(0.7))), 0.1, learn=False)
    with pytest.raises(DataError, match="ties"):
        Lapse(Probit()).check(Outcomes(tie=np.array([True])))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Lapse(Gaussian()), "base of Lapse is Gaussian"),
        (lambda: Lapse("probit"), "base of Lapse is 'probit'"),
        (lambda: Lapse(Probit(), 1.0), "rate of Lapse"),
        (lambda: Ties(0.5, "cloglog"), r"link of Ties is 'cloglog'.*'logit', 'probit'"),
        (lambda: Gaussian(unit=0.0), "unit of Gaussian"),
        (lambda: Gaussian(unit=np.inf), "unit of Gaussian"),
        (lambda: Gaussian(unit="metre"), "unit of Gaussian"),
    ],
)
def test_parameters_that_make_no_likelihood_are_refused(made, message):
    with pytest.raises(DataError, match=message):
        made()
