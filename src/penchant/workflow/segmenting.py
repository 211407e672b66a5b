"""Segments of the data: a ranking of each, and how far two differ."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.models import Ranking, between, check_argument
from penchant.workflow.models import Material, choose_model


class SegmentDifference(NamedTuple):
    """An item's utility in one segment minus that in another, each relative to its average item.

    low, high: interval. prob_more: P(difference > 0).
    """

    item: Any
    difference: float
    low: float
    high: float
    prob_more: float


@dataclass(frozen=True, eq=False)
class Segments:
    """A fitted model for each segment, all with the hyperparameters of everybody's."""

    everybody: Any
    models: Mapping[str, Any]

    def rank(self, segment: str, level: float = 0.95) -> Ranking:
        """The ranking in one segment, its average item at zero."""
        return self._model(segment).rank(level=level)

    def difference(self, one: str, two: str, level: float = 0.95) -> list[SegmentDifference]:
        """Every item's utility in `one` minus that in `two`, the largest first.

        Given the hyperparameters the two fits are independent, so variances add. The interval does
        not include the uncertainty about the hyperparameters, which both share.
        """
        check_argument("Segments.difference", "level", level, between(0.0, 1.0))
        first, second = (self._model(name).belief() for name in (one, two))
        difference = (first.mean - first.mean.mean()) - (second.mean - second.mean.mean())
        deviation = np.sqrt(first.contrast_var + second.contrast_var)
        reach = float(ndtri(0.5 + 0.5 * level)) * deviation
        more = ndtr(difference / np.maximum(deviation, np.finfo(float).tiny))
        items = self.everybody.comparisons_.items
        columns = (difference, difference - reach, difference + reach, more)
        rows = [
            SegmentDifference(item, *map(float, numbers))
            for item, *numbers in zip(items, *columns, strict=True)
        ]
        return sorted(rows, key=lambda row: -row.difference)

    def _model(self, segment: str) -> Any:
        if segment not in self.models:
            known = ", ".join(map(repr, self.models))
            raise DataError(f"there is no segment {segment!r}: the segments are {known}")
        return self.models[segment]


def segments(parts: Mapping[str, Comparisons], X: Any = None, *, model: Any = None) -> Segments:
    """Fit everybody together, and then each part of the data with the same hyperparameters.

    parts : comparisons by segment over the same items, as `io.read_segments` gives them.
    model : an estimator to fit; None: one that suits. Its hyperparameters are learned from all
        parts together; each part's fit is then everybody's with all other answers withdrawn.

    >>> import penchant as pc
    >>> day = pc.Comparisons.from_pairs(["tea"] * 8, ["milk"] * 8)
    >>> night = pc.Comparisons.from_pairs(["milk"] * 8, ["tea"] * 8)
    >>> found = segments({"day": day, "night": night}, model=pc.PreferenceGP(optimize=None))
    >>> found.rank("night")[0].item, found.difference("day", "night")[0].item
    ('milk', 'tea')
    """
    if len(parts) < 2:
        raise DataError(f"there is {len(parts)} segment: to compare segments there must be two")
    if len({(part.items, part.users) for part in parts.values()}) > 1:
        raise DataError(
            "the segments have different items or users: they must share both, in the same order; "
            "read them with penchant.io.read_segments, or give items= and users="
        )
    whole = reduce(add, parts.values())
    unfitted = choose_model(whole, random_state=0).model if model is None else model
    if not hasattr(unfitted, "withdraw"):
        raise DataError(f"{unfitted!r} gives scores without intervals: use a gp model for segments")
    everybody = Material(whole, X).fit(unfitted)
    return Segments(
        everybody,
        {name: deepcopy(everybody).withdraw(whole.without(part)) for name, part in parts.items()},
    )
