"""A session of questions and answers, with a log from which it can be played again."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from penchant.ask.answers import as_answers, seen_by
from penchant.ask.belief import Belief
from penchant.ask.choose import ask
from penchant.ask.planner import Range, answers_left
from penchant.ask.rules import Rules
from penchant.ask.stopping import STOP_RULES, Budget, StopRule, Verdict
from penchant.data import Comparisons
from penchant.errors import DataError

LOG_VERSION = 1
Event = dict[str, Any]
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
    log : path of a new file that gets one JSON line an event, or None.

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
        self.log = None if log is None else Path(log)
        self.events: list[Event] = []
        self._told: list[Comparisons] = []
        self._last: Pairs = ()
        if self.log is not None and self.log.exists() and self.log.stat().st_size:
            raise DataError(
                f"{self.log} holds a session already: give a new file, or go on with Session.replay"
            )
        _check_names(model.comparisons_)
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
        self._last = tuple(pairs)
        self._record("ask", pairs=pairs)
        return pairs

    def tell(self, more: Comparisons | Iterable[tuple[Any, Any]]) -> Self:
        """Learn from answers: comparisons, or (winner, loser) pairs."""
        self._check_open()
        answers = as_answers(self.model.comparisons_, more, self.setup.user)
        _check_names(answers)
        self.model.tell(answers, relearn=self.setup.relearn)
        self._told.append(answers)
        self._last = _pairs(answers)
        self._record("tell", **_columns(answers))
        return self

    def undo(self) -> Self:
        """Take the last answers back, exactly; their question may be asked again."""
        self._check_open()
        if not self._told:
            raise DataError("there is nothing to undo: nothing was told in this session")
        self.model.undo()
        self._told.pop()
        self._last = _pairs(self._told[-1]) if self._told else ()
        self._record("undo")
        return self

    def stop(self, reason: str = "stopped by hand") -> Self:
        """End the session."""
        self._check_open()
        self._record("stop", reason=reason)
        return self

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
        path = None if isinstance(log, list) else Path(log)
        events = log if isinstance(log, list) else _read(Path(log))
        _check_start(events, model)
        session = cls(model, Setup.from_json(events[0]["setup"]))
        for number, event in enumerate(events[1:], start=1):
            session._play(event, number)
        session.log = path
        return session

    def _play(self, event: Event, number: int) -> None:
        if event["event"] == "ask":
            pairs = self.ask(len(event["pairs"]))
            if [list(pair) for pair in pairs] != [list(pair) for pair in event["pairs"]]:
                raise DataError(
                    f"event {number} of the log asked {event['pairs']} and the replay asks "
                    f"{pairs}: the model is not the one that the session began with"
                )
        elif event["event"] == "tell":
            columns = {name: values for name, values in event.items() if name != "event"}
            self.tell(Comparisons.from_pairs(**columns, items=self.model.comparisons_.items))
        elif event["event"] == "undo":
            self.undo()
        else:
            self.stop(event["reason"])

    def _record(self, event: str, **values: Any) -> None:
        self.events.append({"event": event, **values})
        if self.log is not None:
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(self.events[-1], ensure_ascii=False) + "\n")

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.setup.seed, len(self.events)])

    def _check_open(self) -> None:
        if self.is_stopped:
            raise DataError(
                f"the session is over ({self.events[-1]['reason']}): begin a new one to go on"
            )


def _columns(answers: Comparisons) -> dict[str, list[Any]]:
    """The columns of `from_pairs` that say something, as JSON values."""
    items, users = answers.items, answers.users
    columns: dict[str, list[Any]] = {
        "winner": [items[i] for i in answers.winner],
        "loser": [items[i] for i in answers.loser],
        "count": answers.count.tolist(),
        "tie": answers.tie.tolist(),
    }
    if answers.user is not None:
        columns["user"] = [users[i] for i in answers.user]
    if answers.margin is not None:
        columns["margin"] = answers.margin.tolist()
    return columns


def _pairs(answers: Comparisons) -> Pairs:
    """Which items were compared."""
    items = answers.items
    return tuple((items[a], items[b]) for a, b in zip(answers.winner, answers.loser, strict=True))


def _check_names(data: Comparisons) -> None:
    for name in (*data.items, *data.users):
        if not isinstance(name, str | int | float):
            raise DataError(
                f"the name {name!r} cannot be written to a session's log: names of items and "
                "users must be text or numbers"
            )


def _fingerprint(model: Teachable) -> str:
    """What the session started from, in 16 letters."""
    data = model.comparisons_
    told = json.dumps([type(model).__name__, list(data.items), list(data.users), _columns(data)])
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _read(path: Path) -> list[Event]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]
    except FileNotFoundError:
        raise DataError(f"there is no file {path}: check the path of the log") from None
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path} is not a session's log ({error}): it must hold one JSON event a line; if its "
            "last line was cut off, remove it"
        ) from None


def _check_start(events: Sequence[Event], model: Teachable) -> None:
    start = events[0] if events else {}
    if start.get("event") != "start" or start.get("version") != LOG_VERSION:
        raise DataError(
            f"the log does not begin with a session of version {LOG_VERSION}: it is another file, "
            "or from another version of penchant"
        )
    if start["data"] != _fingerprint(model):
        raise DataError(
            "the log began with other comparisons than the model has: fit the model on the data "
            "of then, without the session's answers"
        )
