"""Jobs about people: who takes part, and forgetting them."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from penchant.study.events import ANSWER, ERASE
from penchant.study.refusals import ParticipantRefusal, Refusal
from penchant.study.store import statements, studies
from penchant.study.store import tables as t
from penchant.study.store.studies import RUNNING
from penchant.study.tokens import new_id

PRESENT_SECONDS = 180.0
"""Who was seen within this time is here, and has questions prepared."""


def join(
    conn: Connection,
    study: str,
    now: float,
    *,
    token: str | None = None,
    external_id_hash: str | None = None,
    consent: bool = False,
) -> str:
    """Let somebody in and return their id; a panel's participant who comes again is the same."""
    it = studies.get(conn, study)
    if it.config.consent and not consent:
        raise ParticipantRefusal("bad", "consent")
    p = t.participant.c
    if external_id_hash is not None:
        known = conn.execute(
            sa.select(p.id).where(p.study == study, p.external_id_hash == external_id_hash)
        ).scalar()
        if known is not None:
            return str(known)
    if it.state != RUNNING:
        raise not_running(it.state)
    invite = None
    if token is not None:
        invite = studies.find_invite(conn, study, token, "participant", now)
        if invite.uses_left is not None:
            conn.execute(
                t.invite.update()
                .where(t.invite.c.id == invite.id)
                .values(uses_left=t.invite.c.uses_left - 1)
            )
    elif not it.config.open_link:
        raise ParticipantRefusal("token", "invitation")
    person = new_id()
    kind = "panel" if external_id_hash else "invited" if invite else "anonymous"
    conn.execute(
        t.participant.insert().values(
            id=person,
            study=study,
            kind=kind,
            external_id_hash=external_id_hash,
            invite=invite.id if invite else None,
            consent=now if consent else None,
            joined=now,
            last_seen=now,
        )
    )
    return person


def erase(conn: Connection, study: str, person: str, now: float) -> int:
    """Remove a person and everything that came from them; how many events that were.

    Snapshots are removed too: what a model learned from them goes with the next replay.
    """
    here = participant(conn, study, person)
    gone = conn.execute(t.event.delete().where(t.event.c.participant == person)).rowcount
    conn.execute(t.question.delete().where(t.question.c.participant == person))
    conn.execute(t.participant.delete().where(t.participant.c.id == person))
    if here.invite is not None:
        i = t.invite.c
        used_up = (i.id == here.invite, i.uses_left == 0)
        others = sa.exists().where(t.participant.c.invite == here.invite)
        conn.execute(t.invite.delete().where(*used_up, ~others))
    conn.execute(t.snapshot.delete().where(t.snapshot.c.study == study))
    studies.append(conn, study, ERASE, {"events": gone}, now)
    return gone


def participants_of(conn: Connection, study: str, now: float) -> list[dict[str, Any]]:
    """What the owner sees of the people: their random ids, never a panel's."""
    p, e = t.participant.c, t.event.c
    answers = (
        sa.select(e.participant, sa.func.count().label("n"))
        .where(e.study == study, e.live, e.kind == ANSWER)
        .group_by(e.participant)
        .subquery()
    )
    rows = conn.execute(
        sa.select(p.id, p.kind, p.joined, p.last_seen, sa.func.coalesce(answers.c.n, 0).label("n"))
        .outerjoin_from(t.participant, answers, answers.c.participant == p.id)
        .where(p.study == study)
        .order_by(p.joined)
    )
    return [
        {
            "id": row.id,
            "kind": row.kind,
            "joined": row.joined,
            "answers": row.n,
            "here": row.last_seen > now - PRESENT_SECONDS,
        }
        for row in rows
    ]


def participant(conn: Connection, study: str, person: str) -> Any:
    """The row of somebody who takes part, or a refusal."""
    row = conn.execute(statements.PARTICIPANT, {"who": person, "in_study": study}).first()
    if row is None:
        raise ParticipantRefusal("forbidden", "stranger")
    return row


def not_running(state: str) -> Refusal:
    """Why nothing new happens in a study."""
    if state == studies.PAUSED:
        return ParticipantRefusal("paused", "paused")
    return ParticipantRefusal("closed", "closed")
