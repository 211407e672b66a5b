"""Loaders of public data sets. None is shipped: `data_folder` says where they are looked for.

Every loader checks that its file has the size of the published data set.
"""

import csv
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy import sparse

from penchant.data import Comparisons
from penchant.errors import DataError
from penchant.io import SUFFIXES, GradedDocuments, read_arff, read_preflib, read_svmrank
from penchant.numerics.types import FloatArray, IntArray

VARIABLE = "PENCHANT_DATA"

_LETOR = (
    "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
)
SOURCES = {
    "cars": (
        "the car preferences of Abbasnejad et al. (2013), experiment 1,",
        "https://users.cecs.anu.edu.au/~u4940058/CarPreferences.html",
    ),
    "cora": ("Cora as npz", "https://linqs.org/datasets/#cora"),
    "football": ("the Premier League seasons", "https://github.com/footballcsv/england"),
    "movielens_100k": ("MovieLens 100K", "https://grouplens.org/datasets/movielens/100k/"),
    "mq2008": ("LETOR 4.0 MQ2008, Fold1,", _LETOR),
    "mslr_sample": (
        "a sample of MSLR-WEB Fold1 as npz (X, y, query_indptr, query_ids)",
        "https://www.microsoft.com/en-us/research/project/mslr/",
    ),
    "ohsumed": ("LETOR 2.0 OHSUMED, Fold1,", _LETOR),
    "parse_sample": ("RLScore's parse ranking sample", "https://github.com/aatapa/RLScore"),
    "preflib": ("PrefLib's file", "https://preflib.org"),
    "regression": ("the regression set as ARFF", "https://www.openml.org"),
    "sushi": (
        "Kamishima's SUSHI preference data (2016 edition)",
        "https://www.kamishima.net/sushi/",
    ),
}
"""What each folder holds and where to get it."""


def data_folder() -> Path:
    """Return the folder of public data sets.

    The environment variable PENCHANT_DATA names it. Without the variable `../shared/data` is
    tried, relative to the current folder and to the source checkout.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not Path(named).is_dir():
            raise DataError(
                f"{VARIABLE} is {named!r}, which is not a folder: it must be the folder that holds "
                "the public data sets"
            )
        return Path(named)
    checkout = Path(__file__).resolve().parents[3]
    for start in (Path.cwd(), checkout):
        folder = start.parent / "shared" / "data"
        if folder.is_dir():
            return folder
    raise DataError(
        f"there is no folder of public data sets: make one and name it in the environment variable "
        f"{VARIABLE}"
    )


def _find(file: str) -> Path:
    """The path of a data set's file; the error says which data set to get and where to put it."""
    what, where = SOURCES[file.partition("/")[0]]
    try:
        path = data_folder() / file
    except DataError as error:
        raise DataError(f"{error}; then get {what} from {where} and put it at {file}") from None
    if not path.is_file():
        raise DataError(
            f"there is no file {path}: get {what} from {where} and put it there, or point the "
            f"environment variable {VARIABLE} to the folder that holds {file}"
        )
    return path


def _expect(found: object, expected: object, path: Path, what: str) -> None:
    """Raise if a file does not hold what the published data set holds."""
    if found != expected:
        raise DataError(
            f"{path} has {what} {found} where the published data set has {expected}: it is "
            "another edition or damaged; get it again"
        )


# Graded documents


@dataclass(frozen=True, eq=False)
class GradedParts:
    """Graded documents as published: training, test and, where there is one, validation part."""

    train: GradedDocuments
    test: GradedDocuments
    validation: GradedDocuments | None

    def whole(self) -> GradedDocuments:
        """Return all parts as one."""
        parts = [part for part in (self.train, self.validation, self.test) if part is not None]
        stack = sparse.vstack if sparse.issparse(self.train.X) else np.vstack
        X = stack([part.X for part in parts])
        return GradedDocuments(
            sparse.csr_matrix(X) if sparse.issparse(X) else X,
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.qid for part in parts]),
        )


