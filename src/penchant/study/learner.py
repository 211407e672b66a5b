"""The model process: events in, prepared questions and snapshots out, never inside a request.

This is the only module of the study that uses a model. Its knowledge follows from the events.
Hyperparameters are learned when the number of answers reaches a point of a fixed schedule, from the
answers that stand then. Between two points the model learns by `tell` and `withdraw`. Replaying the
events, in one go or in pieces, with or without a snapshot, gives the same ranking to rounding.
"""

import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations, takewhile
from logging import DEBUG, WARNING
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.base import clone
from sqlalchemy.exc import OperationalError

import penchant as pc
from penchant import ask
from penchant.errors import DataError
from penchant.kernels import Kernel
from penchant.likelihoods import Likelihood, get
from penchant.numerics.types import FloatArray, IntArray
from penchant.study import many, quality
from penchant.study import questions as rules
from penchant.study.config import Config
from penchant.study.events import (
    ADD_ITEM,
    ANSWER,
    ERASE,
    EXCLUDE,
    WITHDRAW,
    Answer,
    Event,
    Record,
    excluded_after,
    replay,
    split_at,
)
from penchant.study.logs import tell
from penchant.study.questions import CHECK, NORMAL, RANDOM, REPEAT, Prepared, pair_key
from penchant.study.store import Database, learning, studies
from penchant.study.store.learning import Queue, Snapshot
from penchant.study.store.studies import CLOSED, RUNNING, Study

FIRST_LEARNING = 30
"""Answers before hyperparameters are learned for the first time; until then, the defaults."""
GROWTH = 1.2
"""Ratio of two points of the schedule. The hyperparameters in use rest on at least 5/6 of the
answers, and all learning together costs six times the last one."""
CONTENDERS = 20
"""Items that a simulated future considers: lower ones do not decide which are on top."""
HORIZON = 300
"""Longest simulated future, in answers."""
FUTURES = 10
"""Simulated futures behind one forecast: its 10 %, median and 90 % are the 1st, 5th and 9th."""
MOST_ITEMS = 500
"""With more items, all pairs are too many: a part of the items is considered at a time."""
SCORES = 4_000_000
"""Pairs that are scored for one batch of questions about part of the items: about a second."""
LEAST_DOUBTED = 6
"""Items that questions for the goal "top" are about, if the top are few."""
FACTOR_RANK = 300
"""Rank of the prior of many items with features: `PreferenceGP(max_rank=…)`."""
RANDOM_PAIRS = 100_000
"""Pairs that stand for all, where these are too many: their share is right to 0.002."""
LARGEST_STOCK = 150
"""Prepared questions that are nobody's: at 100 answers a second they last until the next round."""
BATCH = 40
"""Questions that one transaction writes: participants' answers wait meanwhile."""
IDLE_SECONDS, LONGEST_IDLE = 0.1, 1.0
"""Seconds between two polls of an idle study: the pause grows from the first to the second."""
AWAY_SECONDS = 2.0
"""Seconds before the next try while the database or the disk is away."""
SNAPSHOT_SECONDS = 0.7
"""Least seconds between two snapshots: the owner's page follows within a second or two."""
SUMMARY_SHARE = 0.2
"""Largest share of the time that is spent on summaries, which are slow in big studies."""
IMAGINE_SECONDS = 2.0
"""Seconds between two simulated futures in a busy study."""
GROUPS_SHARE = 0.1
"""Share of a busy study's time that is spent on finding groups of people."""
FEWEST_PEOPLE, FEWEST_ANSWERS = 12, 5
"""Groups are looked for once so many people have given so many answers each."""
SHOWN = 3
"""Items that are named of each group."""


def learning_point(n_taught: int) -> int:
    """The last point of the schedule that so many answers have reached; 0 before the first.

    >>> [learning_point(n) for n in (29, 30, 44, 45, 100)]
    [0, 30, 44, 44, 93]
    """
    point, following = 0, FIRST_LEARNING
    while following <= n_taught:
        point, following = following, int(np.ceil(GROWTH * following))
    return point


