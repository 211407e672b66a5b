"""For the owner's page: the quality of answers and of predictions."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import log
from statistics import fmean, median
from typing import Any

from scipy.special import betaincinv

from penchant.study.config import Config
from penchant.study.events import Answer
from penchant.study.questions import CHECK, RANDOM, REPEAT, pair_key, passed

TOO_FAST_MS = 400
"""A median below this is faster than two short texts can be read."""

BINS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def share(k: float, n: int) -> dict[str, float]:
    """k of n, and a 95 % interval of the true share: Beta(k + 1, n − k + 1), uniform prior.

    >>> found = share(9, 10)
    >>> round(found["low"], 2), round(found["high"], 2)
    (0.59, 0.98)
    """
    low, high = betaincinv(k + 1, n - k + 1, (0.025, 0.975))
    return {"k": k, "n": n, "low": float(low), "high": float(high)}


def raters(
    answers: Iterable[Answer], skips: Iterable[str | None], config: Config
) -> list[dict[str, Any]]:
    """One row a person: how much, how fast, how consistent, and reasons to look closer.

    Reliability is agreement with oneself on repeated questions: a consistent minority taste is as
    reliable as any. Nothing here compares people with each other.
    skips: the participant of each skipped question.
    """
    of_person: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer.participant is not None and answer.question is not None:
            of_person[answer.participant].append(answer)
    skipped = Counter(skips)
    return [_rater(person, given, skipped[person], config) for person, given in of_person.items()]


def _rater(person: str, given: Sequence[Answer], skipped: int, config: Config) -> dict[str, Any]:
    times = [answer.ms for answer in given if answer.ms is not None]
    decided = [a for a in given if a.form == "pair" and len(a.order) == 2 and a.kind != CHECK]
    left = share(sum(a.order[0] == (0,) for a in decided), len(decided))
    same, repeats = _repeats(given)
    reliability = share(same, repeats)
    checks = [passed(config, a.items, a.order) for a in given if a.kind == CHECK]
    right = sum(result is True for result in checks)
    wrong = sum(result is False for result in checks)
    reasons = []
    if wrong > right:
        reasons.append("checks")
    if len(times) >= 5 and median(times) < TOO_FAST_MS:
        reasons.append("fast")
    is_sided = left["low"] > 0.5 or left["high"] < 0.5
    if left["n"] >= 10 and is_sided and abs(left["k"] / left["n"] - 0.5) > 0.3:
        reasons.append("side")
    if reliability["n"] >= 3 and reliability["high"] < 0.7:
        reasons.append("repeats")
    return {
        "participant": person,
        "answers": len(given),
        "skipped": skipped,
        "seconds": round(median(times) / 1000, 2) if times else None,
        "left": left,
        "reliability": reliability,
        "checks": {"right": right, "wrong": wrong},
        "look_closer": reasons,
    }


def _repeats(given: Sequence[Answer]) -> tuple[float, int]:
    """How many repeated answers agree with the earlier one, and how many there are."""
    history: dict[str, list[Answer]] = defaultdict(list)
    for answer in given:
        if answer.kind != CHECK:
            history[pair_key(answer.items)].append(answer)
    same, total = 0.0, 0
    for asked in history.values():
        for before, after in pairwise(asked):
            if after.kind == REPEAT:
                same += _named(before) == _named(after)
                total += 1
    return same, total


def _named(answer: Answer) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(answer.items[place] for place in group) for group in answer.order)


def calibration(answers: Iterable[Answer]) -> dict[str, Any]:
    """Predictions for random questions against their answers.

    Each prediction is for the favourite. A row is a bin of its probability and says how often it
    won. log_score: mean log-probability of the answers; a coin scores log ½ ≈ −0.69. Ties count
    half.

    >>> answer = Answer(1, "p", ("a", "b"), ((1,), (0,)), kind="random", p_before=0.25)
    >>> result = calibration([answer])
    >>> result["n"], result["rows"][2]["won"]["k"]
    (1, 1.0)
    """
    judged = [
        (answer.p_before, 0.5 if len(answer.order) == 1 else float(answer.order[0] == (0,)))
        for answer in answers
        if answer.kind == RANDOM and answer.form == "pair" and answer.p_before is not None
    ]
    folded = [(p, won) if p >= 0.5 else (1.0 - p, 1.0 - won) for p, won in judged]
    rows = []
    for low, high in pairwise(BINS):
        inside = [(p, won) for p, won in folded if low <= p < high or p == high == 1.0]
        wins = share(sum(won for _, won in inside), len(inside))
        expected = sum(p for p, _ in inside) / len(inside) if inside else None
        rows.append({"from": low, "to": high, "expected": expected, "won": wins})
    # finite also where a prediction was 1
    scores = [won * log(p) + (1.0 - won) * log(max(1.0 - p, 1e-12)) for p, won in folded]
    return {"n": len(folded), "log_score": fmean(scores) if scores else None, "rows": rows}
