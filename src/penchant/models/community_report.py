"""Summaries of communities: sizes, rankings, and what distinguishes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from penchant.communities import (
    Answers,
    FittedMixture,
    attribute_slopes,
    directions,
    distinctiveness,
    feature_contrasts,
    item_agreement,
    sample_users,
)
from penchant.models.tables import Ranking, Tally, ranking_of
from penchant.numerics.types import FloatArray

SHOWN = 5
"""Items and features that the summary of a community lists."""
LOOKED_AT = 5_000
"""Most users from whose utilities the main directions of disagreement are computed."""


class Trait(NamedTuple):
    """A feature by which a community differs from the others: more of it if positive."""

    name: str
    strength: float


class ItemView(NamedTuple):
    """An item's mean standardised utility over communities, and their standard deviation."""

    item: Any
    liking: float
    spread: float


class Disagreement(NamedTuple):
    """A direction along which people differ, and its share of all differences.

    toward, away: the items that people on one side, and on the other, like more.
    """

    number: int
    share: float
    toward: tuple[Any, ...]
    away: tuple[Any, ...]

    def __str__(self) -> str:
        sides = (", ".join(map(str, side)) for side in (self.toward, self.away))
        return f"{self.share:.0%} of the differences: {' against '.join(sides)}"


@dataclass(frozen=True)
class Community:
    """One community of taste.

    number: its column in `membership_`, from 0; size: expected number of users; share of all.
    ranking: its items from best to worst with intervals. representative: items that it likes
    more than other communities do, most distinctive first. attributes: item features that it likes
    more (or less) than others, in standardised slopes. user_features: features that its members
    have more (or less) of, in standard errors.
    """

    number: int
    size: float
    share: float
    ranking: Ranking
    representative: tuple[Any, ...]
    attributes: tuple[Trait, ...]
    user_features: tuple[Trait, ...]

    def __str__(self) -> str:
        lines = [f"community {self.number}: {self.size:.0f} users ({self.share:.0%})"]
        best = ", ".join(str(row.item) for row in self.ranking[:SHOWN])
        lines.append(f"  likes best: {best}")
        if self.representative:
            lines.append(f"  more than others: {', '.join(map(str, self.representative))}")
        for title, traits in (("drawn to", self.attributes), ("members", self.user_features)):
            if traits:
                listed = ", ".join(f"{trait.name} {trait.strength:+.1f}" for trait in traits)
                lines.append(f"  {title}: {listed}")
        return "\n".join(lines)


def summarize_communities(
    found: FittedMixture,
    attributes: tuple[str, ...],
    user_features: tuple[str, ...],
    rng: np.random.Generator,
) -> list[Community]:
    """Build the community summaries; attributes, user_features: names of the features."""
    items = found.data.items
    posteriors, sizes = found.posteriors, found.sizes
    weight = sizes / sizes.sum()
    utilities = np.stack([posterior.mean for posterior in posteriors])
    apart = distinctiveness(utilities, weight)
    X, features = found.items.X, found.user_features
    slopes = contrasts = np.zeros((len(sizes), 0))
    if features is not None:
        contrasts = feature_contrasts(found.membership[: len(features)], features)
    if isinstance(X, np.ndarray):  # of the many sparse ones no single one tells communities apart
        slopes = attribute_slopes(utilities, X, weight)
    return [
        Community(
            number=c,
            size=float(sizes[c]),
            share=float(weight[c]),
            ranking=ranking_of(posterior, items, tally, 0.95, 2000, rng),
            representative=_largest(apart[c], items),
            attributes=_traits(slopes[c], attributes),
            user_features=_traits(contrasts[c], user_features),
        )
        for c, (posterior, tally) in enumerate(zip(posteriors, _tallies(found), strict=True))
    ]


def disagreements(found: FittedMixture, k: int) -> list[Disagreement]:
    """The k main directions of disagreement; none where all users have the same utilities."""
    some = sample_users(found.answers, LOOKED_AT)
    share, loadings = directions(found.utilities(some, None).mean, k)
    sides = ([_largest(side, found.data.items) for side in (each, -each)] for each in loadings)
    return [Disagreement(number, float(share[number]), *ends) for number, ends in enumerate(sides)]


def _tallies(found: FittedMixture) -> list[Tally]:
    """How often each community compared each item, weighted by membership."""
    answers = Answers.of(found.data.as_pairs())
    given = SimpleNamespace(winner=answers.winner, loser=answers.loser, tie=answers.outcomes.tie)
    pair_counts = (answers.counts.T @ found.membership).T
    return [Tally.counted(given, counts, found.data.n_items) for counts in pair_counts]


def summarize(
    counts: Mapping[int, float], communities: list[Community], items: list[ItemView]
) -> str:
    """A few lines: the number of communities, each of them, what they agree and divide on.

    counts: posterior over the supported number; items: those agreed on most first.
    """
    chances = ", ".join(f"{k}: {p:.0%}" for k, p in counts.items())
    if len(communities) == 1:
        return (
            "no evidence of communities: one taste for everybody explains the comparisons best "
            f"(number of supported communities, by probability: {chances})"
        )
    agreed, divided = (
        ", ".join(str(view.item) for view in some) for some in (items[:SHOWN], items[::-1][:SHOWN])
    )
    lines = [
        f"{len(communities)} communities (supported number, by probability: {chances})",
        *map(str, communities),
        f"communities agree on: {agreed}",
        f"communities divide over: {divided}",
    ]
    return "\n".join(lines)


def _largest(values: FloatArray, items: Sequence[Any]) -> tuple[Any, ...]:
    """The items with the largest positive values."""
    order = np.argsort(-values, kind="stable")[:SHOWN]
    return tuple(items[i] for i in order if values[i] > 0.0)


def _traits(strengths: FloatArray, names: tuple[str, ...]) -> tuple[Trait, ...]:
    order = np.argsort(-np.abs(strengths), kind="stable")[:SHOWN]
    return tuple(Trait(names[i], float(strengths[i])) for i in order if strengths[i] != 0.0)


def view_items(found: FittedMixture) -> list[ItemView]:
    """All items, those that communities agree on most first."""
    items, sizes = found.data.items, found.sizes
    utilities = np.stack([posterior.mean for posterior in found.posteriors])
    liking, spread = item_agreement(utilities, sizes / sizes.sum())
    order = np.argsort(spread, kind="stable")
    return [ItemView(items[i], float(liking[i]), float(spread[i])) for i in order]
