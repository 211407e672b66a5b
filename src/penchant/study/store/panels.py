"""Read-only jobs about the people of a panel, who are known by hashes of the panel's ids."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from penchant.study.events import ANSWER, SKIP, Event, Record, replay
from penchant.study.store import studies
from penchant.study.store import tables as t


@dataclass(frozen=True)
class Panel:
    """People of a panel, by the hashes of their ids, and what they answered."""

    study: studies.Study
    people: dict[str, Any]
    record: Record


MOST_NAMED = 5000
"""Values of one condition: databases have limits."""


def panel(conn: Connection, study: str, hashes: Sequence[str]) -> Panel:
    """The people of these hashes; with many hashes, all people of panels."""
    p, e = t.participant.c, t.event.c
    it = studies.get(conn, study)
    is_one = p.external_id_hash.is_not(None)
    if len(hashes) <= MOST_NAMED:
        is_one = p.external_id_hash.in_(hashes)
    here = (p.study == study, is_one)
    rows = conn.execute(sa.select(t.participant, t.N_ANSWERS).where(*here))
    people = {row.external_id_hash: row for row in rows}
    theirs = (e.study == study, e.live, e.participant.in_(sa.select(p.id).where(*here)))
    given = sa.select(e.seq, e.kind, e.participant, e.question, e.payload, e.ms, e.at)
    events = conn.execute(given.where(*theirs, e.kind.in_((ANSWER, SKIP))).order_by(e.seq))
    return Panel(it, people, replay(Event(*row) for row in events))
