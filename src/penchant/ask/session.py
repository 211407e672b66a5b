"""A session of questions and answers, and its log: from the log it can be played again.

A record is one JSON line: `seq`, `kind` and what belongs to the kind. Kinds are those of a study
(`penchant.study.events`) where there is one: start, ask, answer, withdraw (of: the answer's seq),
stop. A record is on disk before anything is learned from it. A line counts once its line break is
on disk: after a cut (a kill, a full disk) the rest is dropped when the file is read, and written
over when it is continued.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from penchant.ask.answers import as_answers, orders_of, seen_by, with_orders
from penchant.ask.belief import Belief
from penchant.ask.choose import Rules, ask
from penchant.ask.plan import Range, answers_left
from penchant.ask.stopping import STOP_RULES, Budget, StopRule, Verdict
from penchant.data import Comparisons
from penchant.errors import DataError, DataWarning, PenchantError, warn
from penchant.io import sync_folder, take_lock

LOG_VERSION = 1
START, ASK, ANSWER, WITHDRAW, STOP = "start", "ask", "answer", "withdraw", "stop"
KINDS = (START, ASK, ANSWER, WITHDRAW, STOP)
Record = dict[str, Any]
Pairs = tuple[tuple[Any, Any], ...]


class Teachable(Protocol):
    """A fitted model that can be told answers and take them back."""

    @property
    def comparisons_(self) -> Comparisons:
        """What it has learned from."""

    def belief(self, user: Any = None) -> Belief:
        """What it believes of a user's utilities, or of everybody's."""

    def tell(self, more: Comparisons, *, relearn: float | None = None) -> Any:
        """Learn from more answers."""

    def undo(self) -> Any:
        """Take the last `tell` back."""


@dataclass(frozen=True)
class Setup:
    """How a session asks and when it stops.

    criterion, rules : see `ask`. stop : rules to be checked, see `Session.verdicts`.
    user : who answers, and whom the questions are about; None for everybody.
    relearn : share by which comparisons grow until hyperparameters are learned again, or None.
    seed : of everything random.

    >>> Setup("information_gain", stop=(Budget(40),), relearn=0.5).to_json()["relearn"]
    0.5
    """

    criterion: str = "variance_ratio"
    rules: Rules = field(default_factory=Rules)
    stop: tuple[StopRule, ...] = ()
    user: Any = None
    relearn: float | None = None
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        stop = [{"rule": type(rule).__name__, **asdict(rule)} for rule in self.stop]  # type: ignore[call-overload]
        return {**vars(self), "rules": asdict(self.rules), "stop": stop}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Setup":
        """From what `to_json` made."""
        avoid = tuple((a, b) for a, b in values["rules"]["avoid"])
        stop = tuple(
            STOP_RULES[rule["rule"]](**{k: v for k, v in rule.items() if k != "rule"})
            for rule in values["stop"]
        )
        return cls(
            **{**values, "rules": Rules(**{**values["rules"], "avoid": avoid}), "stop": stop}
        )


class Session:
    """Ask, tell, undo, stop; every step is a record in an append-only log.

    Parameters
    ----------
    model : a fitted model with `tell` and `undo`; it learns as the session goes.
    setup : Setup
    log : path of a new file that gets one JSON line a step, or None. A record is on disk
        before anything is learned from it, and gone again if that fails; one session at a time
        may write to a file, until it is closed, stopped or deleted.

    >>> import penchant as pc
    >>> data = pc.Comparisons.from_pairs(["tea"], ["milk"], items=["tea", "milk", "water"])
    >>> session = Session(pc.PreferenceGP(optimize=None).fit(None, data))
    >>> (pair,) = session.ask()
    >>> session.tell([pair]).undo().n_answers
    0
    """

    def __init__(
        self, model: Teachable, setup: Setup | None = None, log: str | PathLike[str] | None = None
    ) -> None:
        self.model, self.setup = model, setup or Setup()
        self.log = None if log is None else Log(log)
        self.events: list[Record] = []
        self._answers: list[tuple[int, Comparisons]] = []
        self._last: Pairs = ()
        if self.log is not None and self.log.path.is_file() and self.log.path.stat().st_size:
            raise DataError(
                f"{self.log.path} holds a session already: give a new file, or go on with "
                "Session.replay"
            )
        _check_names(model.comparisons_)
        self._record(
            START, version=LOG_VERSION, data=_fingerprint(model), setup=self.setup.to_json()
        )

    @property
    def n_answers(self) -> int:
        """How many answers were told and not taken back."""
        return sum(answers.n_comparisons for _, answers in self._answers)

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return bool(self.events[-1]["kind"] == STOP)

    def ask(self, k: int = 1) -> list[tuple[Any, Any]]:
        """The next k questions; never what was asked or told just before, if there is a choice."""
        self._check_open()
        setup = self.setup
        rules = replace(setup.rules, avoid=setup.rules.avoid + self._last)
        belief, seen = self._belief(), seen_by(self.model.comparisons_, setup.user)
        pairs = ask(belief, seen, k, setup.criterion, rules, self._rng())
        self._record(ASK, pairs=pairs)
        self._last = tuple(pairs)
        return pairs

    def tell(self, more: Comparisons | Iterable[tuple[Any, Any]]) -> Self:
        """Learn from answers: comparisons, or (winner, loser) pairs."""
        self._check_open()
        answers = as_answers(self.model.comparisons_, more, self.setup.user)
        _check_names(answers)

        def learn() -> None:
            self.model.tell(answers, relearn=self.setup.relearn)

        seq = self._record(ANSWER, learn, **_columns(answers))
        self._answers.append((seq, answers))
        self._last = _pairs(answers)
        return self

    def undo(self) -> Self:
        """Take the last answers back, exactly; their question may be asked again."""
        self._check_open()
        if not self._answers:
            raise DataError("there is nothing to undo: nothing was told in this session")
        self._record(WITHDRAW, self.model.undo, of=self._answers[-1][0])
        self._answers.pop()
        self._last = _pairs(self._answers[-1][1]) if self._answers else ()
        return self

    def stop(self, reason: str = "stopped by hand") -> Self:
        """End the session."""
        self._check_open()
        self._record(STOP, reason=reason)
        self.close()
        return self

    def close(self) -> None:
        """Let another session write to the log; this one may go on too, if no other did."""
        if self.log is not None:
            self.log.close()

    def verdicts(self) -> list[Verdict]:
        """What each stop rule says now, in the order of the setup."""
        belief = self._belief()
        return [rule.check(belief, self.n_answers, self._rng()) for rule in self.setup.stop]

    def answers_left(self, rule: StopRule | None = None, horizon: int = 500) -> Range:
        """How many more answers a rule needs (by default the setup's first), by simulation."""
        if rule is None and not self.setup.stop:
            raise DataError("the session has no stop rule: give one, such as TopSettled(k=3)")
        rule = rule or self.setup.stop[0]
        if isinstance(rule, Budget):
            left = max(0, rule.answers - self.n_answers)
            return Range(left, left, left)
        setup = self.setup
        return answers_left(
            self._belief(), rule, setup.criterion, horizon, random_state=self._rng()
        )

    @classmethod
    def replay(cls, log: str | PathLike[str] | list[Record], model: Teachable) -> "Session":
        """Play a log again on the model that it started from, to the same bits.

        log : a file, to which the session then goes on to append, or a list of records.
        model : fitted as it was when the session began.
        """
        events, size, whole = (log, 0, 0) if isinstance(log, list) else _read_log(log)
        start = _check_start(events, model)
        with _damage_reported("the log's first record"):
            setup = Setup.from_json(start["setup"])
        session = cls(model, setup)
        for event in events[1:]:
            with _damage_reported(f"record {len(session.events) + 1} of the log"):
                session._play(event)
        session.log = None if isinstance(log, list) else Log(log, size, whole)
        return session

    def _play(self, event: Record) -> None:
        """One step as it was recorded; it must ask, and take back, the same."""
        values = {name: value for name, value in event.items() if name not in ("seq", "kind")}
        if event["kind"] == ASK:
            self.ask(len(values["pairs"]))
        elif event["kind"] == ANSWER:
            self.tell(_answers_from(values, self.model.comparisons_.items))
        elif event["kind"] == WITHDRAW:
            self.undo()
        elif event["kind"] == STOP:
            self.stop(**values)
        else:
            raise DataError("the log begins a session within another: restore it")
        checked = {ASK: "pairs", WITHDRAW: "of"}.get(event["kind"])
        if checked is not None:
            before, now = (json.dumps(one[checked]) for one in (event, self.events[-1]))
            if before != now:
                raise DataError(
                    f"a record of the log has {checked} = {before} and the replay {now}: the model "
                    "is not the one that the session began with"
                )

    def _record(self, kind: str, learn: Callable[[], Any] = lambda: None, **values: Any) -> int:
        """Put a record on disk, then learn from it; if either fails, neither has happened."""
        seq, before = len(self.events) + 1, self.model.comparisons_
        written = {"seq": seq, "kind": kind, **values}
        if self.log is not None:
            self.log.append(written)
        try:
            learn()
        except BaseException:
            if self.log is not None:
                self.log.take_back()
            if kind == ANSWER and self.model.comparisons_ is not before:
                self.model.undo()  # an interrupt came just after it was learned
            raise
        self.events.append(written)
        return seq

    def _belief(self) -> Belief:
        return self.model.belief(self.setup.user)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.setup.seed, len(self.events)])

    def _check_open(self) -> None:
        if self.is_stopped:
            raise DataError(
                f"the session is over ({self.events[-1]['reason']}): begin a new one to go on"
            )


