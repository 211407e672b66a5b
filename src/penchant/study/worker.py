"""The model process: events in, prepared questions and snapshots out, never inside a request."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event as Flag
from threading import Thread
from typing import Any

from penchant.ask import Joint
from penchant.study import quality
from penchant.study import questions as rules
from penchant.study.config import Config
from penchant.study.events import ADD_ITEM, ANSWER, ERASE, Event
from penchant.study.learner import StudyLearner, best_questions, learned_from_file, p_first
from penchant.study.questions import CHECK, NORMAL, RANDOM, REPEAT, Prepared, pair_key
from penchant.study.store import Database, learning, studies
from penchant.study.store.learning import Queue, Snapshot
from penchant.study.store.studies import CLOSED, RUNNING, Study

LARGEST_STOCK = 150
BATCH = 40
FUTURES = 10
IDLE_SECONDS, LONGEST_IDLE = 0.1, 1.0
"""Seconds between two polls of an idle study: the pause grows from the first to the second."""
SNAPSHOT_SECONDS = 0.7
IMAGINE_SECONDS = 2.0
GROUPS_SHARE = 0.1
"""Share of a busy study's time that is spent on finding groups of people."""


@dataclass
class Futures:
    """Simulated futures of one state of a study, collected one at a time."""

    seq: int = 0
    lengths: tuple[int | None, ...] = ()

    def to_json(self) -> dict[str, Any] | None:
        """How many more answers: 10 %, median, 90 %; None: beyond the horizon."""
        if len(self.lengths) < FUTURES:
            return None
        ordered = sorted(self.lengths, key=lambda n: float("inf") if n is None else n)
        return {"seq": self.seq, "low": ordered[0], "median": ordered[4], "high": ordered[8]}


