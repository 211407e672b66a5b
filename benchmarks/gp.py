"""PreferenceGP against BoTorch's PairwiseGP and choix on the task of tasks.gp_task."""

from contest import ROUNDS, compete, table
from tasks import gp_task

SIZES = ((100, 1_000), (500, 5_000), (1_000, 20_000), (2_000, 50_000))
RIVALS = {  # contestant: the one of ours that does the same, and the largest n that it is given
    "penchant ep": ("penchant ep", 2_000),
    "botorch laplace": ("penchant ep", 2_000),
    "penchant evidence": ("penchant evidence", 2_000),
    "botorch evidence": ("penchant evidence", 1_000),
    "penchant ep, no kernel": ("penchant ep, no kernel", 500),
    "choix ep, no kernel": ("penchant ep, no kernel", 500),
}
HEAD = ("n / m", "contestant", "seconds", "× time", "peak MB", "× memory", "log-lik (ceiling)")


def run(quick):
    rows = []
    for n, m in SIZES[:1] if quick else SIZES:
        task = gp_task(n, m, seed=0)
        names = [name for name, (_, largest) in RIVALS.items() if n <= largest]
        entries = compete("gp", names, task, 1 if quick else ROUNDS)
        rows += [
            [f"{n:,} / {m:,}", name, *cells(entry, entries[RIVALS[name][0]], task["ceiling"])]
            for name, entry in entries.items()
        ]
    return [
        "## Posterior and hyperparameters against BoTorch and choix",
        "",
        "Seconds to fit and predict 5,000 held-out pairs (median of up to "
        f"{ROUNDS} runs, range); × = peer ÷ penchant in the same run, with the range that the "
        "runs allow. *ep* and *laplace* are at the true hyperparameters, *evidence* learns them. "
        "Left out for time: BoTorch's evidence beyond n = 1,000 and choix beyond n = 500.",
        "",
        *table(HEAD, rows),
    ]


def cells(entry, ours, ceiling):
    if entry.failure:
        return [entry.failure, "", "", "", ""]
    memory = "" if entry is ours else f"{entry.peak_mb / ours.peak_mb:.1f}"
    return [
        entry.time(),
        entry.times(ours),
        f"{entry.peak_mb:.0f}",
        memory,
        f"{entry.predicted['log_prob'].mean():.4f} ({ceiling:.4f})",
    ]
