"""Answers of one person go together: what that does to a pooled posterior."""

from dataclasses import replace

import numpy as np
import pytest

import penchant as pc
from penchant.gp import UNNAMED, People
from penchant.kernels import Independent
from tests.gp.problems import dense_rows
from tests.simulation import duel_data


def answers(rng, own, n_answers):
    """Everybody's answers about random pairs; own: (people, items) utilities."""
    return duel_data(rng, own, user=np.repeat(np.arange(len(own)), n_answers))


def study(seed, n_people=60, n_answers=30, spread=0.5, n_items=10):
    """The utilities that pooling estimates, and answers of people who differ."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(n_items)
    own = f + spread * rng.standard_normal((n_people, n_items))
    return f / np.sqrt(1.0 + 2.0 * spread**2), answers(rng, own, n_answers)


def rankings(seed, n_people=60, spread=0.5, n_items=20):
    """Everybody ranks all items: their pairs are anything but independent."""
    rng = np.random.default_rng(seed)
    f = rng.standard_normal(n_items)
    own = f + np.sqrt(0.5 + spread**2) * rng.standard_normal((n_people, n_items))
    user = np.repeat(np.arange(n_people), n_items * (n_items - 1) // 2)
    order = np.argsort(-own, axis=1)
    pairs = (order[:, places].ravel() for places in np.triu_indices(n_items, 1))
    data = pc.Comparisons.from_pairs(*pairs, user=user, items=range(n_items))
    return f / np.sqrt(1.0 + 2.0 * spread**2), data


def fitted(data, **how):
    return pc.PreferenceGP(Independent(1.0), optimize=None, **how).fit(None, data)


def std(model):
    return model.predict(return_std=True)[1]


def covered(make, seeds, **how):
    """How often 95 % intervals of utilities, relative to the average item, hold the truth."""
    hits = []
    for seed in seeds:
        truth, data = make(seed)
        belief = pc.PreferenceGP(random_state=0, **how).fit(None, data).belief()
        error = belief.mean - belief.mean.mean() - truth + truth.mean()
        hits.append(np.abs(error) < 1.96 * np.sqrt(belief.contrast_var))
    return float(np.mean(hits))


@pytest.mark.parametrize("make", [study, rankings])
def test_intervals_of_pooled_answers_cover(make):
    """12 studies: a standard error of three points."""
    assert 0.89 < covered(make, range(12)) < 0.99


def test_taken_for_independent_they_do_not():
    assert covered(rankings, range(5), clustered=False) < 0.75


def test_the_covariance_is_the_sandwich_with_the_prior_in_it():
    """Against dense algebra, with no shrinkage to speak of: many people, one direction of taste."""
    rng = np.random.default_rng(0)
    n, n_people = 4, 400
    own = rng.standard_normal((n_people, 1)) * [2.0, -1.0, -1.0, 0.0]
    data = answers(rng, own, 12)
    gp = fitted(data)
    learned, plain = gp.state_.learned, replace(gp.posterior_, widening=None)
    edges, sites = learned.problem.edges, learned.sites
    pull = np.zeros((n, n))
    pull[edges.ends] = sites.nu - sites.tau * plain.difference(*edges.ends).mean
    score = data.count * pull[data.winner, data.loser]
    scores = np.zeros((n_people, n))
    np.add.at(scores, data.user, score[:, None] * dense_rows(data.winner, data.loser, n))
    scores -= scores.mean(axis=0)
    M = n_people / (n_people - 1) * scores.T @ scores
    cov = plain.covariance()
    sandwich = cov @ (M + np.eye(n)) @ cov
    P = np.eye(n) - 1.0 / n
    wanted, got = P @ sandwich @ P, P @ gp.belief().covariance() @ P
    np.testing.assert_allclose(got, wanted, atol=0.08 * np.abs(wanted).max())
    assert np.linalg.norm(wanted) > 3.0 * np.linalg.norm(P @ cov @ P)


def test_means_stay_and_intervals_never_shrink():
    for seed, spread in ((0, 0.0), (1, 0.0), (2, 1.0)):
        _, data = study(seed, spread=spread)
        wide, narrow = fitted(data), fitted(data, clustered=False)
        np.testing.assert_array_equal(wide.predict(), narrow.predict())
        gained = wide.belief().covariance() - narrow.belief().covariance()
        assert np.linalg.eigvalsh(gained).min() > -1e-9
    assert wide.report_.n_people == 60
    assert wide.report_.widened > 1.2
    assert "60 people" in wide.report_.about_people()
    assert narrow.report_.about_people() == ""


def test_every_prediction_sees_the_same_width():
    _, data = study(3, spread=1.0)
    gp = fitted(data)
    belief = gp.belief()
    draws = belief.sample(40_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(draws.T), belief.covariance(), atol=4e-3)
    np.testing.assert_allclose(std(gp) ** 2, belief.contrast_var)
    mean, var = belief.difference(np.array([0]), np.array([1]))
    cov = belief.covariance()
    assert var[0] == pytest.approx(cov[0, 0] + cov[1, 1] - 2 * cov[0, 1])
    p = gp.predict_proba([(0, 1)])
    assert p[0] == pytest.approx(gp.likelihood_.prob(mean, var)[0])


def test_without_names_nothing_changes():
    _, data = study(4, spread=1.0)
    pooled, one = fitted(data.pooled()), data.split(0.5, random_state=0)[0].for_user(3)
    for model in (pooled, fitted(one), fitted(study(4, n_people=4)[1])):
        assert model.posterior_.widening is None
    np.testing.assert_array_equal(std(pooled), std(fitted(data, clustered=False)))


def test_answers_without_a_name_are_nobodys():
    _, data = study(6, n_people=8)
    gp = fitted(data).tell([(0, 1)] * 3)
    known = gp.state_.learned.data
    assert known.users[-1] == UNNAMED
    people = People.of(known, gp.state_.learned.problem.edges)
    assert people.n_people == 9
    assert people.weight[people.person == 8].tolist() == [np.sqrt(3.0)]
    assert gp.comparisons_.users == ()
    gp.withdraw([(0, 1)] * 3)
    assert UNNAMED not in np.array(known.users)[gp.state_.learned.data.user]
    first = int(data.winner[0]), int(data.loser[0])
    fewer = gp.withdraw([first]).state_.learned.data
    assert fewer.n_comparisons == data.n_comparisons - 1


def test_of_very_many_people_some_say_it(monkeypatch):
    _, data = study(7, n_people=300, n_answers=10, spread=1.0)
    widened = fitted(data).report_.widened
    monkeypatch.setattr("penchant.gp.items.cluster_robust.MOST", 150)
    assert fitted(data).report_.widened == pytest.approx(widened, rel=0.1)


def test_whole_rankings_of_one_person_go_together():
    """Everybody repeats their one ranking three times: as many people know a third of it."""
    rng = np.random.default_rng(8)
    f = rng.standard_normal(6)
    once = [list(map(int, np.argsort(-(f + rng.gumbel(size=6))))) for _ in range(200)]
    make = pc.Comparisons.from_rankings
    single = fitted(make(once, users=range(200), items=range(6)))
    thrice = fitted(make(once * 3, users=list(range(200)) * 3, items=range(6)))
    assert single.report_.widened == pytest.approx(1.0, abs=0.1)
    assert thrice.report_.widened == pytest.approx(np.sqrt(3.0), rel=0.1)
