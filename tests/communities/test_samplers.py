"""Both samplers against what they must leave invariant."""

from collections import Counter

import numpy as np
import pytest

from penchant.communities import Answers, ChainPlan, ChainState, MixtureData, fit_community
from penchant.communities import chains as community
from penchant.communities import split_merge as mixing
from penchant.communities.chains import (
    N_EMPTY,
    Scan,
    _draw_log_weights,
    compiled_reassign,
    draw_concentration,
    start_chain,
    sweep,
)
from penchant.communities.data import count_pairs
from penchant.communities.split_merge import log_prior_of_sizes
from penchant.data import Comparisons
from penchant.gp import ItemHyper, Settings
from penchant.kernels import Independent, Inputs
from penchant.likelihoods import Probit

reassign = compiled_reassign()


def blank_state(assignment, concentration):
    assignment = np.asarray(assignment, dtype=np.int32)
    k = assignment.max() + 1
    return ChainState(
        assignment=assignment,
        utilities=np.zeros((k, 1)),
        tau=np.zeros((k, 1)),
        nu=np.zeros((k, 1)),
        thetas=np.zeros((k, 0)),
        theta=np.zeros(0),
        log_evidence=np.zeros(k),
        concentration=concentration,
        log_joint=0.0,
        seed=(0,),
        sweep=0,
    )


def number_of_communities(concentration, n_users):
    return sum(concentration / (concentration + i) for i in range(n_users))


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
        empty = np.arange(used, used + N_EMPTY)
        uniform = (1.0 - rng.random((n_users, 2))).astype(np.float32)
        scan = Scan(log_likelihood, assignment, size, empty, uniform)
        done, _ = reassign(scan, np.log(concentration / N_EMPTY), 0, used + N_EMPTY)
        assert done == n_users
        numbers[k] = len(np.unique(assignment))
    # neighbouring scans are correlated: blocks of 50 are nearly independent
    blocks = numbers.reshape(-1, 50).mean(axis=1)
    error = blocks.std(ddof=1) / np.sqrt(len(blocks))
    assert abs(numbers.mean() - number_of_communities(concentration, n_users)) < 4 * error


def test_the_scan_stops_where_no_fresh_function_is_left(rng):
    # every user prefers the last function on offer, so that each one fills an empty community
    log_likelihood = np.tile(np.arange(6, dtype=np.float32) * 50, (5, 1))
    assignment = np.zeros(5, dtype=np.int32)
    size = np.array([5, 0, 0, 0, 0, 0])
    uniform = np.full((5, 2), 0.5, np.float32)
    scan = Scan(log_likelihood, assignment, size, np.array([1, 2]), uniform)
    user, fresh = reassign(scan, 0.0, 0, 3)
    assert fresh == 6
    assert user < 5
    assert size.sum() == 5
    np.testing.assert_array_equal(np.bincount(assignment, minlength=6), size)


def test_the_scan_is_the_same_compiled_and_not(rng):
    arguments = (
        rng.standard_normal((30, 12)).astype(np.float32),
        rng.integers(3, size=30).astype(np.int32),
    )
    results = []
    for function in (reassign, reassign.py_func):
        log_likelihood, assignment = (a.copy() for a in arguments)
        size = np.bincount(assignment, minlength=12)
        uniform = np.linspace(0.01, 1.0, 60, dtype=np.float32).reshape(30, 2)
        scan = Scan(log_likelihood, assignment, size, np.array([3, 4, 5]), uniform)
        assert function(scan, 0.0, 0, 6)[0] == 30
        np.testing.assert_array_equal(np.bincount(assignment, minlength=12), size)
        results.append(assignment)
    np.testing.assert_array_equal(*results)


def test_stick_weights_have_the_posterior_mean(rng):
    state = blank_state([0] * 6 + [1] * 3, concentration=2.0)
    draws = np.exp([_draw_log_weights(state, rng) for _ in range(4000)])
    assert draws.shape[1] == 2 + N_EMPTY
    np.testing.assert_allclose(draws.sum(axis=1), 1.0, rtol=1e-5)
    error = draws.std(axis=0) / np.sqrt(len(draws))
    expected = [6 / 11, 3 / 11]
    assert (np.abs(draws.mean(axis=0)[:2] - expected) < 4 * error[:2]).all()