class Log:
    """Appends records to a file, one writer at a time.

    size, whole: bytes of a file that was read, and of its whole lines.
    """

    def __init__(self, path: str | PathLike[str], size: int = 0, whole: int = 0) -> None:
        self.path = Path(path)
        self._file: int | None = None
        self._size, self._whole, self._before = size, whole, whole
        self._is_lost = False

    def append(self, record: Record) -> None:
        """Write a record to disk; after an error the file is as it was."""
        line, file = _encoded(record), self._opened()
        self._before = self._whole
        try:
            os.ftruncate(file, self._whole)  # what a cut has left
            os.lseek(file, self._whole, os.SEEK_SET)
            left = memoryview(line)
            while left:
                left = left[os.write(file, left) :]
            os.fsync(file)
        except BaseException as error:
            self.take_back()
            if not isinstance(error, OSError):
                raise
            raise DataError(
                f"{self.path} cannot be written ({error.strerror or error}): nothing was learned "
                "or counted; make room, or begin a session elsewhere, and tell it again"
            ) from error
        self._size = self._whole = self._whole + len(line)

    def take_back(self) -> None:
        """Remove the record that was appended last, because nothing could be learned from it."""
        self._size = self._whole = self._before
        try:
            if self._file is not None:
                os.ftruncate(self._file, self._whole)
                os.fsync(self._file)
        except OSError:
            self._is_lost = True  # what is on disk is not known

    def close(self) -> None:
        """Release the file; a later `append` opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()

    def _opened(self) -> int:
        """The file, locked by this writer, as this writer left it."""
        if self._is_lost:
            raise DataError(
                f"{self.path} could not be put right after an error: go on with Session.replay, "
                "which takes what is on disk"
            )
        if self._file is None:
            self._file = _open_locked(self.path)
        found = os.fstat(self._file)
        if not (self.path.exists() and os.path.samestat(found, self.path.stat())):
            raise DataError(
                f"{self.path} was moved or removed while a session was writing to it: put it back, "
                "or begin a new session"
            )
        if found.st_size != self._size:
            self.close()
            raise DataError(
                f"{self.path} has {found.st_size} bytes and this session knows of {self._size}: "
                "somebody else has written to it; go on with Session.replay, or give a new file"
            )
        return self._file


def _open_locked(path: Path) -> int:
    """A file descriptor that holds a lock, where the file system has locks."""
    is_new = not path.exists()
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    except OSError as error:
        raise DataError(
            f"{path} cannot be opened for writing ({error.strerror}): give the log a place in a "
            "folder that exists and may be written to"
        ) from None
    try:
        take_lock(file)  # without one, a file that has grown is noticed all the same
    except BlockingIOError:
        os.close(file)
        raise DataError(
            f"{path} is being written by another session: two would mix their answers; close that "
            "one first, or give a new file"
        ) from None
    if is_new:
        sync_folder(path.parent)
    return file


def _encoded(record: Record) -> bytes:
    try:
        text = json.dumps(record, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"a record of kind {record['kind']!r} cannot be written to a session's log ({error}): "
            "names, users and seeds must be text or numbers"
        ) from None
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair is text in Python, but in no encoding
        return json.dumps(record).encode() + b"\n"


def _read_log(path: str | PathLike[str]) -> tuple[list[Record], int, int]:
    """The records of a file, its size, and the size of its whole lines, both in bytes."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise DataError(f"there is no file {path}: check the path of the log") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read as a session's log ({error.strerror})") from None
    *lines, rest = content.split(b"\n")
    records = [_parsed(line, f"line {k} of {path}") for k, line in enumerate(lines, 1)]
    if rest:
        warn(
            f"the last line of {path} was cut off and is left out: the answer in it, if it is "
            "one, was never acknowledged; give it again",
            DataWarning,
        )
    return records, len(content), len(content) - len(rest)


