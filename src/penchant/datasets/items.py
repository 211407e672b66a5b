"""Loaders of public data sets about items: documents, tables, links, votes and games.

None is shipped. `data_folder` says where they are looked for; what is found is checked.
"""

import csv
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from scipy import sparse

from penchant.data import Comparisons
from penchant.datasets.folder import data_folder, expect, find
from penchant.errors import DataError
from penchant.io import SUFFIXES, GradedDocuments, read_arff, read_preflib, read_svmrank
from penchant.numerics.types import FloatArray, IntArray

_LETOR = (
    "https://www.microsoft.com/en-us/research/project/letor-learning-rank-information-retrieval/"
)
_MSLR = "https://www.microsoft.com/en-us/research/project/mslr/"
_RLSCORE = "https://github.com/aatapa/RLScore"

# The regression sets that Chu and Ghahramani (2005) turned into preferences: rows of each.
REGRESSION_ROWS = {
    "pyrim": 74,
    "triazines": 186,
    "machine.cpu": 209,
    "housing": 506,
    "abalone": 4177,
    "kin8nm": 8192,
}


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
    """LETOR 2.0 OHSUMED: 106 queries, 16,140 medical abstracts, 25 features, grades 0–2.

    >>> load_ohsumed()  # doctest: +SKIP
    """
    files = ("trainingset.txt", "testset.txt", "validationset.txt")
    parts = _read_parts("ohsumed", files, "LETOR 2.0 OHSUMED, Fold1", 25)
    expect(len(parts.whole()), 16140, data_folder() / "ohsumed", "documents:")
    return parts


def load_mq2008() -> GradedParts:
    """LETOR 4.0 MQ2008: 784 queries, 15,211 web pages, 46 features, grades 0–2.

    >>> load_mq2008()  # doctest: +SKIP
    """
    files = ("train.txt", "test.txt", "vali.txt")
    parts = _read_parts("mq2008", files, "LETOR 4.0 MQ2008, Fold1", 46)
    expect(len(parts.whole()), 15211, data_folder() / "mq2008", "documents:")
    return parts


def _read_parts(folder: str, files: tuple[str, str, str], what: str, width: int) -> GradedParts:
    paths = [find(f"{folder}/{file}", what, _LETOR) for file in files]
    return GradedParts(*(read_svmrank(path, n_features=width) for path in paths))


def load_mslr_sample() -> GradedParts:
    """A sample of MSLR-WEB: 136 features, grades 0–4, 53 + 18 + 18 queries.

    >>> load_mslr_sample()  # doctest: +SKIP
    """
    what = "a sample of MSLR-WEB Fold1 as npz (X, y, query_indptr, query_ids)"
    paths = [find(f"mslr_sample/{part}.npz", what, _MSLR) for part in ("train", "test", "vali")]
    return GradedParts(*map(_read_npz, paths))


def _read_npz(path: Path) -> GradedDocuments:
    with np.load(path, allow_pickle=False) as file:
        expect(file["X"].shape[1], 136, path, "features:")
        qid = np.repeat(file["query_ids"], np.diff(file["query_indptr"])).astype(np.intp)
        return GradedDocuments(file["X"].astype(np.float64), file["y"].astype(np.float64), qid)


def load_parse_sample() -> GradedParts:
    """Parses of sentences scored by their F1: 100 to train and 100 to test, sparse features.

    >>> load_parse_sample()  # doctest: +SKIP
    """
    train, test = _read_parses("train"), _read_parses("test")
    width = max(train.X.shape[1], test.X.shape[1])
    return GradedParts(_widen(train, width), _widen(test, width), None)


def _read_parses(part: str) -> GradedDocuments:
    what = "the parse ranking sample of RLScore"
    paths = {
        kind: find(f"parse_sample/rank_{part}.{kind}", what, _RLSCORE)
        for kind in ("features", "labels", "qids")
    }
    y = np.loadtxt(paths["labels"])
    qid = np.loadtxt(paths["qids"], dtype=np.intp)
    lines = paths["features"].read_text().splitlines()
    cells = [cell.split(":") for line in lines for cell in line.split()]
    column, value = np.array(cells, dtype=np.float64).reshape(-1, 2).T
    indptr = np.concatenate([[0], np.cumsum([len(line.split()) for line in lines])])
    expect((len(lines), len(qid)), (len(y), len(y)), paths["features"], "lines:")
    return GradedDocuments(sparse.csr_matrix((value, column.astype(np.intp), indptr)), y, qid)


def _widen(documents: GradedDocuments, width: int) -> GradedDocuments:
    X = sparse.csr_matrix(documents.X)
    X.resize(X.shape[0], width)
    return GradedDocuments(X, documents.y, documents.qid)


