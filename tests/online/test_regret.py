"""Regret against the theory's bound, and streams."""

import gc
import os
import select
import signal
import subprocess
import sys
import tracemalloc
from copy import deepcopy
from itertools import islice, permutations

import numpy as np
import pytest
from sklearn.base import clone

from penchant.errors import DataError
from penchant.models import PreferencePerceptron
from penchant.online import (
    AlphaUser,
    ExpectedAlphaUser,
    LabelUser,
    Round,
    discounted,
    exponentiated_bound,
    feature_norm,
    learn_stream,
    perceptron_bound,
    running_mean,
    simulate,
)


def phi(docs, order, k):
    return sum(docs[j] / np.log2(i + 2) for i, j in enumerate(order[:k]))


def random_problem(seed, n_rounds=60, n_docs=5, d=4):
    rng = np.random.default_rng(seed)
    scale = rng.exponential(size=(n_rounds, 1, 1)) * rng.exponential(size=d)
    docs = scale * rng.standard_normal((n_rounds, n_docs, d)) + rng.standard_normal(d)
    return [Round(block) for block in docs], rng.standard_normal(d)


def exact_norm(rounds, k):
    """R over all orders, by enumeration."""
    return max(
        np.linalg.norm(phi(round_.docs, order, k))
        for round_ in rounds
        for order in permutations(range(len(round_.docs)), min(k, len(round_.docs)))
    )


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_regret_never_exceeds_theorem_1(seed, alpha):
    """Noise-free α-informative feedback, with the smallest R that the theorem allows."""
    rounds, weights = random_problem(seed)
    model = PreferencePerceptron(k=2)
    regret = simulate(model, rounds, AlphaUser(weights, alpha, k=2), weights=weights)
    assert np.all(regret.slack(alpha) <= 1e-12)
    mean, _ = regret.running()
    n_rounds = np.arange(1, len(rounds) + 1)
    bound = perceptron_bound(n_rounds, exact_norm(rounds, 2), np.linalg.norm(weights), alpha)
    assert np.all(mean <= bound)
    assert np.all(bound <= regret.bound(alpha) * (1 + 1e-12))


@pytest.mark.parametrize("seed", range(3))
def test_other_feedback_losses_and_updates_stay_under_their_bounds(seed):
    rounds, weights = random_problem(seed)
    rng = np.random.default_rng(seed)
    noisy = [Round(r.docs, r.docs @ weights + 2 * rng.standard_normal(5)) for r in rounds]
    regret = simulate(PreferencePerceptron(k=3), noisy, LabelUser(k=3), weights=weights)
    assert regret.slack(0.5).sum() > 0
    for alpha in (0.1, 0.5, 1.0):
        assert np.all(regret.running()[0] <= regret.bound(alpha))

    logistic = PreferencePerceptron(k=2, loss="logistic", rate=3.0)
    regret = simulate(logistic, rounds, AlphaUser(weights, 0.3, k=2), weights=weights)
    assert np.all(regret.running()[0] <= 2 * regret.bound(0.3))

    weights = np.abs(weights) / np.abs(weights).sum()
    largest = max(
        np.abs(phi(r.docs, order, 2)).max() for r in rounds for order in permutations(range(5), 2)
    )
    for rate in (0.02, 0.2, 2.0):
        model = PreferencePerceptron(k=2, update="exponentiated", rate=rate)
        regret = simulate(model, rounds, AlphaUser(weights, 0.5, k=2), weights=weights)
        n_rounds = np.arange(1, len(rounds) + 1)
        bound = exponentiated_bound(n_rounds, largest, weights.size, rate, alpha=0.5)
        assert np.all(regret.running()[0] <= bound)


def test_feedback_informative_in_expectation_keeps_the_bound_in_expectation():
    rounds, weights = random_problem(0, n_rounds=100)
    regret = simulate(
        PreferencePerceptron(k=2),
        rounds,
        ExpectedAlphaUser(weights, alpha=0.3, k=2),
        weights=weights,
        n_permutations=15,
        random_state=0,
    )
    mean, _ = regret.running()
    bound = perceptron_bound(np.arange(1, 101), regret.feature_norm, regret.weight_norm, alpha=0.3)
    assert np.all(mean <= bound)
    assert mean[-1] < 0.5 * mean[4]


@pytest.mark.parametrize("k", [1, 2, 4])
def test_feature_norm_is_an_upper_bound(k):
    rounds, _ = random_problem(0, n_rounds=3)
    assert exact_norm(rounds, k) <= feature_norm(rounds, k) * (1 + 1e-12)
    assert k > 1 or exact_norm(rounds, k) == pytest.approx(feature_norm(rounds, k))


def test_regret_is_the_difference_to_the_best_order():
    rng = np.random.default_rng(1)
    weights = rng.standard_normal(3)
    rounds = [
        Round(rng.standard_normal((5, 3)), rng.integers(0, 3, 5).astype(float)) for _ in range(8)
    ]
    regret = simulate(PreferencePerceptron(k=3), rounds, LabelUser(k=3), weights=weights)

    model = PreferencePerceptron(k=3)
    for t, round_ in enumerate(rounds):
        presented = model.present(round_.docs)
        feedback = LabelUser(k=3)(round_, presented, rng)
        model.learn(round_.docs, presented, feedback)
        for values, got in ((round_.docs @ weights, regret.utility), (round_.grades, regret.dcg)):
            best = max(discounted(values, np.array(p), 3) for p in permutations(range(5)))
            lost = best - discounted(values, presented, 3)
            assert got[0, t] == pytest.approx(lost, abs=1e-12)
        utility = round_.docs @ weights
        gain = discounted(utility, feedback, 3) - discounted(utility, presented, 3)
        assert regret.gain[0, t] == pytest.approx(gain, abs=1e-12)


