"""What is good and bad about a set of comparisons."""

from typing import Any

import numpy as np

from penchant.data import Comparisons, check_all_ties, check_connected, check_never_compared


def facts(data: Comparisons) -> list[tuple[str, str]]:
    """Counts that describe the data, as (what, how many)."""
    ties = int(data.count[data.tie].sum())
    times = np.bincount(data.winner, data.count, data.n_items)
    times += np.bincount(data.loser, data.count, data.n_items)
    _, labels = data.components()
    used = data.compared()
    asked, both = _judged_twice(data)
    rows = [
        ("comparisons", f"{data.n_comparisons:,}"),
        ("distinct comparisons", f"{len(data):,}"),
        ("items", f"{data.n_items:,}"),
        ("items never compared", f"{data.n_items - len(used):,}"),
        ("groups of items connected by comparisons", f"{len(np.unique(labels[used])):,}"),
        ("comparisons an item, least to most", f"{times.min():,.0f} to {times.max():,.0f}"),
        ("ties", f"{ties:,} ({ties / data.n_comparisons:.0%})"),
        ("pairs of items judged more than once", f"{asked:,}"),
        ("of these, judged both ways", f"{both:,}"),
    ]
    if data.user is not None:
        per_user = np.bincount(data.user, data.count, data.n_users)
        spread = f"{per_user.min():,.0f} to {per_user.max():,.0f}"
        rows += [
            ("people", f"{data.n_users:,}"),
            ("comparisons a person, least to most", spread),
            ("times a person contradicted their own answer", f"{_contradictions(data):,}"),
        ]
    return rows


def concerns(data: Comparisons) -> list[str]:
    """What limits the conclusions, in sentences."""
    checks = (check_never_compared, check_connected, check_all_ties)
    return [_sentence(message) for check in checks if (message := check(data)) is not None]


def _judged_twice(data: Comparisons) -> tuple[int, int]:
    """Pairs of items with two answers or more, and those of them with wins of both items."""
    pooled = data.pooled() if data.users else data
    low, high = np.minimum(pooled.winner, pooled.loser), np.maximum(pooled.winner, pooled.loser)
    _, pair = np.unique(low * data.n_items + high, return_inverse=True)
    total = np.bincount(pair, pooled.count)
    wins_low = np.bincount(pair, pooled.count * (~pooled.tie & (pooled.winner == low)))
    wins_high = np.bincount(pair, pooled.count * (~pooled.tie & (pooled.winner == high)))
    return int((total > 1).sum()), int(((wins_low > 0) & (wins_high > 0)).sum())


def _contradictions(data: Comparisons) -> int:
    """Answers of a person for one item of a pair and, another time, for the other."""
    user: Any = data.user
    low, high = np.minimum(data.winner, data.loser), np.maximum(data.winner, data.loser)
    key = (user * data.n_items + low) * data.n_items + high
    _, case = np.unique(key, return_inverse=True)
    decided = ~data.tie
    for_low = np.bincount(case, data.count * (decided & (data.winner == low)))
    for_high = np.bincount(case, data.count * (decided & (data.winner == high)))
    return int(np.minimum(for_low, for_high).sum())


def _sentence(message: str) -> str:
    return message[0].upper() + message[1:] + "."
