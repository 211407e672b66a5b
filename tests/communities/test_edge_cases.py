"""Communities at the edges: each test fails on one small change that once went unnoticed."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import entr

import penchant as pc
from penchant.communities import (
    Answers,
    MixtureData,
    common_effects,
    sharded,
)
from penchant.communities import population as personal
from penchant.communities import split_merge as moves
from penchant.communities.chains import diagnose
from penchant.communities.component import single_component
from penchant.communities.data import (
    count_pairs,
    log_likelihoods,
    responsibilities,
    soft_counts,
)
from penchant.communities.mixture import infer_beside_effects
from penchant.communities.split_merge import Group, Partition, Target, merge_similar_or_divide
from penchant.gp import ItemHyper, Rows, Settings, Sites
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Probit


def test_sweeps_over_parts_end_where_nothing_is_gained(rng):
    """Two camps that everybody can tell apart settle long before the most sweeps."""
    user = np.repeat(np.arange(40), 15)
    a = rng.integers(5, size=len(user))
    b = (a + 1 + rng.integers(4, size=len(user))) % 5
    up = (a > b) == (user < 20)
    data = pc.Comparisons.from_pairs(
        np.where(up, a, b), np.where(up, b, a), user=user, items=range(5), users=range(40)
    )
    answers = Answers.of(data)
    crowd = MixtureData(answers, Inputs(index=np.arange(5)), ItemHyper(Independent(), Probit()))
    model, asked = crowd.model(crowd.hyper.theta), []

    def ask(told):
        r = responsibilities(log_likelihoods(answers.counts, told.table) + told.log_weights)
        asked.append(told)
        return sharded.Members(soft_counts(answers, r), r.sum(axis=0), float(entr(r).sum()))

    slopes = (answers.winner > answers.loser) - 0.5
    start = sharded.ComponentTables(np.column_stack([slopes, -slopes]), np.zeros(2))
    settled = sharded.settle_parts(model, start, 40, ask)
    np.testing.assert_allclose(settled.members.sizes, [20.0, 20.0], atol=0.1)
    assert settled.n_sweeps <= len(asked) < 8 < sharded.SETTLE_SWEEPS


def test_sites_of_a_taste_lead_to_its_mode(rng):
    """Conditioned on them, the prior has the mode for its mean: a start that is the end."""
    winner = rng.integers(6, size=80)
    loser = (winner + 1 + rng.integers(5, size=80)) % 6
    data = pc.Comparisons.from_pairs(winner, loser, user=np.zeros(80, int), items=range(6))
    items = Inputs(index=np.arange(6))
    crowd = MixtureData(Answers.of(data), items, ItemHyper(Independent(2.0), Probit()))
    taste = single_component(crowd, crowd.hyper.theta).components[0]
    sites = taste.sites
    state = taste.prior.refresh(taste.weights * sites.tau, taste.weights * sites.nu)
    np.testing.assert_allclose(state.mean, taste.state.mean, atol=0.05)
    assert np.abs(state.mean).max() > 0.3


def test_what_a_split_gains_counts_the_concentration(rng):
    """A further community costs −log α: it is as much likelier as α is larger."""
    orders = [[0, 1, 2, 3]] * 6 + [[3, 2, 1, 0]] * 6
    data = pc.Comparisons.from_rankings(orders, users=range(12)).as_pairs()
    items, hyper = Inputs(index=np.arange(4)), ItemHyper(Independent(2.0), Probit())
    gains = []
    for concentration in (0.5, 5.0):
        crowd = MixtureData(Answers.of(data), items, hyper, concentration=concentration)
        whole, start = single_component(crowd, hyper.theta), np.repeat([0.99, 0.01], 6)
        gains.append(moves._two_way(whole, 0, np.arange(12), start).gain)
    assert gains[1] - gains[0] == pytest.approx(np.log(10.0), abs=1e-3)


def test_a_split_is_refused_again_only_where_answers_and_parameters_are_the_same():
    weights, theta = np.full(4, 5.0), np.zeros(2)
    search = moves.SplitSearch()
    search._refused.append((weights, theta))
    assert search._has_refused(weights, theta)
    assert not search._has_refused(2.0 * weights, theta)
    assert not search._has_refused(weights, theta + 5.0)


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
    names, (mean, var) = common_effects(tuple(posteriors))
    assert names == ("length",)
    assert var[0] == pytest.approx(1.0 / total)
    pull = sum(p * posterior.effects.mean[0] for p, posterior in zip(own, posteriors, strict=True))
    assert mean[0] == pytest.approx(pull / total)


@pytest.mark.filterwarnings("ignore:the draws are worth only")
@pytest.mark.parametrize(("n_communities", "left"), [(None, 1), (2, 2)])
def test_communities_without_a_share_of_taste_are_united_unless_asked_for(
    monkeypatch, n_communities, left
):
    monkeypatch.setattr(personal, "COMMUNAL_SHARES", (0.0,))
    orders = [[0, 1, 2, 3, 4, 5]] * 12 + [[5, 4, 3, 2, 1, 0]] * 12
    data = pc.Comparisons.from_rankings(orders, users=range(24)).as_pairs()
    plain = pc.CommunityGP(personal=False, progress=False, random_state=0).fit(None, data)
    assert len(plain.communities_) == 2
    model = pc.CommunityGP(
        personal=True, n_communities=n_communities, progress=False, random_state=0
    )
    assert model.fit(None, data).membership_.shape == (24, left)
    sampled = model.set_params(inference="mcmc", n_sweeps=20, n_chains=1, n_communities=None)
    assert sampled.fit(None, data).membership_.shape[1] > 1  # draws are never of one alone


@pytest.mark.filterwarnings("ignore:the draws are worth only")
def test_chains_that_were_stopped_while_warming_up_have_no_trace(rng):
    data = pc.Comparisons.from_pairs([0, 1, 0, 2] * 4, [1, 2, 2, 0] * 4, user=np.arange(16) % 4)
    model = pc.CommunityGP(inference="mcmc", n_sweeps=3, n_chains=1, progress=False, random_state=0)
    found = model.fit(None, data).state_.learned
    report = diagnose(found.chains, found.draws, found.answers, 50, completed=False)
    assert report.effective_size == 0.0
    n = len(found.chains[0].log_joint)
    after = diagnose(found.chains, found.draws, found.answers, n - 4, completed=True)
    assert after.effective_size == 3.0  # so few are worth what they are


def test_moves_that_are_not_made_leave_everything_and_say_so(rng):
    data = pc.Comparisons.from_rankings([[0, 1, 2, 3], [3, 2, 1, 0]] * 4, users=range(8))
    hyper = ItemHyper(Independent(4.0), Probit())
    mixture = MixtureData(
        Answers.of(data.as_pairs()),
        Inputs(index=np.arange(4)),
        hyper,
        settings=Settings(tolerance=1e-4),
    )
    target, labels = Target(mixture, hyper.theta, 1.0), np.arange(8, dtype=np.int32) % 2
    counts = count_pairs(mixture.answers.counts, labels, 2)
    blank = Sites.zeros(counts.shape[1])
    partition = Partition(labels, tuple(Group(each, blank, hyper.theta) for each in counts))
    tried = [merge_similar_or_divide(target, partition, rng) for _ in range(60)]
    assert {move.is_split for move in tried} == {True, False}
    assert [move.is_accepted for move in tried] == [
        move.partition is not partition for move in tried
    ]
    assert not all(move.is_accepted for move in tried)


def test_a_community_that_nobody_belongs_to_stays_as_it_is():
    data = pc.Comparisons.from_pairs([0, 1, 0], [1, 2, 2], user=[0, 1, 1], items=range(3))
    known = pc.PreferenceGP(Independent(1.0)).fit(None, data).state_.learned.posterior
    for nobody in (0.0, 1e-6):
        membership = np.array([[1.0 - nobody, nobody]] * 2)
        inferred = infer_beside_effects((known, known), membership, Rows.by_user(data), None)
        assert inferred[0] is not known
        assert inferred[1] is known
