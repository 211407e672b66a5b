"""A session of questions and answers, with a log from which it can be played again."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from typing import Any, Protocol, Self

import numpy as np

from penchant.ask.answers import as_answers, seen_by
from penchant.ask.belief import Belief
from penchant.ask.choose import Rules, ask
from penchant.ask.log import NEW, Event, Log, answers_from, check_names, columns_of, read_log
from penchant.ask.plan import Range, answers_left
from penchant.ask.stopping import STOP_RULES, Budget, StopRule, Verdict
from penchant.data import Comparisons
from penchant.errors import DataError, PenchantError

LOG_VERSION = 1
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
    """Ask, be told, undo, stop; every step is an event in an append-only log.

    Parameters
    ----------
    model : a fitted model with `tell` and `undo`; it learns as the session goes.
    setup : Setup
    log : path of a new file that gets one JSON line an event, or None. An event is on disk
        before anything is learned from it, and gone again if that fails; one session at a time
        may write to a file, until it is closed, stopped or forgotten.

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
        self.events: list[Event] = []
        self._told: list[Comparisons] = []
        self._last: Pairs = ()
        if self.log is not None and _size(self.log):
            raise DataError(
                f"{self.log.path} holds a session already: give a new file, or go on with "
                "Session.replay"
            )
        check_names(model.comparisons_)
        self._record(
            "start", version=LOG_VERSION, data=_fingerprint(model), setup=self.setup.to_json()
        )

    @property
    def n_answers(self) -> int:
        """How many answers were told and not taken back."""
        return sum(answers.n_comparisons for answers in self._told)

    @property
    def is_stopped(self) -> bool:
        """Whether `stop` was called."""
        return bool(self.events[-1]["event"] == "stop")

    def ask(self, k: int = 1) -> list[tuple[Any, Any]]:
        """The next k questions; never what was asked or told just before, if there is a choice."""
        self._check_open()
        setup = self.setup
        rules = replace(setup.rules, avoid=setup.rules.avoid + self._last)
        belief = self.model.belief(setup.user)
        seen = seen_by(self.model.comparisons_, setup.user)
        pairs = ask(belief, seen, k, setup.criterion, rules, self._rng())
        self._record("ask", pairs=pairs)
        self._last = tuple(pairs)
        return pairs

    def tell(self, more: Comparisons | Iterable[tuple[Any, Any]]) -> Self:
        """Learn from answers: comparisons, or (winner, loser) pairs."""
        self._check_open()
        answers = as_answers(self.model.comparisons_, more, self.setup.user)
        check_names(answers)

        def learn() -> None:
            self.model.tell(answers, relearn=self.setup.relearn)

        self._record("tell", learn, **columns_of(answers))
        self._told.append(answers)
        self._last = _pairs(answers)
        return self

    def undo(self) -> Self:
        """Take the last answers back, exactly; their question may be asked again."""
        self._check_open()
        if not self._told:
            raise DataError("there is nothing to undo: nothing was told in this session")
        self._record("undo", self.model.undo)
        self._told.pop()
        self._last = _pairs(self._told[-1]) if self._told else ()
        return self

    def stop(self, reason: str = "stopped by hand") -> Self:
        """End the session."""
        self._check_open()
        self._record("stop", reason=reason)
        self.close()
        return self

    def close(self) -> None:
        """Let another session go on with the log; this one may do so too, if nobody else did."""
        if self.log is not None:
            self.log.close()

    def verdicts(self) -> list[Verdict]:
        """What each stop rule says now, in the order of the setup."""
        belief = self.model.belief(self.setup.user)
        return [rule.check(belief, self.n_answers, self._rng()) for rule in self.setup.stop]

    def answers_left(self, rule: StopRule | None = None, horizon: int = 500) -> Range:
        """How many more answers a rule needs (by default the setup's first), by simulation."""
        if rule is None and not self.setup.stop:
            raise DataError("the session has no stop rule: give one, such as TopSettled(k=3)")
        rule = rule or self.setup.stop[0]
        if isinstance(rule, Budget):
            left = max(0, rule.answers - self.n_answers)
            return Range(left, left, left)
        belief = self.model.belief(self.setup.user)
        return answers_left(belief, rule, self.setup.criterion, horizon, random_state=self._rng())

    @classmethod
    def replay(cls, log: str | PathLike[str] | list[Event], model: Teachable) -> "Session":
        """Play a log again on the model that it started from, to the same bits.

        log : a file, to which the session then goes on to append, or a list of events.
        model : fitted as it was when the session began.
        """
        events, known = (log, NEW) if isinstance(log, list) else read_log(log)
        _check_start(events, model)
        session = cls(model, _setup(events[0]))
        for number, event in enumerate(events[1:], start=1):
            session._play(event, number)
        session.log = None if isinstance(log, list) else Log(log, known)
        return session

    def _play(self, event: Event, number: int) -> None:
        try:
            self._step(event, number)
        except PenchantError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(
                f"event {number} of the log, {str(event)[:80]}, is not one that a session writes "
                f"({type(error).__name__}: {error}): the log is damaged; restore it"
            ) from None

    def _step(self, event: Event, number: int) -> None:
        values = {name: value for name, value in event.items() if name != "event"}
        if event["event"] == "ask":
            pairs = self.ask(len(event["pairs"]))
            if [list(pair) for pair in pairs] != [list(pair) for pair in event["pairs"]]:
                raise DataError(
                    f"event {number} of the log asked {event['pairs']} and the replay asks "
                    f"{pairs}: the model is not the one that the session began with"
                )
        elif event["event"] == "tell":
            self.tell(answers_from(values, self.model.comparisons_.items))
        elif event["event"] == "undo":
            self.undo(**values)
        elif event["event"] == "stop":
            self.stop(**values)
        else:
            raise DataError(f"event {number} of the log begins a session within another")

    def _record(self, event: str, learn: Callable[[], Any] = lambda: None, **values: Any) -> None:
        """Put an event on disk, then learn from it; if either fails, neither has happened."""
        written, before = {"event": event, **values}, self.model.comparisons_
        if self.log is not None:
            self.log.append(written)
        try:
            learn()
        except BaseException:
            if self.log is not None:
                self.log.take_back()
            if event == "tell" and self.model.comparisons_ is not before:
                self.model.undo()  # an interrupt came just after it was learned
            raise
        self.events.append(written)

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.setup.seed, len(self.events)])

    def _check_open(self) -> None:
        if self.is_stopped:
            raise DataError(
                f"the session is over ({self.events[-1]['reason']}): begin a new one to go on"
            )


