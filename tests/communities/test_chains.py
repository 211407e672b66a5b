"""Chains: growth, restarts, learning, interruption; what their samplers leave invariant."""

from collections import Counter
from dataclasses import fields, replace

import numpy as np
import pytest

from penchant import communities
from penchant.data import Comparisons
from penchant.gp import Settings, Sites
from penchant.kernels import RBF, Independent
from penchant.likelihoods import Ties
from penchant.metrics import adjusted_rand
from tests.communities.simulation import (
    blank_state,
    canonical,
    exact_posterior,
    mixture_of,
    partitions,
    people,
    votes,
)

TASTES = np.array([[2.0, 1.0, 0.0, 0.0, -1.0, -2.0], [-2.0, 0.0, 2.0, -1.0, 1.0, 0.0]])


def planted(n_users=30, n_votes=20, seed=0, tastes=TASTES):
    """A mixture whose users have one of the tastes each, and their communities."""
    data = votes(people(tastes, n_users), n_votes, seed)
    return mixture_of(data, settings=Settings(tolerance=1e-3)), np.arange(n_users) % len(tastes)


def plan(sampler="collapsed", n_warmup=8, learn=True, own=False):
    return communities.ChainPlan(sampler, n_warmup, learn, own)


def run(mixture, how, n_sweeps, state=None):
    state = state or communities.start_chain(mixture, how, (3, 0))
    for _ in range(n_sweeps):
        state = communities.sweep_chain(mixture, how, state)
    return state


def assert_same(a, b):
    for field in fields(a):
        np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))


def test_a_chain_starts_where_it_is_told():
    mixture, truth = planted()
    certain = np.eye(3)[2 * truth]  # the middle one is nobody's
    theta = mixture.hyper.theta + 0.1
    state = communities.start_chain(mixture, plan(), (3, 0), certain, theta)
    np.testing.assert_array_equal(state.assignment, truth)
    np.testing.assert_array_equal(state.theta, theta)
    assert len(state.utilities) == 2


@pytest.mark.parametrize("sampler", ["collapsed", "blocked"])
def test_planted_communities_are_found_and_a_seed_decides_all(sampler):
    (mixture, truth), how = planted(), plan(sampler)
    state = run(mixture, how, 10)
    # one draw of the chain, which may hold a stray small community
    assert adjusted_rand(truth, state.assignment) > 0.8
    first, again = (run(mixture, how, 2) for _ in range(2))
    assert_same(first, again)
    other = run(mixture, how, 2, communities.start_chain(mixture, how, (4, 0)))
    assert not np.array_equal(other.tau, first.tau)


def test_sizes_and_evidence_describe_the_assignment():
    mixture, _ = planted(n_users=12)
    state = run(mixture, plan(), 3)
    counts = communities.count_pairs(mixture.answers.counts, state.assignment, len(state.utilities))
    fits = [
        communities.fit_community(mixture, c, t) for c, t in zip(counts, state.thetas, strict=True)
    ]
    assert [fit.log_evidence for fit in fits] == pytest.approx(state.log_evidence, abs=1e-3)
    assert state.sizes.min() > 0


def test_hyperparameters_are_learned_only_while_warming_up():
    mixture, how = planted()[0], plan(n_warmup=4)
    before = run(mixture, how, 4)
    assert not np.array_equal(before.theta, mixture.hyper.theta)
    np.testing.assert_array_equal(run(mixture, how, 3, before).theta, before.theta)
    kept = run(mixture, replace(how, learn=False), 4)
    np.testing.assert_array_equal(kept.theta, mixture.hyper.theta)


def test_opposite_tastes_do_not_teach_that_there_is_no_taste():
    f = TASTES[0]
    mixture, truth = planted(tastes=np.stack([f, -f]), seed=2)
    state = run(mixture, plan(), 10)
    assert np.exp(state.theta[0]) > 0.5
    assert adjusted_rand(truth, state.assignment) > 0.9


def test_shared_hyperparameters_are_where_the_evidence_is_highest():
    mixture, truth = planted()
    mixture = replace(mixture, settings=Settings(tolerance=1e-9))
    counts = communities.count_pairs(mixture.answers.counts, truth.astype(np.int32), 2)
    blank, step = Sites.zeros(counts.shape[1]), 1e-4

    def evidence(theta):
        return sum(communities.fit_community(mixture, c, theta).log_evidence for c in counts)

    learned = communities.learn_shared(
        mixture, [communities.Group(c, blank, None) for c in counts], np.array([0.4])
    )
    assert evidence(learned) > evidence(np.array([0.4]))
    # a weak prior of some nats beside hundreds: the evidence is nearly flat there
    assert abs(evidence(learned + step) - evidence(learned - step)) / (2 * step) < 1.0


