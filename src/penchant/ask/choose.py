"""Choosing the next questions: the best by a criterion, a batch without redundancy."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penchant.ask.belief import Belief, Part
from penchant.ask.criteria import CRITERIA, get
from penchant.ask.joint import Joint
from penchant.ask.rules import Pool, Rules, all_pairs, exposures
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for
from penchant.numerics.types import IntArray


def ask(
    belief: Belief,
    data: Comparisons,
    k: int = 1,
    criterion: str = "variance_ratio",
    rules: Rules | None = None,
    random_state: RandomState = None,
    pending: Sequence[tuple[Any, Any]] = (),
) -> list[tuple[Any, Any]]:
    """The k pairs of items to compare next, by name.

    belief: over all of `data.items`. data: what was compared so far. pending: pairs that are
    being asked elsewhere; they count as expected answers, and are not asked again if others are
    left.

    >>> import numpy as np
    >>> from penchant.ask.joint import Joint
    >>> from penchant.likelihoods import Probit
    >>> data = Comparisons.from_pairs(["tea"], ["milk"], items=["tea", "milk", "water"])
    >>> belief = Joint(np.array([0.3, -0.3, 0.2]), np.eye(3), Probit())
    >>> ask(belief, data)
    [('tea', 'water')]
    """
    rules, rng = rules or Rules(), as_rng(random_state)
    open_pairs = data.pair_index(pending)
    if (open_pairs[:, 0] == open_pairs[:, 1]).any():
        raise DataError("pending holds a pair of an item with itself: a question needs two items")
    if len(open_pairs):
        names = ((data.items[a], data.items[b]) for a, b in open_pairs)
        rules = replace(rules, avoid=(*rules.avoid, *names))
        belief = Joint.of(belief)
        for first, second in open_pairs:
            belief = belief.expecting(int(first), int(second))
    items = rules.candidates(data, rng)
    pool = Pool(all_pairs(len(items)), exposures(data)[items], rules.exposure)
    if rules.avoid:
        position = np.full(data.n_items, -1)
        position[items] = np.arange(len(items))
        avoided = position[data.pair_index(rules.avoid)]
        pool.avoid(avoided[(avoided >= 0).all(axis=1)])
    if not 1 <= k <= np.count_nonzero(pool.open):
        raise DataError(
            f"k is {k}: {len(items)} items leave {np.count_nonzero(pool.open)} pairs to ask, so it "
            "must lie between 1 and that"
        )
    part = belief if len(items) == len(belief) else Part(belief, items)
    with threads_for(len(items)):
        chosen = choose(part, pool, k, criterion, rules.random_share, rng)
    return [(data.items[items[a]], data.items[items[b]]) for a, b in chosen]


def choose(
    belief: Belief,
    pool: Pool,
    k: int,
    criterion: str,
    random_share: float,
    rng: np.random.Generator,
) -> IntArray:
    """(k, 2) pairs of the pool, picked one after another.

    After each pick the belief becomes what it is expected to be once that question is answered:
    a second question about the same thing then scores as little as it will teach.

    >>> import penchant as pc
    >>> from penchant.ask import Pool, all_pairs
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> belief = pc.PreferenceGP(optimize=None).fit(None, data).belief()
    >>> pool = Pool(all_pairs(3), np.zeros(3))
    >>> choose(belief, pool, 2, "information_gain", 0.0, np.random.default_rng(0)).shape
    (2, 2)
    """
    wanted = get(criterion)
    if wanted.reads_variances:
        belief = Joint.of(belief)
    picked = np.empty((k, 2), dtype=np.intp)
    for row in range(k):
        by_chance = random_share > 0.0 and rng.random() < random_share
        score = CRITERIA["random"].score if by_chance else wanted.score
        scores = score(belief, pool.pairs, rng)
        scores[~pool.eligible()] = -np.inf
        picked[row] = pool.take(int(scores.argmax()))
        if isinstance(belief, Joint) and row + 1 < k:
            belief = belief.expecting(*picked[row])
    return picked
