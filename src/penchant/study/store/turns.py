"""Jobs of a participant's turn: get questions, answer them, take answers back."""

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from penchant.study import questions as rules
from penchant.study.events import ANSWER, SKIP, WITHDRAW
from penchant.study.questions import ANSWERED, CHECK, OPEN, RANDOM, SKIPPED, HowFar
from penchant.study.refusals import ParticipantRefusal
from penchant.study.store import statements, studies
from penchant.study.store import tables as t
from penchant.study.store.people import not_running, participant
from penchant.study.store.studies import RUNNING
from penchant.study.tokens import new_id


@dataclass(frozen=True)
class Turn:
    """What a participant is to see: open questions, how far they are, what they may take back."""

    questions: list[Any]
    part: HowFar
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
    part = HowFar(here.answers, max(0.0, now - here.joined))
    undo = here.last_answered if it.config.undo else None
    finished = rules.is_finished(it.config, part)
    if it.state != RUNNING or finished:
        return Turn([], part, finished, undo)
    if it.config.answers_per_person is not None:
        n = min(n, it.config.answers_per_person - part.answers)
    lent = {"who": person, "in_study": study, "until": now + it.config.lease_seconds}
    conn.execute(statements.SEEN, {"who": person, "at": now})
    still_open = conn.execute(statements.RENEW, lent).all()
    found = sorted(still_open, key=lambda row: row.opened)[:n]
    while len(found) < n:
        row = conn.execute(statements.TAKE_MINE, lent).first()
        row = row or conn.execute(statements.TAKE_ANY, lent).first()
        row = row or _balanced_random(conn, it, person, now, lent)
        if row is None:
            break
        found.append(row)
    return Turn(found, part, not found, undo)


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
    new = {
        "id": question,
        "study": it.id,
        "shown": rules.shown_order(items, question),
        "pair": rules.pair_key(items),
        "form": it.config.format,
        "kind": RANDOM,
        "created": now,
    }
    return conn.execute(statements.INSERT_OPEN, new | lent).one()


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
    row = _question(conn, study, person, question)
    stands = _standing(conn, question)
    if stands is not None:
        return Receipt(stands.seq, repeated=True)
    if row.state != OPEN:
        raise ParticipantRefusal("conflict", "not_shown")
    ms = None if ms is None else max(0, min(int(ms), 2**31 - 1))
    if order is None:
        if not config.skip:
            raise ParticipantRefusal("bad", "skip")
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
    conn.execute(statements.SET_QUESTION, {"which": question, "to_state": state})
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
        raise ParticipantRefusal("conflict", "undo", n=it.config.undo)
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


def _question(conn: Connection, study: str, person: str, question: str) -> Any:
    asked = {"which": question, "in_study": study, "who": person}
    row = conn.execute(statements.QUESTION, asked).first()
    if row is None:
        raise ParticipantRefusal("unknown", "question")
    return row


def _standing(conn: Connection, question: str) -> Any:
    return conn.execute(statements.STANDING, {"which": question}).first()