def test_own_hyperparameters_stay_near_the_shared_where_answers_are_few():
    mixture, _ = planted(n_users=40, tastes=4.0 * TASTES[:1])
    few = np.zeros(40, dtype=np.int32)
    few[0] = 1
    counts = communities.count_pairs(mixture.answers.counts, few, 2)
    blank = Sites.zeros(counts.shape[1])
    theta = np.array([-2.0])
    own = communities.learn_own(
        mixture, [communities.Group(c, blank, theta) for c in counts], theta
    )
    assert abs(own[1, 0] - theta[0]) < 0.5 * abs(own[0, 0] - theta[0])


def test_a_likelihood_with_parameters_and_ties_runs():
    pairs, tie = ([0, 1, 2, 0, 2, 1], [1, 2, 0, 2, 1, 0]), np.array([0, 1, 0, 0, 1, 0], dtype=bool)
    data = Comparisons.from_pairs(*pairs, user=[0, 0, 1, 1, 2, 2], tie=tie)
    X = np.array([[0.0], [1.0], [2.0]])
    mixture = mixture_of(data, RBF(), Ties(), X, settings=Settings(tolerance=1e-3))
    state = run(mixture, plan(own=True), 3)
    assert np.isfinite(state.log_joint)
    assert state.thetas.shape == (len(state.utilities), len(mixture.hyper.theta))


def test_groups_that_no_one_would_miss_do_not_count():
    (mixture, truth), how = planted(n_users=40), plan(learn=False)
    junk = truth.astype(np.int32)
    junk[[0, 1, 2, 3]] = 2  # two of each taste
    state = run(mixture, how, 1)
    partition = communities.partition_of(mixture, state, junk)
    settled = communities.draw_utilities(how, state, partition, np.random.default_rng(0))
    assert communities.supported(mixture, settled).tolist() == [True, True, False]


def started(mixture, how, n_chains=1):
    return [
        communities.Chain.of(communities.start_chain(mixture, how, (3, number)))
        for number in range(n_chains)
    ]


def interrupt_at(sweep):
    def watch(state):
        if state.sweep == sweep:
            raise KeyboardInterrupt

    return watch


def test_an_interrupted_chain_keeps_what_it_has():
    mixture, how = planted(n_users=12)[0], plan(n_warmup=2)
    mixture = replace(mixture, concentration_prior=(1.0, 1.0))
    (chain,) = started(mixture, how)
    after, completed = communities.run_chain(mixture, how, chain, 9, interrupt_at(4))
    assert not completed
    assert (after.state.sweep, len(after.log_joint), len(after.draws)) == (4, 5, 2)
    resumed, completed = communities.run_chain(mixture, how, after, 2, lambda state: None)
    assert completed
    assert_same(resumed.state, run(mixture, how, 6))


def test_chains_that_never_began_are_left_out():
    mixture, _ = planted(n_users=12)
    given = started(mixture, plan(), 3)
    after, completed = communities.run_chains(mixture, plan(), given, 9, interrupt_at(1))
    assert not completed
    assert [chain.state.sweep for chain in after] == [1]
    assert len(after[0].draws) == 1  # stopped before its first draw, it is taken as it is


def test_chains_agree_on_hyperparameters_when_they_are_warm():
    mixture, how = planted()[0], plan(n_warmup=4)
    given = started(mixture, how, 2)
    alone = [
        communities.run_chain(mixture, how, chain, 4, lambda state: None)[0] for chain in given
    ]
    together, _ = communities.run_chains(mixture, how, given, 5, lambda state: None)
    learned = np.stack([chain.state.theta for chain in alone])
    assert np.ptp(learned, axis=0).max() > 0.0
    for chain in together:
        np.testing.assert_allclose(chain.state.theta, learned.mean(axis=0), rtol=1e-14)
        assert np.abs(chain.state.thetas - chain.state.theta).max() < 1e-14


def test_long_chains_are_thinned(monkeypatch):
    monkeypatch.setattr("penchant.communities.chains.DRAWS_PER_CHAIN", 3)
    mixture, _ = planted(n_users=6, n_votes=4)
    how = plan(n_warmup=1, learn=False)
    after, _ = communities.run_chain(mixture, how, *started(mixture, how), 10, lambda state: None)
    assert len(after.draws) == 3


def test_one_user_is_one_community():
    mixture, _ = planted(n_users=1)
    state = run(mixture, plan(), 4)
    assert state.sizes.tolist() == [1]


reassign = communities.compiled_reassign()


def standard_error(values):
    """Of the mean of a chain: blocks of 50 neighbours are nearly independent."""
    blocks = values.reshape(-1, 50).mean(axis=1)
    return blocks.std(ddof=1) / np.sqrt(len(blocks))


