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
    total, *wins = _wins_of_pairs(data.pooled() if data.users else data)
    rows = [
        ("comparisons", f"{data.n_comparisons:,}"),
        ("distinct comparisons", f"{len(data):,}"),
        ("items", f"{data.n_items:,}"),
        ("items never compared", f"{data.n_items - len(used):,}"),
        ("groups of items connected by comparisons", f"{len(np.unique(labels[used])):,}"),
        ("comparisons an item, least to most", f"{times.min():,.0f} to {times.max():,.0f}"),
        ("ties", f"{ties:,} ({ties / data.n_comparisons:.0%})"),
        ("pairs of items judged more than once", f"{(total > 1).sum():,}"),
        ("of these, judged both ways", f"{(np.minimum(*wins) > 0).sum():,}"),
    ]
    if data.user is not None:
        per_user = np.bincount(data.user, data.count, data.n_users)
        spread = f"{per_user.min():,.0f} to {per_user.max():,.0f}"
        contradicted = np.minimum(*_wins_of_pairs(data, data.user)[1:]).sum()
        rows += [
            ("people", f"{data.n_users:,}"),
            ("comparisons a person, least to most", spread),
            ("times a person contradicted their own answer", f"{contradicted:,.0f}"),
        ]
    return rows


def concerns(data: Comparisons) -> list[str]:
    """What limits the conclusions, in sentences."""
    checks = (check_never_compared, check_connected, check_all_ties)
    return [_sentence(message) for check in checks if (message := check(data)) is not None]


def _wins_of_pairs(data: Comparisons, who: Any = 0) -> list[Any]:
    """(k,) answers to each pair of items, wins of one and wins of the other; apart by `who`."""
    low, high = np.minimum(data.winner, data.loser), np.maximum(data.winner, data.loser)
    _, pair = np.unique((who * data.n_items + low) * data.n_items + high, return_inverse=True)
    first, second = (~data.tie & (data.winner == item) for item in (low, high))
    return [np.bincount(pair, data.count * which) for which in (1, first, second)]


def _sentence(message: str) -> str:
    return message[0].upper() + message[1:] + "."
