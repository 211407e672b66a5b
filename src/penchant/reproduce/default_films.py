"""Why pairs made of ratings make a model of people look timid: few steps, and ties left out.

A person who rates b below a, in five steps, has hardly room left to rate c below b: of two films
that are rated differently the answers foretell each other better than any continuous utilities
could, however little noise there is. The same ratings not rounded show it, and so do ties kept.
"""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from penchant.data import Comparisons
from penchant.datasets.people import MovieLens, load_movielens
from penchant.metrics import calibration
from penchant.models import MultiUserGP
from penchant.numerics.types import FloatArray
from penchant.reproduce.default_scores import by_chance
from penchant.reproduce.defaults_users import MOVIELENS_FILMS, FilmRatings
from penchant.reproduce.page import Page

RATINGS = "Ratings turned into pairs"
_ABOUT = """Films are rated in five steps, and pairs of the same rating are left out of the set
above.
Who has put b below a has then hardly room left to put c below b: such pairs foretell each other
better than continuous utilities can, even without any noise, and a model of these is too timid.
Below are simulated ratings of the same films by the same people, as they are and rounded to as many
of each step, and ties kept, with `likelihood="ties"`. Scores are of pairs of different ratings."""
_HEAD = ("ratings", "ties", "pairs", "error", "log-likelihood", "ECE", "over")
DIRECTIONS = 3
"""Of simulated tastes."""


def explain_films(page: Page) -> None:
    """Whether tastes or the steps of a scale make pairs of ratings more certain than stated."""
    with page.part(RATINGS):
        page.say(_ABOUT.replace("\n", " "))
        films = page.load(load_movielens)
        page.table(_HEAD, [trial.row() for trial in film_trials(films)])


class FilmTrial(NamedTuple):
    """Ratings, what they are called, and whether pairs of the same rating stay as ties."""

    name: str
    rated: FilmRatings
    keeps_ties: bool

    def row(self) -> list[str]:
        """Of a table: how `MultiUserGP()` foresees a third of the pairs of different ratings."""
        train, test = self._split(np.random.default_rng([2, 0]))
        likelihood = "ties" if self.keeps_ties else "probit"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MultiUserGP(likelihood=likelihood, progress=False).fit(None, train)
        asked = ~test.tie
        pairs = np.column_stack([test.winner, test.loser])[asked]
        p = model.predict_proba(pairs, np.asarray(test.user)[asked])
        right = float(np.mean(p > 0.5))
        return [
            self.name,
            "kept" if self.keeps_ties else "left out",
            f"{train.n_comparisons + test.n_comparisons:,}",
            f"{1.0 - right:.3f}",
            f"{np.log(p).mean():.3f}",
            f"{calibration(p).error:.3f} ({by_chance(p):.3f})",
            f"{np.maximum(p, 1.0 - p).mean() - right:+.3f}",
        ]

    def _split(self, rng: np.random.Generator) -> tuple[Comparisons, Comparisons]:
        user, film, rating, _ = self.rated
        best, worst = self.rated.pairs(rng)
        tie = rating[best] == rating[worst]
        if not self.keeps_ties:
            best, worst, tie = best[~tie], worst[~tie], None
        data = Comparisons.from_pairs(
            film[best],
            film[worst],
            user=user[best],
            tie=tie,
            items=range(MOVIELENS_FILMS),
            users=range(int(user.max()) + 1),
        )
        return data.split(1 / 3, random_state=rng)


def film_trials(films: MovieLens) -> Iterator[FilmTrial]:
    """The real ratings and simulated ones of the same films by the same people."""
    rated = FilmRatings.of(films)
    whole = rated._replace(rating=_simulated(rated, np.random.default_rng(5)))
    shares = np.cumsum(np.unique_counts(rated.rating).counts) / len(rated.rating)
    steps = np.quantile(whole.rating, shares[:-1])
    rounded = rated._replace(rating=np.digitize(whole.rating, steps).astype(np.float64))
    yield FilmTrial("simulated, not rounded", whole, False)
    for name, each in (("simulated, in five steps", rounded), ("MovieLens", rated)):
        yield FilmTrial(name, each, False)
        yield FilmTrial(name, each, True)


def _simulated(rated: FilmRatings, rng: np.random.Generator) -> FloatArray:
    """A common taste, directions in which people differ, tastes of their own, and strictness."""
    n_users, n = int(rated.user.max()) + 1, MOVIELENS_FILMS
    common = 0.5 * rng.standard_normal(n)
    directions = 0.35 * rng.standard_normal((DIRECTIONS, n))
    tastes = common + rng.standard_normal((n_users, DIRECTIONS)) @ directions
    tastes += 0.8 * rng.standard_normal((n_users, n)) + 0.5 * rng.standard_normal((n_users, 1))
    utilities: FloatArray = tastes[rated.user, rated.film]
    return utilities