@dataclass(frozen=True)
class LearnedParameters:
    """Hyperparameters, by the names of the model's parameters, and when they were learned."""

    at: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class StudyLearner:
    """A study's record and its model.

    features: of every item, by its id. model: None while there are no answers. layout: see
    `_layout`, of the answers that the model was fitted to.
    """

    config: Config
    features: dict[str, dict[str, float]]
    record: Record = field(default_factory=Record)
    learned: LearnedParameters = field(default_factory=LearnedParameters)
    model: Any = None
    layout: tuple[Any, ...] = ()

    def advance(self, events: Sequence[Event]) -> None:
        """Apply more events. Learn hyperparameters where the schedule says so.

        Who is excluded counts as if they had never answered, so an exclusion needs all events.
        """
        record = self.record
        excluded = excluded_after(events, record.excluded)
        if excluded != record.excluded and record.seq:
            raise ValueError("somebody was excluded or brought back: replay all events")
        record.excluded = excluded
        seq, withdrawn = record.seq, (e.payload["of"] for e in events if e.kind == WITHDRAW)
        gone = [record.teaching[number] for number in withdrawn if number in record.teaching]
        point = learning_point(record.n_taught + sum(map(record.n_taught_by, events)))
        if point > self.learned.at:
            cut = split_at(events, self.record, point)
            replay(events[:cut], self.record)
            events = events[cut:]
            if self.record.taught():
                fitted = self._fitted(LearnedParameters(), learn=True)
                self.learned, self.layout = LearnedParameters(point, _parameters(fitted)), ()
        replay(events, self.record)
        answers = self.record.taught()
        layout = _layout(self.record)
        new = list(takewhile(lambda answer: answer.seq > seq, reversed(answers)))[::-1]
        if not answers:
            self.model = None
        elif layout != self.layout:
            self.model = self._fitted(self.learned, learn=False)
        elif isinstance(self.model, many.ManyItemsModel) and not gone:
            self.model = self.model.tell(self._data(new)) if new else self.model
        elif self.learned.at and len(layout[0]) == 1 and not self.is_many:
            self._tell(new, gone)
        else:
            self.model = self._fitted(self.learned, learn=False)
        self.layout = layout

    def _tell(self, new: list[Answer], gone: list[Answer]) -> None:
        """Add and remove answers: about as exact as a refit, and up to seven times as fast."""
        # a copy cannot undo: each posterior kept for that takes 45 MB where there are 1,000 items
        model = clone(self.model)
        model.state_ = self.model.state_
        items = list(self.record.items)
        if new:
            model.tell(comparisons(new, items), reconverge=True)
        if gone:
            model.withdraw(comparisons(gone, items))
        self.model = model

    @property
    def is_many(self) -> bool:
        """Whether there are too many items for matrices of items × items."""
        # with features a bound costs the effects of single items, so it comes later
        has_features = any(map(len, self.features.values()))
        most = (1 + has_features) * many.MANY_ITEMS
        return self.config.model == "shared" and len(self.record.items) > most

    def _data(self, answers: Sequence[Answer]) -> pc.Comparisons:
        """The answers as data of a model over all items; about many of them as pairs alone."""
        items = list(self.record.items)
        if not self.is_many:
            return comparisons(answers, items)
        return comparisons([pair for answer in answers for pair in answer.pairs()], items).bare()

    def _fitted(self, learned: LearnedParameters, *, learn: bool) -> Any:
        data = self._data(self.record.taught())
        likelihood = learned.values.get("likelihood", "probit")
        if data.tie.any() and get(likelihood).n_answers == 2:
            likelihood = "ties"
        settings = {**learned.values, "likelihood": likelihood, "random_state": 0}
        settings["optimize"] = "evidence" if learn else None
        X = self._X()
        if self.is_many and X is None:
            return many.fit_many(data, settings)
        if self.config.model == "personal":
            model: Any = pc.MultiUserGP(progress=False, **settings)
        else:
            model = pc.PreferenceGP(**settings, max_rank=FACTOR_RANK if self.is_many else None)
        # every study begins with items that no comparison connects yet
        with warnings.catch_warnings(action="ignore", category=pc.DataWarning):
            return model.fit(X, data)

    def _X(self) -> FloatArray | None:
        """Standardised features of all items, retired ones too."""
        rows = [list(self.features[item].values()) for item in self.record.items]
        X = np.array(rows, dtype=np.float64)
        if not X.size:
            return None
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0))[:, spread > 0.0] / spread[spread > 0.0]
        return X if X.size else None

    def belief(self, person: str | None = None) -> ask.Belief:
        """The belief about the active items' utilities, in `record.active()` order."""
        index = np.flatnonzero(list(self.record.items.values()))
        if self.model is None:
            likelihood = get("ties" if self.config.tie else "probit")
            return many.ManyBelief.prior(len(index), likelihood)
        known = person is not None and person in self.model.comparisons_.users
        whole = self.model.belief(person if known else None)
        part = ask.Part(whole, index)
        return part if len(index) > MOST_ITEMS else ask.Joint.of(part)

    def ranking(self) -> list[dict[str, Any]]:
        """The table of the model, items by id, and whether they are still asked about."""
        if self.model is None:
            return []
        how = {"n_samples": many.DRAWS} if self.is_many else {}
        rows: list[dict[str, Any]] = self.model.rank(**how).to_dicts()
        for row in rows:
            if not row["comparisons"]:
                row["win_rate"] = None  # JSON knows no NaN
            row["active"] = self.record.items[row["item"]]
        return rows

    def verdict(self) -> ask.Verdict | None:
        """Whether enough is known, by the study's stop rule."""
        if self.model is None:
            return None
        n, rng = len(self.record.taught()), np.random.default_rng(self.record.seq)
        return self._stop_rule().check(self.belief(), n, rng)

    def _stop_rule(self) -> "ask.TopSettled | OrderSettled":
        goal, level = self.config.goal, self.config.stop_level
        if goal == "order":
            return OrderSettled(level)
        return ask.TopSettled(self.config.stop_top if goal == "top" else 1, level)

    def one_future(self, number: int) -> int | None:
        """Answers that one simulated future needs until the stop rule holds; None: > HORIZON."""
        belief = self.belief()
        leading = np.argsort(-belief.mean, kind="stable")[: CONTENDERS + self.config.stop_top]
        rng = np.random.default_rng([self.record.seq, number])
        contenders, criterion = ask.Joint.of(ask.Part(belief, leading)), self.config.asked_by
        return ask.answers_left(contenders, self._stop_rule(), criterion, HORIZON, 1, rng).median

    def model_file(self) -> bytes:
        """The model as its file; empty while there is none."""
        if self.model is None:
            return b""
        with tempfile.TemporaryDirectory(prefix="penchant-") as folder:
            path = Path(folder) / "model"
            self.model.save(path)
            return path.read_bytes()


