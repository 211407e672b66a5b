"""CommunityGP against Polis, scikit-learn's mixture and implicit on simulated communities."""

import numpy as np
from contest import compete, table

from experiments.communities import draw_votes
from penchant.metrics import adjusted_rand

CONTESTANTS = (
    "penchant CommunityGP",
    "penchant CommunityGP, chains",
    "penchant CommunityGP, blocked",
    "Polis' steps",
    "red-dwarf (Polis)",
    "scikit-learn mixture by BIC",
    "scikit-learn DP mixture",
    "implicit BPR",
)
VOTES = (10, 30)
SEEDS = 2
HEAD = ("votes a user", "contestant", "adjusted Rand", "accuracy (oracle)", "seconds", "× time")


def run(quick):
    rows = []
    for n_votes in VOTES[:1] if quick else VOTES:
        trials = [
            draw_votes(n_votes, seed, n_users=300 if quick else 2000)
            for seed in range(1 if quick else SEEDS)
        ]
        rows += [
            [str(n_votes), who, *cells(entries, trials), *times(entries, ours)]
            for who, entries, ours in compete_on(trials, CONTESTANTS)
        ]
    return [
        "## Communities of taste",
        "",
        "2,000 users in four communities (40, 30, 20 and 10 %) with personal noise, 100 items with "
        f"ten features, votes on random pairs; {SEEDS} draws, each value given. The number of "
        "communities is not told. Chains start from the search. Polis and the mixtures see who "
        "preferred what how often; BPR predicts without communities. × = peer ÷ the first row, "
        "range over draws.",
        "",
        *table(HEAD, rows),
    ]


def compete_on(trials, names):
    """For each contestant: its name, its entry for each trial, and those of the first."""
    contests = [compete("people", names, people_task(trial), rounds=1) for trial in trials]
    return [
        (who, [contest[who] for contest in contests], [contest[names[0]] for contest in contests])
        for who in names
    ]


def people_task(trial):
    """A trial of experiments.communities as arrays."""
    data, (test_user, test_winner, test_loser) = trial.train, trial.test.T
    task = {
        "user": np.repeat(data.user, data.count),
        "winner": np.repeat(data.winner, data.count),
        "loser": np.repeat(data.loser, data.count),
        "test_user": test_user,
        "test_winner": test_winner,
        "test_loser": test_loser,
        "n_users": data.n_users,
        "n_items": data.n_items,
    }
    return task if trial.X is None else task | {"X": trial.X}


def cells(entries, trials):
    """Adjusted Rand index and accuracy, for each draw."""
    rand, right = [], []
    for entry, trial in zip(entries, trials, strict=True):
        predicted = entry.predicted or {}
        if "labels" in predicted:
            rand.append(f"{adjusted_rand(trial.communities, predicted['labels']):.3f}")
        if (share := accuracy(predicted)) is not None:
            right.append(f"{share:.3f} ({trial.oracle:.3f})")
    return [" · ".join(rand), " · ".join(right)]


def accuracy(predicted):
    """Share of the held-out answers predicted, or None where there is no prediction."""
    if "prob" in predicted:
        ahead = predicted["prob"] - 0.5
    elif "margin" in predicted:
        ahead = predicted["margin"]
    else:
        return None
    return float(np.mean(ahead > 0) + 0.5 * np.mean(ahead == 0))


def times(entries, ours):
    """Seconds of each draw, and their ratio to ours."""
    if failed := [entry.failure for entry in entries if entry.failure]:
        return [failed[0], ""]
    seconds = " · ".join(f"{entry.seconds[0]:.3g}" for entry in entries)
    if entries == ours or any(entry.failure for entry in ours):
        return [seconds, ""]
    ratios = [e.seconds[0] / o.seconds[0] for e, o in zip(entries, ours, strict=True)]
    return [seconds, "–".join(f"{ratio:.2g}" for ratio in sorted({min(ratios), max(ratios)}))]