class Worker:
    """Keeps the model of one study up to date with its events.

    A step does one round of work. now: the clock of leases.
    """

    def __init__(self, database: Database, study: str, now: Callable[[], float] = time.time):
        self.database, self.study, self.now = database, study, now
        self.snapshot_seq = -1
        self.snapshot_due = 0.0
        self.imagine_due = 0.0
        self.groups_due = 0.0
        self.recover()

    def recover(self) -> None:
        """Start from the last usable snapshot, or from the first event."""
        self.file: tuple[int, bytes] | None = None
        self.futures, self.planned = Futures(), Futures()
        self.groups: tuple[int, dict[str, Any] | None] = (0, None)
        self.learner = replayed(self.database, self.study, from_snapshot=True)

    def step(self, *, may_learn: bool = True) -> bool:
        """Read new events, prepare questions, save a snapshot; return whether there was work.

        may_learn=False: prepare questions from what is known already.
        """
        it = self.database.read(studies.get, self.study)
        news = may_learn and self._catch_up(it)
        made = self._prepare(it) if it.state == RUNNING else 0
        # while idle, and every IMAGINE_SECONDS in a busy study
        may_imagine = not (news or made) or time.monotonic() >= self.imagine_due
        imagined = may_imagine and self._imagine()
        grouped = self._look_for_groups(is_idle=not (news or made or imagined))
        saved = self._save(it)
        return bool(news or made or imagined or grouped or saved)

    def _catch_up(self, it: Study) -> bool:
        learner = self.learner
        seq = learner.record.seq
        if it.config != learner.config:
            learner.config = it.config
            self.snapshot_seq = -1
        if it.seq == seq:
            return False
        events = self.database.read(studies.events_after, self.study, seq)
        if any(event.kind == ERASE and event.payload["events"] for event in events):
            self.recover()  # what was learned may depend on erased answers
            return True
        if any(event.kind == "add_item" for event in events):
            items = self.database.read(studies.items_of, self.study)
            learner.features = {row.id: row.features for row in items}
        learner.advance(events)
        return True

    def _prepare(self, it: Study) -> int:
        now, version = self.now(), self.learner.record.seq

        def look(conn: Any) -> tuple[Queue, dict[str, set[str]]]:
            queue = learning.queue_of(conn, self.study, it.config, now, version)
            short = [p for p, n in queue.prepared.items() if n < it.config.ahead]
            return queue, learning.asked_pairs(conn, short)

        queue, asked = self.database.read(look)
        stock = stock_for(len(self.learner.record.active()))
        if not asked and queue.stock >= stock:
            return 0
        made = top_up(self.learner, queue, asked, stock)
        if not made:
            return 0
        self.database.write(learning.drop_unwanted, self.study, now, version)
        # in small batches: participants' answers wait while this process writes
        for start in range(0, len(made), BATCH):
            some = made[start : start + BATCH]
            self.database.write(learning.prepare, self.study, some, version, now)
        return len(made)

    def _imagine(self) -> bool:
        """Simulate one more future, if there are new events."""
        self.imagine_due = time.monotonic() + IMAGINE_SECONDS
        seq = self.learner.record.seq
        if self.learner.model is None or self.planned.seq == seq:
            return False
        if self.futures.seq != seq and self.futures.lengths:
            # in a busy study, futures of slightly older states count too
            self.futures = Futures(seq, self.futures.lengths)
        lengths = (*self.futures.lengths, self.learner.one_future(len(self.futures.lengths)))
        self.futures = Futures(seq, lengths)
        if len(lengths) == FUTURES:
            self.planned, self.futures = self.futures, Futures()
            self.snapshot_seq = -1
        return True

    def _look_for_groups(self, *, is_idle: bool) -> bool:
        """Whether people fall into groups, at the points where hyperparameters are learned."""
        learner, begun = self.learner, time.monotonic()
        at = learner.learned.at
        if self.groups[0] == at or not (is_idle or begun >= self.groups_due):
            return False
        self.groups = (at, quality.groups(learner.record.taught(), list(learner.record.items)))
        self.groups_due = begun + (time.monotonic() - begun) / GROUPS_SHARE
        self.snapshot_seq = -1
        return True

    def _save(self, it: Study) -> bool:
        seq = self.learner.record.seq
        if seq == self.snapshot_seq or time.monotonic() < self.snapshot_due:
            return False
        begun = time.monotonic()
        summary = self.summary()
        at = self.learner.learned.at
        if self.file is None or self.file[0] != at:
            self.file = (at, self.learner.model_file())
        content = Snapshot(seq, at, self.file[1], summary)

        def job(conn: Any) -> None:
            if learning.save_snapshot(conn, self.study, content, self.now()):
                enough = (summary["stop"] or {}).get("stop", False)
                if enough and it.config.close_when_enough and it.state == RUNNING:
                    studies.set_state(conn, self.study, CLOSED, self.now())

        self.database.write(job)
        self.snapshot_seq = seq
        took = time.monotonic() - begun
        # summaries of big studies are slow: spend at most a fifth of the time on them
        self.snapshot_due = begun + max(SNAPSHOT_SECONDS, 5.0 * took)
        return True

    def summary(self) -> dict[str, Any]:
        """What is known, for the owner's page."""
        learner = self.learner
        answers = list(learner.record.answers.values())
        skips = [event.participant for event in learner.record.skipped.values()]
        verdict = learner.verdict()
        return {
            "seq": learner.record.seq,
            "answers": sum(answer.count for answer in answers),
            "ranking": learner.ranking(),
            "stop": None if verdict is None else _verdict(verdict),
            "left": self.planned.to_json(),
            "calibration": quality.calibration(answers),
            "raters": quality.raters(answers, skips, learner.config),
            "communities": self.groups[1],
            "learned_at": learner.learned.at,
        }


