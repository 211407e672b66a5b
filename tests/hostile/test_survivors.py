"""Small changes that once went unnoticed: each of these tests fails on one of them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import entr, expit, ndtr

import penchant as pc
from penchant.ask import StudyDesign, criteria
from penchant.communities import (
    Answers,
    Crowd,
    Mixture,
    common_effects,
    sharded,
)
from penchant.communities import population as personal
from penchant.communities import split_merge as moves
from penchant.communities.chains import diagnose
from penchant.communities.component import everybody_together, shares, soft_counts
from penchant.communities.component import expected_log_likelihoods as log_likelihoods
from penchant.communities.data import count_pairs
from penchant.communities.mixture import infer_beside_effects
from penchant.communities.split_merge import Partition, Target, reunite
from penchant.data.formats import ballots
from penchant.data.formats.sheet import Sheet
from penchant.errors import DataError
from penchant.gp import (
    Answered,
    Calendar,
    Edges,
    ItemHyper,
    Settings,
    Votes,
    factor_prior,
    judge,
    learn,
    loop,
)
from penchant.gp.dynamic.prior import MOST_PERIODS
from penchant.gp.items.problem import as_weights
from penchant.gp.users import problem as user_problem
from penchant.gp.users.arrowhead import SharedPrior
from penchant.gp.users.blocks import PairBlock
from penchant.gp.users.nystrom import factor_users
from penchant.kernels import RBF, FreeCovariance, Independent, Inputs, as_relations
from penchant.likelihoods import Gaussian, Outcomes, Probit, Raters
from penchant.models import default_kernel, utility_kernel
from penchant.models.defaults import GRAPH_REACH, _default_graph_kernel, sharing_kernel
from penchant.numerics import dispatch as device
from penchant.numerics.batched import StackPlaces, collect_cells
from penchant.numerics.optimize import _descend
from penchant.numerics.quadrature import normal_rule


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


def test_the_scale_of_a_free_covariance_is_held_near_its_start(rng):
    """Going away from the start's scale costs, more the further; the slope says the same."""
    start = FreeCovariance.of(2.0 * np.eye(4))
    values = []
    for log_factor in (0.0, 0.5, 1.0, 2.0):
        scaled = FreeCovariance(start.factor * np.exp(log_factor))
        values.append(scaled.log_prior(start)[0])
        mirrored = FreeCovariance(start.factor * np.exp(-log_factor))
        assert mirrored.log_prior(start)[0] == pytest.approx(values[-1])
    assert values == sorted(values, reverse=True)
    # log variance moves by 2 log_factor, and both priors are quadratic in it
    drops = values[0] - np.array(values[1:])
    assert drops / drops[0] == pytest.approx([1.0, 4.0, 16.0])
    far = FreeCovariance(start.factor * 3.0)
    _, slope = far.log_prior(start)
    for k, step in enumerate(1e-6 * np.eye(len(slope))):
        ahead = far.with_theta(far.theta + step).log_prior(start)[0]
        behind = far.with_theta(far.theta - step).log_prior(start)[0]
        assert slope[k] == pytest.approx((ahead - behind) / 2e-6, abs=1e-5)


@pytest.mark.parametrize("max_sweeps", [6, 9, 15])
def test_sweeps_after_frozen_steps_that_failed_count_towards_the_most(max_sweeps, monkeypatch):
    """Steps that lead nowhere hand over to plain sweeps, which have only what is left."""
    rng = np.random.default_rng(0)
    winner = rng.integers(0, 40, 60)
    data = pc.Comparisons.from_pairs(winner, (winner + 1 + winner % 7) % 40, items=range(40))
    edges = Edges.of(data)
    prior = factor_prior(Independent(4.0), Inputs(index=np.arange(40)), edges)
    n_calls = []

    def nowhere(inference, *_):
        n_calls.append(inference.report.n_sweeps)
        return inference.sites

    monkeypatch.setattr(loop, "_frozen_steps", nowhere)
    monkeypatch.setattr(loop, "RULE_FLOPS", 1e-3)  # so that frozen steps are worth their while
    limits = Settings(tolerance=0.0, max_sweeps=max_sweeps)
    inference = loop.converge(prior, Probit(), edges, limits, None)
    assert len(n_calls) == 1
    assert inference.report.n_sweeps == max_sweeps
    assert not inference.report.converged


