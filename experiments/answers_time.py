"""Drift against kickscore, Elo and Glicko: log-likelihood of the next games, week by week."""

from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from time import process_time
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from experiments import FloatArray, IntArray
from penchant.datasets import League, load_football
from penchant.models import PreferenceGP

# Models of a league, each predicting the next games from those before: ours, and baselines.
#
# Every model `learn`s from a league, then predicts each week's games (`predict`) before it gets
# them (`add`). An ordered logit with a home advantage and a band of draws follows Elo and Glicko.
# It is fitted to their ratings of the games they learned from, as are their own constants.


class LeagueModel(Protocol):
    """Learns from a league, predicts games, and is given their results."""

    name: str

    def learn(self, games: League) -> None:
        """From games of the past."""

    def predict(self, games: League) -> FloatArray:
        """(k, 3) home win, draw, away win."""

    def add(self, games: League) -> None:
        """What came of them."""


@dataclass
class Drifting:
    """`PreferenceGP(drift="ou")` with ties and a home effect."""

    name: str = "PreferenceGP, drift"
    period: float = 7.0
    model: Any = None

    def learn(self, games: League) -> None:
        """Hyperparameters and paths."""
        self.model = PreferenceGP(drift="ou", likelihood="ties", period=self.period)
        self.model.fit(None, games.comparisons())

    def predict(self, games: League) -> FloatArray:
        """At the week of the games."""
        posterior = self.model.posterior_
        (then,) = posterior.when(games.day[:1])
        mean, var = then.difference(games.home, games.away, np.ones((1, len(games.home))))
        likelihood = self.model.likelihood_
        win, loss = likelihood.prob(mean, var), likelihood.prob(-mean, var)
        return np.column_stack([win, likelihood.prob_tie(mean, var), loss])

    def add(self, games: League) -> None:
        """By settling; hyperparameters stay."""
        self.model.tell(games.comparisons())


@dataclass
class Counting:
    """How often home wins, draws and away wins came so far."""

    name: str = "shares so far"
    counts: FloatArray = field(default_factory=lambda: np.ones(3))

    def learn(self, games: League) -> None:
        """Count."""
        self.counts = np.ones(3)
        self.add(games)

    def predict(self, games: League) -> FloatArray:
        """The shares, for all games."""
        return np.tile(self.counts / self.counts.sum(), (len(games), 1))

    def add(self, games: League) -> None:
        """Count on."""
        self.counts = self.counts + np.bincount(1 - np.sign(games.goals), minlength=3)


@dataclass
class Elo:
    """Elo's ratings: every game moves both by `gain` times the surprise."""

    name: str = "Elo"
    gains: tuple[float, ...] = (8.0, 15.0, 25.0, 40.0)
    gain: float = 15.0
    rating: FloatArray = field(default_factory=lambda: np.zeros(0))
    link: FloatArray = field(default_factory=lambda: np.zeros(3))

    def learn(self, games: League) -> None:
        """The gain and the link under which the games were likeliest, each before it was played."""
        best = np.inf
        for gain in self.gains:
            self.gain, self.rating = gain, np.zeros(len(games.teams))
            x = np.concatenate([self._through(week) for week in weeks(games)])
            link, loss = fit_link(x, np.sign(games.goals))
            if loss < best:
                best, chosen = loss, (gain, self.rating, link)
        self.gain, self.rating, self.link = chosen

    def _through(self, games: League) -> FloatArray:
        x = self._difference(games)
        self.add(games)
        return x

    def _difference(self, games: League) -> FloatArray:
        x: FloatArray = (self.rating[games.home] - self.rating[games.away]) / 100.0
        return x

    def predict(self, games: League) -> FloatArray:
        """By the link."""
        return outcome_probabilities(self._difference(games), self.link)

    def add(self, games: League) -> None:
        """Games of one week, one by one."""
        for home, away, goals in zip(games.home, games.away, games.goals, strict=True):
            expected = 1.0 / (1.0 + 10.0 ** (-(self.rating[home] + 60.0 - self.rating[away]) / 400))
            move = self.gain * (0.5 * (np.sign(goals) + 1.0) - expected)
            self.rating[home] += move
            self.rating[away] -= move


@dataclass
class Glicko:
    """Glickman's ratings with deviations that grow between weeks by a chosen constant."""

    name: str = "Glicko"
    growths: tuple[float, ...] = (3.0, 6.0, 12.0, 20.0)
    growth: float = 6.0
    rating: FloatArray = field(default_factory=lambda: np.zeros(0))
    deviation: FloatArray = field(default_factory=lambda: np.zeros(0))
    link: FloatArray = field(default_factory=lambda: np.zeros(3))

    def learn(self, games: League) -> None:
        """The growth and the link under which the games were likeliest."""
        best = np.inf
        for growth in self.growths:
            self.growth, n = growth, len(games.teams)
            self.rating, self.deviation = np.zeros(n), np.full(n, 200.0)
            x = np.concatenate([self._through(week) for week in weeks(games)])
            link, loss = fit_link(x, np.sign(games.goals))
            if loss < best:
                best, chosen = loss, (growth, self.rating, self.deviation, link)
        self.growth, self.rating, self.deviation, self.link = chosen

    def _through(self, games: League) -> FloatArray:
        x = self._difference(games)
        self.add(games)
        return x

    def _difference(self, games: League) -> FloatArray:
        spread = np.hypot(self.deviation[games.home], self.deviation[games.away])
        gap = self.rating[games.home] - self.rating[games.away]
        x: FloatArray = _shrink(spread) * gap / 100.0
        return x

    def predict(self, games: League) -> FloatArray:
        """By the link."""
        return outcome_probabilities(self._difference(games), self.link)

    def add(self, games: League) -> None:
        """A week is a rating period."""
        q, before = np.log(10.0) / 400.0, self.rating.copy()
        spread = np.minimum(np.hypot(self.deviation, self.growth), 350.0)
        precision, pull = np.zeros_like(before), np.zeros_like(before)
        sides = ((games.home, games.away, 1.0), (games.away, games.home, -1.0))
        for mine, theirs, sign in sides:
            g = _shrink(spread[theirs])
            gap = before[mine] - before[theirs] + sign * 60.0
            expected = 1.0 / (1.0 + 10.0 ** (-g * gap / 400.0))
            np.add.at(precision, mine, q**2 * g**2 * expected * (1.0 - expected))
            np.add.at(pull, mine, g * (0.5 * (sign * np.sign(games.goals) + 1.0) - expected))
        variance = 1.0 / (1.0 / spread**2 + precision)
        self.rating, self.deviation = before + q * variance * pull, np.sqrt(variance)


