"""Jobs of participants: join, erase, get questions, answer, undo."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from penchant.study import questions as rules
from penchant.study.events import ANSWER, ERASE, EXCLUDE, SKIP, WITHDRAW
from penchant.study.questions import ANSWERED, CHECK, OPEN, RANDOM, SKIPPED, Prepared
from penchant.study.refusals import ParticipantRefusal, Refusal
from penchant.study.store import studies
from penchant.study.store import tables as t
from penchant.study.store.studies import CLOSED, RUNNING
from penchant.study.store.tables import new_id

MOST_LOOKED_AT = 300
"""Of the items asked about least, for a question without the model."""
PRESENT_SECONDS = 180.0
"""Seconds since the last request within which a person counts as present."""


def join(
    conn: Connection,
    study: str,
    now: float,
    *,
    token: str | None = None,
    external_id_hash: str | None = None,
    consent: bool = False,
    known: str | None = None,
    said_first: dict[str, Any] | None = None,
    screened_out: bool = False,
    new: str | None = None,
) -> str:
    """Add a participant and return their id.

    known: the participant of the browser's cookie. A panel's participant who returns is recognised
    by this cookie. A panel's id is no secret, so it alone gives no access to earlier answers; a
    participant without answers is replaced by a new one. Whoever was screened out stays so.
    said_first: answers to the questions before the first item. new: the id of a form that makes one
    participant, however often it is sent.
    """
    it = studies.get(conn, study)
    if it.config.consent and not consent:
        raise ParticipantRefusal("bad", "consent")
    p = t.participant.c
    for one in filter(None, (known, new)):
        here = conn.execute(t.PARTICIPANT, {"who": one, "in_study": study}).first()
        if here is None or (one != new and not here.screened_out):
            continue
        if here.external_id_hash == external_id_hash:
            return one
        if one == new:
            raise ParticipantRefusal("conflict", "other_browser")
    if external_id_hash is not None:
        same = sa.select(p.id, p.screened_out)
        mine = (p.study == study, p.external_id_hash == external_id_hash)
        before = conn.execute(same.where(*mine)).first()
        if before is not None:
            if before.id == known:
                return str(before.id)
            theirs = sa.select(t.event.c.seq).where(t.event.c.participant == before.id)
            if before.screened_out or conn.execute(theirs).first() is not None:
                raise ParticipantRefusal("conflict", "other_browser")
            _remove(conn, before.id)
    if it.state != RUNNING:
        raise ParticipantRefusal(it.state, it.state)
    invite = None
    if token is not None:
        invite = studies.find_invite(conn, study, token, "participant", now)
        i = t.invite.c
        used = t.invite.update().where(i.id == invite.id, i.uses_left.is_not(None))
        conn.execute(used.values(uses_left=i.uses_left - 1))
    elif not it.config.open_link:
        raise ParticipantRefusal("token", "invitation")
    person = new or new_id()
    row = {"id": person, "study": study, "joined": now, "last_seen": now}
    row["kind"] = "panel" if external_id_hash else "invited" if invite else "anonymous"
    row |= {"invite": invite and invite.id, "external_id_hash": external_id_hash}
    row |= {"said_first": said_first or None, "screened_out": screened_out}
    conn.execute(t.participant.insert(), row | {"consent": now if consent else None})
    return person


def erase(conn: Connection, study: str, person: str, now: float) -> int:
    """Erase a person and all their data; return how many events were removed.

    Snapshots from before their first answer stay. Later snapshots lose their model file, which
    holds answers, and this person's row of the summary.
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
            conn.execute(t.snapshot.update().where(*later, s.seq == row.seq).values(kept))
    studies.append(conn, study, ERASE, {"events": gone}, now)
    return gone


@dataclass(frozen=True)
class Exclusion:
    """Some people to exclude, or to bring back. answers: how many of theirs stand."""

    people: list[str]
    excluded: bool
    answers: int


def exclusion(conn: Connection, study: str, people: Sequence[str], excluded: bool) -> Exclusion:
    """What excluding these people, or bringing them back, would change."""
    p, e = t.participant.c, t.event.c
    here = sa.select(p.id, p.excluded).where(p.study == study, p.id.in_(people))
    was = {row.id: row.excluded for row in conn.execute(here)}
    if not was.keys() >= set(people):
        raise Refusal("unknown", "some of these people are not in this study: load the page again")
    changed = [person for person in dict.fromkeys(people) if was[person] != excluded]
    theirs = sa.select(sa.func.count()).where(
        e.participant.in_(changed), e.live, e.kind == ANSWER, e.study == study
    )
    return Exclusion(changed, excluded, conn.execute(theirs).scalar_one())