@pytest.mark.parametrize("make", [np.array, list, tuple])
@pytest.mark.parametrize("kind", [bool, int])
def test_ties_are_told_by_truth_values_of_any_kind(make, kind):
    ties = make([kind(False), kind(True), kind(False)])
    data = pc.Comparisons.from_pairs(["a", "b", "a"], ["b", "c", "c"], tie=ties)
    assert data.tie.sum() == 1
    assert (data.items[data.winner[data.tie][0]], data.items[data.loser[data.tie][0]]) == ("b", "c")


@pytest.mark.parametrize("wrong", [np.array([0, 2]), np.array([0.5, 0.0]), ["no", "maybe"], [3, 1]])
def test_ties_that_are_no_truth_values_are_refused(wrong):
    with pytest.raises(pc.DataError, match="tie"):
        pc.Comparisons.from_pairs(["a", "b"], ["b", "c"], tie=wrong)


def test_ties_in_words_in_an_array_are_read():
    data = pc.Comparisons.from_pairs(["a", "b"], ["b", "c"], tie=np.array(["yes", "no"]))
    assert data.tie.tolist() == [True, False]


def test_every_restart_begins_somewhere_else(rng):
    begin, bounds = np.zeros(3), np.array([[-1.0, 1.0]] * 3)
    assert len(learn._starts(begin, bounds, 0, rng)) == 1
    for n_restarts in (1, 4):
        starts = learn._starts(begin, bounds, n_restarts, rng)
        assert len(np.unique(np.stack(starts), axis=0)) == n_restarts + 1
        np.testing.assert_array_equal(starts[0], begin)
        assert np.abs(starts).max() <= 1.0


@pytest.mark.parametrize("likelihood", [Gaussian(1e-3), Gaussian(1e-8)])
def test_entropies_are_looked_at_as_far_as_they_change(likelihood):
    """Of narrow likelihoods: a thousandth of the bump is left there, and less at the next probe."""
    reach = 4.0 * criteria._grid_of(likelihood)[-1] / criteria._GRID[-1]
    probes = criteria._PROBES
    entropy = criteria._entropy(likelihood, probes, np.zeros(len(probes)))
    bump = np.abs(entropy - entropy[-1])
    at = int(np.argmin(np.abs(probes - reach)))
    assert probes[at] == pytest.approx(reach)
    assert bump[at] > 1e-3 * bump.max() >= bump[at + 1]


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
    crowd = Crowd(answers, Inputs(index=np.arange(5)), ItemHyper(Independent(), Probit()))
    model, asked = crowd.model(crowd.hyper.theta), []

    def ask(told):
        r = shares(log_likelihoods(answers, told.table) + told.log_weights)
        asked.append(told)
        return sharded.Members(soft_counts(answers, r), r.sum(axis=0), float(entr(r).sum()))

    slopes = (answers.winner > answers.loser) - 0.5
    start = sharded.Views(np.column_stack([slopes, -slopes]), np.zeros(2))
    settled = sharded.settle_parts(model, start, 40, ask)
    np.testing.assert_allclose(settled.members.sizes, [20.0, 20.0], atol=0.1)
    assert settled.n_sweeps <= len(asked) < 8 < sharded.SETTLE_SWEEPS


@pytest.mark.parametrize(("n_cards", "index"), [(0, None), (0, 0), (1, 1), (2, 5)])
def test_a_card_beyond_the_last_is_refused(n_cards, index, monkeypatch):
    torch = SimpleNamespace(
        __version__="2",
        cuda=SimpleNamespace(device_count=lambda: n_cards),
        device=lambda name: SimpleNamespace(type="cuda", index=index),
    )
    monkeypatch.setattr(device, "_torch", lambda: torch)
    device._torch_device.cache_clear()
    with pytest.raises(pc.DataError, match=f"sees {n_cards} CUDA cards"):
        device.device_called("cuda" if index is None else f"cuda:{index}")


@pytest.mark.parametrize("tolerance", [0.0, 1e-8])
def test_users_who_are_alike_are_one_pivot(tolerance):
    """What is left of the second is nothing, by which nothing may be divided."""
    users = Inputs(np.array([[1.0], [1.0], [1.0]]), index=np.arange(3))
    factor = factor_users(RBF(1.0), users, 3, tolerance)
    np.testing.assert_array_equal(factor.pivots, [0])
    np.testing.assert_allclose(factor.rows, np.ones((3, 1)))


@pytest.mark.parametrize(("share", "is_near"), [(0.9, True), (1.1, False)])
def test_one_step_is_enough_where_little_is_left_to_gain(share, is_near):
    """A Newton step along a slope s gains s² / 2c: several times that is still within tolerance."""
    value, curvature = -100.0, 4.0
    gain = share * learn.VALUE_TOLERANCE * abs(value) / learn.LEFT
    slope = np.array([np.sqrt(2.0 * curvature * gain)])
    bounds = np.array([[-1.0, 1.0]])
    summit = learn._one_step(
        lambda theta, tolerance: (value, slope, None), np.zeros(1), bounds, curvature
    )
    assert (summit is not None) == is_near
    if summit is not None:
        np.testing.assert_allclose(summit.theta, slope / curvature)


