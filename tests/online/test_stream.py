"""Streams: checkpoints, interrupts, resuming, and memory that does not grow."""

import gc
import os
import select
import signal
import subprocess
import sys
import tracemalloc
from copy import deepcopy
from itertools import islice

import numpy as np
import pytest

from penchant.models import PreferencePerceptron
from penchant.online import LabelUser, Round, learn_stream


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


def test_checkpoints_come_regularly_and_at_the_end():
    seen = []
    model = PreferencePerceptron()
    learn_stream(
        model, stream(25), LabelUser(), checkpoint=lambda m: seen.append(m.n_rounds_), every=10
    )
    assert seen == [10, 20, 25]


def test_an_interrupted_stream_is_saved_and_resumes_exactly():
    def interrupted():
        yield from stream(17)
        raise KeyboardInterrupt

    saved = []
    with pytest.raises(KeyboardInterrupt):
        learn_stream(
            PreferencePerceptron(update="adaptive", loss="logistic"),
            interrupted(),
            LabelUser(),
            checkpoint=lambda m: saved.append(deepcopy(m)),
        )
    (model,) = saved
    assert model.n_rounds_ == 17
    learn_stream(model, islice(stream(40), model.n_rounds_, None), LabelUser())
    whole = PreferencePerceptron(update="adaptive", loss="logistic")
    learn_stream(whole, stream(40), LabelUser())
    assert np.array_equal(model.coef_, whole.coef_)
    assert model.n_rounds_ == whole.n_rounds_ == 40


def test_memory_does_not_grow_with_the_stream():
    learn_stream(PreferencePerceptron(), stream(10), LabelUser())
    peaks = []
    for n_rounds in (500, 8000):
        gc.collect()
        tracemalloc.start()
        learn_stream(PreferencePerceptron(), stream(n_rounds), LabelUser())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # One kept round would be 200 bytes of numbers and as much again around them: three million.
    assert peaks[1] < peaks[0] + 1_000_000


def test_no_progress_bar_without_a_terminal(capsys):
    learn_stream(PreferencePerceptron(), stream(3), LabelUser())
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


ENDLESS = """
import itertools, sys
import numpy as np
from penchant.models.preference_perceptron import PreferencePerceptron
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