def _shrink(deviation: FloatArray) -> FloatArray:
    """Glickman's g."""
    q = np.log(10.0) / 400.0
    return np.asarray(1.0 / np.sqrt(1.0 + 3.0 * (q * deviation / np.pi) ** 2))


KICKSCORE = "kickscore"


@dataclass
class Kickscore:
    """kickscore's TernaryModel, with a home item; its constants are those that ours learned."""

    drifting: Drifting
    name: str = KICKSCORE
    model: Any = None

    def learn(self, games: League) -> None:
        """Kernels and margin as learned by `drifting`, the same model of the same games."""
        kickscore = import_module(KICKSCORE)

        hyper = self.drifting.model.state_.learned.hyper
        self.model = kickscore.TernaryModel(margin=hyper.likelihood.threshold)
        for team in range(len(games.teams)):
            kernel = kickscore.kernel.Constant(var=hyper.kernel.variance)
            kernel += kickscore.kernel.Exponential(var=hyper.variance, lscale=hyper.timescale)
            self.model.add_item(str(team), kernel=kernel)
        self.model.add_item("home", kernel=kickscore.kernel.Constant(var=1.0))
        self.add(games)

    def predict(self, games: League) -> FloatArray:
        """At the day of each."""
        triples = [
            self.model.probabilities([str(home), "home"], [str(away)], t=day)
            for home, away, day in zip(games.home, games.away, games.day, strict=True)
        ]
        return np.array(triples)

    def add(self, games: League) -> None:
        """Fit again, from where it was."""
        for home, away, day, goals in zip(
            games.home, games.away, games.day, games.goals, strict=True
        ):
            sides = [str(home), "home"], [str(away)]
            winners, losers = sides if goals >= 0 else sides[::-1]
            self.model.observe(winners, losers, t=day, tie=bool(goals == 0))
        self.model.fit()


def weeks(games: League) -> list[League]:
    """The games of each week, in order; days must ascend."""
    week = np.floor(games.day / 7.0)
    starts = np.flatnonzero(np.diff(week, prepend=-np.inf))
    return [games.take(rows) for rows in np.split(np.arange(len(games)), starts[1:])]


def outcome_probabilities(x: FloatArray, link: FloatArray) -> FloatArray:
    """Ordered logit of scale · x + home with a band of draws."""
    scale, home, band = link[0], link[1], np.exp(link[2])
    win, loss = expit(scale * x + home - band), expit(-scale * x - home - band)
    return np.column_stack([win, 1.0 - win - loss, loss])


def fit_link(x: FloatArray, sign: IntArray) -> tuple[FloatArray, float]:
    """The likeliest link, and its loss."""

    def loss(link: FloatArray) -> float:
        return -float(log_prob(outcome_probabilities(x, link), sign).mean())

    found = minimize(loss, np.array([0.5, 0.3, -0.7]), method="Nelder-Mead")
    return np.asarray(found.x), float(found.fun)


def log_prob(triples: FloatArray, sign: IntArray) -> FloatArray:
    """(k,) log probability of what came."""
    of_outcome = triples[np.arange(len(sign)), 1 - sign]
    return np.asarray(np.log(np.maximum(of_outcome, 1e-12)))


HISTORY = 5
"""Seasons before the one that is predicted, from which everything is learned."""


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
    models: list[LeagueModel] = [ours, Elo(), Glicko(), Counting()]
    if find_spec(KICKSCORE) is not None:
        models.insert(1, Kickscore(ours))
    said: dict[str, list[FloatArray]] = {model.name: [] for model in models}
    seconds = dict.fromkeys(said, 0.0)
    for past, now in tasks:
        for model in models:
            start = process_time()
            model.learn(past)
            for week in weeks(now):
                said[model.name].append(log_prob(model.predict(week), np.sign(week.goals)))
                model.add(week)
            seconds[model.name] += process_time() - start
    log_likelihood = {label: np.concatenate(parts) for label, parts in said.items()}
    rows = []
    for label, values in log_likelihood.items():
        less = values - log_likelihood[ours.name]
        error = float(less.std() / np.sqrt(len(less)))
        mean = (float(values.mean()), float(less.mean()), error)
        rows.append(TimeRow(name, label, *mean, len(values), seconds[label]))
    return rows