@pytest.mark.parametrize("concentration", [0.5, 3.0])
def test_without_evidence_the_scan_leaves_the_chinese_restaurant_process(rng, concentration):
    n_users, n_functions, n_scans = 8, 40, 4000
    assignment = np.zeros(n_users, dtype=np.int32)
    numbers = np.empty(n_scans)
    log_likelihood = np.zeros((n_users, n_functions), dtype=np.float32)
    for k in range(n_scans):
        _, assignment = np.unique(assignment, return_inverse=True)
        assignment = assignment.astype(np.int32)
        size = np.bincount(assignment, minlength=n_functions)
        used = int(assignment.max()) + 1
        empty = np.arange(used, used + communities.N_EMPTY)
        uniform = (1.0 - rng.random((n_users, 2))).astype(np.float32)
        scan = (log_likelihood, assignment, size, empty, uniform)
        done, _ = reassign(
            *scan, np.log(concentration / communities.N_EMPTY), 0, used + communities.N_EMPTY
        )
        assert done == n_users
        numbers[k] = len(np.unique(assignment))
    expected = sum(concentration / (concentration + i) for i in range(n_users))
    assert abs(numbers.mean() - expected) < 4 * standard_error(numbers)


def test_the_scan_stops_where_no_fresh_function_is_left(rng):
    # every user prefers the last function on offer, so that each one fills an empty community
    log_likelihood = np.tile(np.arange(6, dtype=np.float32) * 50, (5, 1))
    assignment = np.zeros(5, dtype=np.int32)
    size = np.array([5, 0, 0, 0, 0, 0])
    uniform = np.full((5, 2), 0.5, np.float32)
    scan = log_likelihood, assignment, size, np.array([1, 2]), uniform
    user, fresh = reassign(*scan, 0.0, 0, 3)
    assert fresh == 6
    assert user < 5
    assert size.sum() == 5
    np.testing.assert_array_equal(np.bincount(assignment, minlength=6), size)


def test_the_scan_is_the_same_compiled_and_not(rng):
    log_likelihood = rng.standard_normal((30, 12)).astype(np.float32)
    given, results = rng.integers(3, size=30).astype(np.int32), []
    uniform = np.linspace(0.01, 1.0, 60, dtype=np.float32).reshape(30, 2)
    for function in (reassign, reassign.py_func):
        assignment = given.copy()
        size = np.bincount(assignment, minlength=12)
        scan = log_likelihood, assignment, size, np.array([3, 4, 5]), uniform
        assert function(*scan, 0.0, 0, 6)[0] == 30
        np.testing.assert_array_equal(np.bincount(assignment, minlength=12), size)
        results.append(assignment)
    np.testing.assert_array_equal(*results)


def test_stick_weights_have_the_posterior_mean(rng):
    state = blank_state([0] * 6 + [1] * 3, np.zeros((2, 1)), concentration=2.0)
    draws = np.exp([communities.draw_log_weights(state, rng) for _ in range(4000)])
    assert draws.shape[1] == 2 + communities.N_EMPTY
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-5)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    expected = [6 / 11, 3 / 11]
    assert (np.abs(draws.mean(axis=0)[:2] - expected) < 4 * error[:2]).all()


def test_concentration_and_partitions_leave_the_gamma_prior(rng):
    shape, rate, n_users = 2.0, 1.0, 10
    values, value = np.empty(6000), 1.0
    for k in range(len(values)):
        uniform = rng.random(n_users)
        n_communities = int((uniform < value / (value + np.arange(n_users))).sum())
        state = blank_state([0] * n_users, np.zeros((1, 1)), concentration=value)
        values[k] = value = communities.draw_concentration(state, (shape, rate), n_communities, rng)
    assert abs(values.mean() - shape / rate) < 4 * standard_error(values)


def tiny_mixture(n_users):
    """Users of two opposite tastes who answer four questions each."""
    camps = np.outer([1.0, -1.0], [1.5, 0.5, -0.5, -1.5])
    settings = Settings(tolerance=1e-4)
    return mixture_of(votes(people(camps, n_users), 4, seed=1), Independent(3.0), settings=settings)


def test_partition_probabilities_sum_to_one():
    for concentration in (0.3, 2.0):
        total = sum(
            np.exp(communities.log_prior_of_sizes(np.bincount(labels), concentration))
            for labels in partitions(6)
        )
        assert total == pytest.approx(1.0)


@pytest.mark.usefixtures("remembered_fits")
@pytest.mark.parametrize("sampler", ["collapsed", "blocked"])
@pytest.mark.parametrize(
    ("n_users", "n_moves", "n_sweeps", "error"),
    [
        (3, 0, 500, 0.12),  # five partitions: so many correlated sweeps are off by about 0.03
        pytest.param(5, 0, 4000, 0.08, marks=pytest.mark.slow),  # 52 partitions
        pytest.param(5, 3, 4000, 0.08, marks=pytest.mark.slow),
    ],
)
def test_chains_leave_the_exact_posterior(sampler, n_users, n_moves, n_sweeps, error, monkeypatch):
    monkeypatch.setattr("penchant.communities.chains.MOVES", n_moves)
    mixture, how, seen = tiny_mixture(n_users), plan(sampler, 0, learn=False), Counter()
    state = communities.start_chain(mixture, how, (0, 0))
    for _ in range(n_sweeps):
        state = communities.sweep_chain(mixture, how, state)
        seen[canonical(state.assignment)] += 1
    exact = exact_posterior(mixture)
    assert 0.5 * sum(abs(seen[key] / n_sweeps - p) for key, p in exact.items()) < error