def test_concentration_and_partitions_leave_the_gamma_prior(rng):
    shape, rate, n_users = 2.0, 1.0, 10
    values = np.empty(6000)
    value = 1.0
    for k in range(len(values)):
        uniform = rng.random(n_users)
        n_communities = int((uniform < value / (value + np.arange(n_users))).sum())
        state = blank_state([0] * n_users, value)
        values[k] = value = draw_concentration(state, (shape, rate), n_communities, rng)
    blocks = values.reshape(-1, 50).mean(axis=1)
    error = blocks.std(ddof=1) / np.sqrt(len(blocks))
    assert abs(values.mean() - shape / rate) < 4 * error


def tiny_mixture(n_users):
    """Users of two opposite tastes who answer four questions each, some of them wrongly."""
    rng = np.random.default_rng(1)
    rows = []
    for user in range(n_users):
        order = [0, 1, 2, 3] if 2 * user <= n_users else [3, 2, 1, 0]
        for _ in range(4):
            a, b = sorted(rng.choice(4, 2, replace=False))
            if rng.random() < 0.15:
                a, b = b, a
            rows.append((user, order[a], order[b]))
    user, winner, loser = zip(*rows, strict=True)
    data = Comparisons.from_pairs(winner, loser, user=user, items=range(4), users=range(n_users))
    hyper = ItemHyper(Independent(3.0), Probit())
    items = Inputs(index=np.arange(4))
    return MixtureData(Answers.of(data), items, hyper, settings=Settings(tolerance=1e-4))


def partitions(n_users, prefix=()):
    """All partitions, each as the labels in order of first appearance."""
    if len(prefix) == n_users:
        yield prefix
        return
    for label in range(max(prefix, default=-1) + 2):
        yield from partitions(n_users, (*prefix, label))


def exact_posterior(mixture):
    """Probability of every partition, by enumeration."""
    log_joint = {}
    for partition in partitions(mixture.answers.n_users):
        labels = np.array(partition, dtype=np.int32)
        counts = count_pairs(mixture.answers.counts, labels, labels.max() + 1)
        evidence = sum(fit_community(mixture, c, mixture.hyper.theta).log_evidence for c in counts)
        log_joint[partition] = evidence + log_prior_of_sizes(np.bincount(labels), 1.0)
    top = max(log_joint.values())
    total = sum(np.exp(value - top) for value in log_joint.values())
    return {key: np.exp(value - top) / total for key, value in log_joint.items()}


def test_partition_probabilities_sum_to_one():
    for concentration in (0.3, 2.0):
        total = sum(
            np.exp(log_prior_of_sizes(np.bincount(labels), concentration))
            for labels in partitions(6)
        )
        assert total == pytest.approx(1.0)


def frequencies(mixture, sampler, n_sweeps):
    plan = ChainPlan(sampler, 0, 1.0, None, learn=False, own=False)
    state = start_chain(mixture, plan, (0, 0))
    seen = Counter()
    for _ in range(n_sweeps):
        state = sweep(mixture, plan, state)
        first_seen = {}
        seen[tuple(first_seen.setdefault(c, len(first_seen)) for c in state.assignment)] += 1
    return {key: times / n_sweeps for key, times in seen.items()}


def distance(found, exact):
    return 0.5 * sum(abs(found.get(key, 0.0) - p) for key, p in exact.items())


@pytest.mark.parametrize("sampler", ["collapsed", "blocked"])
def test_gibbs_steps_leave_the_exact_posterior(sampler, monkeypatch):
    monkeypatch.setattr(community, "MOVES", 0)
    # five partitions: 500 correlated sweeps are off by about 0.03
    found = frequencies(tiny_mixture(3), sampler, 500)
    assert distance(found, exact_posterior(tiny_mixture(3))) < 0.12


@pytest.fixture
def remembered_fits(monkeypatch):
    """Five users form 31 communities at most: a chain of thousands of sweeps fits each once."""
    fits = {}

    def fit_once(mixture, pair_counts, theta, start=None):
        answers = pair_counts.tobytes()
        if answers not in fits:
            fits[answers] = fit_community(mixture, pair_counts, theta)
        return fits[answers]

    monkeypatch.setattr(community, "fit_community", fit_once)
    monkeypatch.setattr(mixing, "fit_community", fit_once)


@pytest.mark.slow
@pytest.mark.usefixtures("remembered_fits")
@pytest.mark.parametrize("sampler", ["collapsed", "blocked"])
@pytest.mark.parametrize("n_moves", [0, 3])
def test_chains_leave_the_exact_posterior(sampler, n_moves, monkeypatch):
    monkeypatch.setattr(community, "MOVES", n_moves)
    # 52 partitions of five users
    found = frequencies(tiny_mixture(5), sampler, 4000)
    assert distance(found, exact_posterior(tiny_mixture(5))) < 0.08
