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
    known: str | None = None,
) -> str:
    """Let somebody in and return their id.

    A panel's participant who comes again is the same, if their browser knows who they are: known
    is what its cookie says. A panel's id is no secret, so that it alone gives nothing of theirs
    away; where they have not answered anything yet, they begin anew.
    """
    it = studies.get(conn, study)
    if it.config.consent and not consent:
        raise ParticipantRefusal("bad", "consent")
    p = t.participant.c
    if external_id_hash is not None:
        before = conn.execute(
            sa.select(p.id).where(p.study == study, p.external_id_hash == external_id_hash)
        ).scalar()
        if before is not None and before == known:
            return str(before)
        if before is not None:
            theirs = sa.select(t.event.c.seq).where(t.event.c.participant == before)
            if conn.execute(theirs).first() is not None:
                raise ParticipantRefusal("conflict", "other_browser")
            _remove(conn, before)
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

    Snapshots that were made before they answered stay. Of the others the summary stays, without
    their row, until the model has learned anew; the model files, which hold answers, do not.
    """
    here = participant(conn, study, person)
    e = t.event.c
    theirs = sa.select(sa.func.min(e.seq)).where(e.participant == person, e.kind == ANSWER)
    first_answer = conn.execute(theirs).scalar()
    gone = _remove(conn, person)
    if here.invite is not None:
        i = t.invite.c
        used_up = (i.id == here.invite, i.uses_left == 0)
        others = sa.exists().where(t.participant.c.invite == here.invite)
        conn.execute(t.invite.delete().where(*used_up, ~others))
    if first_answer is not None:
        s = t.snapshot.c
        later = (s.study == study, s.seq >= first_answer)
        for row in conn.execute(sa.select(s.seq, s.summary).where(*later)).all():
            kept = {"model": b"", "learned_at": 0, "summary": of_present(conn, study, row.summary)}
            conn.execute(
                t.snapshot.update().where(s.study == study, s.seq == row.seq).values(**kept)
            )
    studies.append(conn, study, ERASE, {"events": gone}, now)
    return gone


def of_present(conn: Connection, study: str, summary: dict[str, Any]) -> dict[str, Any]:
    """A summary without rows of people who are gone."""
    p = t.participant.c
    present = set(conn.execute(sa.select(p.id).where(p.study == study)).scalars())
    rows = summary.get("raters", [])
    return {**summary, "raters": [row for row in rows if row["participant"] in present]}


def _remove(conn: Connection, person: str) -> int:
    conn.execute(t.question.delete().where(t.question.c.participant == person))
    conn.execute(t.participant.delete().where(t.participant.c.id == person))
    return conn.execute(t.event.delete().where(t.event.c.participant == person)).rowcount


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
