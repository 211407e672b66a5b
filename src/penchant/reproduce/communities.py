"""Paper 004: communities of taste in simulated votes, sushi rankings and car choices.

The synthetic set, the sushi split and the car data are the paper's (sushi features are not used:
the ten kinds are told apart by their ids). Larger simulations show what was not affordable then.
"""

import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from penchant.data import Comparisons, load_cars, load_sushi_a
from penchant.data.folder import data_at
from penchant.errors import ConvergenceWarning
from penchant.metrics import adjusted_rand, pair_error
from penchant.models.community_gp import CommunityGP
from penchant.numerics.types import FloatArray, IntArray
from penchant.people.assignment import Answers
from penchant.people.insight import value_win_rates
from penchant.plots.communities import plot_community_counts, plot_community_utilities

TRAIN_SHARE = 0.6
CAR_VALUES = {
    "BodyType": {1.0: "Sedan", 2.0: "SUV"},
    "Transmission": {1.0: "Manual", 2.0: "Automatic"},
    "Fuel Consumed": {1.0: "Hybrid", 2.0: "Non-Hybrid"},
}


class Trial(NamedTuple):
    """Votes to learn from and votes to predict, with the truth where it is known.

    X: (n, d) item features or None; test: (k, 3) user, winner, loser; communities: (U,) or None;
    oracle: accuracy of somebody who knows every user's utilities, or NaN.
    """

    X: FloatArray | None
    train: Comparisons
    test: IntArray
    communities: IntArray | None = None
    oracle: float = float("nan")


class Score(NamedTuple):
    """How a model did on a trial."""

    accuracy: float
    agreement: float
    n_communities: int
    communal_share: float


def draw_synthetic(seed: int) -> Trial:
    """The paper's synthetic set: each of 10 items is liked by one of 4 communities of 15 users.

    Liked items have high utility and all others low; within high and low the order is random, and
    the same for all users of a community. Answers to all 45 pairs are free of noise.
    """
    rng = np.random.default_rng(seed)
    likers = rng.permutation(np.concatenate([np.arange(4), rng.integers(4, size=6)]))
    utilities = 10.0 * (likers == np.arange(4)[:, None]) + rng.random((4, 10))
    communities = rng.permutation(np.repeat(np.arange(4), 15))
    first, second = np.triu_indices(10, 1)
    own = utilities[communities]
    wins = own[:, first] > own[:, second]
    user = np.indices(wins.shape)[0]
    votes = np.stack([user, np.where(wins, first, second), np.where(wins, second, first)], axis=2)
    trial = _split(None, votes.reshape(-1, 3), 60, 10, rng)
    return trial._replace(communities=communities, oracle=1.0)


def draw_votes(n_votes: int, seed: int, n_users: int = 2000, n_test: int = 20) -> Trial:
    """Users of four tastes (40, 30, 20 and 10 %) who vote on random pairs of 100 items.

    Utilities are 2·features·w/√10 with w ~ N(0, I), plus a personal N(0, 0.4²) an item; votes
    are logistic.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 10))
    tastes = 2.0 * rng.standard_normal((4, 10)) @ X.T / np.sqrt(10)
    communities = rng.choice(4, n_users, p=[0.4, 0.3, 0.2, 0.1])
    utilities = tastes[communities] + 0.4 * rng.standard_normal((n_users, 100))
    train, test = (_vote(utilities, n, rng) for n in (n_votes, n_test))
    data = Comparisons.from_pairs(
        train[:, 1], train[:, 2], user=train[:, 0], items=range(100), users=range(n_users)
    )
    lead = utilities[test[:, 0], test[:, 1]] > utilities[test[:, 0], test[:, 2]]
    return Trial(X, data, test, communities, float(lead.mean()))


def _vote(utilities: FloatArray, n_votes: int, rng: np.random.Generator) -> IntArray:
    """(U · n_votes, 3): user, winner, loser of uniformly random pairs."""
    n_users, n_items = utilities.shape
    user = np.repeat(np.arange(n_users), n_votes)
    first = rng.integers(n_items, size=len(user))
    second = (first + rng.integers(1, n_items, size=len(user))) % n_items
    wins = rng.random(len(user)) < expit(utilities[user, first] - utilities[user, second])
    return np.column_stack([user, np.where(wins, first, second), np.where(wins, second, first)])


def sushi_trial(seed: int, n_users: int = 1000, n_pairs: int | None = None) -> Trial:
    """Some users' rankings of ten kinds of sushi as 45 pairs each: 60 % (or n_pairs) to learn."""
    rng = np.random.default_rng(seed)
    rankings = load_sushi_a().rankings
    rankings = rankings[rng.choice(len(rankings), n_users, replace=False)]
    better, worse = np.triu_indices(10, 1)
    votes = np.stack(
        [np.indices((n_users, 45))[0], rankings[:, better], rankings[:, worse]], axis=2
    )
    n_train = round(TRAIN_SHARE * 45) if n_pairs is None else n_pairs
    order = rng.permuted(np.tile(np.arange(45), (n_users, 1)), axis=1)[:, :, None]
    shuffled = np.take_along_axis(votes, order, axis=1)
    train, test = shuffled[:, :n_train].reshape(-1, 3), shuffled[:, n_train:].reshape(-1, 3)
    return Trial(None, _comparisons(train, n_users, 10), test)


