"""Chu and Ghahramani's regression sets turned into pairs, against BoTorch and choix."""

import numpy as np
from contest import compete, error_rate, table
from tasks import regression_task

SETS = ("pyrim", "triazines", "machine.cpu", "housing", "abalone", "kin8nm")
ITEMS, PAIRS, SEEDS = 300, 500, 3
CONTESTANTS = ("penchant default", "botorch evidence", "choix ep, no kernel")
HEAD = ("set", "contestant", "error rate", "log-likelihood", "seconds", "× time")


def run(quick):
    rows = []
    for name in SETS[:1] if quick else SETS:
        tasks = [regression_task(name, ITEMS, PAIRS, s) for s in range(1 if quick else SEEDS)]
        contests = [compete("gp", CONTESTANTS, task, rounds=1) for task in tasks]
        rows += [[name, who, *cells(who, contests)] for who in CONTESTANTS]
    return [
        "## Regression sets as preferences",
        "",
        f"Chu & Ghahramani's sets: of two items the one with the larger target is preferred. Up to "
        f"{ITEMS} items, {PAIRS} pairs, 20,000 held-out pairs of the same items, {SEEDS} draws; "
        "means with standard errors over draws, hyperparameters learned (choix has none and knows "
        "no features). × = peer ÷ penchant on the same draw: median, range.",
        "",
        *table(HEAD, rows),
    ]


def cells(who, contests):
    entries = [contest[who] for contest in contests]
    if failed := [entry for entry in entries if entry.failure]:
        return [failed[0].failure, "", "", ""]
    errors = [error_rate(entry.predicted["log_prob"]) for entry in entries]
    log_lik = [entry.predicted["log_prob"].mean() for entry in entries]
    seconds = [entry.seconds[0] for entry in entries]
    return [
        spread(errors),
        spread(log_lik),
        f"{np.median(seconds):.2f} ({min(seconds):.2f}–{max(seconds):.2f})",
        ratios(seconds, [contest[CONTESTANTS[0]] for contest in contests], who),
    ]


def spread(values):
    """Mean and standard error."""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) / len(values) ** 0.5:.3f}"


def ratios(seconds, ours, who):
    if who == CONTESTANTS[0] or any(entry.failure for entry in ours):
        return ""
    each = np.divide(seconds, [entry.seconds[0] for entry in ours])
    return f"{np.median(each):.3g} ({each.min():.3g}–{each.max():.3g})"