@dataclass(frozen=True)
class OrderSettled:
    """Stop when this share of all pairs of items is expected to be in the right order."""

    level: float

    def check(self, belief: ask.Belief, n_answers: int, rng: np.random.Generator) -> ask.Verdict:
        """The verdict; with many items, for random pairs."""
        n = len(belief)
        if n <= MOST_ITEMS:
            first, second = ask.all_pairs(n).T
        else:
            first = rng.integers(n, size=RANDOM_PAIRS)
            second = (first + rng.integers(1, n, size=RANDOM_PAIRS)) % n
        mean, var = belief.difference(first, second)
        right = float(ndtr(np.abs(mean) / np.sqrt(np.maximum(var, 1e-300))).mean())
        reason = "expected share of pairs in the right order"
        return ask.Verdict(right >= self.level, right, self.level, reason)


def _layout(record: Record) -> tuple[Any, ...]:
    """All that decides which model and which columns of data fit the answers.

    Their forms, whether there are ties, whether any order of showing is known, and the number of
    items. A change of it needs a new fit.
    """
    forms, ties, ordered = zip(*+record.shapes, strict=True) if record.teaching else ((), (), ())
    return set(forms), any(ties), any(ordered), len(record.items)


def comparisons(answers: Sequence[Answer], items: Sequence[str]) -> pc.Comparisons:
    """The answers as data of a model over these items, equal to what an export is read as.

    The best of several, and rankings, stay whole. Which item was shown first is known where all
    answers are about two items.
    """
    by_form: dict[str, list[Answer]] = {}
    for answer in answers:
        by_form.setdefault(answer.shape[0], []).append(answer)
    parts = [
        _pairs(said, items) if form == "pair" else _larger(form, said, items)
        for form, said in by_form.items()
    ]
    data = reduce(pc.Comparisons.extend, parts)
    return data if len(parts) == 1 else data.bare()