def cars_trial(seed: int) -> Trial:
    """60 % of each person's choices between cars to learn from, the others to predict."""
    cars = load_cars()
    data = cars.comparisons
    rows = np.column_stack([np.asarray(data.user), data.winner, data.loser])
    votes = np.repeat(rows, data.count, axis=0)
    rng = np.random.default_rng(seed)
    return _split(cars.item_features, votes, data.n_users, data.n_items, rng)


def _split(
    X: FloatArray | None, votes: IntArray, n_users: int, n_items: int, rng: np.random.Generator
) -> Trial:
    """Put a random 60 % of the votes (k, 3) into training."""
    order = rng.permutation(len(votes))
    cut = round(TRAIN_SHARE * len(votes))
    train, test = votes[order[:cut]], votes[order[cut:]]
    return Trial(X, _comparisons(train, n_users, n_items), test)


def _comparisons(votes: IntArray, n_users: int, n_items: int) -> Comparisons:
    user, winner, loser = votes.T
    return Comparisons.from_pairs(
        winner, loser, user=user, items=range(n_items), users=range(n_users)
    )


def score(model: CommunityGP, trial: Trial) -> Score:
    """Accuracy on the test votes, and agreement of the memberships with the truth."""
    user, winner, loser = trial.test.T
    prob = model.predict_proba(np.column_stack([winner, loser]), user)
    agreement = float("nan")
    if trial.communities is not None:
        agreement = adjusted_rand(trial.communities, model.membership_.argmax(axis=1))
    return Score(1.0 - pair_error(prob), agreement, model.n_communities_, model.communal_share_)


