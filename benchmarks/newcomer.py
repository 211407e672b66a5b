"""PreferenceGP against what scikit-learn offers to somebody who has pairs and features."""

from contest import ROUNDS, compete, error_rate, table
from tasks import gp_task

SIZES = ((100, 300), (200, 600))
CONTESTANTS = (
    "penchant default",
    "scikit-learn logistic, x − y",
    "scikit-learn GP classifier, x − y",
    "scikit-learn GP classifier, (x, y)",
)
HEAD = ("n / m", "contestant", "error rate", "log-lik (ceiling)", "seconds", "× time")


def run(quick):
    rows = []
    for n, m in SIZES[:1] if quick else SIZES:
        task = gp_task(n, m, seed=0)
        entries = compete("gp", CONTESTANTS, task, 1 if quick else ROUNDS)
        ours = entries[CONTESTANTS[0]]
        for name, entry in entries.items():
            scores = ["", ""]
            if not entry.failure:
                log_prob = entry.predicted["log_prob"]
                scores = [
                    f"{error_rate(log_prob):.4f}",
                    f"{log_prob.mean():.4f} ({task['ceiling']:.4f})",
                ]
            rows.append([f"{n:,} / {m:,}", name, *scores, entry.time(), entry.times(ours)])
    return [
        "## Pairs with scikit-learn alone",
        "",
        "A classifier of which item won, on the difference of the features or on both items' "
        "features, against PreferenceGP with nothing chosen. 5,000 held-out pairs; × = peer ÷ "
        "penchant.",
        "",
        *table(HEAD, rows),
    ]
