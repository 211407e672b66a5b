"""Comparisons for people: in words, as HTML and as data frames."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from penchant.data.choices import Rankings
from penchant.data.names import Names
from penchant.data.table import Table, components
from penchant.errors import DataError

_SHOWN_ROWS = 10  # rows of a table in a notebook


def in_words(
    rows: Table, items: Names, users: Names, rankings: Rankings | None, source: str
) -> str:
    """Return a summary in a few lines, for `Comparisons.describe`."""
    total, n = int(rows.count.sum()), len(items)
    people = "1 user" if len(users) == 1 else f"{len(users)} users"
    who = f" by {people}" if users else ""
    lines = [f"{total} comparisons ({len(rows.winner)} distinct) between {n} items{who}"]
    if source:
        lines.append(f"read as: {source}")
    if rows.user is not None:
        per_user = np.bincount(rows.user, weights=rows.count, minlength=len(users))
        lines.append(
            f"comparisons per user: {per_user.min():.0f} to {per_user.max():.0f}, "
            f"median {np.median(per_user):g}"
        )
    if rankings is not None:
        low, high = int(rankings.size.min()), int(rankings.size.max())
        size = f"{low}" if low == high else f"{low} to {high}"
        lines.append(
            f"of them in rankings and choices: {rankings.pairs().count.sum()}; rankings and "
            f"choices: {rankings.count.sum()} ({len(rankings)} distinct) of {size} items"
        )
    ties = int(rows.count[rows.tie].sum())
    lines.append(f"ties: {ties} ({ties / max(total, 1):.0%})")
    if rows.both_bad is not None:
        bad, rates = int(rows.count[rows.both_bad].sum()), bad_rates(rows, items)
        worst = max(rates, key=lambda item: rates[item])
        lines.append(
            f"both bad: {bad} ({bad / total:.0%}); most often with {worst} ({rates[worst]:.0%})"
        )
    times = rows.times_compared(n)
    groups = components(rows.winner, rows.loser, n)[1][times > 0]
    lines.append(f"groups connected by comparisons: {len(np.unique(groups))}")
    if never := int((times == 0).sum()):
        lines.append(f"items never compared: {never}")
    most, least = int(times.argmax()), int(times.argmin())
    lines.append(
        f"most compared: {items[most]} ({times[most]}); "
        f"least compared: {items[least]} ({times[least]})"
    )
    return "\n".join(lines)


def bad_rates(rows: Table, items: Names) -> dict[Any, float]:
    """Return for each compared item the share of its comparisons that were "both bad"."""
    times = rows.times_compared(len(items))
    bad = np.zeros_like(times)
    if rows.both_bad is not None:
        bad = rows.take(rows.both_bad).times_compared(len(items))
    return {items[i]: float(bad[i] / times[i]) for i in np.flatnonzero(times)}


def in_html(text: str, rows: Table, items: Names, users: Names) -> str:
    """Return a summary and the first rows as HTML, for notebooks."""
    lines = "<br>".join(escape(line) for line in text.splitlines())
    cells = _named_columns(rows.take(slice(_SHOWN_ROWS)), items, users)
    cells["tie"] = ["tie" if tied else "" for tied in cells["tie"]]
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in zip(*cells.values(), strict=True)
    )
    if (more := len(rows.winner) - _SHOWN_ROWS) > 0:
        body += f'<tr><td colspan="{len(cells)}">… and {more} more</td></tr>'
    header = "".join(f"<th>{name}</th>" for name in cells)
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p>{lines}</p>{table}</div>"


def frame(rows: Table, items: Names, users: Names, covariate_names: Sequence[str]) -> Any:
    """Return a data frame with one row per distinct comparison."""
    columns = _named_columns(rows, items, users)
    for name in ("margin", "first", "time"):
        if getattr(rows, name) is not None:
            columns[name] = getattr(rows, name)
    for k, name in enumerate(covariate_names):
        if name in columns:
            raise DataError(
                f"a covariate is called {name!r}, as a column of the table is: rename it"
            )
        columns[name] = rows.covariates[:, k]  # type: ignore[index]
    return _data_frame(columns)


def _named_columns(rows: Table, items: Names, users: Names) -> dict[str, Any]:
    who = {} if rows.user is None else {"user": [users[u] for u in rows.user]}
    return {
        **who,
        "winner": [items[i] for i in rows.winner],
        "loser": [items[i] for i in rows.loser],
        "tie": tie_words(rows),
        "count": rows.count,
    }


def tie_words(rows: Table) -> Any:
    """(m,) ties as `Comparisons.from_pairs` takes them: true, false, or "both bad"."""
    return (
        rows.tie
        if rows.both_bad is None
        else np.where(rows.both_bad, "both bad", rows.tie.astype(object))
    )


def long_frame(single: Table, rankings: Rankings, items: Names, users: Names) -> Any:
    """Return a data frame with one row for each item of a ranking, choice or single pair."""
    if not (single.margin is None and single.first is None and single.covariates is None):
        raise DataError(
            "rankings beside pairs with a margin, sides or covariates make no one table: make one "
            "of single_pairs(), or of as_pairs()"
        )
    ballots = [
        (places, who, count, tied)
        for tied in (True, False)
        for places, who, count in rankings.named(items, users, tied)
    ]
    for row in range(len(single.winner)):
        names = [items[i] for i in (single.winner[row], single.loser[row])]
        who = None if single.user is None else users[single.user[row]]
        places = [names] if single.tie[row] else [[name] for name in names]
        ballots.append((places, who, int(single.count[row]), True))
    lines = [
        (number, who, name, place, count, tied)
        for number, (places, who, count, tied) in enumerate(ballots, start=1)
        for place, names in enumerate(places, start=1)
        for name in names
    ]
    heads = ("ballot", "user", "item", "position", "count", "tied")
    columns = dict(zip(heads, zip(*lines, strict=True), strict=True))
    if rankings.user is None:
        del columns["user"]
    return _data_frame(columns)


def _data_frame(columns: dict[str, Any]) -> Any:
    try:
        import pandas as pd
    except ImportError:
        raise DataError(
            "to_frame needs pandas: install it, or use the columns themselves"
        ) from None
    return pd.DataFrame(columns)
