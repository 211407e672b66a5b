"""Jobs of the model process: who needs questions, preparing them, snapshots."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from penchant.study import questions as rules
from penchant.study.config import Config
from penchant.study.events import ERASE, EXCLUDE
from penchant.study.questions import OPEN, PREPARED, Prepared
from penchant.study.store import participants, studies
from penchant.study.store import tables as t
from penchant.study.store.participants import Exclusion
from penchant.study.store.tables import new_id

KEPT_SNAPSHOTS = 2
"""The newest, and one more in case that the newest cannot be read."""
PROGRESS_STEP = 1.02
"""Ratio of the answers of two rows of progress: 200,000 answers are some 600 rows."""
FRESH = 0.8
"""Stock questions of a model that knew less than this share of the events are replaced."""


@dataclass
class Queue:
    """Prepared and open questions: of each person who is present, and of the common stock.

    prepared: how many questions wait for a person; pending: the items of every question that
    somebody is expected to answer.
    """

    prepared: dict[str, int]
    pending: list[tuple[str, ...]] = field(default_factory=list)
    stock: int = 0


@dataclass(frozen=True)
class Snapshot:
    """A snapshot after event `seq`; its fields are columns of the table.

    model: a model file. A restart reads only the hyperparameters from it, which were learned at
    `learned_at` answers; the rest follows from the events.
    """

    seq: int
    learned_at: int
    model: bytes
    summary: dict[str, Any]


def queue_of(conn: Connection, study: str, config: Config, now: float, version: int = 0) -> Queue:
    """Read the queue; stock questions of much older models do not count."""
    q = t.question.c
    queue = Queue(dict.fromkeys(conn.execute(_present(study, now)).scalars(), 0))
    waiting = conn.execute(
        sa.select(q.participant, q.shown, q.kind, q.state, q.leased_until).where(
            q.study == study, q.state.in_((PREPARED, OPEN)), ~_is_stale(version)
        )
    )
    p = t.participant.c
    excluded = set(conn.execute(sa.select(p.id).where(p.study == study, p.excluded)).scalars())
    for row in waiting:
        leased = rules.is_pending(row.leased_until, now, config.lease_seconds)
        teaches = row.kind in rules.TEACHES and row.participant not in excluded
        if teaches and (row.state == PREPARED or leased):
            queue.pending.append(tuple(row.shown))
        if row.state == PREPARED:
            if row.participant is None:
                queue.stock += 1
            elif row.participant in queue.prepared:
                queue.prepared[row.participant] += 1
    return queue


def _present(study: str, now: float) -> sa.Select[Any]:
    p = t.participant.c
    here = (p.last_seen > now - participants.PRESENT_SECONDS, ~p.screened_out)
    return sa.select(p.id).where(p.study == study, *here)


def asked_pairs(conn: Connection, people: Sequence[str]) -> dict[str, list[str]]:
    """The sets of items of all questions that each of some people got, or have waiting."""
    q = t.question.c
    found: dict[str, list[str]] = {person: [] for person in people}
    query = sa.select(q.participant, q.pair).where(q.participant.in_(people))
    for person, pair in conn.execute(query) if people else ():
        found[person].append(pair)
    return found


def prepare(
    conn: Connection, study: str, questions: Sequence[Prepared], version: int, now: float
) -> int:
    """Insert prepared questions, without those whose items or person were removed meanwhile."""
    i, p = t.item.c, t.participant.c
    asked = {item for chosen in questions for item in chosen.items}
    those = sa.select(i.id).where(i.study == study, i.active, i.id.in_(asked))
    active = set(conn.execute(those).scalars())
    whose = [chosen.participant for chosen in questions]
    here = sa.select(p.id).where(p.study == study, p.id.in_(whose))
    people = {None, *conn.execute(here).scalars()}
    rows: list[dict[str, Any]] = []
    for chosen in questions:
        is_check = chosen.kind == rules.CHECK
        if chosen.participant in people and (is_check or active.issuperset(chosen.items)):
            # one after another, so that they are handed out in the order of their choice
            row = participants.question_row(chosen, new_id(), study, now + 1e-6 * len(rows))
            rows.append(row | {"model_version": version, "state": PREPARED})
    # those of a check are no items
    participants.count_asked(conn, [item for row in rows for item in row["shown"]])
    if rows:
        conn.execute(t.question.insert(), rows)
    return len(rows)


def _is_stale(version: int) -> sa.ColumnElement[bool]:
    """Whether a question of the stock was chosen by a model that knew much less."""
    q = t.question.c
    return sa.and_(q.state == PREPARED, q.participant.is_(None), q.model_version < FRESH * version)


def drop_unwanted(conn: Connection, study: str, now: float, version: int = 0) -> int:
    """Delete prepared questions of absent people, and stale ones."""
    q = t.question.c
    left_alone = sa.and_(q.participant.is_not(None), q.participant.not_in(_present(study, now)))
    waiting = t.question.delete().where(q.study == study, q.state == PREPARED)
    return conn.execute(waiting.where(sa.or_(left_alone, _is_stale(version)))).rowcount


def save_snapshot(conn: Connection, study: str, snapshot: Snapshot, now: float) -> bool:
    """Store a snapshot; return whether it was stored whole.

    If somebody was erased or excluded since, the model may hold their answers: then only the
    summary is stored, without the rows of the erased.
    """
    e, s = t.event.c, t.snapshot.c
    left_out = sa.select(e.payload).where(
        e.study == study, e.kind.in_((ERASE, EXCLUDE)), e.seq > snapshot.seq
    )
    whole = not any(payload.get("events", 1) for payload in conn.execute(left_out).scalars())
    if not whole:
        summary = participants.of_present(conn, study, snapshot.summary)
        snapshot = Snapshot(snapshot.seq, 0, b"", summary)
    conn.execute(t.snapshot.delete().where(s.study == study, s.seq == snapshot.seq))
    conn.execute(t.snapshot.insert().values(study=study, created=now, **vars(snapshot)))
    newest = sa.select(s.seq).where(s.study == study).order_by(s.seq.desc()).limit(KEPT_SNAPSHOTS)
    kept = list(conn.execute(newest).scalars())
    conn.execute(t.snapshot.delete().where(s.study == study, s.seq.not_in(kept)))
    _note_progress(conn, study, snapshot, now)
    return whole


def _note_progress(conn: Connection, study: str, snapshot: Snapshot, now: float) -> None:
    """Keep how many answers there are and the level of the stop rule: snapshots are deleted."""
    stop = snapshot.summary.get("stop")
    if stop is None:
        return
    row = {"answers": snapshot.summary["answers"], "level": stop["value"], "rule": stop["reason"]}
    p = t.progress.c
    newest = sa.select(p.answers, p.rule).where(p.study == study).order_by(p.seq.desc()).limit(1)
    last = conn.execute(newest).first()
    if last is not None and last.rule == row["rule"]:
        fewer, more = sorted((last.answers, row["answers"]))
        if more < max(fewer + 1, PROGRESS_STEP * fewer):
            return
    conn.execute(t.progress.delete().where(p.study == study, p.seq == snapshot.seq))
    conn.execute(t.progress.insert().values(study=study, seq=snapshot.seq, at=now, **row))


def progress_of(conn: Connection, study: str, rule: str) -> list[tuple[int, float | None, float]]:
    """Answers, level of this stop rule and time, in that order; level None: of another rule."""
    p = t.progress.c
    level = sa.case((p.rule == rule, p.level))
    query = sa.select(p.answers, level, p.at).where(p.study == study).order_by(p.seq)
    return [tuple(row) for row in conn.execute(query)]


def last_snapshot(conn: Connection, study: str) -> Snapshot | None:
    """The newest snapshot that has a model."""
    s = t.snapshot.c
    query = sa.select(s.seq, s.learned_at, s.model, s.summary).order_by(s.seq.desc())
    row = conn.execute(query.where(s.study == study, sa.func.length(s.model) > 0)).first()
    return None if row is None else Snapshot(*row)


def last_summary(conn: Connection, study: str) -> dict[str, Any] | None:
    """The summary of the newest snapshot."""
    s = t.snapshot.c
    query = sa.select(s.summary).where(s.study == study).order_by(s.seq.desc()).limit(1)
    return conn.execute(query).scalar()


PREVIEW_SECONDS = 600.0
"""A preview that is older was given up by who asked for it."""


def want_preview(conn: Connection, study: str, change: Exclusion, now: float) -> str:
    """Ask the model process for the ranking after a change; return the preview's id."""
    v = t.preview.c
    conn.execute(t.preview.delete().where(v.created < now - PREVIEW_SECONDS))
    row = {"id": new_id(), "study": study, "created": now}
    row |= {"people": change.people, "excluded": change.excluded}
    conn.execute(t.preview.insert(), row)
    return str(row["id"])


def wanted_preview(conn: Connection, study: str) -> Any | None:
    """The oldest preview that has no ranking yet."""
    v = t.preview.c
    waiting = sa.select(t.preview).where(v.study == study, v.ranking.is_(None))
    return conn.execute(waiting.order_by(v.created).limit(1)).first()


def save_preview(conn: Connection, study: str, preview: str, ranking: list[dict[str, Any]]) -> None:
    """Store the ranking of a preview, unless nobody waits for it any more."""
    names = {row.id: row.name for row in studies.items_of(conn, study)}
    ranking = [{**row, "name": names[row["item"]]} for row in ranking]
    conn.execute(t.preview.update().where(t.preview.c.id == preview).values(ranking=ranking))


def preview(conn: Connection, preview: str) -> list[dict[str, Any]] | None:
    """The ranking of a preview once it is there."""
    return conn.execute(sa.select(t.preview.c.ranking).where(t.preview.c.id == preview)).scalar()


def end_preview(conn: Connection, preview: str) -> None:
    """Delete a preview."""
    conn.execute(t.preview.delete().where(t.preview.c.id == preview))