def exclude(
    conn: Connection, study: str, people: Sequence[str], excluded: bool, now: float
) -> Exclusion:
    """Exclude people from what the model learns, or bring them back; their answers stay."""
    change = exclusion(conn, study, people, excluded)
    p, s = t.participant.c, t.snapshot.c
    if change.people:
        theirs = t.participant.update().where(p.id.in_(change.people))
        conn.execute(theirs.values(excluded=excluded))
        # hyperparameters were learned with the others
        unlearned = {"model": b"", "learned_at": 0}
        conn.execute(t.snapshot.update().where(s.study == study).values(unlearned))
    for person in change.people:  # an event each, which goes when the person is erased
        who = {"participant": person, "live": False}
        studies.append(conn, study, EXCLUDE, {"excluded": excluded}, now, **who)
    return change


def of_present(conn: Connection, study: str, summary: dict[str, Any]) -> dict[str, Any]:
    """A summary without the rows of erased people."""
    present = studies.people_of(conn, study)
    rows, known = summary.get("raters", []), summary.get("communities") or {}
    kept = {**summary, "raters": [row for row in rows if row["participant"] in present]}
    if "map" in known:
        points = [point for point in known["map"] if point["participant"] in present]
        kept["communities"] = {**known, "map": points}
    return kept


def _remove(conn: Connection, person: str) -> int:
    conn.execute(t.question.delete().where(t.question.c.participant == person))
    conn.execute(t.suggestion.delete().where(t.suggestion.c.participant == person))
    conn.execute(t.participant.delete().where(t.participant.c.id == person))
    return conn.execute(t.event.delete().where(t.event.c.participant == person)).rowcount


def participants_of(conn: Connection, study: str, now: float) -> list[dict[str, Any]]:
    """The participants for the owner: by random ids, never by a panel's."""
    p = t.participant.c
    is_here = (p.last_seen > now - PRESENT_SECONDS).label("here")
    query = sa.select(p.id, p.kind, p.joined, t.N_ANSWERS, is_here)
    query = query.add_columns(p.excluded, p.screened_out, p.finished, p.said_first)
    rows = conn.execute(query.where(p.study == study).order_by(p.joined))
    return [dict(row._mapping) for row in rows]


def participant(conn: Connection, study: str, person: str) -> Any:
    """The row of a participant, or a refusal."""
    row = conn.execute(t.PARTICIPANT, {"who": person, "in_study": study}).first()
    if row is None:
        raise ParticipantRefusal("forbidden", "stranger")
    return row


@dataclass(frozen=True)
class Turn:
    """The next questions of a participant.

    answers: how many they gave. ran_out: no question is left, though they are below their limit.
    undo: the question whose answer they may withdraw. screened_out: there are no questions for
    them.
    """

    questions: list[Any]
    answers: int
    finished: bool
    ran_out: bool
    undo: str | None
    screened_out: bool = False


def turn(conn: Connection, study: str, person: str, n: int, now: float) -> Turn:
    """Hand out up to n questions: those that are open already, prepared ones, or random ones."""
    it = studies.get(conn, study)
    here = participant(conn, study, person)
    undo = here.last_answered if it.config.undo else None
    if here.screened_out:
        return Turn([], here.answers, True, False, None, screened_out=True)
    finished = rules.is_finished(it.config, here.answers, now - here.joined)
    if it.state != RUNNING or finished:
        _note_end(conn, person, here, finished or it.state == CLOSED, now)
        return Turn([], here.answers, finished, False, undo)
    if it.config.answers_per_person is not None:
        n = min(n, it.config.answers_per_person - here.answers)
    lent = {"who": person, "in_study": study, "until": now + it.config.lease_seconds}
    conn.execute(t.SEEN, {"who": person, "at": now})
    still_open = conn.execute(t.RENEW, lent).all()
    found = sorted(still_open, key=lambda row: row.opened)[:n]
    while len(found) < n:
        row = conn.execute(t.TAKE_MINE, lent).first()
        row = row or conn.execute(t.TAKE_ANY, lent).first()
        row = row or _balanced_random(conn, it, person, now, lent)
        if row is None:
            break
        found.append(row)
    _note_end(conn, person, here, not found, now)
    return Turn(found, here.answers, not found, not found, undo)


def _note_end(conn: Connection, person: str, here: Any, ended: bool, now: float) -> None:
    """Note when somebody who answered reached the end, for the owner's list of a panel."""
    if ended and here.answers and here.finished is None:
        conn.execute(
            t.participant.update().where(t.participant.c.id == person).values(finished=now)
        )


def _balanced_random(
    conn: Connection, it: studies.Study, person: str, now: float, lent: dict[str, Any]
) -> Any:
    """A question about the items asked about least, for when nothing is prepared."""
    i, q = t.item.c, t.question.c
    least = sa.select(i.id, i.asked).where(i.study == it.id, i.active).order_by(i.asked)
    rows = conn.execute(least.limit(MOST_LOOKED_AT)).all()
    asked = set(conn.execute(sa.select(q.pair).where(q.participant == person)).scalars())
    question = new_id()
    rng = rules.draw("fallback", question)
    least_asked = sorted(rows, key=lambda row: (row.asked, rng.random()))
    items = _first_new([row.id for row in least_asked], it.config.size, asked)
    if items is None:
        return None
    count_asked(conn, items)
    chosen = Prepared(person, tuple(items), it.config.format, RANDOM)
    return conn.execute(t.INSERT_OPEN, question_row(chosen, question, it.id, now) | lent).one()


