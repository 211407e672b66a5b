"""Jobs of a participant's turn: get questions, answer them, take answers back."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from penchant.study import questions as rules
from penchant.study.events import ANSWER, SKIP, WITHDRAW
from penchant.study.questions import ANSWERED, CHECK, OPEN, PREPARED, RANDOM, SKIPPED, Part
from penchant.study.refusals import Refusal
from penchant.study.store import studies
from penchant.study.store import tables as t
from penchant.study.store.people import not_running, participant
from penchant.study.store.studies import RUNNING
from penchant.study.tokens import new_id


@dataclass(frozen=True)
class Turn:
    """What a participant is to see: open questions, how far they are, what they may take back."""

    questions: list[Any]
    part: Part
    finished: bool
    undo: str | None


@dataclass(frozen=True)
class Receipt:
    """That an answer stands, under which number, and whether it stood before."""

    seq: int
    repeated: bool


def turn(conn: Connection, study: str, person: str, n: int, now: float) -> Turn:
    """Hand out up to n questions: those that are open already, prepared ones, or random ones."""
    it = studies.get(conn, study)
    here = participant(conn, study, person)
    part = _part(conn, here, now)
    undo = _last_answered(conn, person) if it.config.undo else None
    finished = rules.is_finished(it.config, part)
    if it.state != RUNNING or finished:
        return Turn([], part, finished, undo)
    p = t.participant.c
    conn.execute(t.participant.update().where(p.id == person).values(last_seen=now))
    if it.config.answers_per_person is not None:
        n = min(n, it.config.answers_per_person - part.answers)
    lease = now + it.config.lease_seconds
    q = t.question.c
    mine = (q.participant == person, q.state == OPEN)
    renewed = t.question.update().where(*mine).values(leased_until=lease)
    conn.execute(renewed)
    found = list(conn.execute(sa.select(t.question).where(*mine).order_by(q.opened).limit(n)).all())
    while len(found) < n:
        # numbered, because a clock may jump back and two may be opened at once
        opened = sa.select(sa.func.count(q.opened) + 1).where(q.participant == person)
        lent = {"state": OPEN, "opened": opened.scalar_subquery(), "leased_until": lease}
        row = _take_prepared(conn, study, person, lent)
        row = row or _balanced_random(conn, it, person, now, lent)
        if row is None:
            break
        found.append(row)
    return Turn(found, part, not found, undo)


def _take_prepared(conn: Connection, study: str, person: str, lent: dict[str, Any]) -> Any:
    """One prepared question, mine or anybody's, in one statement; never one that I was asked."""
    q = t.question.c
    asked = t.question.alias("asked")
    free = sa.select(q.id).where(q.study == study, q.state == PREPARED)
    new_to_me = ~sa.exists().where(asked.c.participant == person, asked.c.pair == q.pair)
    mine = free.where(q.participant == person).order_by(q.created, q.id).limit(1)
    anybodys = free.where(q.participant.is_(None), new_to_me).order_by(q.created, q.id).limit(1)
    for choice in (mine, anybodys):
        row = conn.execute(
            t.question.update()
            .where(q.id == choice.scalar_subquery())
            .values(participant=person, **lent)
            .returning(t.question)
        ).first()
        if row is not None:
            return row
    return None


def _balanced_random(
    conn: Connection, it: studies.Study, person: str, now: float, lent: dict[str, Any]
) -> Any:
    """Nothing is prepared: the items asked about least, at random, without a model version."""
    i, q = t.item.c, t.question.c
    rows = conn.execute(sa.select(i.id, i.asked).where(i.study == it.id, i.active)).all()
    asked = set(conn.execute(sa.select(q.pair).where(q.participant == person)).scalars())
    question = new_id()
    rng = rules.draw("fallback", question)
    least_asked = sorted(rows, key=lambda row: (row.asked, rng.random()))
    items = _first_new([row.id for row in least_asked], it.config.size, asked)
    if items is None:
        return None
    conn.execute(t.item.update().where(i.id.in_(items)).values(asked=i.asked + 1))
    return conn.execute(
        t.question.insert()
        .values(
            id=question,
            study=it.id,
            participant=person,
            shown=rules.shown_order(items, question),
            pair=rules.pair_key(items),
            form=it.config.format,
            kind=RANDOM,
            created=now,
            **lent,
        )
        .returning(t.question)
    ).one()


