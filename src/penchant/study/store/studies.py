"""Jobs about a study as a whole: its settings, items, invites and events."""

import gc
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from penchant.errors import DataError
from penchant.study.config import Config
from penchant.study.events import ADD_ITEM, IMPORT, RESTORE, RETIRE, STATE, Event
from penchant.study.questions import PREPARED
from penchant.study.refusals import ParticipantRefusal, Refusal
from penchant.study.store import tables as t
from penchant.study.store.tables import hash_token, new_id, new_token

RUNNING, PAUSED, CLOSED = "running", "paused", "closed"
STATES = (RUNNING, PAUSED, CLOSED)


@dataclass(frozen=True)
class NewItem:
    """An item to add; its fields are columns of the table.

    media: text, markdown, html, image, audio or video. body: the text, or the media file's name.
    caption: text under an image, audio or video.
    """

    name: str
    media: str = "text"
    body: str = ""
    features: dict[str, float] = field(default_factory=dict)
    caption: str = ""


@dataclass(frozen=True)
class Study:
    """A study's settings, state and last event number."""

    id: str
    config: Config
    state: str
    seq: int


def create(
    conn: Connection, study: str, config: Config, items: Sequence[NewItem], at: float
) -> None:
    """Create a study."""
    if study in names(conn):
        raise Refusal("conflict", f"there is a study {study!r} already: choose another name")
    row = {"id": study, "config": config.to_json(), "state": RUNNING, "seq": 0, "created": at}
    conn.execute(t.study.insert(), row)
    add_items(conn, study, items, at)


def get(conn: Connection, study: str) -> Study:
    """The study, or a refusal."""
    row = conn.execute(t.STUDY, {"in_study": study}).first()
    if row is None:
        raise ParticipantRefusal("unknown", "study")
    return Study(row.id, _parsed(row.config), row.state, row.seq)


@lru_cache(maxsize=64)
def _parsed(config: str) -> Config:
    """Cached: settings are read with every request and hardly ever change."""
    return Config.from_json(json.loads(config))


def rewrite(conn: Connection) -> None:
    """Write without a change, to see whether the database can be written."""
    conn.execute(t.study.update().values(seq=t.study.c.seq))


def names(conn: Connection) -> list[str]:
    """The ids of all studies, oldest first."""
    return list(conn.execute(sa.select(t.study.c.id).order_by(t.study.c.created)).scalars())


def set_state(conn: Connection, study: str, state: str, at: float) -> None:
    """Run, pause or close a study."""
    if state not in STATES:
        raise Refusal("bad", f"the state is {state!r}: it must be one of {', '.join(STATES)}")
    if get(conn, study).state != state:
        conn.execute(t.study.update().where(t.study.c.id == study).values(state=state))
        append(conn, study, STATE, {"state": state}, at)


def change_config(conn: Connection, study: str, changes: dict[str, Any]) -> Config:
    """Change settings; they are checked as for a new study."""
    before = get(conn, study).config
    for name in ("format", "size", "model"):
        if name in changes and changes[name] != getattr(before, name):
            raise Refusal("bad", f"{name} cannot change while a study runs: begin another study")
    values = before.to_json()
    if "stop_top" in changes and before.goal == "best":
        del values["goal"]  # it follows
    config = Config.from_json({**values, **changes})
    conn.execute(t.study.update().where(t.study.c.id == study).values(config=config.to_json()))
    return config


def append(
    conn: Connection, study: str, kind: str, payload: dict[str, Any], at: float, **columns: Any
) -> int:
    """Append an event and return its number."""
    seq = int(conn.execute(t.NEXT_NUMBER, {"in_study": study}).scalar_one())
    row = {"study": study, "seq": seq, "kind": kind, "payload": payload, "at": at, "live": True}
    conn.execute(t.INSERT_EVENT, row | columns)
    return seq


