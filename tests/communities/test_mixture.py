"""Fitted mixtures: effects, empty communities, sweeps over parts of the users."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import entr

import penchant as pc
from penchant import communities
from penchant.gp import Rows
from penchant.kernels import Independent
from tests.communities.simulation import mixture_of, people, votes


def test_sweeps_over_parts_end_where_nothing_is_gained():
    """Two camps that everybody can tell apart settle long before the most sweeps."""
    camps = np.outer([1.0, -1.0], np.arange(5.0))
    model_data = mixture_of(votes(people(camps, 40), 15, noise=0.0))
    answers, asked = model_data.answers, []

    def ask(told):
        r = communities.responsibilities(answers.counts, *told)
        asked.append(told)
        return communities.Members(
            communities.soft_counts(answers, r), r.sum(axis=0), float(entr(r).sum())
        )

    slopes = (answers.winner > answers.loser) - 0.5
    start = communities.ComponentTables(np.column_stack([slopes, -slopes]), np.zeros(2))
    settled = communities.converge_parts(model_data.model(model_data.hyper.theta), start, ask)
    np.testing.assert_allclose(settled.sizes, [20.0, 20.0], atol=0.1)
    assert len(asked) < 8
    assert any(settled.given is tables for tables in asked[-2:])  # never a lower objective


def test_effects_of_all_communities_are_in_units_of_their_own_priors(rng):
    posteriors = []
    for _ in range(2):
        a = rng.integers(5, size=60)
        b = (a + rng.integers(1, 5, size=60)) % 5
        longer = {"length": 40.0 * rng.standard_normal(60)}
        data = pc.Comparisons.from_pairs(a, b, covariates=longer, items=range(5))
        model = pc.PreferenceGP(Independent(1.0), optimize=None).fit(None, data)
        posteriors.append(model.state_.learned.posterior)
    sd = posteriors[0].effects.sd
    posteriors[1] = replace(posteriors[1], effects=replace(posteriors[1].effects, sd=sd))
    assert sd[0] < 0.2
    own = [1.0 / p.effects.covariance(p.lower)[0, 0] for p in posteriors]
    total = sum(own) - sd[0] ** -2
    names, (mean, var) = communities.common_effects(tuple(posteriors))
    assert names == ("length",)
    assert var[0] == pytest.approx(1.0 / total)
    pull = sum(p * posterior.effects.mean[0] for p, posterior in zip(own, posteriors, strict=True))
    assert mean[0] == pytest.approx(pull / total)


@pytest.mark.filterwarnings("ignore:the draws are worth only")
def test_communities_without_a_share_of_taste_are_united_unless_asked_for(monkeypatch):
    monkeypatch.setattr("penchant.communities.population.COMMUNAL_SHARES", (0.0,))
    orders = [[0, 1, 2, 3, 4]] * 10 + [[4, 3, 2, 1, 0]] * 10
    data = pc.Comparisons.from_rankings(orders, users=range(20)).as_pairs()
    model = pc.CommunityGP(personal=False, progress=False, random_state=0)
    assert len(model.fit(None, data).communities_) == 2
    model.set_params(personal=True, kernel=Independent(2.0), optimize=None)
    for n_communities, left in ((None, 1), (2, 2)):
        model.set_params(n_communities=n_communities)
        assert model.fit(None, data).membership_.shape == (20, left)
    sampled = model.set_params(inference="mcmc", n_sweeps=6, n_chains=1, n_communities=None)
    assert sampled.fit(None, data).membership_.shape[1] > 1  # draws are never of one alone


def test_a_community_that_nobody_belongs_to_stays_as_it_is():
    data = pc.Comparisons.from_pairs([0, 1, 0], [1, 2, 2], user=[0, 1, 1], items=range(3))
    known = pc.PreferenceGP(Independent(1.0)).fit(None, data).state_.learned.posterior
    for nobody in (0.0, 1e-6):
        membership = np.array([[1.0 - nobody, nobody]] * 2)
        rows = Rows.by_user(data.bare())
        inferred = communities.infer_beside_effects((known, known), membership, rows, None)
        assert inferred[0] is not known
        assert inferred[1] is known
