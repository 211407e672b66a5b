"""Games of the English Premier League, 2000–01 to 2020–21."""

import csv
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from penchant.data import Comparisons
from penchant.datasets.folder import expect, find
from penchant.numerics.types import FloatArray, IntArray

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