def append_all(
    conn: Connection, study: str, kind: str, payloads: Sequence[dict[str, Any]], at: float
) -> None:
    """Append events of one kind that nobody's question asked for: at once, as they may be many."""
    number = t.study.update().where(t.study.c.id == study)
    number = number.values(seq=t.study.c.seq + len(payloads))
    last = int(conn.execute(number.returning(t.study.c.seq)).scalar_one())
    row = {"study": study, "kind": kind, "at": at, "live": True}
    row |= dict.fromkeys(("participant", "question", "ms"))
    first = last - len(payloads) + 1
    rows = [row | {"seq": seq, "payload": payload} for seq, payload in enumerate(payloads, first)]
    if rows:
        conn.execute(t.INSERT_EVENT, rows)


def events_after(conn: Connection, study: str, seq: int = 0) -> list[Event]:
    """All events after a number, in order."""
    e = t.event.c
    query = sa.select(e.seq, e.kind, e.participant, e.question, e.payload, e.ms, e.at)
    with uncollected():
        rows = conn.execute(query.where(e.study == study, e.seq > seq).order_by(e.seq))
        return [Event(*row) for row in rows]


@contextmanager
def uncollected() -> Iterator[None]:
    """No search for garbage meanwhile: with a million new objects it takes longer than all else."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def add_items(conn: Connection, study: str, items: Sequence[NewItem], at: float) -> list[str]:
    """Add items, also while the study runs, and return their ids."""
    known = items_of(conn, study)
    taken = {row.name for row in known}
    columns = set(known[0].features) if known else set(items[0].features) if items else set()
    rows = []
    for position, new in enumerate(items, start=len(known)):
        if not new.name.strip():
            raise Refusal("bad", f"item {position + 1} has no name: every item needs one")
        if new.name in taken:
            raise Refusal("conflict", f"there is an item {new.name!r} already: names are unique")
        if set(new.features) != columns:
            raise Refusal(
                "bad",
                f"the item {new.name!r} has the features {sorted(new.features)}: the study's are "
                f"{sorted(columns)}; give each of them",
            )
        taken.add(new.name)
        row = {**vars(new), "body": new.body or new.name, "active": True, "asked": 0}
        rows.append(row | {"id": new_id(), "study": study, "position": position})
    ids = [row["id"] for row in rows]
    if rows:
        conn.execute(t.item.insert(), rows)
    append_all(conn, study, ADD_ITEM, [{"item": item} for item in ids], at)
    return ids


def retire(conn: Connection, study: str, item: str, at: float) -> None:
    """Retire an item: it is not asked about any more, its answers stay."""
    active = _activity(conn, study, item)
    if not active[item]:
        return
    if sum(active.values()) - 1 < get(conn, study).config.size:
        raise Refusal("conflict", "too few items would be left for a question: add others first")
    conn.execute(t.item.update().where(t.item.c.id == item).values(active=False))
    q = t.question.c
    prepared = sa.select(q.id, q.shown).where(q.study == study, q.state == PREPARED)
    gone = [row.id for row in conn.execute(prepared) if item in row.shown]
    conn.execute(t.question.delete().where(q.id.in_(gone)))
    append(conn, study, RETIRE, {"item": item}, at)


def restore(conn: Connection, study: str, item: str, at: float) -> None:
    """Bring a retired item back: it may be asked about again."""
    if _activity(conn, study, item)[item]:
        return
    conn.execute(t.item.update().where(t.item.c.id == item).values(active=True))
    append(conn, study, RESTORE, {"item": item}, at)


def _activity(conn: Connection, study: str, item: str) -> dict[str, bool]:
    """Which items are active; a refusal if a certain one is not there."""
    i = t.item.c
    rows = conn.execute(sa.select(i.id, i.active).where(i.study == study)).all()
    active = {row.id: row.active for row in rows}
    if item not in active:
        raise Refusal("unknown", "there is no such item in this study")
    return active


def items_of(conn: Connection, study: str) -> list[Any]:
    """The rows of all items, in the order of arrival."""
    query = sa.select(t.item).where(t.item.c.study == study).order_by(t.item.c.position)
    return list(conn.execute(query).all())


def people_of(conn: Connection, study: str) -> set[str]:
    """The ids of all participants."""
    p = t.participant.c
    return set(conn.execute(sa.select(p.id).where(p.study == study)).scalars())


def items_by_id(conn: Connection, ids: Iterable[str]) -> list[Any]:
    """The rows of some items."""
    return list(conn.execute(sa.select(t.item).where(t.item.c.id.in_(list(ids)))).all())


def import_answers(
    conn: Connection,
    study: str,
    rows: Iterable[dict[str, Any]],
    at: float,
    is_export: bool = False,
) -> int:
    """Import answers: items by name, order, form, count, user. Return how many rows were new.

    is_export: the rows are the whole export of some study. It holds again the rows that were
    imported from there before, and answers of this study's own participants, which are here
    already or were withdrawn. Only the rest is imported.
    """
    ids = {row.name: row.id for row in items_of(conn, study)}
    here, own = Counter[Any](), set[str]()
    if is_export:
        own, e = people_of(conn, study), t.event.c
        before = sa.select(e.payload).where(e.study == study, e.kind == IMPORT)
        for payload in conn.execute(before).scalars():
            here[_answer_key(payload["items"], payload)] += payload["count"]
    new = []
    for row in rows:
        unknown = [name for name in row["items"] if name not in ids]
        if unknown:
            raise DataError(
                f"the votes name {unknown[0]!r}, which is no item of the study: add it first, or "
                "leave the row out"
            )
        items = [ids[name] for name in row["items"]]
        key = _answer_key(items, row)
        known = row["count"] if row["user"] in own else min(row["count"], here[key])
        here[key] -= known
        if known == row["count"]:
            continue
        rest = {"items": items, "kind": "normal", "count": row["count"] - known}
        new.append({"is_ordered": False} | row | rest)
    append_all(conn, study, IMPORT, new, at)
    return len(new)


def _answer_key(items: Sequence[str], answer: dict[str, Any]) -> Any:
    """A key of an answer and its user that does not depend on the order of showing."""
    groups = tuple(tuple(sorted(items[place] for place in group)) for group in answer["order"])
    return groups, answer["user"]


def create_invite(
    conn: Connection,
    study: str,
    at: float,
    role: str = "participant",
    label: str = "",
    uses: int | None = 1,
    days: float | None = None,
) -> str:
    """Make an invitation and return its token; only a hash of it is stored."""
    get(conn, study)
    if uses is not None and uses < 1:
        raise Refusal("bad", f"uses is {uses}: an invite must serve at least once")
    token, expires = new_token(), None if days is None else at + 86_400.0 * days
    row = {"id": new_id(), "study": study, "token_hash": hash_token(token), "created": at}
    row |= {"role": role, "label": label, "uses_left": uses, "expires": expires}
    conn.execute(t.invite.insert(), row)
    return token


def find_invite(conn: Connection, study: str, token: str, role: str, now: float) -> Any:
    """The invite of a token; unknown, foreign, expired and used-up ones get the same refusal."""
    i = t.invite.c
    mine = (i.token_hash == hash_token(token), i.role == role)
    row = conn.execute(_valid_invites(study, now).where(*mine)).first()
    if row is None or row.uses_left == 0:
        raise ParticipantRefusal("token", "link")
    return row


def get_invite(conn: Connection, study: str, invite: str, now: float) -> Any | None:
    """An invite by its id, or None if it is gone or expired."""
    return conn.execute(_valid_invites(study, now).where(t.invite.c.id == invite)).first()


def _valid_invites(study: str, now: float) -> sa.Select[Any]:
    i = t.invite.c
    lasts = sa.or_(i.expires.is_(None), i.expires > now)
    return sa.select(t.invite).where(i.study == study, lasts)


def invites_of(conn: Connection, study: str) -> list[dict[str, Any]]:
    """The invites without their hashes."""
    i = t.invite.c
    query = sa.select(i.id, i.role, i.label, i.uses_left, i.expires, i.created)
    rows = conn.execute(query.where(i.study == study).order_by(i.created))
    return [dict(row._mapping) for row in rows]


def revoke_invite(conn: Connection, study: str, invite: str) -> None:
    """Revoke an invite; an owner's sessions that came from it end."""
    i = t.invite.c
    gone = conn.execute(t.invite.delete().where(i.id == invite, i.study == study))
    if not gone.rowcount:
        raise Refusal("unknown", "there is no such invite in this study")
