"""Drift against kickscore, Elo and Glicko: log-likelihood of the next games, week by week."""

from importlib.util import find_spec
from time import process_time
from typing import NamedTuple

import numpy as np

from penchant.datasets.football import League, load_football
from penchant.numerics.types import FloatArray
from penchant.reproduce.leagues import (
    Counting,
    Drifting,
    Elo,
    Glicko,
    Kickscore,
    Teller,
    log_prob,
    weeks,
)

HISTORY = 5
"""Seasons before the one that is foretold, from which everything is learned."""


class TimeRow(NamedTuple):
    """A model on a league: mean log-likelihood of the next games, that less ours with its standard
    error (games paired), how many games, and seconds of processor time."""

    league: str
    model: str
    log_likelihood: float
    less_ours: float
    error: float
    games: int
    seconds: float


def football_rows(n_seasons: int = 3, data: League | None = None) -> list[TimeRow]:
    """The last seasons, each from the five before it, week by week."""
    league = load_football() if data is None else data
    last = int(league.season.max())
    tasks = []
    for season in range(last - n_seasons + 1, last + 1):
        past = (league.season >= season - HISTORY) & (league.season < season)
        now = league.season == season
        tasks.append((league.take(np.flatnonzero(past)), league.take(np.flatnonzero(now))))
    return _rows(f"football, {n_seasons} seasons", tasks)


def simulated_rows(n_leagues: int = 2, n_weeks: int = 120, seed: int = 0) -> list[TimeRow]:
    """Leagues whose teams drift as Ornstein–Uhlenbeck paths with a home effect and draws."""
    tasks = []
    for number in range(n_leagues):
        league = simulated_league(np.random.default_rng([seed, number]), n_weeks=n_weeks)
        first = league.day < np.median(league.day)
        tasks.append((league.take(np.flatnonzero(first)), league.take(np.flatnonzero(~first))))
    return _rows(f"simulated drift, {n_leagues} leagues", tasks)


def simulated_league(
    rng: np.random.Generator, n_teams: int = 16, n_weeks: int = 120, timescale: float = 30.0
) -> League:
    """Half of a team's variance stays, half drifts with a timescale of so many weeks."""
    keep, constant = np.exp(-1.0 / timescale), np.sqrt(0.5) * rng.standard_normal(n_teams)
    path = np.sqrt(0.5) * rng.standard_normal(n_teams)
    day, home, away, sign = [], [], [], []
    for week in range(n_weeks):
        order = rng.permutation(n_teams).reshape(-1, 2)
        noisy = (constant + path)[order] @ [1.0, -1.0] + 0.3 + rng.standard_normal(len(order))
        day += [7.0 * week] * len(order)
        home += order[:, 0].tolist()
        away += order[:, 1].tolist()
        sign += np.where(np.abs(noisy) < 0.4, 0, np.sign(noisy)).astype(int).tolist()
        path = keep * path + np.sqrt(0.5 * (1.0 - keep**2)) * rng.standard_normal(n_teams)
    teams, season = tuple(f"team {k}" for k in range(n_teams)), np.zeros(len(day), dtype=int)
    sides = np.array(home), np.array(away)
    return League(teams, season, np.array(day), *sides, np.array(sign))


def _rows(name: str, tasks: list[tuple[League, League]]) -> list[TimeRow]:
    """All models on the same games; kickscore where it is installed."""
    ours = Drifting()
    tellers: list[Teller] = [ours, Elo(), Glicko(), Counting()]
    if find_spec("kickscore") is not None:
        tellers.insert(1, Kickscore(ours))
    said: dict[str, list[FloatArray]] = {teller.name: [] for teller in tellers}
    seconds = dict.fromkeys(said, 0.0)
    for past, now in tasks:
        for teller in tellers:
            start = process_time()
            teller.learn(past)
            for week in weeks(now):
                said[teller.name].append(log_prob(teller.foretell(week), np.sign(week.goals)))
                teller.add(week)
            seconds[teller.name] += process_time() - start
    log_likelihood = {model: np.concatenate(parts) for model, parts in said.items()}
    rows = []
    for model, values in log_likelihood.items():
        less = values - log_likelihood[ours.name]
        error = float(less.std() / np.sqrt(len(less)))
        mean = (float(values.mean()), float(less.mean()), error)
        rows.append(TimeRow(name, model, *mean, len(values), seconds[model]))
    return rows
