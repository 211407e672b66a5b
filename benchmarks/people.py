"""MultiUserGP against implicit and logistic regression on sushi: what will this user prefer?"""

import numpy as np
from communities import accuracy, compete_on, times
from contest import table

from experiments.communities import sushi_trial

CONTESTANTS = (
    "penchant MultiUserGP",
    "penchant PreferenceGP, pooled",
    "scikit-learn logistic, user × item",
    "implicit BPR",
    "implicit ALS",
)
SEEDS = 2
TASKS = {"5 pairs a user": 5, "27 of 45 pairs a user": None}
USERS = 1_000
HEAD = ("learned from", "contestant", "accuracy", "log-likelihood", "seconds", "× time")


def run(quick):
    rows = []
    for name, n_pairs in TASKS.items():
        trials = [
            sushi_trial(seed, 100 if quick else USERS, n_pairs)
            for seed in range(1 if quick else SEEDS)
        ]
        for who, entries, ours in compete_on(trials, CONTESTANTS):
            made = [entry.predicted for entry in entries if entry.predicted]
            right = " · ".join(f"{accuracy(one):.4f}" for one in made)
            likely = " · ".join(
                f"{np.log(one['prob']).mean():.4f}" for one in made if "prob" in one
            )
            rows.append([name, who, right, likely, *times(entries, ours)])
    return [
        "## Single users: sushi",
        "",
        f"{USERS:,} users' rankings of ten kinds of sushi as pairs, the others of their pairs "
        f"held out; {SEEDS} draws of users and pairs, each value given. implicit is told what "
        "was preferred and how often, not to what, and gives no probabilities. The logistic "
        "regression has a column an item and one a user and item, and knows no features. × = peer "
        "÷ the first row, range over draws.",
        "",
        *table(HEAD, rows),
    ]
