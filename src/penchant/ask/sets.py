"""Sets of several items to choose the best of: which sets teach most.

The score of a set is the mutual information, in nats, of the choice and the utilities:
H[E p] − E[H[p]] with p = softmax(κ f) on the set, over joint draws of the belief. A set starts from
the pair with the best criterion, and grows by the item that adds most information.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import entr

from penchant.ask.belief import Belief, Joint
from penchant.ask.choose import Rules
from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.numerics.random import RandomState, as_rng
from penchant.numerics.types import FloatArray, IntArray

N_DRAWS = 256
"""Joint draws of the utilities: the information of a set is right to a few hundredths of a nat, and
all sets are compared on the same draws."""
MOST_CANDIDATES = 200
"""Items that a set may grow by; of more, those with the largest variance are taken."""


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