def _parsed(line: bytes, where: str) -> Record:
    try:
        record = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{where} is not JSON ({error}): a session's log must hold one record a line; restore "
            "the file, or keep the lines before"
        ) from None
    if not isinstance(record, dict) or record.get("kind") not in KINDS:
        raise DataError(
            f"{where} is not a record of a session: it must be an object whose 'kind' is one of "
            f"{', '.join(KINDS)}"
        )
    return record


def _check_start(events: Sequence[Record], model: Teachable) -> Record:
    start = events[0] if events and isinstance(events[0], dict) else {}
    if start.get("kind") != START or start.get("version") != LOG_VERSION:
        raise DataError(
            f"the log does not begin with a session of version {LOG_VERSION}: it is another file, "
            "or from another version of penchant"
        )
    if start.get("data") != _fingerprint(model):
        raise DataError(
            "the log began with other comparisons than the model has: fit the model on the data "
            "of then, without the session's answers"
        )
    return start


@contextmanager
def _damage_reported(what: str) -> Iterator[None]:
    """Turn errors of reading a record into one that says that the log is damaged."""
    try:
        yield
    except PenchantError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(
            f"{what} is not one that a session writes ({type(error).__name__}: {error}): the log "
            "is damaged, or from another version of penchant; restore it"
        ) from None