def test_very_many_items_are_learned_from_by_those_compared_most(rng, monkeypatch):
    """Votes between them stay, all of them, under new positions."""
    monkeypatch.setattr(user_problem, "LARGEST_LEARNED", 9)
    monkeypatch.setattr(user_problem, "LEARNING_ITEMS", 4)
    ring = [(i, (i + 1) % 10) for i in range(10)]
    often = [(0, 3), (3, 7), (0, 9), (9, 7)] * 5
    winner, loser = np.array(ring + often).T
    data = pc.Comparisons.from_pairs(
        winner, loser, user=rng.integers(3, size=len(winner)), items=range(10), users=range(3)
    )
    items, users = (Inputs(index=np.arange(n)) for n in (10, 3))
    problem = user_problem.UserProblem.of(items, users, Votes.of(data), Settings())
    few = problem.few_items()
    np.testing.assert_array_equal(few.items.index, [0, 3, 7, 9])
    kept = few.items.index
    found = zip(kept[few.edges.winner], kept[few.edges.loser], few.edges.user, strict=True)
    wanted = [
        pair
        for pair in zip(data.winner, data.loser, data.user, strict=True)
        if set(pair[:2]) <= {0, 3, 7, 9}
    ]
    assert sorted(found) == sorted(wanted)
    assert few.few_items() is few
    assert few.edges.count.sum() == 21.0  # 9 → 0 is in the ring


@pytest.mark.parametrize(("rank", "columns"), [(1, 7), (2, 3), (3, 3)])
def test_what_users_share_is_added_up_where_it_is_smaller(rank, columns, rng):
    shared = SharedPrior.of(rng.standard_normal((7, 3)), rank, None)
    assert shared.nothing().shape == (rank**2, columns, columns)


def test_sites_of_a_taste_lead_to_its_mode(rng):
    """Conditioned on them, the prior has the mode for its mean: a start that is the end."""
    winner = rng.integers(6, size=80)
    loser = (winner + 1 + rng.integers(5, size=80)) % 6
    data = pc.Comparisons.from_pairs(winner, loser, user=np.zeros(80, int), items=range(6))
    items = Inputs(index=np.arange(6))
    crowd = Crowd(Answers.of(data), items, ItemHyper(Independent(2.0), Probit()))
    taste = everybody_together(crowd, crowd.hyper.theta).components[0]
    tau, nu = taste.sites
    state = taste.prior.refresh(taste.weights * tau, taste.weights * nu)
    np.testing.assert_allclose(state.mean, taste.state.mean, atol=0.05)
    assert np.abs(state.mean).max() > 0.3


@pytest.mark.parametrize("n_users", [1, 3])
def test_rows_and_their_users_are_never_cut_to_the_shorter(n_users):
    sheet = Sheet("votes.csv", {"first": ["tea", "milk"]}, ["ann"] * n_users, 2)
    with pytest.raises(ValueError, match="zip"):
        sheet.rows(["first"])


def test_a_fit_beyond_a_card_says_what_it_would_need():
    card = SimpleNamespace(name="cuda:0", most_items=10_000)
    device.check_room(card, 10_000)
    need = f"{device.MATRICES * 3.2:,.0f} GB"  # 20,000² numbers of 8 bytes are 3.2 GB
    with pytest.raises(pc.DataError, match=need):
        device.check_room(card, 20_000)


@pytest.mark.parametrize("n_weights", [1, 2, 3])
@pytest.mark.parametrize("n_items", [4, 20])
def test_users_matrices_add_up_wherever_their_items_lie(rng, n_weights, n_items):
    """Few or many of all items, one weight a user or several: each has a way of its own."""
    items = np.sort(np.stack([rng.permutation(n_items)[:3] for _ in range(5)]), axis=1)
    nothing = np.zeros(0, dtype=np.intp)
    places = StackPlaces(items, *[nothing] * 4, n_items)
    stack, weights = rng.standard_normal((5, 3, 3)), rng.standard_normal((5, n_weights))
    expected = np.zeros((n_weights, n_items, n_items))
    for matrix, weight, own in zip(stack, weights, items, strict=True):
        expected[:, own[:, None], own] += weight[:, None, None] * matrix
    np.testing.assert_allclose(collect_cells(stack, weights, places), expected, atol=1e-12)


