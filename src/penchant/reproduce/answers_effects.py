"""The order shown and covariates: ignored, and modelled beside utilities.

Battles of 12 items whose utilities have unit variance. Some items stand first more often than
others, the first of two gains .25 and a covariate .3 a standard deviation; what wins more often
for its place or its length is not better for it.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from penchant.data import Comparisons
from penchant.metrics import calibration
from penchant.models import MultiUserGP, PreferenceGP
from penchant.numerics.types import FloatArray

N_ITEMS, N_BATTLES, N_NEW, N_USERS = 12, 2_000, 2_000, 40
TRUTH = {"shown first": 0.25, "length": 0.3}
Z_95 = 1.959963984540054


class DrawnBattles(NamedTuple):
    """True utilities (n,), battles to learn from, and new ones."""

    f: FloatArray
    data: Comparisons
    new: Comparisons


def effects_beside_none(n_draws: int = 20, seed: int = 0) -> list[dict[str, Any]]:
    """One row for each model and whether it knows how battles were shown.

    utilities, effects: share of nominal 95 % intervals that cover the truth, utilities relative to
    the average item. log_likelihood, calibration_error: of new battles, foreseen as shown.
    """
    seen: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for draw in range(n_draws):
        for name, n_users in (("PreferenceGP", 0), ("MultiUserGP", N_USERS)):
            drawn = _draw(np.random.default_rng([seed, draw, n_users]), n_users)
            bare = drawn._replace(data=drawn.data.bare(), new=drawn.new.bare())
            for way, each in (("ignored", bare), ("modelled", drawn)):
                seen.setdefault((name, way), []).append(_judged(name, each))
    rows = []
    for (name, way), values in seen.items():
        mean, error = np.mean(values, axis=0), np.std(values, axis=0, ddof=1) / np.sqrt(n_draws)
        row: dict[str, Any] = {"model": name, "order and length": way}
        for k, what in enumerate(("utilities", "effects", "log_likelihood", "calibration_error")):
            row |= {what: float(mean[k]), f"{what}_se": float(error[k])}
        rows.append(row)
    return rows


def _draw(rng: np.random.Generator, n_users: int) -> DrawnBattles:
    f = rng.standard_normal(N_ITEMS)
    own = np.sqrt(0.5) * rng.standard_normal((max(n_users, 1), N_ITEMS)) * (n_users > 0)
    leaning = rng.uniform(0.05, 0.95, N_ITEMS)  # how much an item likes to stand first
    sets = [_battles(f + own, leaning, m, n_users, rng) for m in (N_BATTLES, N_NEW)]
    return DrawnBattles(f, *sets)


def _battles(
    f: FloatArray, leaning: FloatArray, m: int, n_users: int, rng: np.random.Generator
) -> Comparisons:
    user = rng.integers(len(f), size=m)
    a = rng.integers(N_ITEMS, size=m)
    b = (a + 1 + rng.integers(N_ITEMS - 1, size=m)) % N_ITEMS
    swap = rng.random(m) > leaning[a] / (leaning[a] + leaning[b])
    a, b = np.where(swap, b, a), np.where(swap, a, b)
    x = rng.standard_normal(m)
    g = f[user, a] - f[user, b] + TRUTH["shown first"] + TRUTH["length"] * x
    won = rng.random(m) < ndtr(g)
    return Comparisons.from_pairs(
        np.where(won, a, b),
        np.where(won, b, a),
        first=np.where(won, 1, -1),
        covariates={"length": np.where(won, x, -x)},
        user=user if n_users else None,
        items=range(N_ITEMS),
        users=range(n_users) if n_users else None,
    )


_MODELS: Mapping[str, type[PreferenceGP] | type[MultiUserGP]] = {
    "PreferenceGP": PreferenceGP,
    "MultiUserGP": MultiUserGP,
}


def _judged(name: str, drawn: DrawnBattles) -> tuple[float, ...]:
    model = _MODELS[name](random_state=0).fit(None, drawn.data)
    belief, new = model.belief(), drawn.new
    off = (belief.mean - belief.mean.mean()) - (drawn.f - drawn.f.mean())
    utilities = np.mean(np.abs(off) <= Z_95 * np.sqrt(belief.contrast_var))
    effects = [e.low <= TRUTH[e.name] <= e.high for e in model.effects_]
    shown: dict[str, Any] = {}
    if new.first is not None and new.covariates is not None:
        shown = {"first": new.first, "covariates": {"length": new.covariates[:, 0]}}
    pairs = np.column_stack([new.winner, new.loser])
    prob = model.predict_proba(pairs, new.user, **shown)
    error = calibration(prob, counts=new.count).error
    return float(utilities), float(np.mean(effects or np.nan)), model.score(new), float(error)
