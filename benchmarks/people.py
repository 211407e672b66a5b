"""MultiUserGP against implicit on sushi rankings: what will this user prefer?"""

from communities import accuracy, compete_on, times
from contest import table

from experiments.communities import sushi_trial

CONTESTANTS = (
    "penchant MultiUserGP",
    "penchant PreferenceGP, pooled",
    "implicit BPR",
    "implicit ALS",
)
SEEDS = 2
TASKS = {"5 pairs a user": 5, "27 of 45 pairs a user": None}
USERS = 1_000
HEAD = ("learned from", "contestant", "accuracy", "seconds", "× time")


def run(quick):
    rows = []
    for name, n_pairs in TASKS.items():
        trials = [
            sushi_trial(seed, 100 if quick else USERS, n_pairs)
            for seed in range(1 if quick else SEEDS)
        ]
        for who, entries, ours in compete_on(trials, CONTESTANTS):
            right = [f"{accuracy(entry.predicted):.4f}" for entry in entries if entry.predicted]
            rows.append([name, who, " · ".join(right), *times(entries, ours)])
    return [
        "## Single users: sushi",
        "",
        f"{USERS:,} users' rankings of ten kinds of sushi as pairs, the others of their pairs "
        f"held out; {SEEDS} draws of users and pairs, each value given. implicit is told what "
        "was preferred and how often, not to what. × = peer ÷ the first row, range over draws.",
        "",
        *table(HEAD, rows),
    ]
