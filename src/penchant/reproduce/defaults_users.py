"""Answers of many people, each with a taste of their own: the default item covariance against each
fixed one, as rounds of `reproduce defaults`.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from penchant.data import Comparisons
from penchant.datasets.people import Cars, MovieLens, Sushi
from penchant.kernels import Independent, Kernel
from penchant.models import MultiUserGP, Scaling, fitted_items, taste_kernel
from penchant.numerics.types import FloatArray, IntArray
from penchant.reproduce.default_tasks import DEFAULTS, FREE, INDEPENDENT, TASTES, Contest

MOVIELENS_FILMS = 50
"""The films rated most: a covariance can still be learned entry by entry."""


class UserSet(NamedTuple):
    """Features of the items or None, what to learn from, and what is held out."""

    X: FloatArray | None
    train: Comparisons
    test: Comparisons

    def contest(self) -> Contest:
        """The default and every fixed covariance that these items allow."""
        fits = {
            DEFAULTS: lambda: self._fitted(None),
            INDEPENDENT: lambda: self._fitted(Independent()),
            FREE: lambda: self._fitted("free"),
        }
        if self.X is not None:
            _, items = fitted_items(self.X, self.train, None, scale=True)
            fits[TASTES] = lambda: self._fitted(taste_kernel(items))
        asked = np.column_stack([self.test.winner, self.test.loser])
        rows = np.repeat(np.arange(len(asked)), self.test.count)
        return Contest(asked[rows], fits, np.asarray(self.test.user)[rows])

    def _fitted(self, kernel: Kernel | str | None) -> MultiUserGP:
        X = self.X
        if X is not None and isinstance(kernel, Kernel):
            X = np.asarray(Scaling.of(X).apply(X))
        return MultiUserGP(kernel, progress=False).fit(X, self.train)


Draw = Callable[[np.random.Generator], UserSet]


def people_rounds(draw: Draw, n_repeats: int) -> Iterator[Contest]:
    """A set drawn and split anew in each round."""
    for repeat in range(n_repeats):
        yield draw(np.random.default_rng([2, repeat])).contest()


def simulated_people(kind: str) -> Draw:
    """33 items, 120 users, 25 answers each: tastes "apart", along two "directions", or "alike"."""

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


def people_of_sushi(sushi: Sushi) -> Draw:
    """15 of the pairs of each of 500 rankings of ten kinds."""

    def draw(rng: np.random.Generator) -> UserSet:
        n_users = min(500, len(sushi.rankings))
        rankings = rng.choice(sushi.rankings, n_users, replace=False)
        better, worse = np.triu_indices(10, 1)
        chosen = rng.permuted(np.tile(np.arange(45), (n_users, 1)), axis=1)[:, :15].ravel()
        user = np.repeat(np.arange(n_users), 15)
        winner, loser = rankings[user, better[chosen]], rankings[user, worse[chosen]]
        return _split(sushi.item_features, user, winner, loser, rng)

    return draw


def people_of_cars(cars: Cars) -> Draw:
    """Everybody's choices between cars."""
    answers = cars.comparisons
    user, winner, loser = (
        np.repeat(column, answers.count)
        for column in (np.asarray(answers.user), answers.winner, answers.loser)
    )
    return lambda rng: _split(cars.item_features, user, winner, loser, rng)


class FilmRatings(NamedTuple):
    """Ratings of the films that were rated most: by whom, of which of these films, and how."""

    user: IntArray
    film: IntArray
    rating: FloatArray
    genres: FloatArray

    @classmethod
    def of(cls, films: MovieLens) -> "FilmRatings":
        """Of all that were rated."""
        seen = np.bincount(films.item, minlength=len(films.titles))
        kept = np.sort(np.argsort(-seen, kind="stable")[:MOVIELENS_FILMS])
        rows = np.flatnonzero(np.isin(films.item, kept))
        film = np.searchsorted(kept, films.item[rows])
        return cls(films.user[rows], film, films.rating[rows], films.genres[kept])

    def pairs(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Each user's ratings as a chain in any order: the better one and the other, or a tie."""
        rows = rng.permutation(len(self.user))
        rows = rows[np.argsort(self.user[rows], kind="stable")]
        same = self.user[rows[:-1]] == self.user[rows[1:]]
        first, second = rows[:-1][same], rows[1:][same]
        is_better = self.rating[first] > self.rating[second]
        return np.where(is_better, first, second), np.where(is_better, second, first)


def people_of_movielens(films: MovieLens) -> Draw:
    """Pairs of differently rated films among those rated most, a chain of each user's."""
    rated = FilmRatings.of(films)

    def draw(rng: np.random.Generator) -> UserSet:
        best, worst = rated.pairs(rng)
        differ = rated.rating[best] != rated.rating[worst]
        best, worst = best[differ], worst[differ]
        return _split(rated.genres, rated.user[best], rated.film[best], rated.film[worst], rng)

    return draw


def _split(X: Any, user: Any, winner: Any, loser: Any, rng: np.random.Generator) -> UserSet:
    """A third of the answers held out; items and users are counted from zero."""
    n_items = int(max(winner.max(), loser.max())) + 1 if X is None else len(X)
    data = Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(int(user.max()) + 1)
    )
    return UserSet(X, *data.split(1 / 3, random_state=rng))
