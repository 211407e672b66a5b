"""Loaders of public data sets about people: sushi, cars and films."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penchant.data import Comparisons
from penchant.datasets.folder import expect, find
from penchant.errors import DataError
from penchant.numerics.types import FloatArray, IntArray

_SUSHI_ITEM_FEATURES = (
    "style",
    "major group",
    "minor group",
    "lightness",
    "eaten often",
    "price",
    "sold often",
)
_SUSHI_USER_FEATURES = (
    "gender",
    "age",
    "seconds needed",
    "childhood prefecture",
    "childhood region",
    "childhood in the west",
    "prefecture",
    "region",
    "in the west",
    "moved",
)
# Set A numbers its ten items 0 … 9; these are their rows in the table of all hundred.
_SUSHI_A_ROWS = [0, 1, 2, 3, 4, 6, 7, 8, 26, 29]


@dataclass(frozen=True, eq=False)
class Sushi:
    """Rankings of ten kinds of sushi by each of 5,000 people.

    rankings : (5000, 10) item indices, best first; scores : (5000, n_items) grades 0–4 with NaN
    where not rated, or None in set A; item_features : (n_items, 7), of which style, major and
    minor group are categories; user_features : (5000, 10).
    """

    rankings: IntArray
    scores: FloatArray | None
    item_names: tuple[str, ...]
    item_features: FloatArray
    item_feature_names: tuple[str, ...]
    user_features: FloatArray
    user_feature_names: tuple[str, ...]


def load_sushi_a() -> Sushi:
    """Set A: everyone ranks the same 10 kinds of sushi.

    >>> load_sushi_a()  # doctest: +SKIP
    """
    return _load_sushi("sushi3a.5000.10.order", np.array(_SUSHI_A_ROWS), None)


def load_sushi_b() -> Sushi:
    """Set B: everyone ranks and grades 10 of 100 kinds of sushi.

    >>> load_sushi_b()  # doctest: +SKIP
    """
    grades = np.loadtxt(_sushi_file("sushi3b.5000.10.score"))
    scores = np.where(grades < 0, np.nan, grades)
    return _load_sushi("sushi3b.5000.10.order", np.arange(100), scores)


def _load_sushi(order: str, rows: IntArray, scores: FloatArray | None) -> Sushi:
    path = _sushi_file(order)
    rankings = np.loadtxt(path, skiprows=1, usecols=range(2, 12), dtype=np.intp)
    expect(rankings.shape, (5000, 10), path, "rankings of shape")
    if not 0 <= rankings.min() <= rankings.max() < len(rows):
        raise DataError(f"{path} ranks items outside 0 … {len(rows) - 1}: get the file again")
    table = np.loadtxt(_sushi_file("sushi3.idata"), dtype=str, delimiter="\t")[rows]
    return Sushi(
        rankings,
        scores,
        tuple(table[:, 1].tolist()),
        table[:, 2:].astype(np.float64),
        _SUSHI_ITEM_FEATURES,
        np.loadtxt(_sushi_file("sushi3.udata"))[:, 1:],
        _SUSHI_USER_FEATURES,
    )


def _sushi_file(name: str) -> Path:
    what = "Kamishima's SUSHI preference data (2016 edition)"
    return find(f"sushi/{name}", what, "https://www.kamishima.net/sushi/")


@dataclass(frozen=True, eq=False)
class Cars:
    """Choices between cars by 60 people.

    comparisons : the answers; controls : questions asked to see whether people pay attention;
    item_features : (10, 4), of which all but the engine are categories; user_features : (60, 4)
    categories. Items and users are named by their published ids, which start at 1.
    """

    comparisons: Comparisons
    controls: Comparisons
    item_features: FloatArray
    item_feature_names: tuple[str, ...]
    user_features: FloatArray
    user_feature_names: tuple[str, ...]


def load_cars() -> Cars:
    """Abbasnejad et al.'s car preferences, experiment 1: 2,675 choices and 298 controls.

    >>> load_cars()  # doctest: +SKIP
    """
    answers = np.loadtxt(_cars_file("prefs1.csv"), delimiter=",", skiprows=1, dtype=np.intp)
    items, item_feature_names = _cars_table("items1.csv")
    users, user_feature_names = _cars_table("users1.csv")
    is_control = answers[:, 3] == 1
    expect(int((~is_control).sum()), 2675, _cars_file("prefs1.csv"), "comparisons:")
    names = {"items": items[:, 0].astype(int), "users": users[:, 0].astype(int)}
    real, control = answers[~is_control].T, answers[is_control].T
    return Cars(
        comparisons=Comparisons.from_pairs(real[1], real[2], user=real[0], **names),
        controls=Comparisons.from_pairs(control[1], control[2], user=control[0], **names),
        item_features=items[:, 1:],
        item_feature_names=item_feature_names,
        user_features=users[:, 1:-1],  # the last column counts correct controls: an outcome
        user_feature_names=user_feature_names[:-1],
    )


def _cars_table(name: str) -> tuple[FloatArray, tuple[str, ...]]:
    path = _cars_file(name)
    header = path.read_text().splitlines()[0].split(",")
    return np.loadtxt(path, delimiter=",", skiprows=1), tuple(h.strip() for h in header[1:])


def _cars_file(name: str) -> Path:
    what = "the car preferences of Abbasnejad et al. (2013), experiment 1"
    return find(f"cars/{name}", what, "https://users.cecs.anu.edu.au/~u4940058/CarPreferences.html")


@dataclass(frozen=True, eq=False)
class MovieLens:
    """Ratings of films.

    user, item, rating : (100000,) indices and grades 1–5; titles : 1,682 films (some titles
    occur twice); genres : (1682, 19) 0/1; user_features : (943, 23): age, whether female, and
    a 0/1 column per occupation.
    """

    user: IntArray
    item: IntArray
    rating: FloatArray
    titles: tuple[str, ...]
    genres: FloatArray
    genre_names: tuple[str, ...]
    user_features: FloatArray
    user_feature_names: tuple[str, ...]


def load_movielens() -> MovieLens:
    """MovieLens 100K: 100,000 ratings of 1,682 films by 943 people.

    >>> load_movielens()  # doctest: +SKIP
    """
    ratings = np.loadtxt(_movielens_file("u.data"), dtype=np.intp)
    expect(len(ratings), 100_000, _movielens_file("u.data"), "ratings:")
    films = _pipe_table("u.item")
    people = _pipe_table("u.user")
    jobs = sorted({person[3] for person in people})
    features = [
        [float(age), float(gender == "F"), *(float(job == known) for known in jobs)]
        for _, age, gender, job, _ in people
    ]
    return MovieLens(
        user=ratings[:, 0] - 1,
        item=ratings[:, 1] - 1,
        rating=ratings[:, 2].astype(np.float64),
        titles=tuple(film[1] for film in films),
        genres=np.array([film[5:] for film in films], dtype=np.float64),
        genre_names=tuple(genre[0] for genre in _pipe_table("u.genre")),
        user_features=np.array(features),
        user_feature_names=("age", "female", *jobs),
    )


def _pipe_table(name: str) -> list[list[str]]:
    lines = _movielens_file(name).read_text(encoding="latin-1").splitlines()
    return [line.split("|") for line in lines if line]


def _movielens_file(name: str) -> Path:
    where = "https://grouplens.org/datasets/movielens/100k/"
    return find(f"movielens_100k/{name}", "MovieLens 100K", where)