def _first_new(ids: list[str], size: int, asked: set[str]) -> list[str] | None:
    """The first `size` ids that were not asked together: the last of them moves on if they were."""
    for start in range(len(ids) - size + 1):
        head = ids[start : start + size - 1]
        for last in ids[start + size - 1 :]:
            if rules.pair_key([*head, last]) not in asked:
                return [*head, last]
    return None


def answer(
    conn: Connection,
    study: str,
    person: str,
    question: str,
    order: Any,
    ms: int | None,
    now: float,
) -> Receipt:
    """Record an answer, or with order None a skip; said again, the first one stands.

    Who was shown a question may answer it, also after its lease and after the study closed.
    """
    config = studies.get(conn, study).config
    participant(conn, study, person)
    row = _question(conn, study, person, question)
    stands = _standing(conn, question)
    if stands is not None:
        return Receipt(stands.seq, repeated=True)
    if row.state != OPEN:
        raise Refusal("conflict", "this question was not shown yet: reload the page")
    ms = None if ms is None else max(0, min(int(ms), 2**31 - 1))
    if order is None:
        if not config.skip:
            raise Refusal("bad", "questions of this study cannot be skipped: choose one")
        kind, state, payload = SKIP, SKIPPED, {"items": row.shown, "kind": row.kind}
    else:
        may_tie = config.tie and row.kind != CHECK
        groups = rules.check_order(order, len(row.shown), row.form, may_tie)
        payload = {
            "items": row.shown,
            "order": groups,
            "form": row.form,
            "kind": row.kind,
            "p_before": row.p_before,
        }
        kind, state = ANSWER, ANSWERED
    seq = studies.append(
        conn, study, kind, payload, now, participant=person, question=question, ms=ms
    )
    conn.execute(t.question.update().where(t.question.c.id == question).values(state=state))
    p = t.participant.c
    conn.execute(t.participant.update().where(p.id == person).values(last_seen=now))
    return Receipt(seq, repeated=False)


def undo(conn: Connection, study: str, person: str, question: str, now: float) -> None:
    """Take back one of a person's last answers; the question is open again, before all others."""
    it = studies.get(conn, study)
    participant(conn, study, person)
    _question(conn, study, person, question)
    stands = _standing(conn, question)
    if stands is None:
        return  # said again: it was taken back already
    if it.state != RUNNING:
        raise not_running(it.state)
    e = t.event.c
    last = conn.execute(
        sa.select(e.seq)
        .where(e.participant == person, e.live, e.kind.in_((ANSWER, SKIP)))
        .order_by(e.seq.desc())
        .limit(it.config.undo)
    ).scalars()
    if stands.seq not in set(last):
        raise Refusal("conflict", f"only your last {it.config.undo} answers can be taken back")
    mine = (e.study == study, e.seq == stands.seq)
    conn.execute(t.event.update().where(*mine).values(live=False))
    # a withdrawal names its question too, but is no live answer to it
    who = {"participant": person, "question": question, "live": False}
    studies.append(conn, study, WITHDRAW, {"of": stands.seq}, now, **who)
    lease = now + it.config.lease_seconds
    conn.execute(
        t.question.update()
        .where(t.question.c.id == question)
        .values(state=OPEN, leased_until=lease)
    )


def _part(conn: Connection, here: Any, now: float) -> Part:
    e = t.event.c
    n = conn.execute(
        sa.select(sa.func.count()).where(e.participant == here.id, e.live, e.kind == ANSWER)
    ).scalar_one()
    return Part(n, max(0.0, now - here.joined))


def _question(conn: Connection, study: str, person: str, question: str) -> Any:
    q = t.question.c
    row = conn.execute(
        sa.select(t.question).where(q.id == question, q.study == study, q.participant == person)
    ).first()
    if row is None:
        raise Refusal("unknown", "this question is not yours, or is gone: reload the page")
    return row


def _standing(conn: Connection, question: str) -> Any:
    e = t.event.c
    return conn.execute(sa.select(e.seq).where(e.question == question, e.live)).first()


def _last_answered(conn: Connection, person: str) -> str | None:
    e = t.event.c
    return conn.execute(
        sa.select(e.question)
        .where(e.participant == person, e.live, e.kind.in_((ANSWER, SKIP)))
        .order_by(e.seq.desc())
        .limit(1)
    ).scalar()
