"""Utilities that change over time: PreferenceGP(drift="ou") against packages made for it."""

from contest import ROUNDS, compete, table
from tasks import drift_task

ITEMS, WEEKS, GAMES = 40, 100, 50
CONTESTANTS = (
    "penchant PreferenceGP, drift",
    "penchant PreferenceGP",
    "kickscore",
    "TrueSkill Through Time",
    "Whole-History Rating",
)
HEAD = ("contestant", "log-lik (ceiling)", "seconds", "× time")


def run(quick):
    n, weeks, games = (10, 20, 20) if quick else (ITEMS, WEEKS, GAMES)
    task = drift_task(n, weeks, games, seed=0)
    entries = compete("drift", CONTESTANTS, task, 1 if quick else ROUNDS)
    ours, rows = entries[CONTESTANTS[0]], []
    for name, entry in entries.items():
        log_lik = "" if entry.failure else f"{entry.predicted['log_prob'].mean():.4f}"
        rows.append([name, f"{log_lik} ({task['ceiling']:.4f})", entry.time(), entry.times(ours)])
    return [
        "## Utilities that drift",
        "",
        f"{n} items, {weeks} weeks of {games} games, utilities that follow Ornstein–Uhlenbeck "
        f"paths; {len(task['test_winner']):,} games of the week after are predicted. penchant "
        "learns variance and timescale. kickscore learns no constants and is given those that made "
        "the games, and its compiling is not timed; the other two have their own. × = peer ÷ the "
        "first row.",
        "",
        *table(HEAD, rows),
    ]