def fit(trial: Trial, seed: int, quick: bool, **options: Any) -> CommunityGP:
    """A model of the trial's training votes; that chains may disagree is in its diagnostics."""
    n_sweeps = 40 if quick else 100
    model = CommunityGP(n_sweeps=n_sweeps, random_state=seed, progress=False, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(trial.X, trial.train)


def synthetic_table(seeds: Sequence[int], quick: bool) -> str:
    """The paper's synthetic set: how often everything is right."""
    trials = [draw_synthetic(seed) for seed in seeds]
    scores = [score(fit(trial, s, quick), trial) for s, trial in zip(seeds, trials, strict=True)]
    right = sum(s.n_communities == 4 and s.agreement == 1.0 and s.accuracy == 1.0 for s in scores)
    return (
        f"Synthetic set (60 users, 10 items, 4 communities, no noise): four communities, every "
        f"user in the right one and every test answer right in {right} of {len(scores)} draws; "
        f"mean accuracy {np.mean([s.accuracy for s in scores]):.4f} (the paper: 1)."
    )


def votes_table(seeds: Sequence[int], quick: bool) -> str:
    """Simulated votes with features and personal noise, at 10 and at 30 votes a user."""
    rows = []
    for n_votes in (10, 30):
        for seed in seeds:
            trial = draw_votes(n_votes, seed, n_users=500 if quick else 2000)
            got = score(fit(trial, seed, quick), trial)
            rows.append(
                f"| {n_votes} | {seed} | {got.n_communities} | {got.agreement:.3f} | "
                f"{got.accuracy:.4f} | {trial.oracle:.4f} |"
            )
    head = "| votes a user | seed | communities | adjusted Rand | accuracy | oracle |"
    return "\n".join([head, "|---" * 6 + "|", *rows])


def real_table(seeds: Sequence[int], quick: bool) -> str:
    """Sushi and cars: test accuracy of the mixture, and with personal deviations."""
    n_users = 300 if quick else 1000
    trials = {
        "sushi, 60 % of the pairs": lambda seed: sushi_trial(seed, n_users),
        "sushi, 5 pairs a user": lambda seed: sushi_trial(seed, n_users, n_pairs=5),
        "cars, 60 % of the pairs": cars_trial,
    }
    rows = []
    for name, draw in trials.items():
        plain, personal = (
            [score(fit(draw(seed), seed, quick, personal=p), draw(seed)) for seed in seeds]
            for p in (False, True)
        )
        cells = [
            _spread([s.accuracy for s in plain]),
            _spread([s.accuracy for s in personal]),
            f"{np.mean([s.n_communities for s in plain]):.1f}",
            f"{np.mean([s.communal_share for s in personal]):.2f}",
        ]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    head = "| data | mixture | personal=True | communities | communal share |"
    return "\n".join([head, "|---" * 5 + "|", *rows])


def _spread(values: Sequence[float]) -> str:
    """Mean and, of several values, its standard error."""
    mean = f"{np.mean(values):.4f}"
    return (
        mean if len(values) == 1 else f"{mean} ± {np.std(values, ddof=1) / len(values) ** 0.5:.4f}"
    )


def car_communities(quick: bool) -> CommunityGP:
    """All car choices, so that communities can be looked at (Figures 2 and 3, Table 2)."""
    cars = load_cars()
    trial = Trial(cars.item_features, cars.comparisons, np.zeros((0, 3), dtype=np.intp))
    return fit(trial, 0, quick)


def attribute_table(model: CommunityGP) -> str:
    """The paper's Table 2: in each community, the value of each attribute that wins most often."""
    cars = load_cars()
    answers = Answers.of(cars.comparisons)
    pair_counts = (answers.counts.T @ model.membership_).T
    columns = []
    for name, values in zip(cars.item_feature_names, cars.item_features.T, strict=True):
        levels, rates = value_win_rates(pair_counts, answers.winner, answers.loser, values)
        called = CAR_VALUES.get(name, {})
        columns.append([called.get(levels[k], f"{levels[k]:g} L") for k in rates.argmax(axis=1)])
    head = f"| community | users | {' | '.join(cars.item_feature_names)} |"
    rows = [
        f"| {c} | {size:.1f} | {' | '.join(column[c] for column in columns)} |"
        for c, size in enumerate(model.membership_.sum(axis=0))
    ]
    return "\n".join([head, "|---" * (2 + len(columns)) + "|", *rows])


def run(
    quick: bool = False,
    out: str | PathLike[str] | None = None,
    data: str | PathLike[str] | None = None,
) -> str:
    """Return the tables as Markdown; with a folder `out`, draw Figures 2 and 3 there.

    `quick` takes one seed, fewer users and shorter chains. `data` is the folder of data sets.
    """
    seeds = range(1 if quick else 3)
    parts = [
        "## Communities of taste (paper 004)",
        synthetic_table(range(3 if quick else 20), quick),
    ]
    parts += ["2,000 users, 100 items with 10 features, communities of 40/30/20/10 %:"]
    parts += [votes_table(seeds, quick)]
    with data_at(data):
        parts += ["Test accuracy (the paper: sushi 0.62, cars 0.64):", real_table(seeds, quick)]
        model = car_communities(quick)
        counts = ", ".join(f"{k}: {p:.0%}" for k, p in model.community_counts_.items())
        parts += [f"Cars: number of communities by probability {counts} (the paper: 7).", ""]
        parts += ["What wins most often in each (Table 2):", attribute_table(model)]
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        counts_axes = plot_community_counts(model.community_counts_)
        counts_axes.figure.savefig(folder / "community_counts.png")
        plot_community_utilities(model.communities_[:6])[0].figure.savefig(
            folder / "community_utilities.png"
        )
    return "\n\n".join(parts)
