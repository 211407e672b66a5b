"""Choosing the next questions: which pairs may be asked, the best by a criterion, and sets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import entr

from penchant.ask.belief import Belief, Joint, Part
from penchant.ask.criteria import CRITERIA
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.threads import threads_for
from penchant.numerics.types import BoolArray, FloatArray, IntArray

MOST_ITEMS = 5_000
"""Of more candidates, so many are drawn at random: their pairs fit in memory."""
N_DRAWS = 256
"""Joint draws of the utilities: the information of a set is right to a few hundredths of a nat, and
all sets are compared on the same draws."""
MOST_CANDIDATES = 200
"""Items that a set may grow by; of more, those with the largest variance are taken."""


def require(name: str, value: Any, is_right: bool, must: str) -> None:
    """Raise a DataError about a value that is not right."""
    if not is_right:
        raise DataError(f"{name} is {value!r}: it must {must}")


def is_whole(value: Any, least: int) -> bool:
    """Whether a value is a whole number of at least so much."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


@dataclass(frozen=True)
class Rules:
    """Which pairs may be asked.

    Parameters
    ----------
    items : sequence of names or indices, or None
        Only pairs of these; None for all items.
    avoid : sequence of pairs
        Not these, unless nothing else is left. `model.ask` adds the pairs that were answered last:
        nobody is asked the same twice in a row.
    exposure : int
        Until every candidate was compared this often, each pair holds one that was not.
    random_share : float in [0, 1]
        This share of the questions is drawn at random instead: an unselected sample, on which
        predictions can be checked.

    >>> Rules(items=["tea", "milk", "water"], exposure=2).random_share
    0.0
    """

    items: tuple[Any, ...] | None = None
    avoid: tuple[tuple[Any, Any], ...] = ()
    exposure: int = 0
    random_share: float = 0.0

    def __post_init__(self) -> None:
        for name in ("items", "avoid"):
            value = getattr(self, name)
            is_sequence = isinstance(value, Iterable | None) and not isinstance(value, str | bytes)
            require(f"Rules: {name}", value, is_sequence, "be a sequence, or left out")
            object.__setattr__(self, name, value if value is None else tuple(value))
        require(
            "Rules: exposure", self.exposure, is_whole(self.exposure, 0), "be a whole number ≥ 0"
        )
        is_share = is_number(self.random_share) and 0.0 <= self.random_share <= 1.0
        require("Rules: random_share", self.random_share, is_share, "lie between 0 and 1")

    def candidates(self, data: Comparisons, rng: np.random.Generator) -> IntArray:
        """Sorted positions of the items that may be asked about."""
        every = np.arange(data.n_items)
        items = every if self.items is None else np.unique(data.item_index(self.items))
        if len(items) < 2:
            raise DataError(
                f"there is {len(items)} item to choose from: a question needs two; name more in "
                "Rules(items=…)"
            )
        if len(items) > MOST_ITEMS:
            items = np.sort(rng.choice(items, MOST_ITEMS, replace=False))
        return items