def _pairs(said: list[Answer], items: Sequence[str]) -> pc.Comparisons:
    winner, loser, tie, first = zip(*(answer.pair() for answer in said), strict=True)
    return pc.Comparisons.from_pairs(
        winner,
        loser,
        tie=tie if any(tie) else None,
        count=[answer.count for answer in said],
        first=first if any(first) else None,
        user=[answer.user for answer in said],
        items=items,
    )


def _larger(form: str, said: list[Answer], items: Sequence[str]) -> pc.Comparisons:
    each = [answer for answer in said for _ in range(answer.count)]
    users = [answer.user for answer in each]
    orders = [[[answer.items[at] for at in group] for group in answer.order] for answer in each]
    if form == "rank":
        return pc.Comparisons.from_rankings(orders, users=users, items=items)
    chosen, sets = [order[0][0] for order in orders], [answer.items for answer in each]
    return pc.Comparisons.from_choices(chosen, sets, user=users, items=items)


def _parameters(model: Any) -> dict[str, Any]:
    """A model's learned hyperparameters, as constructor arguments."""
    names = ("kernel", "user_kernel", "sharing", "likelihood")
    values = {name: getattr(model, f"{name}_", None) for name in names}
    kept = (Kernel, Likelihood, float)
    return {name: value for name, value in values.items() if isinstance(value, kept)}


def learned_from_file(content: bytes, at: int) -> LearnedParameters | None:
    """The hyperparameters in a model's file; None if it cannot be read."""
    if not at:
        return LearnedParameters()
    with tempfile.TemporaryDirectory(prefix="penchant-") as folder:
        path = Path(folder) / "model"
        path.write_bytes(content)
        try:
            return LearnedParameters(at, _parameters(pc.load(path)))
        except DataError:
            return None


def replayed(
    database: Database,
    study: str,
    *,
    from_snapshot: bool = False,
    changed: Mapping[str, bool] | None = None,
) -> StudyLearner:
    """The learner after a replay of all events; with a snapshot nothing is learned twice.

    changed: who is to be excluded (True) or brought back (False), other than the events say.
    """

    # one transaction: somebody may be erased meanwhile
    def job(conn: Any) -> tuple[StudyLearner, list[Event], Snapshot | None]:
        features = {row.id: row.features for row in studies.items_of(conn, study)}
        learner = StudyLearner(studies.get(conn, study).config, features)
        snapshot = learning.last_snapshot(conn, study) if from_snapshot else None
        return learner, studies.events_after(conn, study), snapshot

    learner, events, snapshot = database.read(job)
    for person, excluded in (changed or {}).items():
        events.append(Event(events[-1].seq, EXCLUDE, person, payload={"excluded": excluded}))
    if snapshot is not None:
        learned = learned_from_file(snapshot.model, snapshot.learned_at)
        record = replay(event for event in events if event.seq <= snapshot.seq)
        if learned is not None and learned.at == learning_point(record.n_taught):
            learner.record, learner.learned = record, learned
    with studies.uncollected():
        learner.advance([event for event in events if event.seq > learner.record.seq])
    return learner


