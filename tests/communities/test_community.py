"""Chains: growth, restarts, learning, interruption."""

from dataclasses import fields, replace

import numpy as np
import pytest

from penchant.communities import Answers, Chain, ChainPlan, MixtureData, fit_community
from penchant.communities import chains as community
from penchant.communities.chains import (
    learn_own,
    learn_shared,
    run_chain,
    run_chains,
    start_chain,
    sweep,
)
from penchant.communities.data import count_pairs
from penchant.data import Comparisons
from penchant.gp import ItemHyper, Settings
from penchant.kernels import RBF, Independent, Inputs
from penchant.likelihoods import Probit, Ties
from penchant.metrics import adjusted_rand

N_ITEMS = 6
TASTES = np.array([[2.0, 1.0, 0.0, 0.0, -1.0, -2.0], [-2.0, 0.0, 2.0, -1.0, 1.0, 0.0]])


def planted(n_users=30, n_votes=20, seed=0, tastes=TASTES):
    """A mixture whose users have one of the tastes each, and their communities."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n_users) % len(tastes)
    user = np.repeat(np.arange(n_users), n_votes)
    a = rng.integers(N_ITEMS, size=len(user))
    b = (a + rng.integers(1, N_ITEMS, size=len(user))) % N_ITEMS
    f = tastes[truth[user]]
    rows = np.arange(len(user))
    wins = f[rows, a] - f[rows, b] + rng.standard_normal(len(user)) > 0
    winner, loser = np.where(wins, a, b), np.where(wins, b, a)
    data = Comparisons.from_pairs(winner, loser, user=user, items=range(N_ITEMS))
    hyper = ItemHyper(Independent(), Probit())
    items = Inputs(index=np.arange(N_ITEMS))
    return MixtureData(Answers.of(data), items, hyper, settings=Settings(tolerance=1e-3)), truth


def plan(sampler="collapsed", n_warmup=8, prior=None, learn=True, own=False):
    return ChainPlan(sampler, n_warmup, 1.0, prior, learn, own)


def run(mixture, how, n_sweeps, state=None):
    state = state or start_chain(mixture, how, (3, 0))
    for _ in range(n_sweeps):
        state = sweep(mixture, how, state)
    return state


def assert_same(a, b):
    for field in fields(a):
        np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))


def test_a_chain_starts_where_it_is_told():
    mixture, truth = planted()
    certain = np.eye(3)[2 * truth]  # the middle one is nobody's
    theta = mixture.hyper.theta + 0.1
    state = start_chain(mixture, plan(), (3, 0), certain, theta)
    np.testing.assert_array_equal(state.assignment, truth)
    np.testing.assert_array_equal(state.theta, theta)
    assert len(state.utilities) == 2


@pytest.mark.parametrize("sampler", ["collapsed", "blocked"])
def test_planted_communities_are_found(sampler):
    mixture, truth = planted()
    state = run(mixture, plan(sampler), 14)
    # one draw of the chain, which may hold a stray small community
    assert adjusted_rand(truth, state.assignment) > 0.8


@pytest.mark.parametrize("sampler", ["collapsed", "blocked"])
def test_the_same_seed_gives_the_same_chain_and_another_another(sampler):
    mixture, _ = planted(n_users=12)
    how = plan(sampler)
    assert_same(run(mixture, how, 4), run(mixture, how, 4))
    other = run(mixture, how, 4, start_chain(mixture, how, (4, 0)))
    assert not np.array_equal(other.tau, run(mixture, how, 4).tau)


def test_a_chain_continues_exactly_from_a_copied_state():
    mixture, _ = planted(n_users=12)
    how = plan(prior=(1.0, 1.0))
    halfway = run(mixture, how, 5)
    copied = replace(
        halfway,
        **{
            f.name: np.copy(v)
            for f in fields(halfway)
            if isinstance(v := getattr(halfway, f.name), np.ndarray)
        },
    )
    assert_same(run(mixture, how, 4, copied), run(mixture, how, 9))


def test_sizes_and_evidence_describe_the_assignment():
    mixture, _ = planted(n_users=12)
    state = run(mixture, plan(), 3)
    counts = count_pairs(mixture.answers.counts, state.assignment, len(state.utilities))
    fits = [fit_community(mixture, c, t) for c, t in zip(counts, state.thetas, strict=True)]
    assert [fit.log_evidence for fit in fits] == pytest.approx(state.log_evidence, abs=1e-3)
    assert state.sizes.min() > 0


def test_hyperparameters_are_learned_only_while_warming_up():
    mixture, _ = planted()
    how = plan(n_warmup=4)
    before = run(mixture, how, 4)
    assert not np.array_equal(before.theta, mixture.hyper.theta)
    np.testing.assert_array_equal(run(mixture, how, 3, before).theta, before.theta)
    kept = run(mixture, replace(how, learn=False), 4)
    np.testing.assert_array_equal(kept.theta, mixture.hyper.theta)


def test_opposite_tastes_do_not_teach_that_there_is_no_taste():
    f = TASTES[0]
    mixture, truth = planted(tastes=np.stack([f, -f]), seed=2)
    state = run(mixture, plan(), 14)
    assert np.exp(state.theta[0]) > 0.5
    assert adjusted_rand(truth, state.assignment) > 0.9


def test_shared_hyperparameters_are_where_the_evidence_is_highest():
    mixture, truth = planted()
    mixture = replace(mixture, settings=Settings(tolerance=1e-9))
    counts = count_pairs(mixture.answers.counts, truth.astype(np.int32), 2)
    blank, step = np.zeros(counts.shape[1]), 1e-4

    def evidence(theta):
        return sum(fit_community(mixture, c, theta).log_evidence for c in counts)

    learned = learn_shared(mixture, [(c, blank, blank) for c in counts], np.array([0.4]))
    assert evidence(learned) > evidence(np.array([0.4]))
    # a weak prior of some nats beside hundreds: the evidence is nearly flat there
    assert abs(evidence(learned + step) - evidence(learned - step)) / (2 * step) < 1.0


def test_own_hyperparameters_stay_near_the_shared_where_answers_are_few():
    mixture, _ = planted(n_users=40, tastes=4.0 * TASTES[:1])
    few = np.zeros(40, dtype=np.int32)
    few[0] = 1
    counts = count_pairs(mixture.answers.counts, few, 2)
    blank = np.zeros(counts.shape[1])
    theta = np.array([-2.0])
    own = learn_own(mixture, [(c, blank, blank) for c in counts], theta)
    assert abs(own[1, 0] - theta[0]) < 0.5 * abs(own[0, 0] - theta[0])


def test_a_likelihood_with_parameters_and_ties_runs():
    data = Comparisons.from_pairs(
        [0, 1, 2, 0, 2, 1],
        [1, 2, 0, 2, 1, 0],
        user=[0, 0, 1, 1, 2, 2],
        tie=[False, True, False, False, True, False],
    )
    X = np.array([[0.0], [1.0], [2.0]])
    hyper = ItemHyper(RBF(), Ties())
    items = Inputs(X, index=np.arange(3))
    mixture = MixtureData(Answers.of(data), items, hyper, settings=Settings(tolerance=1e-3))
    state = run(mixture, plan(own=True), 5)
    assert np.isfinite(state.log_joint)
    assert state.thetas.shape == (len(state.utilities), len(hyper.theta))


def test_groups_that_no_one_would_miss_do_not_count():
    mixture, truth = planted(n_users=40)
    how = plan(learn=False)
    junk = truth.astype(np.int32)
    junk[[0, 1, 2, 3]] = 2  # two of each taste
    state = run(mixture, how, 1)
    partition = community.partition_of(mixture, state, junk)
    settled = community._settle(mixture, how, state, partition, np.random.default_rng(0))
    assert community._support(mixture, settled).tolist() == [True, True, False]


def test_an_interrupted_chain_keeps_what_it_has(monkeypatch):
    mixture, _ = planted(n_users=12)
    how = plan(n_warmup=2)
    sweeps = []

    def interrupt(state):
        sweeps.append(state.sweep)
        if state.sweep == 5:
            raise KeyboardInterrupt

    chain = Chain.of(start_chain(mixture, how, (3, 0)))
    after, completed = run_chain(mixture, how, chain, 9, interrupt)
    assert not completed
    assert after.state.sweep == 5
    assert len(after.log_joint) == 6
    assert len(after.draws) == 3
    resumed, completed = run_chain(mixture, how, after, 4, lambda state: None)
    assert completed
    assert_same(resumed.state, run(mixture, how, 9))


def test_an_interrupt_at_once_leaves_one_draw():
    mixture, _ = planted(n_users=12)

    def interrupt(state):
        raise KeyboardInterrupt

    chain = Chain.of(start_chain(mixture, plan(), (3, 0)))
    (after,), completed = run_chains(mixture, plan(), [chain], 9, interrupt)
    assert not completed
    assert len(after.draws) == 1


def test_chains_that_never_began_are_left_out():
    mixture, _ = planted(n_users=12)

    def interrupt(state):
        if state.sweep == 1:
            raise KeyboardInterrupt

    chains = [Chain.of(start_chain(mixture, plan(), (3, number))) for number in range(3)]
    after, completed = run_chains(mixture, plan(), chains, 9, interrupt)
    assert not completed
    assert [chain.state.sweep for chain in after] == [1]


def test_chains_agree_on_hyperparameters_when_they_are_warm():
    mixture, _ = planted()
    how = plan(n_warmup=6)
    chains = [Chain.of(start_chain(mixture, how, (3, number))) for number in range(2)]
    alone = [run_chain(mixture, how, chain, 6, lambda state: None)[0] for chain in chains]
    together, _ = run_chains(mixture, how, chains, 8, lambda state: None)
    learned = np.stack([chain.state.theta for chain in alone])
    assert np.ptp(learned, axis=0).max() > 0.0
    for chain in together:
        np.testing.assert_allclose(chain.state.theta, learned.mean(axis=0), rtol=1e-14)
        np.testing.assert_allclose(
            chain.state.thetas, chain.state.theta + np.zeros_like(chain.state.thetas), atol=1e-14
        )


def test_long_chains_are_thinned(monkeypatch):
    monkeypatch.setattr(community, "DRAWS_PER_CHAIN", 3)
    mixture, _ = planted(n_users=6, n_votes=4)
    how = plan(n_warmup=1, learn=False)
    chain = Chain.of(start_chain(mixture, how, (3, 0)))
    after, _ = run_chain(mixture, how, chain, 10, lambda state: None)
    assert len(after.draws) == 3


def test_one_user_is_one_community():
    mixture, _ = planted(n_users=1)
    state = run(mixture, plan(), 4)
    assert state.sizes.tolist() == [1]