def test_what_a_split_gains_counts_the_concentration(rng):
    """A further community costs −log α: it is as much likelier as α is larger."""
    orders = [[0, 1, 2, 3]] * 6 + [[3, 2, 1, 0]] * 6
    data = pc.Comparisons.from_rankings(orders, users=range(12)).as_pairs()
    items, hyper = Inputs(index=np.arange(4)), ItemHyper(Independent(2.0), Probit())
    gains = []
    for concentration in (0.5, 5.0):
        crowd = Crowd(Answers.of(data), items, hyper, concentration=concentration)
        whole, start = everybody_together(crowd, hyper.theta), np.repeat([0.99, 0.01], 6)
        gains.append(moves._two_way(whole, 0, np.arange(12), start).gain)
    assert gains[1] - gains[0] == pytest.approx(np.log(10.0), abs=1e-3)


def test_a_split_is_refused_again_only_where_answers_and_parameters_are_the_same():
    weights, theta = np.full(4, 5.0), np.zeros(2)
    refused = moves.RefusedSplit(weights, theta)
    assert refused.covers(weights, theta)
    assert not refused.covers(2.0 * weights, theta)
    assert not refused.covers(weights, theta + 5.0)


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


def test_a_graph_of_few_links_is_reached_as_far_as_one_of_many():
    links = np.zeros((8, 8))
    links[0, 1] = links[1, 0] = links[2, 3] = links[3, 2] = 1.0  # half a link an item
    relations = as_relations({"near": links}, 8)
    kernel = _default_graph_kernel("near", Inputs(index=np.arange(8), relations=relations))
    assert kernel.iota == pytest.approx(np.sqrt(GRAPH_REACH / 0.5))


def test_differences_far_surer_than_an_answer_are_not_made_unsure():
    ends = PairBlock.of(np.arange(1), np.array([[0]]), np.array([0]), np.array([1]), 2)
    variance = np.full((1, 1, 1), 1e-14)
    _, var = ends.moments(np.zeros((1, 1)), variance, np.zeros((1, 1, 1)), np.zeros((1, 1)))
    assert var[0] == 1e-14


@pytest.mark.parametrize("shown", [{"first": [1]}, {"covariates": {"length": [1.0]}}])
def test_newcomers_known_by_features_are_asked_at_equal_sides(shown):
    data = pc.Comparisons.from_pairs([0, 1, 0], [1, 2, 2], user=[0, 1, 2])
    users = np.array([[0.0], [1.0], [2.0]])
    model = pc.MultiUserGP(progress=False).fit(None, data, user_features=users)
    assert model.predict_proba([(0, 1)], user_features=[[1.0]]).shape == (1,)
    with pytest.raises(DataError, match="cannot be given together with user_features"):
        model.predict_proba([(0, 1)], user_features=[[1.0]], **shown)