def groups(answers: Sequence[Answer], items: Sequence[str]) -> dict[str, Any] | None:
    """One sentence that says whether there are groups, and what each likes.

    None: too early, or too many items.

    A group is its size and its items, by id; `map` says where people lie, see `map_of`.
    """
    given = Counter(answer.participant for answer in answers if answer.participant is not None)
    people = sum(n >= FEWEST_ANSWERS for n in given.values())
    if people < FEWEST_PEOPLE or len(items) > many.MANY_ITEMS:
        return None
    data = comparisons(answers, items)
    likelihood = "ties" if data.tie.any() else "probit"
    # every study begins with items that no comparison connects yet
    with warnings.catch_warnings(action="ignore", category=pc.DataWarning):
        model = pc.CommunityGP(likelihood=likelihood, random_state=0).fit(None, data)
        support = model.support_
    real = model.communities_ if support.verdict == "supported" else []
    return {
        "verdict": support.verdict,
        "sentence": support.sentence,
        "groups": [
            {
                "people": round(group.size),
                "best": [row.item for row in group.ranking[:SHOWN]],
                "own": list(group.representative[:SHOWN]),
            }
            for group in real
        ],
        "divisive": [view.item for view in model.divisive(SHOWN)] if real else [],
        "map": map_of(model, given) if real else [],
    }


def map_of(model: Any, people: Collection[str]) -> list[dict[str, Any]]:
    """Where people lie between communities: their answers along two directions of the utilities.

    The first is the one in which communities differ most; the second the next one, or with two
    communities what they have in common. A coordinate is 1 where every answer agrees with it, −1
    where every answer is against it, and about 0 for somebody who answers otherwise.
    """
    utilities = np.stack([posterior.mean for posterior in model.posteriors_])
    middle = utilities.mean(axis=0)
    _, strength, directions = np.linalg.svd(utilities - middle, full_matrices=False)
    common = middle - directions[0] * (directions[0] @ middle)
    second = directions[1] if len(strength) > 2 else common
    data, group = model.comparisons_, model.membership_.argmax(axis=1)
    decided = ~data.tie
    winner, loser, user = (x[decided] for x in (data.winner, data.loser, data.user))
    n, places = len(data.users), []
    for along in (directions[0], second):
        lead = data.count[decided] * (along[winner] - along[loser])
        size = np.bincount(user, np.abs(lead), minlength=n)
        places.append(np.bincount(user, lead, minlength=n) / np.maximum(size, 1e-12))
    return [
        {"participant": who, "x": round(float(x), 3), "y": round(float(y), 3), "group": int(g)}
        for who, x, y, g in zip(data.users, *places, group, strict=True)
        if who in people
    ]