def _pairs(answers: Comparisons) -> Pairs:
    """Which items were compared."""
    items = answers.items
    return tuple((items[a], items[b]) for a, b in zip(answers.winner, answers.loser, strict=True))


def _fingerprint(model: Teachable) -> str:
    """What the session started from, in 16 letters."""
    data = model.comparisons_
    told = json.dumps([type(model).__name__, list(data.items), list(data.users), _columns(data)])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _columns(answers: Comparisons) -> dict[str, Any]:
    """The columns of `from_pairs` that say something, as JSON values, and the rankings."""
    orders, answers = orders_of(answers), answers.single_pairs()
    items, users = answers.items, answers.users
    columns: dict[str, Any] = {
        "winner": [items[i] for i in answers.winner],
        "loser": [items[i] for i in answers.loser],
        "count": answers.count.tolist(),
        "tie": answers.tie_words.tolist(),
    }
    if answers.user is not None:
        columns["user"] = [users[i] for i in answers.user]
    for name in ("margin", "first", "time"):
        if (column := getattr(answers, name)) is not None:
            columns[name] = column.tolist()
    if answers.covariates is not None:
        names = answers.covariate_names
        columns["covariates"] = dict(zip(names, answers.covariates.T.tolist(), strict=True))
    return {**columns, "rankings": orders} if orders else columns


def _answers_from(columns: Mapping[str, Any], items: tuple[Any, ...]) -> Comparisons:
    """What `_columns` wrote."""
    values = dict(columns)
    orders = values.pop("rankings", [])
    pairs = Comparisons.from_pairs(**values, items=items) if values["winner"] else None
    if not orders and pairs is not None:
        return pairs
    users = [order["user"] for order in orders]
    return with_orders(pairs, orders, None if users[0] is None else users, items)


def _check_names(data: Comparisons) -> None:
    """Refuse names that JSON does not keep."""
    for name in (*data.items, *data.users):
        if not isinstance(name, str | int | float) or name != name:
            raise DataError(
                f"the name {name!r} cannot be written to a session's log: names of items and "
                "users must be text or numbers"
            )
