"""Draws: labels aligned, memberships; convergence, in cases that can be worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

import penchant as pc
from penchant.communities import (
    Answers,
    Diagnostics,
    Draw,
    Draws,
    align,
    diagnose,
    effective_size,
    potential_scale_reduction,
)
from penchant.data import Comparisons
from penchant.likelihoods import Probit

TASTES = np.array([[3.0, 0.0, -3.0], [-3.0, 0.0, 3.0], [0.0, 3.0, -3.0]])


def make_draw(order, chain=0, extra=0):
    """The three tastes in some order, and perhaps communities of one user that mean nothing."""
    utilities = np.concatenate([TASTES[order], np.tile(TASTES[:1], (extra, 1))])
    sizes = np.concatenate([np.array([30, 20, 10])[order], np.ones(extra, dtype=int)])
    labels = np.arange(len(sizes))
    return Draw(sizes, utilities, np.zeros((len(sizes), 0)), labels < 3, chain, labels)


@pytest.fixture
def answers():
    orders = [[0, 1, 2]] * 3 + [[2, 1, 0]] * 2 + [[1, 0, 2]]
    return Answers.of(
        Comparisons.from_rankings(orders * 2, users=range(12), items=range(3)).as_pairs()
    )


@pytest.fixture
def draws(answers):
    orders = ([0, 1, 2], [2, 0, 1], [1, 2, 0], [0, 2, 1])
    kept = tuple(make_draw(list(order), chain=k % 2, extra=k) for k, order in enumerate(orders))
    return align(Draws(kept, Probit(), 1), answers)


def test_the_same_community_has_the_same_label_in_every_draw(draws):
    """What is left over counts where its users are."""
    assert draws.n_communities == 3
    for draw in draws.kept:
        np.testing.assert_array_equal(draw.utilities, TASTES[draw.labels])
    assert (draws.kept[3].labels[3:] == 0).all()


def test_memberships_sum_to_one_and_follow_the_answers(draws, answers):
    membership = draws.membership(answers)
    np.testing.assert_allclose(membership.sum(axis=1), 1.0, rtol=1e-5)
    assert membership.argmax(axis=1).tolist() == [0, 0, 0, 1, 1, 2] * 2


def test_memberships_do_not_depend_on_the_order_of_communities(answers):
    single = [
        align(Draws((make_draw(order),), Probit(), 1), answers) for order in ([0, 1, 2], [2, 1, 0])
    ]
    np.testing.assert_allclose(*(d.membership(answers) for d in single), rtol=1e-5)


def test_a_user_without_answers_belongs_where_most_are(draws):
    nobody = Answers.of(
        Comparisons.from_pairs([0], [1], user=["a"], users=["a", "b"], items=range(3))
    )
    share = draws.of_chain(0).membership(nobody)[1]
    assert share.argmax() == 0
    first = Draws((make_draw([0, 1, 2]),), Probit(), 3)
    np.testing.assert_allclose(first.membership(nobody)[1], [0.5, 1 / 3, 1 / 6], rtol=1e-5)


def test_counts_are_the_share_of_draws(draws):
    one = replace(draws.kept[0], is_supported=np.array([True, False, False]))
    mixed = replace(draws, kept=(*draws.kept, one))
    assert mixed.supported_counts() == pytest.approx({1: 0.2, 3: 0.8})
    # those of one user are communities, too
    assert mixed.counts() == pytest.approx({3: 0.4, 4: 0.2, 5: 0.2, 6: 0.2})


@pytest.mark.parametrize("n", [0, 1, 3])
def test_short_traces_are_worth_their_length(n):
    assert effective_size(np.arange(float(n))) == n


@pytest.mark.parametrize(
    ("said", "changed"),
    [
        (None, {}),
        ("interrupted", {"completed": False}),
        ("different communities", {"agreement": 0.1}),
    ],
)
def test_chains_have_converged_where_there_is_no_advice(said, changed):
    settled = {"rhat": 1.0, "effective_size": 500.0, "agreement": 1.0, "completed": True}
    trace = (np.zeros(400),)
    found = Diagnostics(trace, trace, 100, split_rate=0.1, merge_rate=0.1, **settled | changed)
    assert found.converged == (said is None)
    assert (found.advice() or "").find(said or "") >= 0


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([3.0] * 5, [3.0] * 5, 1.0),  # chains that never move agree or never will
        ([3.0] * 5, [4.0] * 5, np.inf),
        ([0.0, 1.0, 2.0], [2.0, 3.0, 4.0], np.sqrt(2.0 / 3.0 + 2.0)),  # variances 1 and 1
    ],
)
def test_scale_reduction_by_hand(one, other, expected):
    assert potential_scale_reduction([np.array(one), np.array(other)]) == pytest.approx(expected)


def test_effective_size_of_an_autoregression():
    """x_t = x_{t−1}/2 + noise: n (1 − ½)/(1 + ½) = n/3."""
    rng = np.random.default_rng(0)
    trace = np.zeros(20_000)
    for t in range(1, len(trace)):
        trace[t] = 0.5 * trace[t - 1] + rng.standard_normal()
    assert effective_size(trace) == pytest.approx(len(trace) / 3.0, rel=0.1)
    assert effective_size(rng.standard_normal(20_000)) == pytest.approx(20_000, rel=0.1)


@pytest.mark.filterwarnings("ignore:the draws are worth only")
def test_chains_that_were_stopped_while_warming_up_have_no_trace():
    data = Comparisons.from_pairs([0, 1, 0, 2] * 4, [1, 2, 2, 0] * 4, user=np.arange(16) % 4)
    model = pc.CommunityGP(inference="mcmc", n_sweeps=3, n_chains=1, progress=False, random_state=0)
    found = model.fit(None, data).state_.learned
    report = diagnose(found.chains, found.draws, found.answers, 50, completed=False)
    assert report.effective_size == 0.0
    n = len(found.chains[0].log_joint)
    after = diagnose(found.chains, found.draws, found.answers, n - 4, completed=True)
    assert after.effective_size == 3.0  # so few are worth what they are
