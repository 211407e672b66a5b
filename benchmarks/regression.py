"""Chu and Ghahramani's regression sets turned into pairs, against BoTorch and choix."""

import tempfile

import numpy as np
from gp import contest, summary
from tasks import regression_task

from penchant.errors import DataError

SETS = ("pyrim", "triazines", "machine.cpu", "housing", "abalone", "kin8nm")
ITEMS, PAIRS, SEEDS = 300, 500, 3
CONTESTANTS = ("penchant default", "botorch evidence", "choix ep, no kernel")


def run(quick, peer_python):
    lines = [
        "## Regression sets as preferences",
        "",
        f"Up to {ITEMS} items, {PAIRS} noise-free pairs, 20,000 held-out pairs of the same items, "
        f"{SEEDS} seeds; hyperparameters learned. Error rate · log-likelihood · seconds.",
        "",
        "| set | " + " | ".join(CONTESTANTS) + " |",
        "|---" * (len(CONTESTANTS) + 1) + "|",
    ]
    for name in SETS[:1] if quick else SETS:
        try:
            cells = [cell(name, who, quick, peer_python) for who in CONTESTANTS]
        except DataError as error:
            return "\n".join([*lines, "", f"Not run: {error}"])
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(name, contestant, quick, peer_python):
    runs = []
    for seed in range(1 if quick else SEEDS):
        task = regression_task(name, ITEMS, PAIRS, seed)
        with tempfile.NamedTemporaryFile(suffix=".npz") as file:
            np.savez(file.name, **task)
            runs.append(contest(contestant, file.name, peer_python))
    result = summary(runs)
    if result is None:
        return "failed or too slow"
    return f"{result['error']:.3f} · {result['log_lik']:.3f} · {result['total']:.2f}"