@dataclass(frozen=True, eq=False)
class Regression:
    """A regression table: X (n, d), y (n,) and the names of the d features."""

    X: FloatArray
    y: FloatArray
    feature_names: tuple[str, ...]


def load_regression(name: str) -> Regression:
    """A table that preference learners are tested on: one of REGRESSION_ROWS.

    Nominal attributes are expanded as in `read_arff`.

    >>> load_regression("housing")  # doctest: +SKIP
    """
    if name not in REGRESSION_ROWS:
        raise DataError(f"name is {name!r}: it must be one of {', '.join(REGRESSION_ROWS)}")
    what = f"the regression set {name} as ARFF"
    path = find(f"regression/{name}.arff", what, "https://www.openml.org")
    X, y, names = read_arff(path)
    expect(len(y), REGRESSION_ROWS[name], path, "rows:")
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
    """Cora: 2,708 papers with 1,433 words, 5,429 directed citations and 7 topics.

    >>> load_cora()  # doctest: +SKIP
    """
    path = find("cora/cora.npz", "Cora as npz", "https://linqs.org/datasets/#cora")
    with np.load(path, allow_pickle=False) as file:
        cited_by, features = (
            sparse.csr_matrix(
                (file[f"{part}_data"], file[f"{part}_indices"], file[f"{part}_indptr"]),
                shape=tuple(file[f"{part}_shape"]),
                dtype=np.float64,
            )
            for part in ("adj", "attr")
        )
        expect(features.shape, (2708, 1433), path, "papers x words:")
        expect(cited_by.nnz, 5429, path, "citations:")
        return Cora(
            citations=sparse.csr_matrix(cited_by.T),  # the file's rows are the cited papers
            features=features,
            labels=file["labels"].astype(np.intp),
            names=tuple(file["node_names"].tolist()),
            class_names=tuple(file["class_names"].tolist()),
        )


def load_preflib(name: str) -> Comparisons:
    """The votes in a PrefLib file, such as "debian/00002-00000001.toc".

    >>> load_preflib("debian/00002-00000001.toc")  # doctest: +SKIP
    """
    if not name.endswith(SUFFIXES):
        raise DataError(f"name is {name!r}: it must end in one of {', '.join(SUFFIXES)}")
    return read_preflib(find(f"preflib/{name}", f"PrefLib's {name}", "https://preflib.org"))


SEASONS = tuple(f"{year}-{(year + 1) % 100:02d}" for year in range(2000, 2021))
GAMES = 380
"""In a season."""
_ALIASES = {
    "Brighton": "Brighton & Hove Albion",
    "Manchester Utd": "Manchester United",
    "Newcastle Utd": "Newcastle United",
    "Sheffield Utd": "Sheffield United",
    "Tottenham": "Tottenham Hotspur",
    "West Brom": "West Bromwich Albion",
    "West Ham": "West Ham United",
    "Wolves": "Wolverhampton Wanderers",
}
# as the last season calls them


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
        """Some of the games."""
        return League(
            self.teams,
            self.season[rows],
            self.day[rows],
            self.home[rows],
            self.away[rows],
            self.goals[rows],
        )

    def comparisons(self) -> Comparisons:
        """Who won, with draws as ties, days, and the home team as the one shown first."""
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
    """All 7,980 games.

    >>> load_football().teams[0]  # doctest: +SKIP
    """
    rows: list[tuple[int, float, str, str, int]] = []
    for number, season in enumerate(SEASONS):
        what = f"the Premier League season {season}"
        path = find(f"football/{season}.csv", what, "https://github.com/footballcsv/england")
        with path.open(encoding="utf-8", newline="") as file:
            games = [_game(number, row) for row in csv.DictReader(file)]
        expect(len(games), GAMES, path, "a number of games of")
        rows += games
    rows.sort(key=lambda game: game[1])
    season_of, day, home, away, goals = zip(*rows, strict=True)
    teams = tuple(sorted(set(home)))
    place = {team: k for k, team in enumerate(teams)}
    return League(
        teams,
        np.array(season_of),
        np.array(day),
        np.array([place[team] for team in home]),
        np.array([place[team] for team in away]),
        np.array(goals),
    )


def _game(season: int, row: dict[str, str]) -> tuple[int, float, str, str, int]:
    date = row["Date"].removesuffix("(P)")  # it marks games that were put off
    day = datetime.strptime(date, "%a %b %d %Y").replace(tzinfo=UTC).timestamp() / 86400.0
    mine, theirs = row["FT"].replace("–", "-").split("-")  # as in the file
    return season, day, _team(row["Team 1"]), _team(row["Team 2"]), int(mine) - int(theirs)


def _team(name: str) -> str:
    """A team's full name without the FC that the last season lacks."""
    bare = name.removeprefix("AFC ").removesuffix(" FC").removesuffix(" AFC").strip()
    return _ALIASES.get(bare, bare)
