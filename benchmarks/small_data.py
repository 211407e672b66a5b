"""EP against Laplace where they differ: few comparisons an item, true hyperparameters."""

import numpy as np
from tasks import gp_task

import penchant as pc

ITEMS = 200
SEEDS = 10


def log_lik(task, inference):
    data = pc.Comparisons.from_pairs(task["winner"], task["loser"], items=range(len(task["X"])))
    model = pc.PreferenceGP(
        pc.kernels.RBF((0.5,) * 5, 2.0), optimize=None, inference=inference
    ).fit(task["X"], data)
    pairs = np.column_stack([task["test_winner"], task["test_loser"]])
    return np.mean(np.log(model.predict_proba(pairs)))


def run(quick):
    lines = [
        "## EP against Laplace with few comparisons",
        "",
        f"{ITEMS} items, m/n comparisons an item, {SEEDS} seeds; mean held-out log-likelihood and "
        "the paired difference (EP − Laplace) with its standard error.",
        "",
        "| m/n | EP | Laplace | difference | standard errors from zero |",
        "|---|---|---|---|---|",
    ]
    for ratio in (1, 2, 3):
        rows = []
        for seed in range(3 if quick else SEEDS):
            task = gp_task(ITEMS, ratio * ITEMS, seed)
            rows.append([log_lik(task, "ep"), log_lik(task, "laplace")])
        rows = np.array(rows)
        gap = rows[:, 0] - rows[:, 1]
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        lines.append(
            f"| {ratio} | {rows[:, 0].mean():.4f} | {rows[:, 1].mean():.4f} | "
            f"{gap.mean():+.5f} ± {error:.5f} | {gap.mean() / error:+.1f} |"
        )
    return lines
