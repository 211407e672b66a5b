"""What a set of comparisons holds: in a few lines, as a table, as HTML."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from penchant.errors import DataError
from penchant.numerics.types import IntArray

if TYPE_CHECKING:
    from penchant.data.comparison_columns import ComparisonColumns

_SHOWN = 10  # rows of a table in a notebook


def describe(data: "ComparisonColumns") -> str:
    """Return the text behind `Comparisons.describe`."""
    total = data.n_comparisons
    people = "1 user" if data.n_users == 1 else f"{data.n_users} users"
    who = f" by {people}" if data.users else ""
    lines = [f"{total} comparisons ({len(data)} distinct) between {data.n_items} items{who}"]
    if data.source:
        lines.append(f"read as: {data.source}")
    if data.user is not None:
        per_user = np.bincount(data.user, weights=data.count, minlength=data.n_users)
        lines.append(
            f"comparisons per user: {per_user.min():.0f} to {per_user.max():.0f}, "
            f"median {np.median(per_user):g}"
        )
    if data.rankings is not None:
        orders = data.rankings
        lines.append(
            f"of them in rankings and choices: {orders.pairs().count.sum()}; rankings and choices: "
            f"{orders.count.sum()} ({len(orders)} distinct) of {_range(orders.size)} items"
        )
    ties = int(data.count[data.tie].sum())
    lines.append(f"ties: {ties} ({ties / max(total, 1):.0%})")
    if data.both_bad is not None:
        bad, rates = int(data.count[data.both_bad].sum()), data.bad_rates()
        worst = max(rates, key=lambda item: rates[item])
        lines.append(
            f"both bad: {bad} ({bad / total:.0%}); most often with {worst} ({rates[worst]:.0%})"
        )
    _, labels = data.components()
    used = data.compared()
    lines.append(f"groups connected by comparisons: {len(np.unique(labels[used]))}")
    if len(used) < data.n_items:
        lines.append(f"items never compared: {data.n_items - len(used)}")
    times = np.bincount(data.winner, data.count, data.n_items)
    times += np.bincount(data.loser, data.count, data.n_items)
    most, least = int(times.argmax()), int(times.argmin())
    lines.append(
        f"most compared: {data.items[most]} ({times[most]:.0f}); "
        f"least compared: {data.items[least]} ({times[least]:.0f})"
    )
    return "\n".join(lines)


def _range(size: IntArray) -> str:
    low, high = int(size.min()), int(size.max())
    return f"{low}" if low == high else f"{low} to {high}"


def _long_columns(data: "ComparisonColumns") -> dict[str, list[Any]]:
    """A row for each item of a ranking, choice or pair: ballot, user, item, position."""
    single = data.single_pairs()
    if not (single.margin is None and single.first is None and single.covariates is None):
        raise DataError(
            "rankings beside pairs with a margin, sides or covariates make no one table: make one "
            "of single_pairs(), or of as_pairs()"
        )
    ballots = [
        (places, who, count, tied)
        for tied in (True, False)
        for places, who, count in data.named_rankings(tied)
    ]
    for row in range(len(single)):
        names = [data.items[i] for i in (single.winner[row], single.loser[row])]
        who = None if single.user is None else data.users[single.user[row]]
        places = [names] if single.tie[row] else [[name] for name in names]
        ballots.append((places, who, int(single.count[row]), True))
    lines = [
        (number, who, name, place, count, tied)
        for number, (places, who, count, tied) in enumerate(ballots, start=1)
        for place, names in enumerate(places, start=1)
        for name in names
    ]
    heads = ("ballot", "user", "item", "position", "count", "tied")
    columns = {
        head: list(cells) for head, cells in zip(heads, zip(*lines, strict=True), strict=True)
    }
    if data.user is None:
        del columns["user"]
    return columns


def to_frame(data: "ComparisonColumns") -> Any:
    """Return the table behind `Comparisons.to_frame`."""
    try:
        import pandas as pd
    except ImportError:
        raise DataError(
            "to_frame needs pandas: install it, or use the columns themselves"
        ) from None
    if data.rankings is not None:
        return pd.DataFrame(_long_columns(data))
    columns: dict[str, Any] = {}
    if data.user is not None:
        columns["user"] = [data.users[u] for u in data.user]
    columns["winner"] = [data.items[i] for i in data.winner]
    columns["loser"] = [data.items[i] for i in data.loser]
    columns |= {"tie": data.told_ties, "count": data.count}
    for name in ("margin", "first", "time"):
        if getattr(data, name) is not None:
            columns[name] = getattr(data, name)
    for k, name in enumerate(data.covariate_names):
        if name in columns:
            raise DataError(
                f"a covariate is called {name!r}, as a column of the table is: rename it"
            )
        columns[name] = data.covariates[:, k]  # type: ignore[index]
    return pd.DataFrame(columns)


def to_html(data: "ComparisonColumns") -> str:
    """Return the table behind `Comparisons._repr_html_`: what is there, and its first rows."""
    lines = "<br>".join(escape(line) for line in describe(data).splitlines())
    head = ["user"] * (data.user is not None) + ["winner", "loser", "tie", "count"]
    rows = []
    for i in range(min(len(data), _SHOWN)):
        cells = [] if data.user is None else [data.users[data.user[i]]]
        cells += [data.items[data.winner[i]], data.items[data.loser[i]]]
        cells += ["tie" if data.tie[i] else "", data.count[i]]
        rows.append("".join(f"<td>{escape(str(cell))}</td>" for cell in cells))
    if len(data) > _SHOWN:
        rows.append(f'<td colspan="{len(head)}">… and {len(data) - _SHOWN} more</td>')
    header = "".join(f"<th>{name}</th>" for name in head)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p>{lines}</p>{table}</div>"


def sentence(data: "ComparisonColumns", row: int) -> str:
    """One row in words."""
    who = "" if data.user is None else f"{data.users[data.user[row]]!r} said: "
    verb = "tied with" if data.tie[row] else "beat"
    return f"{who}{data.items[data.winner[row]]!r} {verb} {data.items[data.loser[row]]!r}"
