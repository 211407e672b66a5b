"""Small changes that once went unnoticed: each of these tests fails on one of them."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import entr

import penchant as pc
from penchant.ask import criteria
from penchant.communities import sharded
from penchant.communities.assignment import Answers
from penchant.communities.division import everybody_together, log_likelihoods, shares, soft_counts
from penchant.communities.taste import Crowd
from penchant.data.formats.sheet import Sheet
from penchant.gp import Edges, ItemHyper, Settings, learn, loop
from penchant.gp.items.prior import factor_prior
from penchant.gp.users import problem as user_problem
from penchant.gp.users.pivots import factor_users
from penchant.gp.users.shared import SharedPrior
from penchant.gp.users.votes import Votes
from penchant.kernels import RBF, FreeCovariance, Independent, Inputs
from penchant.likelihoods import Gaussian, Probit
from penchant.models.defaults import default_kernel, sharing_kernel, utility_kernel
from penchant.numerics import device


@pytest.mark.parametrize("scale", [0.1, 1.0, 20.0])
def test_the_first_lengthscale_is_five_times_the_items_spread(scale):
    """Root mean squared distance from the mean: variances 1 and 3 make 2."""
    X = scale * np.array([[1.0, 3.0**0.5], [1.0, -(3.0**0.5)], [-1.0, 3.0**0.5], [-1, -(3.0**0.5)]])
    items = Inputs(X, index=np.arange(4))
    expected = (10.0 * scale,) * 2
    assert default_kernel(items).lengthscale == pytest.approx(expected)
    assert utility_kernel(items, None).lengthscale == pytest.approx(expected)
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
    taste = everybody_together(crowd, crowd.hyper.theta).tastes[0]
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