def test_permutations_are_fresh_runs_and_seeded():
    rounds, weights = random_problem(3, n_rounds=30)
    model = PreferencePerceptron(k=2)
    setting = {"weights": weights, "n_permutations": 4, "random_state": 5}
    first, again = (
        simulate(model, rounds, AlphaUser(weights, 0.5, k=2), **setting) for _ in range(2)
    )
    assert first.utility.shape == (4, 30)
    assert np.array_equal(first.utility, again.utility)
    assert not np.array_equal(first.utility[0], first.utility[1])
    assert not hasattr(model, "coef_")
    mean, deviation = first.running()
    means = running_mean(first.utility)
    assert mean[9] == pytest.approx(first.utility[:, :10].mean())
    assert deviation == pytest.approx(means.std(axis=0))


def test_simulate_says_what_is_missing():
    rounds, weights = random_problem(0, n_rounds=2)
    user = AlphaUser(weights)
    with pytest.raises(DataError, match="0 rounds"):
        simulate(PreferencePerceptron(), [], user, weights=weights)
    regret = simulate(PreferencePerceptron(), rounds, user, weights=weights)
    with pytest.raises(DataError, match="no DCG regret"):
        regret.running("dcg")


def stream(n_rounds, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n_rounds):
        yield Round(rng.standard_normal((6, 3)), rng.integers(0, 3, 6).astype(float))


def test_a_stream_equals_partial_fit():
    model = PreferencePerceptron(average=True)
    assert learn_stream(model, stream(50), LabelUser()) == 50
    X = np.concatenate([r.docs for r in stream(50)])
    y = np.concatenate([r.grades for r in stream(50)])
    batch = PreferencePerceptron(average=True).fit(X, y, qid=np.repeat(np.arange(50), 6))
    np.testing.assert_allclose(model.coef_, batch.coef_, rtol=1e-12)
    np.testing.assert_allclose(model.average_coef_, batch.average_coef_, rtol=1e-12)


def test_checkpoints_come_regularly_and_at_the_end(capsys):
    seen = []
    how = {"checkpoint": lambda model: seen.append(model.n_rounds_), "every": 10}
    learn_stream(PreferencePerceptron(), stream(25), LabelUser(), **how)
    assert seen == [10, 20, 25]
    assert capsys.readouterr() == ("", "")  # no progress bar without a terminal


def test_an_interrupted_stream_is_saved_and_resumes_exactly():
    def interrupted():
        yield from stream(17)
        raise KeyboardInterrupt

    saved, fresh = [], PreferencePerceptron(update="adaptive", loss="logistic")
    save = {"checkpoint": lambda model: saved.append(deepcopy(model))}
    with pytest.raises(KeyboardInterrupt):
        learn_stream(clone(fresh), interrupted(), LabelUser(), **save)
    (model,) = saved
    assert model.n_rounds_ == 17
    learn_stream(model, islice(stream(40), model.n_rounds_, None), LabelUser())
    whole = clone(fresh)
    learn_stream(whole, stream(40), LabelUser())
    assert np.array_equal(model.coef_, whole.coef_)
    assert model.n_rounds_ == whole.n_rounds_ == 40


def test_memory_does_not_grow_with_the_stream():
    used = []

    def look(model):
        gc.collect()
        used.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    learn_stream(PreferencePerceptron(), stream(899), LabelUser(), checkpoint=look, every=300)
    tracemalloc.stop()
    # A stored round would be 200 bytes of numbers and as much again around them: 240,000.
    assert used[-1] < used[0] + 50_000


ENDLESS = """
import itertools, sys
import numpy as np
from penchant import PreferencePerceptron
from penchant.online import LabelUser, Round, learn_stream

rng = np.random.default_rng(0)
block = Round(rng.standard_normal((6, 3)), np.arange(6.0))
learn_stream(
    PreferencePerceptron(),
    itertools.repeat(block),
    LabelUser(),
    checkpoint=lambda model: np.savez(sys.argv[1], rounds=model.n_rounds_, coef=model.coef_),
    every=10**9,
)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.slow  # a real terminal with real seconds: a starved machine misses them
def test_a_terminal_gets_a_bar_and_control_c_leaves_a_usable_state(tmp_path):
    leader, follower = os.openpty()
    file = tmp_path / "state.npz"
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(file)],
        stderr=follower,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        start_new_session=True,
    )
    os.close(follower)
    shown = b""
    try:
        while b"00 rounds" not in shown:
            assert select.select([leader], [], [], 60)[0], f"no progress bar: {shown!r}"
            shown += os.read(leader, 4096)
        process.send_signal(signal.SIGINT)
        while select.select([leader], [], [], 30)[0]:
            try:
                if not os.read(leader, 4096):
                    break
            except OSError:  # Linux says so when the other end has closed
                break
        process.wait(30)
    finally:
        process.kill()
        os.close(leader)
    assert process.returncode not in (0, -signal.SIGKILL)
    saved = np.load(file)
    rng = np.random.default_rng(0)
    block = Round(rng.standard_normal((6, 3)), np.arange(6.0))
    again = PreferencePerceptron()
    learn_stream(again, (block for _ in range(int(saved["rounds"]))), LabelUser())
    assert np.array_equal(saved["coef"], again.coef_)
