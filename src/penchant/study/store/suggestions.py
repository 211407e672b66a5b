"""Jobs about items that participants suggest: nothing is shown before the owner took it."""

import re
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from penchant.study.refusals import ParticipantRefusal, Refusal
from penchant.study.store import studies
from penchant.study.store import tables as t
from penchant.study.store.studies import RUNNING, NewItem
from penchant.study.store.tables import new_id

WAITING, ADDED, DECLINED = "waiting", "added", "declined"
LONGEST = 200
"""Characters of a suggestion."""
MOST_OF_A_PERSON, MOST_WAITING = 20, 5000
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that nobody types, and that PostgreSQL refuses."""


def suggest(conn: Connection, study: str, person: str, text: str, at: float) -> None:
    """Keep a suggestion for the owner. What was decided about the same text before holds again."""
    it = studies.get(conn, study)
    if not it.config.suggestions:
        raise ParticipantRefusal("unknown", "page")
    if it.state != RUNNING:
        raise ParticipantRefusal(it.state, it.state)
    text = " ".join(CONTROL.sub(" ", text).split())
    if not 0 < len(text) <= LONGEST:
        raise ParticipantRefusal("bad", "suggestion", n=LONGEST)
    s = t.suggestion.c
    mine = sa.func.count().filter(s.participant == person)
    waiting = sa.func.count().filter(s.state == WAITING)
    n_mine, n_waiting = conn.execute(sa.select(mine, waiting).where(s.study == study)).one()
    if n_mine >= MOST_OF_A_PERSON or n_waiting >= MOST_WAITING:
        raise ParticipantRefusal("busy", "suggested_enough")
    decided = [row for row in _of(conn, study, (ADDED, DECLINED)) if _same(row.text, text)]
    row = {"id": new_id(), "study": study, "participant": person, "text": text, "created": at}
    row["state"] = decided[0].state if decided else WAITING
    conn.execute(t.suggestion.insert(), row)


def waiting(conn: Connection, study: str) -> list[dict[str, Any]]:
    """The suggestions that wait for the owner, the same text once, by how many made it."""
    studies.get(conn, study)
    found: dict[str, dict[str, Any]] = {}
    for row in _of(conn, study, (WAITING,)):
        new = {"id": row.id, "text": row.text, "times": 0, "created": row.created}
        found.setdefault(row.text.casefold(), new)["times"] += 1
    return sorted(found.values(), key=lambda row: -row["times"])


def decide(
    conn: Connection, study: str, suggestion: str, item: NewItem | None, at: float
) -> str | None:
    """Add a suggestion as an item and return its id, or decline it with item None."""
    rows = _of(conn, study, (WAITING,))
    chosen = next((row for row in rows if row.id == suggestion), None)
    if chosen is None:
        raise Refusal("unknown", "there is no such suggestion, or it was decided about before")
    added = None
    if item is not None:
        named = NewItem(item.name or chosen.text, body=chosen.text, features=item.features)
        (added,) = studies.add_items(conn, study, [named], at)
    same = [row.id for row in rows if _same(row.text, chosen.text)]
    state = DECLINED if item is None else ADDED
    s = t.suggestion.c
    conn.execute(t.suggestion.update().where(s.id.in_(same)).values(state=state))
    return added


def _of(conn: Connection, study: str, states: Iterable[str]) -> list[Any]:
    s = t.suggestion.c
    query = sa.select(s.id, s.text, s.state, s.created)
    query = query.where(s.study == study, s.state.in_(list(states))).order_by(s.created, s.id)
    return list(conn.execute(query).all())


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()