def load_ohsumed() -> GradedParts:
    """LETOR 2.0 OHSUMED: 106 queries, 16,140 medical abstracts, 25 features, grades 0–2."""
    files = ("trainingset.txt", "testset.txt", "validationset.txt")
    return _read_letor("ohsumed", files, n_features=25, n_documents=16140)


def load_mq2008() -> GradedParts:
    """LETOR 4.0 MQ2008: 784 queries, 15,211 web pages, 46 features, grades 0–2."""
    files = ("train.txt", "test.txt", "vali.txt")
    return _read_letor("mq2008", files, n_features=46, n_documents=15211)


def _read_letor(
    folder: str, files: tuple[str, str, str], n_features: int, n_documents: int
) -> GradedParts:
    paths = [_find(f"{folder}/{file}") for file in files]
    parts = GradedParts(*(read_svmrank(path, n_features=n_features) for path in paths))
    _expect(len(parts.whole()), n_documents, paths[0].parent, "documents:")
    return parts


def load_mslr_sample() -> GradedParts:
    """A sample of MSLR-WEB: 136 features, grades 0–4, 53 + 18 + 18 queries."""
    parts = ("train", "test", "vali")
    return GradedParts(*(_read_npz(_find(f"mslr_sample/{part}.npz")) for part in parts))


def _read_npz(path: Path) -> GradedDocuments:
    with np.load(path, allow_pickle=False) as file:
        _expect(file["X"].shape[1], 136, path, "features:")
        qid = np.repeat(file["query_ids"], np.diff(file["query_indptr"])).astype(np.intp)
        return GradedDocuments(file["X"].astype(np.float64), file["y"].astype(np.float64), qid)


def load_parse_sample() -> GradedParts:
    """Parses of sentences scored by their F1: 100 to train and 100 to test, sparse features."""
    train, test = _read_parses("train"), _read_parses("test")
    width = max(train.X.shape[1], test.X.shape[1])
    for part in (train, test):
        part.X.resize(part.X.shape[0], width)
    return GradedParts(train, test, None)


def _read_parses(part: str) -> GradedDocuments:
    features, labels, qids = (
        _find(f"parse_sample/rank_{part}.{kind}") for kind in ("features", "labels", "qids")
    )
    y, qid = np.loadtxt(labels), np.loadtxt(qids, dtype=np.intp)
    lines = features.read_text().splitlines()
    cells = [cell.split(":") for line in lines for cell in line.split()]
    column, value = np.array(cells, dtype=np.float64).reshape(-1, 2).T
    indptr = np.concatenate([[0], np.cumsum([len(line.split()) for line in lines])])
    _expect((len(lines), len(qid)), (len(y), len(y)), features, "lines:")
    return GradedDocuments(sparse.csr_matrix((value, column.astype(np.intp), indptr)), y, qid)


# Tables, citations, votes and games

REGRESSION_ROWS = {
    "pyrim": 74,
    "triazines": 186,
    "machine.cpu": 209,
    "housing": 506,
    "abalone": 4177,
    "kin8nm": 8192,
}
"""Rows of the regression sets that Chu and Ghahramani (2005) turned into preferences."""


@dataclass(frozen=True, eq=False)
class Regression:
    """A regression table: X (n, d), y (n,) and the names of the d features."""

    X: FloatArray
    y: FloatArray
    feature_names: tuple[str, ...]


def load_regression(name: str) -> Regression:
    """A table that preference learners are tested on: one of REGRESSION_ROWS.

    Nominal attributes are expanded as in `read_arff`.
    """
    if name not in REGRESSION_ROWS:
        raise DataError(f"name is {name!r}: it must be one of {', '.join(REGRESSION_ROWS)}")
    path = _find(f"regression/{name}.arff")
    X, y, names = read_arff(path)
    _expect(len(y), REGRESSION_ROWS[name], path, "rows:")
    return Regression(X, y, names)


@dataclass(frozen=True, eq=False)
class Cora:
    """Papers that cite each other.

    citations : (n, n) CSR with a 1 where the row's paper cites the column's; features : (n, 1433)
    CSR of words; labels : (n,) topics; names : the papers' ids; class_names : the topics.
    """

    citations: sparse.csr_matrix
    features: sparse.csr_matrix
    labels: IntArray
    names: tuple[str, ...]
    class_names: tuple[str, ...]


