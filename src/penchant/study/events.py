"""The events of a study and the state that follows from them. No database, no web.

The store numbers the events. Replaying all of them gives the same record every time. Erasing a
person removes their events, so a replay afterwards does not know them.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

from penchant.study.questions import REPEAT_AFTER, TEACHES, Order, pair_key

ANSWER, SKIP, WITHDRAW = "answer", "skip", "withdraw"
ADD_ITEM, RETIRE, ERASE, STATE, IMPORT = "add_item", "retire", "erase", "state", "import"
RESTORE, EXCLUDE = "restore", "exclude"
UNNAMED = "(not named)"
"""The user of imported answers without a user; models treat each as another person's."""


@dataclass(frozen=True)
class Event:
    """One event. payload: the fields of its kind, as plain values."""

    seq: int
    kind: str
    participant: str | None = None
    question: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)
    ms: int | None = None
    at: float = 0.0

    @property
    def person(self) -> str | None:
        """Who answered: a participant, or the user of an imported row."""
        return self.participant or self.payload.get("user")

    @property
    def n_taught(self) -> int:
        """How many answers it holds that a model learns from."""
        teaches = self.kind in (ANSWER, IMPORT) and self.payload["kind"] in TEACHES
        return self.payload.get("count", 1) if teaches else 0


@dataclass(frozen=True)
class Answer:
    """One answer about some items, listed in the order in which they were shown.

    form: "pair", "best" or "rank". kind: why it was asked. p_before: the model's probability that
    the item shown first wins, before the answer. count: how often an imported row occurred.
    is_ordered: whether the order of showing is known, which imports may not know.
    """

    seq: int
    participant: str | None
    items: tuple[str, ...]
    order: Order
    form: str = "pair"
    kind: str = "normal"
    p_before: float | None = None
    ms: int | None = None
    at: float = 0.0
    count: int = 1
    question: str | None = None
    is_ordered: bool = True

    @property
    def user(self) -> str:
        """The participant's name in models and exports."""
        return self.participant or UNNAMED

    def pair(self) -> tuple[str, str, bool, int]:
        """The answer about two items: winner, loser, whether it is a tie, and what was shown first.

        The last is +1 for the winner, −1 for the loser, 0 if it is not known.

        >>> Answer(1, "p", ("tea", "milk"), ((1,), (0,))).pair()
        ('milk', 'tea', False, -1)
        """
        better, worse = (place for group in self.order for place in group)
        first = (1 if better < worse else -1) if self.is_ordered else 0
        return self.items[better], self.items[worse], len(self.order) == 1, first

    @property
    def shape(self) -> tuple[str, bool, bool]:
        """What decides which model and columns of data fit: form, tie, known order of showing."""
        form = "pair" if len(self.items) == 2 else self.form
        return form, len(self.order) == 1, self.is_ordered

    def pairs(self) -> list["Answer"]:
        """The answer as answers about two items: neighbours in a ranking, or the best and others.

        >>> [a.items for a in Answer(1, "p", ("tea", "milk", "rum"), ((2,), (0, 1))).pairs()]
        [('rum', 'tea'), ('rum', 'milk')]
        """
        if len(self.items) == 2:
            return [self]
        found = [(a, b) for better, worse in pairwise(self.order) for a in better for b in worse]
        return [
            replace(self, items=(self.items[a], self.items[b]), order=((0,), (1,)), form="pair")
            for a, b in found
        ]


