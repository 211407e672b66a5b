"""Pooled intervals when people differ, and raters told from tastes: simulated, with known truth."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from penchant.data import Comparisons
from penchant.models import MultiUserGP, PreferenceGP
from penchant.numerics.types import FloatArray

N_PEOPLE = 60
Study = tuple[FloatArray, Comparisons]


class CoverageRow(NamedTuple):
    """How often nominal 95 % intervals of pooled utilities hold the truth: with answers taken for
    independent, and as they are by default; and how many studies were simulated."""

    task: str
    independent: float
    clustered: float
    studies: int


class RaterRow(NamedTuple):
    """Mean reliability of a group of raters, lowest and highest."""

    group: str
    reliability: float
    low: float
    high: float


def coverage_rows(n_studies: int = 100) -> list[CoverageRow]:
    """60 people × 30 pairs, and 60 full rankings of 20 items, all of whom differ; and none."""
    tasks: dict[str, Callable[[np.random.Generator], Study]] = {
        "60 people × 30 pairs": lambda rng: pairs_study(rng, spread=0.5),
        "60 full rankings": lambda rng: rankings_study(rng, spread=0.5),
        "60 people × 30 pairs, all alike": lambda rng: pairs_study(rng, spread=0.0),
    }
    rows = []
    for number, (task, make) in enumerate(tasks.items()):
        hits: dict[bool, list[float]] = {False: [], True: []}
        for study in range(n_studies):
            truth, data = make(np.random.default_rng([number, study]))
            for how, found in hits.items():
                found.append(_covered(PreferenceGP(clustered=how), truth, data))
        independent, clustered = (float(np.mean(found)) for found in hits.values())
        rows.append(CoverageRow(task, independent, clustered, n_studies))
    return rows


def pairs_study(
    rng: np.random.Generator, spread: float, n_answers: int = 30, n_items: int = 10
) -> Study:
    """What pooling estimates, and pairs answered by people whose tastes spread around it."""
    f = rng.standard_normal(n_items)
    own = f + spread * rng.standard_normal((N_PEOPLE, n_items))
    user = np.repeat(np.arange(N_PEOPLE), n_answers)
    a = rng.integers(n_items, size=len(user))
    b = (a + rng.integers(1, n_items, size=len(user))) % n_items
    won = own[user, a] - own[user, b] + rng.standard_normal(len(user)) > 0
    winner, loser = np.where(won, a, b), np.where(won, b, a)
    data = Comparisons.from_pairs(winner, loser, user=user, items=range(n_items))
    return f / np.sqrt(1.0 + 2.0 * spread**2), data


def rankings_study(rng: np.random.Generator, spread: float, n_items: int = 20) -> Study:
    """The same of people who rank all items, as the pairs of their rankings."""
    f = rng.standard_normal(n_items)
    own = f + np.sqrt(0.5 + spread**2) * rng.standard_normal((N_PEOPLE, n_items))
    order, (first, second) = np.argsort(-own, axis=1), np.triu_indices(n_items, 1)
    user = np.repeat(np.arange(N_PEOPLE), len(first))
    data = Comparisons.from_pairs(
        order[:, first].ravel(), order[:, second].ravel(), user=user, items=range(n_items)
    )
    return f / np.sqrt(1.0 + 2.0 * spread**2), data


def _covered(model: PreferenceGP, truth: FloatArray, data: Comparisons) -> float:
    belief = model.fit(None, data).belief()
    error = belief.mean - belief.mean.mean() - truth + truth.mean()
    return float(np.mean(np.abs(error) < 1.96 * np.sqrt(belief.contrast_var)))


def rater_rows(seed: int = 0) -> list[RaterRow]:
    """20 people, 10 of the opposite taste and 10 who click at random, 30 answers each."""
    rng = np.random.default_rng(seed)
    f = 2.0 * rng.standard_normal(8)
    groups = np.repeat(["majority", "minority", "random clickers"], [20, 10, 10])
    taste = np.repeat([1.0, -1.0, 0.0], [20, 10, 10])
    user = np.repeat(np.arange(40), 30)
    a = rng.integers(8, size=len(user))
    b = (a + rng.integers(1, 8, size=len(user))) % 8
    won = taste[user] * (f[a] - f[b]) + rng.standard_normal(len(user)) > 0
    winner, loser = np.where(won, a, b), np.where(won, b, a)
    data = Comparisons.from_pairs(winner, loser, user=user, items=range(8))
    table = MultiUserGP(raters="lapse", progress=False, random_state=0).fit(None, data).raters_
    found = {row.user: row.reliability for row in table}
    rows = []
    for group in dict.fromkeys(groups.tolist()):
        mine = np.array([found[u] for u in np.flatnonzero(groups == group)])
        rows.append(RaterRow(group, float(mine.mean()), float(mine.min()), float(mine.max())))
    return rows
