"""Models at the edges: each test fails on one small change that once went unnoticed."""

import numpy as np
import pytest

import penchant as pc
from penchant.errors import DataError
from penchant.kernels import Inputs, as_relations
from penchant.models import default_kernel, sharing_kernel, utility_kernel


@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_the_first_lengthscale_is_five_times_the_items_spread(scale):
    """Root mean squared distance from the mean: variances 1 and 3 make 2."""
    X = scale * np.array([[1.0, 3.0**0.5], [1.0, -(3.0**0.5)], [-1.0, 3.0**0.5], [-1, -(3.0**0.5)]])
    items = Inputs(X, index=np.arange(4))
    expected = (10.0 * scale,) * 2
    assert default_kernel(items).lengthscale == pytest.approx(expected)
    assert utility_kernel(items, None).parts[0].lengthscale == pytest.approx(expected)
    assert expected[0] in [pytest.approx(v) for v in np.exp(sharing_kernel(items).theta)]


def test_many_features_share_one_first_lengthscale(rng):
    X = rng.standard_normal((50, 21))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel = default_kernel(Inputs(X, index=np.arange(50)))
    assert kernel.lengthscale == pytest.approx(5.0 * np.sqrt(21.0))


def test_a_graph_of_few_links_is_reached_as_far_as_one_of_many():
    links = np.zeros((8, 8))
    links[0, 1] = links[1, 0] = links[2, 3] = links[3, 2] = 1.0  # half a link an item
    relations = as_relations({"near": links}, 8)
    kernel = default_kernel(Inputs(index=np.arange(8), relations=relations))
    assert kernel.iota == pytest.approx(np.sqrt(50.0 / 0.5))


@pytest.mark.parametrize("shown", [{"first": [1]}, {"covariates": {"length": [1.0]}}])
def test_newcomers_known_by_features_are_asked_at_equal_sides(shown):
    data = pc.Comparisons.from_pairs([0, 1, 0], [1, 2, 2], user=[0, 1, 2])
    users = np.array([[0.0], [1.0], [2.0]])
    model = pc.MultiUserGP(progress=False).fit(None, data, user_features=users)
    assert model.predict_proba([(0, 1)], user_features=[[1.0]]).shape == (1,)
    with pytest.raises(DataError, match="cannot be given together with user_features"):
        model.predict_proba([(0, 1)], user_features=[[1.0]], **shown)


@pytest.mark.filterwarnings("ignore:the draws are worth only")
def test_a_chain_that_found_one_community_keeps_its_file(tmp_path):
    data = pc.Comparisons.from_pairs([0, 0, 1] * 6, [1, 2, 2] * 6, user=np.repeat(range(6), 3))
    model = pc.CommunityGP(
        0.01, inference="mcmc", n_sweeps=4, n_chains=1, progress=False, random_state=0
    ).fit(None, data)
    assert min(model.state_.learned.chains[0].n_communities) == 1
    model.save(tmp_path / "model")
    assert pc.load(tmp_path / "model").predict().tobytes() == model.predict().tobytes()


def test_ties_that_a_likelihood_does_not_know_are_not_held_against_it():
    wins = pc.Comparisons.from_pairs([0, 1], [1, 2], items=range(3))
    ties = pc.Comparisons.from_pairs([0], [2], tie=[True], items=range(3))
    model = pc.PreferenceGP().fit(None, wins)
    assert model.score(wins + ties) == model.score(wins)


def test_people_who_differ_equally_widen_intervals_a_little():
    """Between two items there is one direction, in which M is its own target."""
    winner, loser, people = ["a", "b"] * 6, ["b", "a"] * 6, range(12)
    told = pc.PreferenceGP(optimize=None).fit(
        None, pc.Comparisons.from_pairs(winner, loser, user=people)
    )
    bare = pc.PreferenceGP(optimize=None).fit(None, pc.Comparisons.from_pairs(winner, loser))
    reach, least = (model.rank()[0].high for model in (told, bare))
    assert least <= reach < 1.5 * least