def all_pairs(n: int) -> IntArray:
    """(n(n−1)/2, 2) every pair once, each column contiguous.

    >>> all_pairs(3).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    return np.array(np.triu_indices(n, 1)).T


class Pool:
    """Candidate pairs during one `ask`: which are still open, and the exposure floor.

    >>> pool = Pool(all_pairs(3), np.zeros(3))
    >>> pool.avoid(np.array([[1, 0]]))
    >>> pool.pairs[pool.open].tolist()
    [[0, 2], [1, 2]]
    """

    def __init__(self, pairs: IntArray, exposed: FloatArray, floor: int = 0) -> None:
        self.pairs, self.exposed, self.floor = pairs, exposed.copy(), floor
        self.open: BoolArray = np.ones(len(pairs), dtype=bool)

    def avoid(self, pairs: IntArray) -> None:
        """Close pairs, in either orientation, unless that would close everything."""
        n = len(self.exposed)
        own, closed = (
            np.minimum(*each.T) * n + np.maximum(*each.T) for each in (self.pairs, pairs)
        )
        left = self.open & ~np.isin(own, closed)
        if left.any():
            self.open = left

    def eligible(self) -> BoolArray:
        """The open pairs; while items are below the floor, only those with such an item."""
        short = self.exposed < self.floor
        if not short.any():
            return self.open
        urgent = self.open & (short[self.pairs[:, 0]] | short[self.pairs[:, 1]])
        return urgent if urgent.any() else self.open

    def take(self, row: int) -> IntArray:
        """Close a pair, count its exposure, and return it."""
        self.open[row] = False
        pair: IntArray = self.pairs[row]
        self.exposed[pair] += 1.0
        return pair


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

    belief: over all of `data.items`. data: the comparisons so far. pending: pairs that are being
    asked elsewhere; they count as expected answers, and are not asked again if others are left.

    >>> import numpy as np
    >>> from penchant.ask import Joint
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
    items = rules.candidates(data, rng)
    # the belief over the candidates and over the items of open questions
    needed = np.union1d(items, open_pairs)
    part = belief if len(needed) == len(belief) else Part(belief, needed)
    position = np.full(data.n_items, -1)
    position[needed] = np.arange(len(needed))
    ends, times = np.append(data.winner, data.loser), np.tile(data.count, 2)
    exposed = np.bincount(ends, times, data.n_items)[needed].astype(np.float64)
    pool = Pool(position[items][all_pairs(len(items))], exposed, rules.exposure)
    avoided = position[data.pair_index(rules.avoid)]
    pool.avoid(avoided[(avoided >= 0).all(axis=1)])
    with threads_for(len(needed)):
        chosen = choose(
            part, pool, k, criterion, rules.random_share, rng, pending=position[open_pairs]
        )
    return [(data.items[needed[a]], data.items[needed[b]]) for a, b in chosen]


def choose(
    belief: Belief,
    pool: Pool,
    k: int,
    criterion: str,
    random_share: float,
    rng: np.random.Generator,
    pending: IntArray | None = None,
) -> IntArray:
    """(k, 2) pairs of the pool, chosen greedily.

    After each pick the belief becomes the expected one after its answer, so a second question about
    the same thing scores low. pending: (m, 2) pairs that are being asked elsewhere; they count as
    expected answers before the first pick and are closed in the pool.

    >>> import penchant as pc
    >>> from penchant.ask import Pool, all_pairs
    >>> data = pc.Comparisons.from_pairs(["tea", "tea"], ["milk", "water"])
    >>> belief = pc.PreferenceGP(optimize=None).fit(None, data).belief()
    >>> pool = Pool(all_pairs(3), np.zeros(3))
    >>> choose(belief, pool, 2, "information_gain", 0.0, np.random.default_rng(0)).shape
    (2, 2)
    """
    is_known = isinstance(criterion, str) and criterion in CRITERIA
    require("criterion", criterion, is_known, f"be one of {', '.join(CRITERIA)}")
    wanted = CRITERIA[criterion]
    if wanted.reads_variances:
        belief = Joint.of(belief)
    if pending is not None and len(pending):
        belief = Joint.of(belief).expecting(*pending.T)
        pool.avoid(pending)
    n_open = np.count_nonzero(pool.open)
    if not 1 <= k <= n_open:
        raise DataError(
            f"k is {k}: there are {n_open} pairs left to ask, so it must lie between 1 and that"
        )
    picked = np.empty((k, 2), dtype=np.intp)
    for row in range(k):
        is_random = random_share > 0.0 and rng.random() < random_share
        score = CRITERIA["random"].score if is_random else wanted.score
        scores = np.where(pool.eligible(), score(belief, pool.pairs, rng), -np.inf)
        picked[row] = pool.take(int(scores.argmax()))
        if isinstance(belief, Joint) and row + 1 < k:
            belief = belief.expecting(*picked[row])
    return picked


# Sets of several items to choose the best of. The score of a set is the mutual information, in
# nats, of the choice and the utilities: H[E p] − E[H[p]] with p = softmax(κ f) on the set, over
# joint draws of the belief. A set starts from the pair with the best criterion, and grows by the
# item that adds most information.


def grow_sets(
    belief: Belief,
    data: Comparisons,
    pairs: Sequence[tuple[Any, Any]],
    size: int,
    rules: Rules | None = None,
    random_state: RandomState = None,
) -> list[tuple[Any, ...]]:
    """Sets of `size` items, by name, out of which to let somebody choose; one from each pair.

    pairs: what `ask` chooses under its criterion, so that the sets of a batch are about different
    things.

    >>> from penchant.likelihoods import Probit
    >>> data = Comparisons.from_pairs(["a"], ["b"], items=["a", "b", "c", "d"])
    >>> belief = Joint(np.array([0.0, 0.1, 0.0, 9.0]), np.diag([1.0, 1.0, 1.0, 0.01]), Probit())
    >>> grow_sets(belief, data, [("a", "b")], 3, random_state=0)
    [('a', 'b', 'c')]
    """
    rng = as_rng(random_state)
    items = (rules or Rules()).candidates(data, rng)
    if not 2 <= size <= len(items):
        raise DataError(
            f"k_items is {size}: a set must hold between 2 and all {len(items)} items that may be "
            "asked about"
        )
    grown = grow(belief, data.pair_index(pairs), size, rng, items)
    return [tuple(data.items[i] for i in chosen) for chosen in grown]


def grow(
    belief: Belief,
    starts: IntArray,
    size: int,
    rng: np.random.Generator,
    items: IntArray | None = None,
) -> list[list[int]]:
    """Sets of `size` positions, one from each pair of `starts` (k, 2), by items from `items`.

    >>> from penchant.likelihoods import Probit
    >>> belief = Joint(np.array([0.0, 0.1, 0.0, 9.0]), np.diag([1.0, 1.0, 1.0, 0.01]), Probit())
    >>> grow(belief, np.array([[0, 1]]), 3, np.random.default_rng(0))
    [[0, 1, 2]]
    """
    scale = belief.likelihood.choice_scale
    if scale is None:
        raise DataError(
            f"likelihood {type(belief.likelihood).__name__} explains pairs alone, so no larger "
            "sets can be asked: leave k_items out, or use likelihood='probit' or 'logit'"
        )
    items = np.arange(len(belief)) if items is None else items
    if len(items) > MOST_CANDIDATES:
        unknown = np.argsort(-belief.contrast_var[items], kind="stable")
        items = items[unknown[: max(MOST_CANDIDATES, size)]]
    items = np.union1d(items, starts)
    some = Joint(belief.mean[items], belief.covariance(items), belief.likelihood)
    draws = scale * some.sample(N_DRAWS, rng)
    grown = []
    for start in starts:
        chosen = np.searchsorted(items, start).tolist()
        while len(chosen) < size:
            worth = _information(draws, chosen)
            worth[chosen] = -np.inf
            chosen.append(int(worth.argmax()))
        grown.append(items[chosen].tolist())
    return grown


def _information(draws: FloatArray, chosen: list[int]) -> FloatArray:
    """(n,) information, in nats, of a choice out of `chosen` and one further item, for each."""
    known = draws[:, chosen]
    most = known.max(axis=1, keepdims=True)
    weight = np.exp(known - most)
    summed = weight.sum(axis=1, keepdims=True)
    # p = softmax over the set: `share` times `weight` for those chosen, `new` for the further one
    top = np.maximum(most, draws)
    share, new = np.exp(most - top), np.exp(draws - top)
    total = summed * share + new
    share, new = share / total, new / total
    before = entr(weight.T @ share / len(draws)).sum(axis=0) + entr(new.mean(axis=0))
    # H[p] = log Σ exp(f) − Σ p f, with f relative to `top`
    level = (weight * (known - most)).sum(axis=1, keepdims=True)
    old = share * (level + summed * (most - top))
    after = np.log(total) - old - new * (draws - top)
    return np.asarray(before - after.mean(axis=0))