def test_a_table_without_losers_says_so(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text("winner,colour,size\na,red,2\n", encoding="utf-8")
    with pytest.raises(DataError, match="no column that is recognised as the loser: its"):
        pc.read_comparisons(path)


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


def test_as_many_ballots_as_are_allowed_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(ballots, "_MOST_BALLOTS", 5)
    path = tmp_path / "votes.csv"
    path.write_text("1st choice,2nd choice,n\na,b,2\nb,a,3\n", encoding="utf-8")
    assert pc.read_comparisons(path, count="n").n_comparisons == 5
    path.write_text("1st choice,2nd choice,n\na,b,2\nb,a,4\n", encoding="utf-8")
    with pytest.raises(DataError, match="add up to more than 5 ballots"):
        pc.read_comparisons(path, count="n")


@pytest.mark.parametrize("clustered", [True, False])
def test_what_was_worked_out_of_a_posterior_is_kept_only_where_it_still_holds(clustered):
    """A wider covariance, for answers of one person that go together, has no such half."""
    sides = [0, 0, 1] * 4, [1, 2, 2] * 4
    data = pc.Comparisons.from_pairs(*sides, user=np.repeat(range(4), 3), count=[9] * 12)
    data += pc.Comparisons.from_pairs(*sides[::-1], user=np.repeat(range(4, 8), 3), count=[9] * 12)
    posterior = pc.PreferenceGP(clustered=clustered).fit(None, data).state_.learned.posterior
    assert (posterior.widening is None) is not clustered
    assert posterior.half is not None
    assert (as_weights(posterior).half is None) is clustered


def test_the_first_edge_of_a_choice_is_part_of_it():
    data = pc.Comparisons.from_rankings([["a", "b", "c"], ["a", "d"]])
    edges = Edges.of(data)
    n = len(edges) - edges.outcomes.cliques.n_edges
    assert n == 1
    every = edges.outcomes.part_of(np.arange(len(edges)), len(edges))
    assert every.cliques.n_choices == edges.outcomes.cliques.n_choices


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
    mixture = Mixture(
        Answers.of(data.as_pairs()),
        Inputs(index=np.arange(4)),
        hyper,
        settings=Settings(tolerance=1e-4),
    )
    target, labels = Target(mixture, hyper.theta, 1.0), np.arange(8, dtype=np.int32) % 2
    counts = count_pairs(mixture.answers.counts, labels, 2)
    partition = Partition(labels, counts, 0.0 * counts, 0.0 * counts, np.tile(hyper.theta, (2, 1)))
    tried = [reunite(target, partition, rng) for _ in range(60)]
    assert {move.is_split for move in tried} == {True, False}
    assert [move.is_made for move in tried] == [move.partition is not partition for move in tried]
    assert not all(move.is_made for move in tried)


@pytest.mark.filterwarnings("ignore:the draws are worth only")
def test_a_chain_that_found_one_community_keeps_its_file(tmp_path):
    data = pc.Comparisons.from_pairs([0, 0, 1] * 6, [1, 2, 2] * 6, user=np.repeat(range(6), 3))
    model = pc.CommunityGP(
        0.01, inference="mcmc", n_sweeps=4, n_chains=1, progress=False, random_state=0
    ).fit(None, data)
    assert min(model.state_.learned.chains[0].n_communities) == 1
    model.save(tmp_path / "model")
    assert pc.load(tmp_path / "model").predict().tobytes() == model.predict().tobytes()


def test_periods_cover_the_whole_span():
    calendar = Calendar.of(np.array([0.0, 1.0, 3000.0]), None)
    assert calendar.length == pytest.approx(3000.0 / MOST_PERIODS)


def test_a_step_out_of_bounds_is_not_tried():
    def never(_):
        raise AssertionError("the objective was asked about the same point again")

    here = np.array([1.0]), 0.0, np.array([-1.0])
    assert _descend(never, here, np.array([2.0]), np.array([[0.0, 1.0]]), 0.0) is None


def test_how_much_raters_differ_is_learned(rng):
    n_raters, n_answers, spread = 150, 80, 1.0
    share = expit(rng.normal(-1.5, spread, n_raters))
    rater = np.repeat(np.arange(n_raters), n_answers)
    g = np.abs(rng.normal(0.0, 3.0, len(rater)))
    is_random = rng.random(len(rater)) < share[rater]
    right = np.where(is_random, rng.random(len(rater)) < 0.5, rng.random(len(rater)) < ndtr(g))
    known = np.full(len(rater), 1e-9)
    answered = Answered(rater, np.where(right, g, -g), known, Outcomes(), 1.0 + 0 * g, n_raters)
    found = judge(answered, Raters(Probit()))
    assert found.centre == pytest.approx(-1.5, abs=0.4)
    assert found.spread == pytest.approx(spread, abs=0.35)


def test_a_study_of_three_items_can_be_planned():
    assert StudyDesign(3).n_items == 3
    with pytest.raises(DataError, match="at least three items"):
        StudyDesign(2)


def test_ties_that_a_likelihood_does_not_know_are_not_held_against_it():
    wins = pc.Comparisons.from_pairs([0, 1], [1, 2], items=range(3))
    ties = pc.Comparisons.from_pairs([0], [2], tie=[True], items=range(3))
    model = pc.PreferenceGP().fit(None, wins)
    assert model.score(wins + ties) == model.score(wins)


def test_a_community_that_nobody_belongs_to_stays_as_it_is():
    data = pc.Comparisons.from_pairs([0, 1, 0], [1, 2, 2], user=[0, 1, 1], items=range(3))
    known = pc.PreferenceGP(Independent(1.0)).fit(None, data).state_.learned.posterior
    for nobody in (0.0, 1e-6):
        membership = np.array([[1.0 - nobody, nobody]] * 2)
        inferred = infer_beside_effects((known, known), membership, Votes.of(data), None)
        assert inferred[0] is not known
        assert inferred[1] is known


@pytest.mark.parametrize("max_sd", [0.5, 2.0])
def test_nodes_reach_no_further_than_the_density_does(max_sd):
    x, w = normal_rule(max_sd, 0.63)
    assert x[-1] < 7.4 + 0.5 * max_sd + (x[1] - x[0])
    assert w @ x**2 == pytest.approx(1.0, abs=1e-9)
