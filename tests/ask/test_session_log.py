"""A session's log under faults: an answer that was acknowledged is there, and counted once."""

import errno
import json
import os
import subprocess
import sys
import tempfile
import warnings
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import penchant as pc
from penchant.ask import Session, Setup
from penchant.errors import DataError, DataWarning, NumericalError
from penchant.kernels import Independent

ODD = ["tea\u2028", "milk\u2029", "wat\u0085er", "ju\rice", "wi\x0bne", "be\x1cer\n"]


def model(names=ODD):
    data = pc.Comparisons.from_pairs(names[:2], names[1:3], items=names)
    return pc.PreferenceGP(Independent(1.0), optimize=None, random_state=0).fit(None, data)


def quiet_replay(log, fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return Session.replay(log, fitted)


def plain(events):
    """As they come back from JSON: tuples are lists there."""
    return json.loads(json.dumps(events))


def on_disk(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def bits(session):
    return session.model.predict().tobytes()


@contextmanager
def failing(monkeypatch, name, after=0, error=errno.ENOSPC):
    """A system call that works a few more times, then fails as on a full disk."""
    real, left = getattr(os, name), [after]

    def call(file, *args):
        left[0] -= 1
        if left[0] < 0:
            if name == "write":
                real(file, args[0][: len(args[0]) // 2])  # a part gets through
            raise OSError(error, os.strerror(error))
        return real(file, *args)

    with monkeypatch.context() as patched:
        patched.setattr(os, name, call)
        yield


def played(path):
    session = Session(model(), Setup("random", seed=3), path)
    session.tell(session.ask()).tell([ODD[3:5]]).undo()
    session.tell(session.ask(2))
    session.close()
    return session


def test_names_with_any_line_separator_survive(tmp_path):
    session = played(tmp_path / "log")
    assert bits(Session.replay(tmp_path / "log", model())) == bits(session)


@pytest.mark.parametrize("name", ["\ud800", "\ufeff", "\x00", '"', "\\", "🍵", "NaN"])
def test_names_of_any_kind_survive(name, tmp_path):
    names = [name, "b", "c"]
    session = Session(model(names), log=tmp_path / "log").tell([(name, "c")])
    session.close()
    again = Session.replay(tmp_path / "log", model(names))
    assert plain(again.events) == plain(session.events)
    assert bits(again) == bits(session)


def test_every_column_of_an_answer_survives(tmp_path):
    data = pc.Comparisons.from_pairs(
        ["a", "b"], ["b", "c"], first=[1, -1], time=[1.5, 2.5], covariates={"length": [0.1, 0.2]}
    )

    def fitted():
        return pc.PreferenceGP(optimize=None).fit(None, data)

    session = Session(fitted(), log=tmp_path / "log").tell(data)
    session.close()
    assert Session.replay(tmp_path / "log", fitted()).model.comparisons_ == (
        session.model.comparisons_
    )


def test_a_log_cut_at_any_byte_keeps_every_whole_event(tmp_path):
    """A line counts once its line break is there: before, nobody was told that it was taken."""
    log, torn = tmp_path / "log", tmp_path / "torn"
    events, content = plain(played(log).events), log.read_bytes()
    ends = np.flatnonzero(np.frombuffer(content, np.uint8) == ord("\n")) + 1
    assert on_disk(log) == events
    # every byte around the breaks, and some between
    cuts = {int(end) + by for end in ends for by in (-2, -1, 0, 1)} | set(range(0, 2000, 97))
    for cut in sorted(cut for cut in cuts if ends[0] <= cut <= len(content)):
        torn.write_bytes(content[:cut])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = Session.replay(torn, model())
        assert plain(found.events) == events[: int(np.searchsorted(ends, cut, side="right"))]
        assert [warning.category for warning in said] == [DataWarning] * (cut not in ends)


@pytest.mark.parametrize(
    "tail", [b"", b'{"kind": "un', b"\x00" * 40, b"\xff\xfe", "é".encode()[:1], b'{"kind": "ask"}']
)
def test_a_session_goes_on_after_a_cut(tail, tmp_path):
    log = tmp_path / "log"
    events = played(log).events
    log.write_bytes(log.read_bytes() + tail)
    session = quiet_replay(log, model()).tell([(ODD[0], ODD[5])])
    session.close()
    assert on_disk(log) == plain(session.events)
    assert len(session.events) == len(events) + 1


@pytest.mark.parametrize("call", ["write", "fsync", "ftruncate"])
@pytest.mark.parametrize("step", ["ask", "tell", "undo", "stop"])
def test_a_step_that_cannot_be_written_has_not_happened(call, step, tmp_path, monkeypatch):
    session = Session(model(), log=tmp_path / "log").tell([ODD[:2]])
    before = bits(session), list(session.events), session.n_answers, session._last
    steps = {
        "ask": session.ask,
        "tell": lambda: session.tell([ODD[2:4]]),
        "undo": session.undo,
        "stop": session.stop,
    }
    with (
        failing(monkeypatch, call),
        pytest.raises(DataError, match="nothing was learned or counted"),
    ):
        steps[step]()
    assert (bits(session), session.events, session.n_answers, session._last) == before
    on_disk = quiet_replay(tmp_path / "log", model())
    if call == "write":  # otherwise the disk says nothing, and neither can we
        assert on_disk.events == session.events
        steps[step]()  # the retry counts once
        session.close()
        assert bits(quiet_replay(tmp_path / "log", model())) == bits(session)
    elif not session.is_stopped:
        with pytest.raises(DataError, match="could not be put right"):
            session.ask()


@pytest.mark.parametrize("error", [NumericalError("no"), MemoryError(), KeyboardInterrupt()])
def test_an_answer_that_cannot_be_learned_is_taken_back(error, tmp_path, monkeypatch):
    session = Session(model(), log=tmp_path / "log").tell([ODD[:2]])
    before = (tmp_path / "log").read_bytes(), bits(session), list(session.events)

    def fail(*args, **kwargs):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(session.model, "tell", fail)
        with pytest.raises(type(error)):
            session.tell([ODD[2:4]])
    assert ((tmp_path / "log").read_bytes(), bits(session), session.events) == before
    session.tell([ODD[2:4]]).close()
    assert bits(Session.replay(tmp_path / "log", model())) == bits(session)


def test_an_interrupt_just_after_learning_leaves_nothing_behind(tmp_path, monkeypatch):
    session = Session(model(), log=tmp_path / "log")
    before, tell = bits(session), session.model.tell

    def interrupted(*args, **kwargs):
        tell(*args, **kwargs)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(session.model, "tell", interrupted)
        with pytest.raises(KeyboardInterrupt):
            session.tell([ODD[2:4]])
    assert bits(session) == before
    assert [event["kind"] for event in on_disk(tmp_path / "log")] == ["start"]


KILLED = """
import os, sys
sys.path.insert(0, {tests!r})
from test_session_log import ODD, model
from penchant.ask import Session
session = Session(model(), log={log!r}).tell([ODD[:2]])
session.model.tell = lambda *args, **kwargs: os._exit(9)
session.tell([ODD[2:4]])
"""


def test_a_kill_between_writing_and_learning_loses_nothing(tmp_path):
    """The answer reached the disk: whoever gave it may believe that it was taken."""
    log = tmp_path / "log"
    script = KILLED.format(tests=os.path.dirname(__file__), log=str(log))
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 9
    again = Session.replay(log, model())
    expected = Session(model()).tell([ODD[:2]]).tell([ODD[2:4]])
    assert bits(again) == bits(expected)


def test_two_writers_are_refused_until_one_lets_go(tmp_path):
    log = tmp_path / "log"
    first = Session(model(), log=log)
    second = Session.replay(log, model())
    before = bits(second)
    with pytest.raises(DataError, match="being written by another session"):
        second.tell([ODD[:2]])
    assert (bits(second), second.n_answers) == (before, 0)
    first.close()
    second.tell([ODD[:2]])
    with pytest.raises(DataError, match="being written by another session"):
        first.tell([ODD[:2]])
    second.close()
    with pytest.raises(DataError, match="somebody else has written"):
        first.tell([ODD[:2]])
    assert Session.replay(log, model()).events == second.events


def test_without_locks_a_second_writer_is_noticed_by_the_size(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def no_locks(*_):
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    first = Session(model(), log=tmp_path / "log")
    second = Session.replay(tmp_path / "log", model()).tell([ODD[:2]])
    with pytest.raises(DataError, match="somebody else has written"):
        first.tell([ODD[:2]])
    assert on_disk(tmp_path / "log") == plain(second.events)


def test_a_log_that_was_removed_or_replaced_is_noticed(tmp_path):
    log = tmp_path / "log"
    session = Session(model(), log=log)
    log.rename(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="moved or removed"):
        session.tell([ODD[:2]])
    log.write_bytes((tmp_path / "elsewhere").read_bytes())
    with pytest.raises(DataError, match="moved or removed"):
        session.tell([ODD[:2]])
    assert session.n_answers == 0


def test_places_that_cannot_hold_a_log_are_told(tmp_path):
    for place in (tmp_path, tmp_path / "no" / "folder" / "log"):
        with pytest.raises(DataError, match="cannot be opened for writing"):
            Session(model(), log=place)
    with pytest.raises(DataError, match="cannot be read"):
        Session.replay(tmp_path, model())


START = json.dumps(Session(model()).events[0]).encode() + b"\n"


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"3",
        b"{}",
        b'{"kind": "start"}',
        START.strip(),
        b'{"kind": "dance"}',
        b'{"kind": ["answer"]}',
        b'{"kind": "ask"}',
        b'{"kind": "ask", "pairs": 3}',
        b'{"kind": "ask", "pairs": [3]}',
        b'{"kind": "ask", "pairs": []}',
        b'{"kind": "ask", "pairs": [["tea", "tea"]]}',
        b'{"kind": "answer"}',
        b'{"kind": "answer", "winner": 3, "loser": 4}',
        b'{"kind": "answer", "winner": ["x"], "loser": ["y"]}',
        b'{"kind": "answer", "winner": [[]], "loser": [{}]}',
        b'{"kind": "answer", "winner": [0], "loser": [1, 2]}',
        b'{"kind": "answer", "winner": [0], "loser": [1], "count": [-1]}',
        b'{"kind": "answer", "winner": [0], "loser": [1], "count": [1e999]}',
        b'{"kind": "answer", "winner": [0], "loser": [1], "colour": ["red"]}',
        b'{"kind": "answer", "winner": [0], "loser": [1], "items": [0]}',
        b'{"kind": "answer", "winner": [0], "loser": [1], "self": 1}',
        b'{"kind": "withdraw"}',
        b'{"kind": "withdraw", "of": 7}',
        b'{"kind": "stop", "why": 1}',
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"kind": "withdraw"',
    ],
)
def test_a_damaged_log_is_a_clear_error(line, tmp_path):
    (tmp_path / "log").write_bytes(START + line + b"\n" + b'{"kind": "stop", "reason": "x"}\n')
    with pytest.raises(DataError):
        Session.replay(tmp_path / "log", model())


@pytest.mark.parametrize(
    "start",
    [
        {"setup": None},
        {"setup": {}},
        {"setup": {"rules": 1}},
        {"setup": {"rules": {"avoid": [1]}, "stop": []}},
        {"setup": {"rules": {"avoid": []}, "stop": [{"rule": "Never"}]}},
        {"setup": {"rules": {"avoid": []}, "stop": [{"rule": "Budget", "years": 1}]}},
        {"setup": {"rules": {"avoid": [], "exposure": -1}, "stop": []}},
        {"version": 99},
        {"data": None},
    ],
)
def test_a_damaged_start_is_a_clear_error(start, tmp_path):
    (tmp_path / "log").write_text(json.dumps({**json.loads(START), **start}) + "\n")
    with pytest.raises(DataError):
        Session.replay(tmp_path / "log", model())


@pytest.mark.parametrize("events", [[], [None], [3], [{}], [json.loads(START), None]])
def test_events_that_are_none_are_a_clear_error(events):
    with pytest.raises(DataError):
        Session.replay(events, model())


class FaultySession(RuleBasedStateMachine):
    """Any order of steps, faults and restarts: disk, memory and a plain refit agree."""

    @initialize(folder=st.integers(0, 2**60))
    def begin(self, folder):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "log")
        self.session = Session(model(), Setup("random", seed=folder % 97), self.path)
        self.told = []

    @rule(k=st.integers(1, 2))
    def ask(self, k):
        self.session.ask(k)

    @rule(pair=st.permutations(ODD), n=st.integers(1, 2))
    def tell(self, pair, n):
        answers = [tuple(pair[2 * i : 2 * i + 2]) for i in range(n)]
        self.session.tell(answers)
        self.told.append(answers)

    @precondition(lambda self: self.told)
    @rule()
    def undo(self):
        self.session.undo()
        self.told.pop()

    @rule(pair=st.permutations(ODD), share=st.floats(0.0, 1.0))
    def tell_on_a_full_disk(self, pair, share):
        real = os.write

        def write(file, data):
            real(file, data[: int(share * len(data))])
            raise OSError(errno.ENOSPC, "full")

        os.write = write
        try:
            with pytest.raises(DataError):
                self.session.tell([tuple(pair[:2])])
        finally:
            os.write = real

    @rule(pair=st.permutations(ODD))
    def tell_what_cannot_be_learned(self, pair):
        self.session.model.tell = lambda *args, **kwargs: [][0]
        with pytest.raises(IndexError):
            self.session.tell([tuple(pair[:2])])
        del self.session.model.tell

    @rule(share=st.floats(0.0, 1.0), pair=st.permutations(ODD))
    def killed_in_the_middle_of_a_write(self, share, pair):
        """A part of the next line is on disk; somebody starts again."""
        whole = json.dumps({"kind": "answer", "winner": pair[:1], "loser": pair[1:2]}).encode()
        part = whole[: int(share * len(whole))]
        self.session.close()
        with open(self.path, "ab") as file:
            file.write(part)
        self.session = quiet_replay(self.path, model())

    @rule(pair=st.permutations(ODD))
    def killed_between_writing_and_learning(self, pair):
        def killed(*args, **kwargs):
            raise SystemExit

        session, answers = self.session, [tuple(pair[:2])]
        session.model.tell, session.log.take_back = killed, lambda: None
        with suppress(SystemExit):
            session.tell(answers)
        session.close()
        self.session = quiet_replay(self.path, model())
        self.told.append(answers)

    @invariant()
    def all_agree(self):
        if not hasattr(self, "session"):
            return
        assert on_disk(Path(self.path)) == plain(self.session.events)
        assert self.session.n_answers == sum(map(len, self.told))
        fitted = model()
        for answers in self.told:
            fitted.tell(answers)
        assert fitted.comparisons_ == self.session.model.comparisons_
        assert fitted.predict() == pytest.approx(self.session.model.predict(), abs=1e-5)

    def teardown(self):
        if hasattr(self, "session"):
            self.session.close()
            again = quiet_replay(self.path, model())
            assert bits(again) == bits(self.session)
            self.folder.cleanup()


FaultySession.TestCase.settings = settings(
    max_examples=12, stateful_step_count=10, deadline=None, derandomize=True
)
TestFaultySession = FaultySession.TestCase
pytestmark = pytest.mark.filterwarnings("ignore:the last line of:penchant.errors.DataWarning")
