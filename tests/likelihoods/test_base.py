from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import cauchy

from penchant import likelihoods
from penchant.errors import DataError
from penchant.likelihoods import (
    Abstain,
    Gaussian,
    Lapse,
    Likelihood,
    LogProb,
    Outcomes,
    Probit,
    Ties,
)


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
    whole = Outcomes(tie=np.array([True, False, True]), margin=np.array([0.0, 1.0, 0.0]))
    part = whole.part(np.array([2, 1]))
    assert part.tie.tolist() == [True, False]
    assert part.margin.tolist() == [0.0, 1.0]
    assert Outcomes().part(np.array([0])) == Outcomes()


def test_get_by_name_and_instance():
    assert likelihoods.get("ties") == Ties()
    assert likelihoods.get("gaussian") == Gaussian()
    mine = Ties(0.2)
    assert likelihoods.get(mine) is mine


def test_get_suggests_the_closest_name():
    with pytest.raises(
        DataError, match=r"'probt'.*'gaussian', 'logit', 'probit', 'ties'.*'probit'"
    ):
        likelihoods.get("probt")
    with pytest.raises(DataError, match=r"likelihood is 3: it must be one of"):
        likelihoods.get(3)


def test_draws_repeat_with_the_seed():
    g = np.linspace(-2, 2, 50)
    first, again = (Ties().draw(g, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert set(first) == {-1, 0, 1}


@pytest.mark.parametrize("value", ["0.5", None, np.nan, 0.0, -1.0, [0.5], np.inf])
@pytest.mark.parametrize(
    "made", [Ties, Gaussian, partial(Lapse, Probit()), partial(Abstain, Probit())]
)
def test_parameters_that_are_no_numbers_in_range_are_refused(made, value):
    with pytest.raises(DataError, match=r"(threshold|noise|rate) of \w+ is .*: it must"):
        made(value)