def load_cora() -> Cora:
    """Cora: 2,708 papers with 1,433 words, 5,429 directed citations and 7 topics."""
    path = _find("cora/cora.npz")
    with np.load(path, allow_pickle=False) as file:
        cited_by, features = (
            sparse.csr_matrix(
                (file[f"{part}_data"], file[f"{part}_indices"], file[f"{part}_indptr"]),
                shape=tuple(file[f"{part}_shape"]),
                dtype=np.float64,
            )
            for part in ("adj", "attr")
        )
        _expect(features.shape, (2708, 1433), path, "papers x words:")
        _expect(cited_by.nnz, 5429, path, "citations:")
        return Cora(
            citations=sparse.csr_matrix(cited_by.T),  # the file's rows are the cited papers
            features=features,
            labels=file["labels"].astype(np.intp),
            names=tuple(file["node_names"].tolist()),
            class_names=tuple(file["class_names"].tolist()),
        )


def load_preflib(name: str) -> Comparisons:
    """The votes in a PrefLib file, such as "debian/00002-00000001.toc"."""
    if not name.endswith(SUFFIXES):
        raise DataError(f"name is {name!r}: it must end in one of {', '.join(SUFFIXES)}")
    return read_preflib(_find(f"preflib/{name}"))


SEASONS = tuple(f"{year}-{(year + 1) % 100:02d}" for year in range(2000, 2021))
GAMES = 380
"""Games in a season."""
_FULL_NAMES = {
    "Brighton": "Brighton & Hove Albion",
    "Manchester Utd": "Manchester United",
    "Newcastle Utd": "Newcastle United",
    "Sheffield Utd": "Sheffield United",
    "Tottenham": "Tottenham Hotspur",
    "West Brom": "West Bromwich Albion",
    "West Ham": "West Ham United",
    "Wolves": "Wolverhampton Wanderers",
}
"""The last season's file has short names."""


@dataclass(frozen=True, eq=False)
class League:
    """Games in the order of their days.

    season: (m,) number of the season; day: (m,) since 1970; home, away: (m,) teams;
    goals: (m,) of the home team less those of the other.

    >>> one = np.array([0])
    >>> game = League(("Ash", "Elm"), one, one.astype(float), one, one + 1, one + 2)
    >>> len(game)
    1
    """

    teams: tuple[str, ...]
    season: IntArray
    day: FloatArray
    home: IntArray
    away: IntArray
    goals: IntArray

    def __len__(self) -> int:
        return len(self.day)

    def take(self, rows: IntArray) -> "League":
        """Return some of the games."""
        columns = {name: values[rows] for name, values in vars(self).items() if name != "teams"}
        return League(self.teams, **columns)

    def comparisons(self) -> Comparisons:
        """Return the winners, with draws as ties, days, and the home team as shown first."""
        won = self.goals >= 0
        return Comparisons.from_pairs(
            np.where(won, self.home, self.away),
            np.where(won, self.away, self.home),
            tie=self.goals == 0,
            first=np.where(won, 1, -1),
            time=self.day,
            items=range(len(self.teams)),
        )


def load_football() -> League:
    """The Premier League, 2000–2021: 7,980 games of 43 teams."""
    rows: list[tuple[int, float, str, str, int]] = []
    for number, season in enumerate(SEASONS):
        path = _find(f"football/{season}.csv")
        with path.open(encoding="utf-8", newline="") as file:
            games = [_game(number, row) for row in csv.DictReader(file)]
        _expect(len(games), GAMES, path, "games:")
        rows += games
    rows.sort(key=lambda game: game[1])
    season_of, day, home, away, goals = map(np.array, zip(*rows, strict=True))
    teams, home_number = np.unique(home, return_inverse=True)
    away_number = np.searchsorted(teams, away)
    return League(tuple(teams.tolist()), season_of, day, home_number, away_number, goals)


