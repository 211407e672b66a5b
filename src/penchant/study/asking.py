"""Choosing questions for many people at once, from one belief and what is open already."""

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from penchant.ask import Joint, all_pairs
from penchant.ask.criteria import get
from penchant.likelihoods import Outcomes
from penchant.numerics.linalg import pivoted_cholesky
from penchant.numerics.types import BoolArray, FloatArray, IntArray
from penchant.study.config import Config
from penchant.study.events import Record
from penchant.study.questions import (
    CHECK,
    NORMAL,
    RANDOM,
    REPEAT,
    REPEAT_AFTER,
    TEACHES,
    check_items,
    draw,
    kind_of,
    pair_key,
)
from penchant.study.store.learning import Prepared, Queue

SHORTLIST = 128
"""Pairs that are scored again after each choice; an answer to one question makes another less
worth asking, never more, so that the best is among those that were best before."""

TRIES = 60
MOST_ITEMS = 500
"""More items than this make too many pairs: a random part of them is considered at a time."""


class Chooser:
    """Picks one set of items after another; each pick counts as answered for the next.

    belief: over `items`; pending: questions that somebody is expected to answer, which count as
    answered too, and are not asked of a second person meanwhile.
    """

    def __init__(
        self,
        belief: Joint,
        items: Sequence[str],
        config: Config,
        pending: Iterable[Sequence[str]] = (),
        seed: int = 0,
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.config, self.size = config, config.size
        self.score = get(config.criterion).score
        if len(items) > MOST_ITEMS:
            part = np.sort(self.rng.choice(len(items), MOST_ITEMS, replace=False))
            belief = Joint(belief.mean[part], belief.cov[np.ix_(part, part)], belief.likelihood)
            items = [items[k] for k in part]
        self.items, self.belief = list(items), belief
        self.place = {item: k for k, item in enumerate(self.items)}
        self.pairs = all_pairs(len(self.items))
        self.free: BoolArray = np.ones(len(self.pairs), dtype=bool)
        self._condition([[self.place[i] for i in held if i in self.place] for held in pending])
        self._rank_pairs()

    def pick(self, asked: set[str]) -> tuple[str, ...] | None:
        """The best set of items for somebody who was asked these already; None: all were."""
        pair = self._best(asked)
        if pair is None:  # every good pair is open or was asked
            return self.any_set(asked)
        chosen = self._grow([int(k) for k in self.pairs[self.short[pair]]])
        self._expect(chosen, self.tau[[pair]] if self.size == 2 else None)
        return tuple(self.items[k] for k in chosen)

    def any_set(self, asked: set[str]) -> tuple[str, ...] | None:
        """A random set that somebody was not asked; None where some tries found none."""
        for attempt in range(TRIES):
            chosen = [int(k) for k in self.rng.choice(len(self.items), self.size, replace=False)]
            found = tuple(self.items[k] for k in chosen)
            # one that somebody else holds open only where no other is found
            is_free = self.size > 2 or self.free[self._rows(np.sort(chosen)[None])].all()
            if pair_key(found) not in asked and (is_free or attempt > TRIES // 2):
                self._expect(chosen)
                return found
        return None

    def p_first(self, items: Sequence[str]) -> float | None:
        """P(the first of two is preferred), a tie counted half."""
        if len(items) != 2 or not set(items) <= set(self.place):
            return None
        a, b = (np.array([self.place[item]]) for item in items)
        return float(self._p(a, b)[0])

    def _p(self, first: IntArray, second: IntArray) -> FloatArray:
        mean, var = self.belief.difference(first, second)
        likelihood = self.belief.likelihood
        p = likelihood.prob(mean, var)
        if likelihood.n_answers == 3:
            p = p + 0.5 * likelihood.prob_tie(mean, var)
        return p

    def _best(self, asked: set[str]) -> int | None:
        """Where in the shortlist the best pair is that is free and new to somebody."""
        for is_last in (False, True):
            scores = self._scores(self.short)
            for k in np.argsort(-scores, kind="stable"):
                if scores[k] < self.floor and not is_last:
                    break  # a pair beyond the shortlist may be better by now
                a, b = self.pairs[self.short[k]]
                is_new = self.size > 2 or pair_key((self.items[a], self.items[b])) not in asked
                if self.free[self.short[k]] and is_new:
                    return int(k)
            self._rank_pairs()
        return None

    def _rank_pairs(self) -> None:
        scores = self._scores(np.arange(len(self.pairs)))
        scores[~self.free] = -np.inf
        n = min(SHORTLIST, len(scores))
        self.short = np.argpartition(-scores, n - 1)[:n]
        self.floor = float(scores[self.short].min())
        self.tau = self._precision(self.pairs[self.short])

    def _scores(self, which: IntArray) -> FloatArray:
        """The criterion, where equal by chance; pairs that are too even for the dial come last,
        the least even of them first."""
        pairs = self.pairs[which]
        scores = self.score(self.belief, pairs, self.rng)
        scores = scores + 1e-9 * self.rng.random(len(scores))
        if self.config.apart > 0.0:
            uneven = np.abs(self._p(pairs[:, 0], pairs[:, 1]) - 0.5)
            scores = np.where(uneven >= self.config.apart, scores, uneven - 1e6)
        return scores

    def _grow(self, chosen: list[int]) -> list[int]:
        """Add items until the question is full: those whose pairs with the chosen score most."""
        while len(chosen) < self.size:
            others = np.setdiff1d(np.arange(len(self.items)), chosen)
            worth = np.zeros(len(others))
            for k in chosen:
                worth += self.score(
                    self.belief, np.column_stack([np.full(len(others), k), others]), self.rng
                )
            chosen.append(int(others[worth.argmax()]))
        return chosen

    def _close(self, places: Sequence[int]) -> IntArray:
        """The (k, 2) pairs of a question, from now on closed to others."""
        pairs = np.array([sorted(pair) for pair in combinations(places, 2)]).reshape(-1, 2)
        self.free[self._rows(pairs)] = False
        return pairs

    def _rows(self, pairs: IntArray) -> IntArray:
        """Where pairs, the smaller place first, stand among all: (0, 1), (0, 2) … (1, 2) …"""
        low, high = pairs.T
        rows: IntArray = low * (2 * len(self.items) - low - 1) // 2 + high - low - 1
        return rows

    def _precision(self, pairs: IntArray) -> FloatArray:
        """(k,) how precisely an answer is expected to tell each difference.

        A Gaussian site with precision τ shrinks the variance v of its difference by
        v² τ / (1 + τ v), an answer by v² E[d2] on average: τ = E[d2] / (1 − v E[d2]).
        """
        mean, var = self.belief.difference(pairs[:, 0], pairs[:, 1])
        likelihood, ties = self.belief.likelihood, self.belief.likelihood.n_answers == 3
        shrink = np.zeros(len(pairs))
        for sign in (1.0, -1.0):
            d2 = likelihood.tilted(sign * mean, var, _outcomes(len(pairs), tie=False)).d2
            shrink += likelihood.prob(sign * mean, var) * d2
        if ties:
            d2 = likelihood.tilted(mean, var, _outcomes(len(pairs), tie=True)).d2
            shrink += likelihood.prob_tie(mean, var) * d2
        return shrink / np.maximum(1.0 - var * shrink, 1e-9)

    def _condition(self, questions: Sequence[Sequence[int]]) -> None:
        """Count questions as answered, all at once: Σ' = R (I + RᵀLR)⁻¹ Rᵀ where Σ = RRᵀ."""
        open_pairs = [self._close(places) for places in questions if len(places) > 1]
        if not open_pairs:
            return
        pairs = np.concatenate(open_pairs)
        tau = self._precision(pairs)
        root = pivoted_cholesky(self.belief.cov).in_given_order()
        differences = root[pairs[:, 0]] - root[pairs[:, 1]]
        inner = np.eye(root.shape[1]) + differences.T @ (tau[:, None] * differences)
        half = solve_triangular(cholesky(inner, lower=True), root.T, lower=True)
        self.belief = Joint(self.belief.mean, half.T @ half, self.belief.likelihood)

    def _expect(self, places: Sequence[int], precision: FloatArray | None = None) -> None:
        """Count one more question as answered, by rank one for each of its pairs."""
        pairs = self._close(places)
        precision = self._precision(pairs) if precision is None else precision
        for (a, b), tau in zip(pairs, precision, strict=True):
            s = self.belief.cov[:, a] - self.belief.cov[:, b]
            step = tau / (1.0 + tau * (s[a] - s[b]))
            cov = self.belief.cov - np.outer(step * s, s)
            self.belief = Joint(self.belief.mean, cov, self.belief.likelihood)


def _outcomes(n: int, *, tie: bool) -> Outcomes:
    return Outcomes(np.full(n, True) if tie else None, np.zeros(n))


def top_up(
    choosers: "Choosers",
    record: Record,
    queue: Queue,
    asked: dict[str, set[str]],
    stock: int,
) -> list[Prepared]:
    """Questions that bring everybody's queue to its length: first for those who have none.

    choosers: whom to ask for a person's question; asked: what each was asked, added to here.
    """
    config = choosers.config
    wanted = [
        (have, person, queue.asked.get(person, 0) + have - queue.prepared[person])
        for person in asked
        for have in range(queue.prepared[person], config.ahead)
    ]
    made: list[Prepared] = []
    for _, person, number in sorted(wanted):
        question = _question_for(choosers, record, person, number, asked[person])
        if question is not None:
            asked[person].add(pair_key(question.items))
            made.append(question)
    for _ in range(stock - queue.stock):
        items = choosers.of(None).pick(set())
        if items is not None:
            made.append(_prepared(choosers.of(None), None, items, NORMAL))
    return made


class Choosers:
    """One chooser for all, or in a personal model one a person."""

    def __init__(self, config: Config, everybody: Chooser, personal: dict[str, Chooser]) -> None:
        self.config, self.everybody, self.personal = config, everybody, personal

    def of(self, person: str | None) -> Chooser:
        """The chooser of a person's questions."""
        return self.personal.get(person, self.everybody) if person else self.everybody


def _question_for(
    choosers: Choosers, record: Record, person: str, number: int, asked: set[str]
) -> Prepared | None:
    config, chooser = choosers.config, choosers.of(person)
    kind = kind_of(config, person, number)
    if kind == CHECK:
        which = draw("check", person, number).randrange(len(config.checks))
        return Prepared(person, check_items(which, config), "best", CHECK)
    if kind == REPEAT:
        earlier = _repeatable(record, person)
        if earlier:
            items = draw("repeat", person, number).choice(earlier)
            return _prepared(chooser, person, items, REPEAT)
    if kind == RANDOM:
        drawn = chooser.any_set(asked)
        return None if drawn is None else _prepared(chooser, person, drawn, RANDOM)
    best = chooser.pick(asked)
    return None if best is None else _prepared(chooser, person, best, NORMAL)


def _prepared(chooser: Chooser, person: str | None, items: Sequence[str], kind: str) -> Prepared:
    return Prepared(person, tuple(items), chooser.config.format, kind, chooser.p_first(items))


def _repeatable(record: Record, person: str) -> list[tuple[str, ...]]:
    """What a person answered long enough ago, and not twice."""
    mine = [answer for answer in record.answers.values() if answer.participant == person]
    seen: dict[str, int] = {}
    for answer in mine:
        seen[pair_key(answer.items)] = seen.get(pair_key(answer.items), 0) + 1
    return [
        answer.items
        for answer in mine[: -REPEAT_AFTER or None]
        if answer.kind in TEACHES
        and seen[pair_key(answer.items)] == 1
        and all(record.items.get(item, False) for item in answer.items)
    ]