@dataclass
class Record:
    """The state after some events.

    items: in the order of arrival, and whether they are active. answers, skipped: those that were
    not withdrawn, by the number of their event. n_taught: answers ever given that a model learns
    from, withdrawn ones too. excluded: people from whom no model learns, as of the last event.
    Whoever is excluded counts as if they had never answered. teaching: the answers that the model
    learns from; shapes: how many there are of each; of_person: everybody's standing answers.
    """

    seq: int = 0
    items: dict[str, bool] = field(default_factory=dict)
    answers: dict[int, Answer] = field(default_factory=dict)
    skipped: dict[int, Event] = field(default_factory=dict)
    n_taught: int = 0
    excluded: frozenset[str] = frozenset()
    teaching: dict[int, Answer] = field(default_factory=dict, repr=False)
    shapes: Counter[tuple[str, bool, bool]] = field(default_factory=Counter, repr=False)
    of_person: dict[str | None, dict[int, Answer]] = field(default_factory=dict, repr=False)

    def n_taught_by(self, event: Event) -> int:
        """How many answers a model learns from an event."""
        return 0 if event.person in self.excluded else event.n_taught

    def apply(self, event: Event) -> None:
        """Apply one more event; events must come in order."""
        self.seq = event.seq
        if event.kind in (ANSWER, IMPORT):
            self._add(_answer(event))
            self.n_taught += self.n_taught_by(event)
        elif event.kind == SKIP:
            self.skipped[event.seq] = event
        elif event.kind == WITHDRAW:
            self._drop(event.payload["of"])
            self.skipped.pop(event.payload["of"], None)
        elif event.kind in (ADD_ITEM, RESTORE):
            self.items[event.payload["item"]] = True
        elif event.kind == RETIRE:
            self.items[event.payload["item"]] = False

    def _add(self, answer: Answer) -> None:
        self.answers[answer.seq] = answer
        self.of_person.setdefault(answer.participant, {})[answer.seq] = answer
        if answer.kind in TEACHES and answer.participant not in self.excluded:
            self.teaching[answer.seq] = answer
            self.shapes[answer.shape] += 1

    def _drop(self, seq: int) -> None:
        answer = self.answers.pop(seq, None)
        if answer is not None:
            del self.of_person[answer.participant][seq]
        if answer is not None and seq in self.teaching:
            del self.teaching[seq]
            self.shapes[answer.shape] -= 1

    def taught(self) -> list[Answer]:
        """The answers that the model learns from, in order."""
        return list(self.teaching.values())

    def standing(self) -> Iterable[Answer]:
        """All answers of those who are not excluded, in order."""
        answers = self.answers.values()
        return (answer for answer in answers if answer.participant not in self.excluded)

    def repeatable(self, person: str) -> list[tuple[str, ...]]:
        """The questions that a person answered once, at least REPEAT_AFTER answers ago."""
        mine = list(self.of_person.get(person, {}).values())
        times = Counter(pair_key(answer.items) for answer in mine)
        return [
            answer.items
            for answer in mine[:-REPEAT_AFTER]
            if answer.kind in TEACHES
            and times[pair_key(answer.items)] == 1
            and all(self.items.get(item, False) for item in answer.items)
        ]

    def active(self) -> list[str]:
        """The items that may be asked about."""
        return [item for item, is_active in self.items.items() if is_active]


def replay(events: Iterable[Event], record: Record | None = None) -> Record:
    """The record after the events.

    >>> payload = {"items": ["a", "b"], "order": [[0], [1]], "form": "pair", "kind": "normal"}
    >>> told = [Event(1, "answer", "p", "q", payload), Event(2, "withdraw", "p", "q", {"of": 1})]
    >>> len(replay(told[:1]).answers), len(replay(told).answers), replay(told).n_taught
    (1, 0, 1)
    """
    if record is None:
        events = list(events)
        record = Record(excluded=excluded_after(events))
    for event in events:
        record.apply(event)
    return record


def excluded_after(events: Iterable[Event], before: Iterable[str] = ()) -> frozenset[str]:
    """Who is excluded after the events.

    >>> sorted(excluded_after([Event(1, "exclude", "ann", payload={"excluded": True})], ["bob"]))
    ['ann', 'bob']
    """
    last = dict.fromkeys(before, True)
    for event in events:
        if event.kind == EXCLUDE and event.participant is not None:
            last[event.participant] = event.payload["excluded"]
    return frozenset(person for person, excluded in last.items() if excluded)


def _answer(event: Event) -> Answer:
    payload = event.payload
    return Answer(
        event.seq,
        event.person,
        tuple(payload["items"]),
        tuple(tuple(group) for group in payload["order"]),
        payload["form"],
        payload["kind"],
        payload.get("p_before"),
        event.ms,
        event.at,
        payload.get("count", 1),
        event.question,
        payload.get("is_ordered", event.kind == ANSWER),
    )


def split_at(events: Sequence[Event], record: Record, n_taught: int) -> int:
    """How many of the next events it takes to reach `n_taught` answers; all of them if too few."""
    totals = list(accumulate(map(record.n_taught_by, events)))
    return min(1 + bisect_left(totals, n_taught - record.n_taught), len(events))
