"""Draws: labels aligned, memberships, predictions, diagnostics."""

from dataclasses import replace

import numpy as np
import pytest

from penchant.communities import Answers, Draw, Draws
from penchant.communities.chains import align, effective_size, potential_scale_reduction
from penchant.data import Comparisons
from penchant.likelihoods import Probit

TASTES = np.array([[3.0, 0.0, -3.0], [-3.0, 0.0, 3.0], [0.0, 3.0, -3.0]])


def make_draw(order, chain=0, extra=0):
    """The three tastes in some order, and perhaps communities of one user that mean nothing."""
    utilities = np.concatenate([TASTES[order], np.tile(TASTES[:1], (extra, 1))])
    sizes = np.concatenate([np.array([30, 20, 10])[order], np.ones(extra, dtype=int)])
    return Draw(
        sizes=sizes,
        utilities=utilities,
        likelihood_thetas=np.zeros((len(sizes), 0)),
        is_supported=np.arange(len(sizes)) < 3,
        chain=chain,
        labels=np.arange(len(sizes)),
    )


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
    assert draws.n_communities == 3
    for draw in draws.kept:
        for utilities, label in zip(draw.utilities[:3], draw.labels[:3], strict=True):
            np.testing.assert_array_equal(utilities, TASTES[label])


def test_what_is_left_over_counts_where_its_users_are(draws):
    extra = draws.kept[3].labels[3:]
    assert (extra == 0).all()


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
    assert mixed.counts() == pytest.approx({1: 0.2, 3: 0.8})


def test_effective_size_of_an_autoregression(rng):
    n, rho = 20_000, 0.8
    noise = rng.standard_normal(n)
    trace = np.empty(n)
    trace[0] = noise[0]
    for t in range(1, n):
        trace[t] = rho * trace[t - 1] + noise[t]
    assert effective_size(trace) == pytest.approx(n * (1 - rho) / (1 + rho), rel=0.25)
    assert effective_size(noise) == pytest.approx(n, rel=0.25)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_short_traces_are_worth_their_length(n):
    assert effective_size(np.arange(float(n))) == n


def test_scale_reduction_tells_agreement_from_disagreement(rng):
    traces = rng.standard_normal((3, 500))
    assert potential_scale_reduction(list(traces)) == pytest.approx(1.0, abs=0.02)
    traces[0] += 3.0
    assert potential_scale_reduction(list(traces)) > 1.5
    assert np.isnan(potential_scale_reduction([traces[0]]))
