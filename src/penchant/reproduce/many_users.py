"""MultiUserGP on sushi and cars, hyperparameters learned: beyond the figure of paper 003."""

from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np

from penchant.datasets.people import Cars, Sushi
from penchant.models import MultiUserGP, PreferenceGP
from penchant.numerics.types import IntArray
from penchant.reproduce.sushi_splits import Score, item_features, split_rankings, user_features

MEASURES = ("accuracy", "log-likelihood", "calibration error")
Scores = dict[Any, list[Score]]


def sushi_table(rankings: IntArray, n_seeds: int, n_users: int) -> Scores:
    """Scores by pairs a user and model; the population's ranking beside ours."""
    scores: Scores = {}
    for k in (5, 10, 27):
        for seed in range(n_seeds):
            rng = np.random.default_rng(seed)
            train, test = split_rankings(rng.choice(rankings, n_users, False), k, rng)
            data = train.comparisons(10, n_users)
            everybody = PreferenceGP().fit(None, data).predict_proba(test.pairs)
            users = MultiUserGP().fit(None, data).predict_proba(test.pairs, test.user)
            scores.setdefault((k, "population"), []).append(Score.of(everybody))
            scores.setdefault((k, "MultiUserGP"), []).append(Score.of(users))
    return scores


def cars_table(cars: Cars, n_seeds: int) -> Scores:
    """Cars, experiment 1, 60/40: a free item covariance, and a kernel on the attributes."""
    scores: Scores = {"free covariance": [], "attributes": []}
    for seed in range(n_seeds):
        train, test = cars.comparisons.split(0.4, random_state=seed)
        pairs = np.array(test.items)[np.column_stack([test.winner, test.loser])]
        users = np.array(test.users)[test.user]
        for name, X in (("free covariance", None), ("attributes", cars.item_features)):
            model = MultiUserGP().fit(X, train)
            scores[name].append(Score.of(model.predict_proba(pairs, users)))
    return scores


def cold_table(sushi: Sushi, n_seeds: int, n_users: int) -> Scores:
    """A fifth of the users held out entirely; ten pairs of each of the others are known."""
    features = user_features(sushi)
    scores: Scores = {}
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        new, old = np.split(rng.choice(len(features), n_users, False), [n_users // 5])
        train, _ = split_rankings(sushi.rankings[old], 10, rng)
        _, test = split_rankings(sushi.rankings[new], 0, rng)
        data = train.comparisons(10, len(old))
        everybody = PreferenceGP().fit(None, data).predict_proba(test.pairs)
        scores.setdefault("population ranking", []).append(Score.of(everybody))
        for name, known, asked in (
            ("MultiUserGP without features", None, np.empty((len(new), 0))),
            ("MultiUserGP with features", features[old], features[new]),
        ):
            model = MultiUserGP().fit(None, data, user_features=known)
            p = model.predict_proba(test.pairs, test.user, user_features=asked)
            scores.setdefault(name, []).append(Score.of(p))
    return scores


def set_b_table(sushi: Sushi, n_users: int) -> Scores:
    """100 kinds of sushi, of which each user ranks ten; 27 of the 45 pairs are known."""
    train, test = split_rankings(sushi.rankings[:n_users], 27, np.random.default_rng(0))
    data = train.comparisons(len(sushi.item_names), n_users)
    scores: Scores = {}
    for name, X in (("free covariance", None), ("features", item_features(sushi))):
        p = MultiUserGP().fit(X, data).predict_proba(test.pairs, test.user)
        scores[name] = [Score.of(p)]
    return scores


def scaling_rows(rankings: IntArray, sizes: Sequence[int]) -> list[list[str]]:
    """Users, comparisons, sweeps and seconds of EP at hyperparameters learned on the fewest."""
    rows, given = [], None
    for n_users in sizes:
        train, _ = split_rankings(rankings[:n_users], 27, np.random.default_rng(0))
        data = train.comparisons(10, n_users)
        given = given or repeat(MultiUserGP().fit(None, data))
        seconds = []
        for _ in range(3):
            start = process_time()
            model = MultiUserGP(**given).fit(None, data)
            seconds.append(process_time() - start)
        sweeps = str(model.report_.n_sweeps)
        rows.append([f"{n_users:,}", f"{len(data):,}", sweeps, f"{min(seconds):.2f}"])
    return rows


def repeat(model: MultiUserGP) -> dict[str, Any]:
    """Constructor arguments that repeat inference at what the model learned."""
    return {
        "kernel": model.kernel_,
        "user_kernel": model.user_kernel_,
        "sharing": model.sharing_,
        "optimize": None,
    }
