"""The belief written out: what an answer does to it, checked by brute force."""

import numpy as np
import pytest

from penchant.ask import LOSS, TIE, WIN, Joint, Part
from penchant.kernels import RBF
from penchant.likelihoods import Gaussian, Lapse, Logit, Probit, Ties
from penchant.models import PreferenceGP


@pytest.fixture
def correlated():
    cov = np.array([[1.0, 0.3, 0.2], [0.3, 2.0, -0.4], [0.2, -0.4, 1.5]])
    return np.array([0.2, -0.1, 0.4]), cov


def moments_by_draws(mean, cov, likelihood, answer, rng):
    """Posterior moments after an answer about items 0 and 1, by weighting draws."""
    draws = rng.multivariate_normal(mean, cov, size=400_000)
    g, zero = draws[:, 0] - draws[:, 1], np.zeros(len(draws))
    weight = {
        WIN: lambda: likelihood.prob(g, zero),
        LOSS: lambda: likelihood.prob(-g, zero),
        TIE: lambda: likelihood.prob_tie(g, zero),
    }[answer]()
    average = weight @ draws / weight.sum()
    spread = (draws - average).T * weight @ (draws - average) / weight.sum()
    return average, spread


@pytest.mark.parametrize(
    ("likelihood", "answer"),
    [
        (Probit(), WIN),
        (Probit(), LOSS),
        (Logit(), LOSS),
        (Ties(0.5), TIE),
        (Ties(0.5), LOSS),
        (Lapse(Probit(), rate=0.2), WIN),
    ],
    ids=repr,
)
def test_an_answer_gives_the_moments_of_the_exact_posterior(correlated, likelihood, answer, rng):
    mean, cov = correlated
    after = Joint(mean, cov, likelihood).answered(0, 1, answer)
    average, spread = moments_by_draws(mean, cov, likelihood, answer, rng)
    np.testing.assert_allclose(after.mean, average, atol=0.01)
    np.testing.assert_allclose(after.cov, spread, atol=0.03)


@pytest.mark.parametrize("likelihood", [Probit(), Logit(), Ties(0.5), Lapse(Probit())], ids=repr)
def test_what_is_expected_is_the_average_over_the_answers(correlated, likelihood):
    mean, cov = correlated
    belief = Joint(mean, cov, likelihood)
    g, v = np.array([mean[0] - mean[1]]), np.array([cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]])
    chances = {WIN: likelihood.prob(g, v)[0], LOSS: likelihood.prob(-g, v)[0]}
    if likelihood.n_answers == 3:
        chances[TIE] = likelihood.prob_tie(g, v)[0]
    after = {answer: belief.answered(0, 1, answer) for answer in chances}
    expected = belief.expecting(0, 1)
    np.testing.assert_allclose(
        sum(p * after[answer].mean for answer, p in chances.items()), expected.mean, atol=1e-9
    )
    np.testing.assert_allclose(
        sum(p * after[answer].cov for answer, p in chances.items()), expected.cov, atol=1e-9
    )


def test_a_margin_is_expected_to_teach_what_regression_says(correlated):
    mean, cov = correlated
    direction = np.array([1.0, -1.0, 0.0])
    s = cov @ direction
    exact = cov - np.outer(s, s) / (0.7 + direction @ s)
    np.testing.assert_allclose(Joint(mean, cov, Gaussian(0.7)).expecting(0, 1).cov, exact)


def test_several_questions_are_expected_as_sites_together(rng):
    """Each as precise as one answer alone: τ = E[d2] / (1 − v E[d2])."""
    root = rng.standard_normal((6, 6))
    belief = Joint(rng.standard_normal(6), root @ root.T, Ties(0.4))
    first, second = np.array([0, 0, 1, 2, 2, 0]), np.array([1, 2, 2, 3, 4, 1])
    precision = np.linalg.inv(belief.cov)
    for a, b in zip(first, second, strict=True):
        alone = np.linalg.inv(belief.expecting(a, b).cov)
        precision = precision + alone - np.linalg.inv(belief.cov)
    together = belief.expecting(first, second)
    np.testing.assert_allclose(together.cov, np.linalg.inv(precision), rtol=1e-6, atol=1e-8)
    assert together.mean is belief.mean


def test_a_mixture_has_the_moments_of_draws_from_it(correlated, rng):
    mean, cov = correlated
    parts = [Joint(mean, cov, Probit()), Joint(-2.0 * mean + 1.0, 0.5 * cov, Probit())]
    weights = np.array([0.3, 0.7])
    mixed = Joint.mixture(parts, weights)
    draws = np.concatenate(
        [p.sample(int(w * 400_000), rng) for p, w in zip(parts, weights, strict=True)]
    )
    np.testing.assert_allclose(mixed.mean, draws.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(mixed.cov, np.cov(draws.T), atol=0.03)


def test_draws_have_the_covariance_also_where_it_is_singular(rng):
    root = rng.standard_normal((5, 2))
    draws = Joint(np.ones(5), root @ root.T, Probit()).sample(200_000, rng)
    np.testing.assert_allclose(np.cov(draws.T), root @ root.T, atol=0.05)
    np.testing.assert_allclose(draws.mean(axis=0), np.ones(5), atol=0.02)


def test_it_agrees_with_the_posterior_that_it_was_written_out_from(make_comparisons, rng):
    X = rng.standard_normal((8, 2))
    posterior = PreferenceGP(RBF(), optimize=None).fit(X, make_comparisons(n_pairs=5)).posterior_
    first, second = np.array([0, 3, 7]), np.array([5, 1, 2])
    for belief, items in ((posterior, np.arange(8)), (Part(posterior, np.arange(8)[::-1]), None)):
        places = items if items is not None else np.arange(8)[::-1]
        joint = Joint.of(belief)
        np.testing.assert_allclose(joint.mean, posterior.mean[places], atol=1e-9)
        np.testing.assert_allclose(joint.var, posterior.var[places], atol=1e-9)
        want = posterior.difference(places[first], places[second])
        for ours, theirs in zip(joint.difference(first, second), want, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-9)
        for ours, theirs in zip(belief.difference(first, second), want, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_a_part_knows_its_items_only(rng):
    whole = Joint(np.arange(5.0), np.diag(np.arange(1.0, 6.0)), Ties(0.3))
    part = Part(whole, np.array([3, 1]))
    assert len(part) == 2
    assert part.mean.tolist() == [3.0, 1.0]
    assert part.var.tolist() == [4.0, 2.0]
    assert part.covariance(np.array([1])).tolist() == [[2.0]]
    assert part.likelihood == Ties(0.3)
    assert part.sample(3, rng).shape == (3, 2)