def count_asked(conn: Connection, items: Sequence[str]) -> None:
    """Count for each of these items that a question is about it."""
    if items:
        conn.execute(t.COUNT_ASKED, [{"which": item} for item in items])


def question_row(chosen: Prepared, question: str, study: str, at: float) -> dict[str, Any]:
    """The row of a new question: the order of showing is drawn here."""
    shown, p = rules.shown_order(chosen.items, question), chosen.p_before
    return {
        "id": question,
        "study": study,
        "participant": chosen.participant,
        "shown": shown,
        "pair": rules.pair_key(shown),
        "form": chosen.form,
        "kind": chosen.kind,
        "p_before": p if p is None or shown[0] == chosen.items[0] else 1.0 - p,
        "created": at,
    }


def _first_new(ids: list[str], size: int, asked: set[str]) -> list[str] | None:
    """The first `size` ids that were not asked together: the last of them moves on if they were."""
    for start in range(len(ids) - size + 1):
        head = ids[start : start + size - 1]
        for last in ids[start + size - 1 :]:
            if rules.pair_key([*head, last]) not in asked:
                return [*head, last]
    return None


def answer(
    conn: Connection, study: str, person: str, question: str, order: Any, ms: int | None, now: float
) -> tuple[int, bool]:
    """Record an answer, or with order None a skip.

    Return its number, and whether it was recorded before. A question that was shown may be
    answered after its lease has ended and after the study was closed.
    """
    config = studies.get(conn, study).config
    row, live = _asked(conn, study, person, question)
    if live is not None:
        return live, True
    if row.state != OPEN:
        raise ParticipantRefusal("conflict", "not_shown")
    ms = None if ms is None else max(0, min(int(ms), 2**31 - 1))
    payload = {"items": row.shown, "kind": row.kind}
    if order is None:
        if not config.skip:
            raise ParticipantRefusal("bad", "skip")
        kind, state = SKIP, SKIPPED
    else:
        may_tie = config.tie and row.kind != CHECK
        groups = rules.check_order(order, len(row.shown), row.form, may_tie)
        payload |= {"order": groups, "form": row.form, "p_before": row.p_before}
        kind, state = ANSWER, ANSWERED
    who = {"participant": person, "question": question, "ms": ms}
    seq = studies.append(conn, study, kind, payload, now, **who)
    conn.execute(t.SET_QUESTION, {"which": question, "to_state": state})
    return seq, False


def undo(conn: Connection, study: str, person: str, question: str, now: float) -> None:
    """Withdraw one of a person's last answers; its question opens again, before all others."""
    it = studies.get(conn, study)
    participant(conn, study, person)
    _, live = _asked(conn, study, person, question)
    if live is None:
        return  # a retry: it was withdrawn before
    if it.state != RUNNING:
        raise ParticipantRefusal(it.state, it.state)
    e = t.event.c
    last = conn.execute(
        sa.select(e.seq)
        .where(e.participant == person, e.live, e.kind.in_((ANSWER, SKIP)))
        .order_by(e.seq.desc())
        .limit(it.config.undo)
    ).scalars()
    if live not in set(last):
        raise ParticipantRefusal("conflict", "undo", n=it.config.undo)
    conn.execute(t.event.update().where(e.study == study, e.seq == live).values(live=False))
    # a withdrawal names its question too, but is no live answer to it
    who = {"participant": person, "question": question, "live": False}
    studies.append(conn, study, WITHDRAW, {"of": live}, now, **who)
    again = {"state": OPEN, "leased_until": now + it.config.lease_seconds}
    conn.execute(t.question.update().where(t.question.c.id == question).values(again))


def _asked(conn: Connection, study: str, person: str, question: str) -> tuple[Any, int | None]:
    """A person's question, and the number of its answer that was not withdrawn."""
    asked = {"which": question, "in_study": study, "who": person}
    row = conn.execute(t.QUESTION, asked).first()
    if row is None:
        raise ParticipantRefusal("unknown", "question")
    return row, conn.execute(t.LIVE_ANSWER, asked).scalar()


def data_of(
    conn: Connection, study: str, person: str
) -> tuple[studies.Study, dict[str, Any], list[Any], list[Any]]:
    """What is kept of a person: the study, their row, their questions, their answers and skips."""
    participant(conn, study, person)
    p, q, e = t.participant.c, t.question.c, t.event.c
    row = conn.execute(sa.select(t.participant).where(p.id == person)).one()
    asked = conn.execute(sa.select(t.question).where(q.participant == person)).all()
    mine = sa.select(t.event).where(e.participant == person, e.kind.in_((ANSWER, SKIP)))
    said = conn.execute(mine.order_by(e.seq)).all()
    s = t.suggestion.c
    suggested = conn.execute(sa.select(s.text).where(s.participant == person)).scalars()
    about = {**row._mapping, "suggestions": list(suggested)}
    return studies.get(conn, study), about, list(asked), list(said)
