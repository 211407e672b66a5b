"""Read-only jobs for the owner: overview, plan, export."""

from collections.abc import Iterator
from math import ceil
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from penchant.study.events import ANSWER, IMPORT, SKIP, Answer, replay
from penchant.study.store import learning, participants, studies
from penchant.study.store import tables as t

RATE_SECONDS = 60.0
"""The rate of answers is their number within the last minute."""
ABOUT = ("user", "count", "kind", "form", "ms", "at")
"""Columns of an export that are fields of an answer."""


def version(conn: Connection, study: str) -> tuple[Any, ...]:
    """A value that changes whenever the overview does."""
    s = t.snapshot.c
    it = studies.get(conn, study)
    newest = sa.select(sa.func.max(s.seq), sa.func.max(s.created)).where(s.study == study)
    return (it.seq, it.state, it.config, *conn.execute(newest).one())


def overview(conn: Connection, study: str, now: float) -> dict[str, Any]:
    """The owner's overview: current counts, and the model's last summary."""
    it = studies.get(conn, study)
    items = {row.id: row for row in studies.items_of(conn, study)}
    known = learning.last_summary(conn, study) or {}
    folk = participants.participants_of(conn, study, now)
    ranking = [
        {**row, "name": items[row["item"]].name, "active": items[row["item"]].active}
        for row in known.get("ranking", [])
        if row["item"] in items
    ]
    ids, names = {row["id"] for row in folk}, {row.id: row.name for row in items.values()}
    return {
        "study": study,
        "state": it.state,
        "seq": it.seq,
        "counts": {
            **counts(conn, study, now),
            "participants": len(folk),
            "here": sum(row["here"] for row in folk),
            "items": sum(row.active for row in items.values()),
        },
        "model": {"seq": known.get("seq", 0), "behind": it.seq - known.get("seq", 0)},
        "ranking": ranking,
        "stop": known.get("stop"),
        "left": known.get("left"),
        "plan": plan(it.config, known.get("left")),
        "calibration": known.get("calibration"),
        "raters": [row for row in known.get("raters", []) if row["participant"] in ids],
        "communities": _named(known.get("communities"), names),
    }


def _named(known: dict[str, Any] | None, names: dict[str, str]) -> dict[str, Any] | None:
    """The groups of people, with items by their names."""
    if known is None:
        return None

    def named(some: list[str]) -> list[str]:
        return [names[item] for item in some if item in names]

    groups = [
        {**group, "best": named(group["best"]), "own": named(group["own"])}
        for group in known["groups"]
    ]
    return {**known, "groups": groups, "divisive": named(known["divisive"])}


def counts(conn: Connection, study: str, now: float) -> dict[str, Any]:
    """Counts of answers, skips and questions, and the rate of answers."""
    e, q, count = t.event.c, t.question.c, sa.func.count
    given = sa.select(
        count().filter(e.kind == ANSWER),
        count().filter(e.kind == ANSWER, e.at > now - RATE_SECONDS),
        count().filter(e.kind == SKIP),
        sa.func.sum(e.payload["count"].as_integer()).filter(e.kind == IMPORT),
    ).where(e.study == study, e.live)
    answers, recent, skips, imported = conn.execute(given).one()
    asked = sa.select(count(q.opened), count(q.opened).filter(q.model_version.is_(None)))
    questions, without_model = conn.execute(asked.where(q.study == study)).one()
    return {
        "answers": answers + (imported or 0),
        "imported": imported or 0,
        "answers_last_minute": recent,
        "skips": skips,
        "questions": questions,
        "without_model": without_model,
    }


def plan(config: Any, left: dict[str, Any] | None) -> dict[str, Any] | None:
    """The answers that are still needed, as people and as money where these are known."""
    if left is None:
        return None
    per_person = config.answers_per_person

    def cost(answers: int | None) -> dict[str, Any]:
        persons = None if answers is None or not per_person else ceil(answers / per_person)
        money = None if persons is None or config.reward is None else persons * config.reward
        return {"answers": answers, "people": persons, "money": money}

    return {name: cost(left[name]) for name in ("low", "median", "high")}


def export_rows(conn: Connection, study: str) -> Iterator[dict[str, Any]]:
    """All answers that were not withdrawn, as `penchant rank` reads them.

    One row per pair. Where questions show more than two items: one row per item and answer, with
    the item's position in the answer, so that choices and rankings stay whole. What people said
    before the first item is in columns of its own.
    """
    names = {row.id: row.name for row in studies.items_of(conn, study)}
    record = replay(studies.events_after(conn, study))
    # attention checks are about no item
    answers = [a for a in record.answers.values() if names.keys() >= set(a.items)]
    as_rows = _pair_rows if all(len(a.items) == 2 for a in answers) else _ballot_rows
    p, asked = t.participant.c, studies.get(conn, study).config.ask_first
    told = sa.select(p.id, p.said_first).where(p.study == study, p.said_first.is_not(None))
    said = {row.id: row.said_first for row in conn.execute(told)}
    # also of questions that the owner has taken away since
    columns = dict.fromkeys([*(q.name for q in asked), *(n for one in said.values() for n in one)])
    for answer in answers:
        about = {name: getattr(answer, name) for name in ABOUT}
        about |= columns | said.get(answer.user, {})
        about["excluded"] = answer.participant in record.excluded
        for row in as_rows(answer, names):
            yield row | about


def _pair_rows(answer: Answer, names: dict[str, str]) -> list[dict[str, Any]]:
    winner, loser, tie, first = answer.pair()
    shown_first = names[answer.items[0]] if first else None
    row = {"winner": names[winner], "loser": names[loser], "tie": tie}
    return [row | {"question": answer.seq, "shown_first": shown_first}]


def _ballot_rows(answer: Answer, names: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "ballot": answer.seq,
            "item": names[answer.items[place]],
            "position": position,
            # the items that "best" did not choose are not tied
            "tied": answer.form != "best" and any(len(group) > 1 for group in answer.order),
            "shown": place + 1,
        }
        for position, group in enumerate(answer.order, start=1)
        for place in group
    ]