def _pairs(answers: Comparisons) -> Pairs:
    """Which items were compared."""
    items = answers.items
    return tuple((items[a], items[b]) for a, b in zip(answers.winner, answers.loser, strict=True))


def _fingerprint(model: Teachable) -> str:
    """What the session started from, in 16 letters."""
    data = model.comparisons_
    told = json.dumps([type(model).__name__, list(data.items), list(data.users), columns_of(data)])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _size(log: Log) -> int:
    return log.path.stat().st_size if log.path.is_file() else 0


def _setup(start: Event) -> Setup:
    try:
        return Setup.from_json(start["setup"])
    except PenchantError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"the log's first event holds no setup ({type(error).__name__}: {error}): the log is "
            "damaged, or from another version of penchant"
        ) from None


def _check_start(events: Sequence[Event], model: Teachable) -> None:
    start = events[0] if events and isinstance(events[0], dict) else {}
    if (
        not isinstance(start, dict)
        or start.get("event") != "start"
        or start.get("version") != LOG_VERSION
    ):
        raise DataError(
            f"the log does not begin with a session of version {LOG_VERSION}: it is another file, "
            "or from another version of penchant"
        )
    if start.get("data") != _fingerprint(model):
        raise DataError(
            "the log began with other comparisons than the model has: fit the model on the data "
            "of then, without the session's answers"
        )
