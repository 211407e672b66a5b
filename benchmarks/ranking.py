"""Win tables against rating packages; graded documents against LightGBM and RLScore."""

import numpy as np
from contest import ROUNDS, compete, table
from tasks import win_table

from penchant.datasets import load_mq2008
from penchant.errors import DataError
from penchant.metrics import disagreement_error, ndcg

SIZES = ((100, 100_000), (1_000, 1_000_000))
WIN_TABLE = {  # contestant: the most comparisons that it is given
    "penchant probit": 1_000_000,
    "penchant logit": 1_000_000,
    "choix ilsr": 1_000_000,
    "choix ilsr, dense": 1_000_000,
    "evalica Bradley–Terry": 1_000_000,
    "evalica Elo": 1_000_000,
    "scikit-learn logistic, items": 1_000_000,
    "crowd-kit Bradley–Terry": 1_000_000,
    "arena-rank": 1_000_000,
    "openskill PlackettLuce": 100_000,
    "trueskill": 100_000,
}
DOCUMENTS = (
    "penchant RankRLS, linear",
    "rlscore RankRLS, linear",
    "penchant RankRLS",
    "rlscore RankRLS, RBF",
    "penchant KPCRank",
    "lightgbm lambdarank",
)
SAME_AS_OURS = {
    "rlscore RankRLS, linear": "penchant RankRLS, linear",
    "rlscore RankRLS, RBF": "penchant RankRLS",
    "lightgbm lambdarank": "penchant RankRLS",
}


def run(quick):
    rounds = 1 if quick else ROUNDS
    return [*win_table_section(quick, rounds), "", *document_section(rounds)]


def win_table_section(quick, rounds):
    rows = []
    for n, m in ((100, 10_000),) if quick else SIZES:
        task = win_table(n, m, seed=0)
        names = [name for name, most in WIN_TABLE.items() if m <= most]
        entries = compete("gp", names, task, rounds)
        ours = entries[names[0]]
        for name, entry in entries.items():
            log_lik = "" if entry.failure else f"{entry.predicted['log_prob'].mean():.5f}"
            log_lik = f"{log_lik} ({task['ceiling']:.5f})"
            rows.append([f"{n:,} / {m:,}", name, log_lik, entry.time(), entry.times(ours)])
    return [
        "## Win tables",
        "",
        "Items without features, logistic comparisons of random pairs, utilities N(0, 1). 100,000 "
        "held-out comparisons; × = peer ÷ penchant probit. penchant learns the variance of the "
        "utilities and gives intervals, as arena-rank does, which compiles for every size of data; "
        "openskill and trueskill keep a variance of each item; the others give a single estimate. "
        "crowd-kit stops after its second step, because it compares an array with itself. "
        "Left out for time: openskill and trueskill, which learn one comparison at a time, beyond "
        "100,000.",
        "",
        *table(("n / m", "contestant", "log-lik (ceiling)", "seconds", "× time"), rows),
    ]


def document_section(rounds):
    head = ["## Graded documents (MQ2008)", ""]
    try:
        parts = load_mq2008()
    except DataError as error:
        return [*head, f"Not run: {error}."]
    train, test = parts.train, parts.test
    order = np.argsort(train.qid, kind="stable")
    task = {name: getattr(train, name)[order] for name in ("X", "y", "qid")} | {"test_X": test.X}
    entries = compete("ranking", DOCUMENTS, task, rounds)
    rows = []
    for name, entry in entries.items():
        scores = ["", "", ""]
        if not entry.failure:
            score = entry.predicted["score"].ravel()
            scores = [
                f"{disagreement_error(test.y, score, test.qid):.4f}",
                f"{ndcg(test.y, score, 5, test.qid):.4f}",
                f"{ndcg(test.y, score, 10, test.qid):.4f}",
            ]
        ours = entries.get(SAME_AS_OURS.get(name))
        rows.append([name, *scores, entry.time(), entry.times(ours)])
    return [
        *head,
        f"Fold 1: {len(train.y):,} documents to learn from, {len(test.y):,} to rank. Ridges and "
        "numbers of components by cross-validation over queries within the time; LightGBM as it "
        "comes. × = peer ÷ penchant's RankRLS with the same kernel.",
        "",
        *table(
            ("contestant", "disagreement error", "NDCG@5", "NDCG@10", "seconds", "× time"), rows
        ),
    ]
