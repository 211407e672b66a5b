"""Rules of asking: kinds of questions, their order, leases and limits. No database, no web."""

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penchant.errors import DataError
from penchant.study.config import Config

NORMAL, REPEAT, RANDOM, CHECK = "normal", "repeat", "random", "check"
KINDS = (NORMAL, REPEAT, RANDOM, CHECK)
TEACHES = frozenset({NORMAL, RANDOM, REPEAT})
"""Kinds that models learn from and that exports hold. A check is about no item."""

REPEAT_AFTER = 8
"""A repeat lies at least so many answers after the question that it repeats."""

TRIES = 60
"""Random draws of items until one is new to a person."""

PREPARED, OPEN, ANSWERED, SKIPPED = "prepared", "open", "answered", "skipped"

Order = tuple[tuple[int, ...], ...]
"""Positions on the screen in groups, best first: ((1,), (0,)) prefers the second of two."""


def pair_key(items: Iterable[str]) -> str:
    """A key of a set of items that does not depend on their order.

    >>> pair_key(["b", "a"]) == pair_key(["a", "b"])
    True
    """
    return "|".join(sorted(items))


def draw(*what: Any) -> random.Random:
    """A random generator seeded by its arguments."""
    digest = hashlib.sha256("|".join(map(str, what)).encode()).digest()
    return random.Random(digest)


def kind_of(config: Config, participant: str, number: int) -> str:
    """The kind of a person's n-th question, from 0; a function of its arguments.

    The first question is never a check, and the first REPEAT_AFTER + 1 are no repeats.

    >>> config = Config("Which?", random_share=1.0, repeat_share=0.0, check_share=0.0)
    >>> kind_of(config, "somebody", 3)
    'random'
    """
    chance = draw("kind", participant, number).random()
    check_share = config.check_share if config.checks and number > 0 else 0.0
    repeat_share = config.repeat_share if number > REPEAT_AFTER else 0.0
    for kind, share in (
        (CHECK, check_share),
        (REPEAT, repeat_share),
        (RANDOM, config.random_share),
    ):
        if chance < share:
            return kind
        chance -= share
    return NORMAL


@dataclass(frozen=True)
class Prepared:
    """A question to be handed out; participant None: to anybody who was not asked it.

    p_before: the probability that the first item is preferred. The order of showing is drawn later.
    """

    participant: str | None
    items: tuple[str, ...]
    form: str
    kind: str
    p_before: float | None = None


def take_new(
    candidates: list[tuple[str, ...]], asked: set[str], held: set[str]
) -> tuple[str, ...] | None:
    """Remove and return the first candidate that is not in `asked` and not in `held`.

    >>> waiting = [("a", "b"), ("a", "c"), ("b", "c")]
    >>> take_new(waiting, asked={"a|b"}, held=set()), waiting
    (('a', 'c'), [('a', 'b'), ('b', 'c')])
    """
    for place, key in enumerate(map(pair_key, candidates)):
        if key not in asked and key not in held:
            return candidates.pop(place)
    return None


def random_items(
    items: Sequence[str], size: int, asked: set[str], held: set[str], rng: random.Random
) -> tuple[str, ...] | None:
    """A random set that a person was not asked; None if TRIES draws found none.

    The first half of the draws leaves out the sets that somebody else holds open.
    """
    for attempt in range(TRIES):
        found = tuple(rng.sample(items, size))
        is_free = pair_key(found) not in held or attempt > TRIES // 2
        if is_free and pair_key(found) not in asked:
            return found
    return None


def shown_order(items: Sequence[str], question: str) -> tuple[str, ...]:
    """The items in the order of showing: random, fixed by the question's id."""
    order = list(items)
    draw("sides", question).shuffle(order)
    return tuple(order)


def check_items(number: int, config: Config) -> tuple[str, ...]:
    """Item ids of the n-th attention check."""
    return tuple(f"check/{number}/{place}" for place in range(len(config.checks[number].options)))


def passed(config: Config, items: Sequence[str], order: Order) -> bool | None:
    """Whether an attention check was answered correctly; None if the owner removed the check.

    >>> from penchant.study.config import Check
    >>> config = Config("Which?", checks=(Check("Take b.", ("a", "b"), 1),))
    >>> passed(config, ("check/0/1", "check/0/0"), ((0,), (1,)))
    True
    """
    _, number, place = items[order[0][0]].split("/")
    if int(number) >= len(config.checks):
        return None
    return len(order[0]) == 1 and int(place) == config.checks[int(number)].right


def is_pending(leased_until: float | None, now: float, lease_seconds: float) -> bool:
    """Whether a lease is still running.

    A lease that ends later than a new one would is from before the clock was set back: it has
    ended.

    >>> is_pending(130.0, now=100.0, lease_seconds=60), is_pending(90.0, 100.0, 60)
    (True, False)
    """
    return leased_until is not None and now < leased_until <= now + lease_seconds


def is_finished(config: Config, answers: int, seconds: float) -> bool:
    """Whether a person has reached a limit, `seconds` after they joined.

    >>> is_finished(Config("Which?", answers_per_person=3), answers=3, seconds=9.0)
    True
    """
    if config.answers_per_person is not None and answers >= config.answers_per_person:
        return True
    minutes = config.minutes_per_person
    return minutes is not None and seconds >= 60.0 * minutes


def check_order(order: Any, n_items: int, form: str, tie: bool) -> Order:
    """Check an answer against its question and return it as tuples.

    form: "pair", "best" or "rank". tie: whether a tie is allowed.

    >>> check_order([[1], [0]], 2, "pair", tie=False)
    ((1,), (0,))
    """
    try:
        groups = tuple(tuple(group) for group in order)
    except TypeError:
        raise DataError(f"the answer is {order!r}: it must be groups of positions") from None
    places = [place for group in groups for place in group]
    if any(type(place) is not int for place in places) or sorted(places) != list(range(n_items)):
        raise DataError(
            f"the answer is {order!r}: it must hold each of the positions 0 to {n_items - 1} once"
        )
    sizes = tuple(map(len, groups))
    shapes: dict[str, list[tuple[int, ...]]] = {
        "pair": [(1, 1), (2,)] if tie else [(1, 1)],
        "best": [(1, n_items - 1)],
        "rank": [(1,) * n_items],
    }
    allowed = shapes[form]
    if sizes not in allowed:
        raise DataError(
            f"the answer is {order!r}: groups of {' or '.join(map(str, allowed))} are what this "
            "question takes"
        )
    return groups