def top_up(
    learner: StudyLearner, queue: Queue, asked: dict[str, set[str]], stock: int
) -> list[Prepared]:
    """Questions that fill every queue to its length, the emptiest queues first.

    asked: the keys of what each person was asked; what is prepared here is added.
    """
    config, record = learner.config, learner.record
    items, short = record.active(), max(0, stock - queue.stock)
    wanted = sorted(
        (have, person, queue.asked.get(person, 0) + have - queue.prepared[person])
        for person in asked
        for have in range(queue.prepared[person], config.ahead)
    )
    is_personal = config.model == "personal" and learner.model is not None
    beliefs: dict[str | None, Joint] = {None: learner.belief()}
    # with so many, everybody finds enough that they were not asked
    most_asked = max(map(len, asked.values()), default=0)
    n_shared = short + most_asked + (0 if is_personal else len(wanted))
    shared = best_questions(beliefs[None], items, config, n_shared, queue.pending, record.seq)
    best = dict.fromkeys(asked, shared)
    for person in asked if is_personal else ():
        beliefs[person] = learner.belief(person)
        n = config.ahead + len(asked[person])
        best[person] = best_questions(beliefs[person], items, config, n, queue.pending, record.seq)
    held = {pair_key(question) for question in queue.pending}
    made: list[Prepared] = []

    def prepare(person: str | None, kind: str, found: tuple[str, ...] | None) -> None:
        if found is not None:
            p = p_first(beliefs.get(person, beliefs[None]), items, found)
            made.append(Prepared(person, found, config.format, kind, p))
            held.add(pair_key(found))

    for _, person, number in wanted:
        kind, known = rules.kind_of(config, person, number), asked[person]
        rng = rules.draw(kind, person, number)
        if kind == CHECK:
            check = rules.check_items(rng.randrange(len(config.checks)), config)
            made.append(Prepared(person, check, "best", CHECK))
        elif kind == REPEAT and (earlier := record.repeatable(person)):
            prepare(person, REPEAT, rng.choice(earlier))
        else:
            found = None if kind == RANDOM else rules.take_new(best[person], known, held)
            found = found or rules.random_items(items, config.size, known, held, rng)
            prepare(person, RANDOM if kind == RANDOM else NORMAL, found)
        if made and made[-1].participant == person:
            known.add(pair_key(made[-1].items))
    for number in range(short):
        found = rules.take_new(shared, set(), held) or rules.random_items(
            items, config.size, set(), held, rules.draw("stock", record.seq, number)
        )
        prepare(None, NORMAL, found)
    return made


def stock_for(n_items: int) -> int:
    """How many questions the common stock holds: few where there are few pairs.

    >>> stock_for(8), stock_for(12), stock_for(200)
    (7, 16, 150)
    """
    return min(LARGEST_STOCK, max(5, n_items * (n_items - 1) // 8))


def _verdict(verdict: Any) -> dict[str, Any]:
    return {
        "stop": bool(verdict.stop),
        "value": float(verdict.value),
        "target": float(verdict.target),
        "reason": verdict.reason,
    }


def work(database: Database, stop: Flag | None = None) -> None:
    """Run the models of all studies of a database until `stop` is set."""
    stop = stop or _on_signals()
    workers: dict[str, Worker] = {}
    pause = IDLE_SECONDS
    warming = Thread(target=warm_up, name="warm up", daemon=True)
    while not stop.is_set():
        busy = False
        for study in database.read(studies.names):
            if study not in workers:
                workers[study] = Worker(database, study)
            # a fit would wait for these imports, and participants for the fit
            busy = workers[study].step(may_learn=not warming.is_alive()) or busy
        if warming.ident is None:  # the first questions wait in the queue
            warming.start()
        pause = IDLE_SECONDS if busy else min(1.2 * pause, LONGEST_IDLE)
        if not busy:
            stop.wait(pause)


def warm_up() -> None:
    """Import what a first fit imports (about a second) before the first participant needs it."""
    told = {"items": ["a", "b"], "order": [[0], [1]], "form": "pair", "kind": NORMAL}
    events = [Event(k, ADD_ITEM, payload={"item": item}) for k, item in enumerate("ab")]
    learner = StudyLearner(Config("Which?"), {"a": {}, "b": {}})
    learner.advance([*events, Event(2, ANSWER, payload=told)])
    learner.ranking()


def _on_signals() -> Flag:
    flag = Flag()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: flag.set())
    return flag


def replayed(database: Database, study: str, *, from_snapshot: bool = False) -> StudyLearner:
    """The learner after a replay of all events; with a snapshot nothing is learned twice."""

    def job(conn: Any) -> tuple[Any, ...]:  # one transaction: somebody may be erased meanwhile
        snapshot = learning.last_snapshot(conn, study) if from_snapshot else None
        learned, seq = None, 0
        if snapshot is not None:
            learned, seq = learned_from_file(snapshot.model, snapshot.learned_at), snapshot.seq
        features = {row.id: row.features for row in studies.items_of(conn, study)}
        config, events = studies.get(conn, study).config, studies.events_after(conn, study)
        return config, features, events, learned, seq

    return StudyLearner.from_snapshot(*database.read(job))