def best_questions(
    belief: ask.Belief,
    items: Sequence[str],
    config: Config,
    k: int,
    pending: Sequence[Sequence[str]] = (),
    seed: int = 0,
) -> list[tuple[str, ...]]:
    """Up to k sets of items, the best first; each counts as answered for those after it.

    belief: over `items`. pending: questions that count as answered too; their pairs are left out
    while there are others.
    """
    rng = np.random.default_rng(seed)
    # in random order, so that of pairs that are equally good any may come first
    part = rng.permutation(len(items))
    if len(part) > MOST_ITEMS:
        size = min(MOST_ITEMS, max(config.size + 1, int(np.sqrt(2.0 * SCORES / max(1, k)))))
        if config.goal != "order":  # half of it are those that may be best
            hopeful = belief.mean[part] + np.sqrt(belief.var[part])
            part = part[np.argsort(-hopeful, kind="stable")]
            part[size // 2 :] = rng.permutation(part[size // 2 :])
        part = part[:size]
    if config.goal == "top" and config.criterion == "auto":
        part = part[_nearest_to_the_top(belief, part, config.stop_top, k + len(pending))]
    belief, items = ask.Joint.of(ask.Part(belief, part)), [items[i] for i in part]
    place = {item: position for position, item in enumerate(items)}
    held = [
        (place[a], place[b])
        for question in pending
        for a, b in combinations(question, 2)
        if a in place and b in place
    ]
    open_pairs: IntArray = np.array(held, dtype=np.intp).reshape(-1, 2)
    pool = ask.Pool(ask.all_pairs(len(items)), np.zeros(len(items)))
    pool.avoid(open_pairs)
    too_even = np.empty((0, 2), dtype=np.intp)
    if config.apart > 0.0:
        apart = np.abs(_p_first(belief, *pool.pairs.T) - 0.5)
        even = np.flatnonzero(pool.open & (apart < config.apart))
        too_even = pool.pairs[even[np.argsort(-apart[even], kind="stable")]]
        pool.open[even] = False
    n = min(k, int(np.count_nonzero(pool.open)))
    pairs = too_even[: k - n]
    if n:
        chosen = ask.choose(belief, pool, n, config.asked_by, 0.0, rng, pending=open_pairs)
        pairs = np.concatenate([chosen, pairs])
    sets = pairs.tolist() if config.size == 2 else ask.grow(belief, pairs, config.size, rng)
    return [tuple(items[i] for i in one) for one in sets]


def _nearest_to_the_top(belief: ask.Belief, part: IntArray, top: int, n_pairs: int) -> IntArray:
    """The items about which it is least clear whether they are among the top; all if few.

    Of 30 items 200 such questions find .84 of the best 5, and questions for the order .75. At
    least so many that they make n_pairs questions.
    """
    if top >= len(belief):
        return np.arange(len(part))
    inside, outside = np.sort(belief.mean)[::-1][top - 1 : top + 1]
    doubt = np.abs(belief.mean[part] - 0.5 * (inside + outside)) / np.sqrt(belief.var[part])
    size = max(2 * top, LEAST_DOUBTED, 2 + int(np.sqrt(2.0 * n_pairs)))
    return np.argsort(doubt, kind="stable")[:size]


def p_first(belief: ask.Belief, place: Mapping[str, int], question: Sequence[str]) -> float | None:
    """P(the first of two items is preferred), a tie counted half; None for larger questions.

    place: the items' positions in the belief.
    """
    if len(question) != 2 or not set(question) <= place.keys():
        return None
    first, second = (np.array([place[item]]) for item in question)
    return float(_p_first(belief, first, second)[0])


def _p_first(belief: ask.Belief, first: IntArray, second: IntArray) -> FloatArray:
    mean, var = belief.difference(first, second)
    likelihood = belief.likelihood
    p = likelihood.prob(mean, var)
    return p + 0.5 * likelihood.prob_tie(mean, var) if likelihood.n_answers == 3 else p


def top_up(
    learner: StudyLearner, queue: Queue, asked: dict[str, list[str]], stock: int
) -> list[Prepared]:
    """Questions that fill every queue to its length, the emptiest queues first.

    asked: by person, the keys of all questions that they got, repeated ones too.
    """
    config, record = learner.config, learner.record
    items, short = record.active(), max(0, stock - queue.stock)
    place = {item: position for position, item in enumerate(items)}
    wanted = sorted(
        (have, person, len(keys) + have - queue.prepared[person])
        for person, keys in asked.items()
        for have in range(queue.prepared[person], config.ahead)
    )
    is_personal = config.model == "personal" and learner.model is not None
    beliefs: dict[str | None, ask.Belief] = {None: learner.belief()}
    known = {person: set(keys) for person, keys in asked.items()}
    # with so many, everybody finds enough that they were not asked
    most_asked = max(map(len, known.values()), default=0)
    n_shared = short + most_asked + (0 if is_personal else len(wanted))
    shared = best_questions(beliefs[None], items, config, n_shared, queue.pending, record.seq)
    best = dict.fromkeys(asked, shared)
    for person in asked if is_personal else ():
        beliefs[person] = learner.belief(person)
        n = config.ahead + len(known[person])
        best[person] = best_questions(beliefs[person], items, config, n, queue.pending, record.seq)
    held = {pair_key(question) for question in queue.pending}
    made: list[Prepared] = []

    def prepare(person: str | None, kind: str, found: tuple[str, ...] | None) -> None:
        if found is not None:
            p = p_first(beliefs.get(person, beliefs[None]), place, found)
            made.append(Prepared(person, found, config.format, kind, p))
            held.add(pair_key(found))

    for _, person, number in wanted:
        kind = rules.kind_of(config, person, number)
        rng = rules.draw(kind, person, number)
        if kind == CHECK:
            check = rules.check_items(rng.randrange(len(config.checks)), config)
            made.append(Prepared(person, check, "best", CHECK))
        elif kind == REPEAT and (earlier := record.repeatable(person)):
            prepare(person, REPEAT, rng.choice(earlier))
        else:
            found = None if kind == RANDOM else rules.take_new(best[person], known[person], held)
            found = found or rules.random_items(items, config.size, known[person], held, rng)
            prepare(person, RANDOM if kind == RANDOM else NORMAL, found)
        if made and made[-1].participant == person:
            known[person].add(pair_key(made[-1].items))
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


class Worker:
    """Keeps the model of one study up to date with its events.

    A step does one round of work. now: the clock of leases.
    """

    def __init__(self, database: Database, study: str, now: Callable[[], float] = time.time):
        self.database, self.study, self.now = database, study, now
        self.snapshot_seq = -1
        self.snapshot_due = self.imagine_due = self.groups_due = 0.0
        self.recover()

    def recover(self) -> None:
        """Start from the last usable snapshot, or from the first event."""
        self.file: tuple[int, bytes] | None = None
        self.futures: list[int | None] = []
        self.left: dict[str, Any] | None = None
        self.groups: tuple[int, dict[str, Any] | None] = (0, None)
        self.learner = replayed(self.database, self.study, from_snapshot=True)

    def step(self, *, may_learn: bool = True) -> bool:
        """Read new events, prepare questions, save a snapshot; return whether there was work.

        may_learn=False: prepare questions without reading new events.
        """
        it = self.database.read(studies.get, self.study)
        news = may_learn and self._catch_up(it)
        made = self._prepare(it) if it.state == RUNNING else 0
        shown = self._preview()
        # while idle, and every IMAGINE_SECONDS in a busy study
        may_imagine = not (news or made) or time.monotonic() >= self.imagine_due
        imagined = may_imagine and self._imagine()
        grouped = self._look_for_groups(is_idle=not (news or made or imagined))
        saved = self._save(it)
        return bool(news or made or shown or imagined or grouped or saved)

    def _preview(self) -> bool:
        """Work out what the ranking would be if somebody was excluded or brought back."""
        wanted = self.database.read(learning.wanted_preview, self.study)
        if wanted is None:
            return False
        changed = dict.fromkeys(wanted.people, wanted.excluded)
        ranking = replayed(self.database, self.study, changed=changed).ranking()
        self.database.write(learning.save_preview, self.study, wanted.id, ranking)
        return True

    def _catch_up(self, it: Study) -> bool:
        learner = self.learner
        seq = learner.record.seq
        if it.config != learner.config:
            learner.config = it.config
            self.snapshot_seq = -1
            self.futures, self.left = [], None  # the goal may be another one
        if it.seq == seq:
            return False
        events = self.database.read(studies.events_after, self.study, seq)
        erased = any(event.kind == ERASE and event.payload["events"] for event in events)
        if erased or any(event.kind == EXCLUDE for event in events):
            self.recover()  # the model and its hyperparameters may depend on these answers
            return True
        if any(event.kind == ADD_ITEM for event in events):
            items = self.database.read(studies.items_of, self.study)
            learner.features = {row.id: row.features for row in items}
        learner.advance(events)
        return True

    def _prepare(self, it: Study) -> int:
        now, version = self.now(), self.learner.record.seq

        def look(conn: Any) -> tuple[Queue, dict[str, list[str]]]:
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
        for start in range(0, len(made), BATCH):
            some = made[start : start + BATCH]
            self.database.write(learning.prepare, self.study, some, version, now)
        return len(made)

    def _imagine(self) -> bool:
        """Simulate one more future, if there are new events.

        In a busy study, futures of slightly older states count too.
        """
        self.imagine_due = time.monotonic() + IMAGINE_SECONDS
        seq = self.learner.record.seq
        if self.learner.model is None or (self.left or {}).get("seq") == seq:
            return False
        self.futures.append(self.learner.one_future(len(self.futures)))
        if len(self.futures) == FUTURES:
            lengths = sorted(self.futures, key=lambda n: float("inf") if n is None else n)
            self.left = {"seq": seq, "low": lengths[0], "median": lengths[4], "high": lengths[8]}
            self.futures, self.snapshot_seq = [], -1
        return True

    def _look_for_groups(self, *, is_idle: bool) -> bool:
        """Whether people fall into groups, at the points where hyperparameters are learned."""
        learner, begun = self.learner, time.monotonic()
        at = learner.learned.at
        if self.groups[0] == at or not (is_idle or begun >= self.groups_due):
            return False
        self.groups = (at, groups(learner.record.taught(), list(learner.record.items)))
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
        told = {"study": self.study, "seq": seq, "seconds": round(took, 3)}
        tell("snapshot_written", "snapshot of {study} at event {seq}: {seconds} s", DEBUG, **told)
        self.snapshot_due = begun + max(SNAPSHOT_SECONDS, took / SUMMARY_SHARE)
        return True

    def summary(self) -> dict[str, Any]:
        """The state of knowledge, for the owner's page."""
        learner = self.learner
        answers, standing = learner.record.answers.values(), learner.record.standing()
        skips = [event.participant for event in learner.record.skipped.values()]
        verdict = learner.verdict()
        return {
            "seq": learner.record.seq,
            "answers": sum(answer.count for answer in answers),
            "ranking": learner.ranking(),
            "stop": None if verdict is None else verdict._asdict(),
            "left": self.left,
            "calibration": quality.calibration(standing),
            "raters": quality.raters(answers, skips, learner.config),
            "communities": self.groups[1],
            "learned_at": learner.learned.at,
        }


def work(database: Database, stop: Flag) -> None:
    """Run the models of all studies of a database until `stop` is set."""
    workers: dict[str, Worker] = {}
    pause = IDLE_SECONDS
    warming = Thread(target=warm_up, name="warm up", daemon=True)
    while not stop.is_set():
        busy = False
        try:
            for study in database.read(studies.names):
                if study not in workers:
                    workers[study] = Worker(database, study)
                # a fit would wait for these imports, and participants for the fit
                busy = workers[study].step(may_learn=not warming.is_alive()) or busy
        except (OperationalError, OSError) as error:
            # a disk that is full, a database that restarts: what is known stays
            why = type(error).__name__
            tell("model_waits", "the model waits for its database: {why}", WARNING, why=why)
            stop.wait(AWAY_SECONDS)
        if warming.ident is None:  # the first questions wait in the queue
            warming.start()
        pause = IDLE_SECONDS if busy else min(1.2 * pause, LONGEST_IDLE)
        if not busy:
            stop.wait(pause)


def warm_up() -> None:
    """Import the modules of a first fit (about a second) before the first participant waits."""
    told = {"items": ["a", "b"], "order": [[0], [1]], "form": "pair", "kind": NORMAL}
    events = [Event(k, ADD_ITEM, payload={"item": item}) for k, item in enumerate("ab")]
    learner = StudyLearner(Config("Which?"), {"a": {}, "b": {}})
    learner.advance([*events, Event(2, ANSWER, payload=told)])
    learner.ranking()