def _game(season: int, row: dict[str, str]) -> tuple[int, float, str, str, int]:
    date = row["Date"].removesuffix("(P)")  # marks a postponed game
    day = datetime.strptime(date, "%a %b %d %Y").replace(tzinfo=UTC).timestamp() / 86400.0
    of_home, of_away = row["FT"].replace("–", "-").split("-")  # the files have both dashes
    return season, day, _team(row["Team 1"]), _team(row["Team 2"]), int(of_home) - int(of_away)


def _team(name: str) -> str:
    """A team's full name without "FC", which the last season's file leaves out."""
    bare = name.removeprefix("AFC ").removesuffix(" FC").removesuffix(" AFC").strip()
    return _FULL_NAMES.get(bare, bare)


# Users and their preferences

_SUSHI_ITEM_FEATURES = (
    *("style", "major group", "minor group", "lightness", "eaten often", "price", "sold often"),
)
_SUSHI_USER_FEATURES = (
    *("gender", "age", "seconds needed", "childhood prefecture", "childhood region"),
    *("childhood in the west", "prefecture", "region", "in the west", "moved"),
)
_SUSHI_A_ROWS = [0, 1, 2, 3, 4, 6, 7, 8, 26, 29]
"""Set A numbers its ten items 0 … 9; these are their rows in the table of all hundred."""


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
    """Set A: everyone ranks the same 10 kinds of sushi."""
    return _load_sushi("a", np.array(_SUSHI_A_ROWS), None)


def load_sushi_b() -> Sushi:
    """Set B: everyone ranks and grades 10 of 100 kinds of sushi."""
    grades = np.loadtxt(_find("sushi/sushi3b.5000.10.score"))
    return _load_sushi("b", np.arange(100), np.where(grades < 0, np.nan, grades))


def _load_sushi(part: str, rows: IntArray, scores: FloatArray | None) -> Sushi:
    path = _find(f"sushi/sushi3{part}.5000.10.order")
    rankings = np.loadtxt(path, skiprows=1, usecols=range(2, 12), dtype=np.intp)
    _expect(rankings.shape, (5000, 10), path, "rankings of shape")
    if not 0 <= rankings.min() <= rankings.max() < len(rows):
        raise DataError(f"{path} ranks items outside 0 … {len(rows) - 1}: get the file again")
    table = np.loadtxt(_find("sushi/sushi3.idata"), dtype=str, delimiter="\t")[rows]
    return Sushi(
        rankings,
        scores,
        tuple(table[:, 1].tolist()),
        table[:, 2:].astype(np.float64),
        _SUSHI_ITEM_FEATURES,
        np.loadtxt(_find("sushi/sushi3.udata"))[:, 1:],
        _SUSHI_USER_FEATURES,
    )


@dataclass(frozen=True, eq=False)
class Cars:
    """Choices between cars by 60 people.

    comparisons : the answers; controls : questions that test whether people pay attention;
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
    """Abbasnejad et al.'s car preferences, experiment 1: 2,675 choices and 298 controls."""
    path = _find("cars/prefs1.csv")
    answers = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.intp)
    items, item_feature_names = _cars_table("items1.csv")
    users, user_feature_names = _cars_table("users1.csv")
    is_control = answers[:, 3] == 1
    _expect(int((~is_control).sum()), 2675, path, "comparisons:")
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
    path = _find(f"cars/{name}")
    header = path.read_text().splitlines()[0].split(",")
    return np.loadtxt(path, delimiter=",", skiprows=1), tuple(h.strip() for h in header[1:])


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
    """MovieLens 100K: 100,000 ratings of 1,682 films by 943 people."""
    path = _find("movielens_100k/u.data")
    ratings = np.loadtxt(path, dtype=np.intp)
    _expect(len(ratings), 100_000, path, "ratings:")
    films, people = _pipe_table("u.item"), _pipe_table("u.user")
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
    lines = _find(f"movielens_100k/{name}").read_text(encoding="latin-1").splitlines()
    return [line.split("|") for line in lines if line]
