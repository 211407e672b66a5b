"""The default item covariance of many users against each fixed one: rows of `reproduce defaults`.

Each set is split at random, the default and every candidate learn from the same answers, and the
regret is how much lower the default's held-out log-likelihood is than that of the best of them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from penchant.data import Comparisons
from penchant.datasets.people import load_cars, load_movielens, load_sushi_a
from penchant.kernels import Independent, Kernel
from penchant.metrics import calibration
from penchant.models.defaults import Scaling, taste_kernel
from penchant.models.features import fitted_items
from penchant.models.multi_user_gp import MultiUserGP
from penchant.numerics.types import FloatArray

MOVIELENS_FILMS = 100
"""The films rated most: a covariance can still be learned entry by entry."""


class UserSet(NamedTuple):
    """Features of the items or None, what to learn from, and what is held out."""

    X: FloatArray | None
    train: Comparisons
    test: Comparisons


class UserRow(NamedTuple):
    """One model on one set: held-out log-likelihood, error, and confidence less accuracy."""

    data: str
    model: str
    log_likelihood: float
    error: float
    overconfidence: float
    calibration_error: float
    regret: float


def user_rows(seed: int = 0, names: tuple[str, ...] | None = None) -> list[UserRow]:
    """Default, independent, free and features on each set; the regret is the default's."""
    rows: list[UserRow] = []
    for name in names or tuple(SETS):
        rng = np.random.default_rng(seed)
        fitted = SETS[name](rng)
        scores = {model: _scored(fitted, kernel) for model, kernel in _models(fitted).items()}
        best = max(score[0] for score in scores.values())
        rows += [UserRow(name, model, *score, best - score[0]) for model, score in scores.items()]
    return rows


def _models(data: UserSet) -> dict[str, Kernel | str | None]:
    models: dict[str, Kernel | str | None] = {
        "default": None,
        "independent": Independent(),
        "free": "free",
    }
    if data.X is not None:
        _, items = fitted_items(data.X, data.train, None, scale=True)
        models["features"] = taste_kernel(items)
    return models


def _scored(data: UserSet, kernel: Any) -> tuple[float, float, float, float]:
    X, test = data.X, data.test
    if X is not None and isinstance(kernel, Kernel):
        X = Scaling.of(X).apply(X)
    model = MultiUserGP(kernel, progress=False).fit(X, data.train)
    pairs = np.column_stack([test.winner, test.loser])
    p = np.repeat(model.predict_proba(pairs, test.user), test.count)
    right = np.where(p == 0.5, 0.5, p > 0.5)
    return (
        float(np.log(p).mean()),
        float(1.0 - right.mean()),
        float(np.maximum(p, 1.0 - p).mean() - right.mean()),
        calibration(p).error,
    )


def _simulated(kind: str) -> Callable[[np.random.Generator], UserSet]:
    """33 items, 120 users, 25 answers each: tastes apart, along two directions, or all alike."""

    def draw(rng: np.random.Generator) -> UserSet:
        n, n_users, n_votes = 33, 120, 25
        own = {"apart": 0.7, "directions": 0.3, "alike": 0.1}[kind]
        f = rng.standard_normal(n) + own * rng.standard_normal((n_users, n))
        if kind == "directions":
            f = f + 0.8 * rng.standard_normal((n_users, 2)) @ rng.standard_normal((2, n))
        user = np.repeat(np.arange(n_users), n_votes)
        a = rng.integers(n, size=len(user))
        b = (a + 1 + rng.integers(n - 1, size=len(user))) % n
        won = f[user, a] - f[user, b] + rng.standard_normal(len(user)) > 0
        return _split(None, user, np.where(won, a, b), np.where(won, b, a), rng)

    return draw


def _split(X: Any, user: Any, winner: Any, loser: Any, rng: np.random.Generator) -> UserSet:
    """A third of the answers held out; items and users are counted from zero."""
    n_items = int(max(winner.max(), loser.max())) + 1 if X is None else len(X)
    data = Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(int(user.max()) + 1)
    )
    return UserSet(X, *data.split(1 / 3, random_state=rng))


def _sushi(rng: np.random.Generator) -> UserSet:
    sushi = load_sushi_a()
    rankings = rng.choice(sushi.rankings, 500, replace=False)
    better, worse = np.triu_indices(10, 1)
    chosen = rng.permuted(np.tile(np.arange(45), (500, 1)), axis=1)[:, :15].ravel()
    user = np.repeat(np.arange(500), 15)
    winner, loser = rankings[user, better[chosen]], rankings[user, worse[chosen]]
    return _split(sushi.item_features, user, winner, loser, rng)


def _cars(rng: np.random.Generator) -> UserSet:
    cars = load_cars()
    answers = cars.comparisons
    user, winner, loser = (
        np.repeat(column, answers.count)
        for column in (np.asarray(answers.user), answers.winner, answers.loser)
    )
    return _split(cars.item_features, user, winner, loser, rng)


def _movielens(rng: np.random.Generator) -> UserSet:
    """Pairs of differently rated films among those rated most, a ring of each user's."""
    films = load_movielens()
    seen = np.bincount(films.item, minlength=len(films.titles))
    kept = np.sort(np.argsort(-seen, kind="stable")[:MOVIELENS_FILMS])
    rows = rng.permutation(np.flatnonzero(np.isin(films.item, kept)))
    rows = rows[np.argsort(films.user[rows], kind="stable")]
    first, second = rows[:-1], rows[1:]
    gap = films.rating[first] - films.rating[second]
    keep = (films.user[first] == films.user[second]) & (gap != 0)
    first, second, gap = first[keep], second[keep], gap[keep]
    best, worst = np.where(gap > 0, first, second), np.where(gap > 0, second, first)
    place = np.searchsorted(kept, films.item)
    return _split(films.genres[kept], films.user[first], place[best], place[worst], rng)


SETS: dict[str, Callable[[np.random.Generator], UserSet]] = {
    "sushi": _sushi,
    "cars": _cars,
    "MovieLens": _movielens,
    "simulated, apart": _simulated("apart"),
    "simulated, directions": _simulated("directions"),
    "simulated, alike": _simulated("alike"),
}
"""Sets of answers by many users, each drawn and split from a generator."""
