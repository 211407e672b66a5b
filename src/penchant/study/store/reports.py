"""Read-only jobs for the owner: overview, lists by the page, plan, export, panels."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from penchant.study.events import ANSWER, IMPORT, SKIP, Answer, Event, Record, replay
from penchant.study.questions import ANSWERED, SKIPPED
from penchant.study.store import learning, participants, studies
from penchant.study.store import tables as t

RATE_SECONDS = 60.0
"""The rate of answers is their number within the last minute."""
PAGE = 50
"""Rows of one page of a list."""
LEADERS = 10
"""Rows of the ranking that a live event holds."""
CURVE = 80
"""Points of the curve of certainty that a live event holds."""
MOST_POINTS = 500
"""People on the map."""
MOST_NAMED = 5000
"""Values of one condition: databases have limits."""
LISTS = ("best", "own")
"""Items that are named of each group."""
MOST_KEPT = 4
NEWEST = 2000
"""Answers whose times are counted."""
SECONDS = (0.5, 1, 2, 4, 8, 16, 32, inf)
"""Ends of the bins of the time that an answer took."""
ABOUT = ("user", "count", "kind", "form", "ms", "at")
"""Columns of an export that are fields of an answer."""


def version(conn: Connection, study: str) -> tuple[Any, ...]:
    """A value that changes whenever the overview does."""
    s = t.snapshot.c
    it = studies.get(conn, study)
    newest = sa.select(sa.func.max(s.seq), sa.func.max(s.created)).where(s.study == study)
    return (it.seq, it.state, it.config, *conn.execute(newest).one())


_KEPT: dict[tuple[Any, ...], dict[str, Any]] = {}
"""The last summaries that were read: with 5,000 items one has 1.5 MB. Nobody may change them."""


def _summary(conn: Connection, study: str) -> dict[str, Any]:
    """The summary of the newest snapshot; empty while there is none."""
    s = t.snapshot.c
    newest = sa.select(s.seq, s.created).where(s.study == study).order_by(s.seq.desc()).limit(1)
    row = conn.execute(newest).first()
    if row is None:
        return {}
    key = (str(conn.engine.url), study, *row)
    if key not in _KEPT:
        if len(_KEPT) >= MOST_KEPT:
            _KEPT.clear()
        _KEPT[key] = learning.last_summary(conn, study) or {}
    return _KEPT[key]


def _names(conn: Connection, study: str) -> dict[str, str]:
    """The names of all items by id, in the order of arrival."""
    i = t.item.c
    rows = conn.execute(sa.select(i.id, i.name).where(i.study == study).order_by(i.position))
    return {row.id: row.name for row in rows}


def _shown(conn: Connection, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Some rows about items with what is shown of them, of contents only the names of pictures."""
    i = t.item.c
    picture = sa.case((i.media == "image", i.body)).label("picture")
    shown = sa.select(i.id.label("item"), i.name, i.active, i.media, picture)
    found = conn.execute(shown.where(i.id.in_([row["item"] for row in rows])))
    about = {row.item: row._mapping for row in found}
    return [{**row, **about[row["item"]]} for row in rows if row["item"] in about]


def feature_names(conn: Connection, study: str) -> list[str]:
    """The features of the items."""
    i = t.item.c
    first = sa.select(i.features).where(i.study == study).order_by(i.position).limit(1)
    return sorted(conn.execute(first).scalar() or {})


def overview(conn: Connection, study: str, now: float) -> dict[str, Any]:
    """All there is to know: current counts, and the model's last summary."""
    known, ids, i = _summary(conn, study), studies.people_of(conn, study), t.item.c
    items = conn.execute(sa.select(i.id, i.name, i.active).where(i.study == study))
    about = {row.id: {"name": row.name, "active": row.active} for row in items}
    ranked = known.get("ranking", [])
    return {
        **live(conn, study, now),
        "ranking": [{**row, **about[row["item"]]} for row in ranked if row["item"] in about],
        "raters": [row for row in known.get("raters", []) if row["participant"] in ids],
    }


def live(conn: Connection, study: str, now: float) -> dict[str, Any]:
    """What the owner's pages follow: an overview of a few kB, however large the study is."""
    it, known = studies.get(conn, study), _summary(conn, study)
    stop, p, i, count = known.get("stop"), t.participant.c, t.item.c, sa.func.count
    is_here = p.last_seen > now - participants.PRESENT_SECONDS
    people = sa.select(count(), count().filter(is_here)).where(p.study == study)
    n_people, n_here = conn.execute(people).one()
    items = sa.select(count(), count().filter(i.active)).where(i.study == study)
    n_items, n_active = conn.execute(items).one()
    curve = learning.progress_of(conn, study, stop["reason"]) if stop else []
    return {
        "study": study,
        "state": it.state,
        "seq": it.seq,
        "counts": {
            **counts(conn, study, now),
            "participants": n_people,
            "here": n_here,
            "items": n_active,
        },
        "all_items": n_items,
        "goal": goal(it.config),
        "model": {
            "seq": known.get("seq", 0),
            "behind": it.seq - known.get("seq", 0),
            "answers": known.get("answers", 0),
        },
        "ranking": _shown(conn, known.get("ranking", [])[:LEADERS]),
        "stop": stop,
        "left": known.get("left"),
        "plan": plan(it.config, known.get("left")),
        "progress": _thinned(curve, CURVE),
        "calibration": known.get("calibration"),
        "communities": _named(conn, known.get("communities")),
    }


def goal(config: Any) -> dict[str, Any]:
    """What the owner wants to know: the best, the top k, or the whole order."""
    named, k = getattr(config, "goal", None), config.stop_top
    return {"of": named or ("best" if k == 1 else "top"), "k": k}


def _thinned(rows: Sequence[Any], n: int) -> list[Any]:
    """At most about n of the rows, evenly, the first and the last among them."""
    step = max(1, ceil(len(rows) / n))
    return [*rows[:-1:step], *rows[-1:]]


def _page(rows: Sequence[Any], page: int) -> dict[str, Any]:
    """One page of a list; beyond the last it is the last."""
    pages = max(1, ceil(len(rows) / PAGE))
    page = min(page, pages)
    return {
        "rows": list(rows[(page - 1) * PAGE : page * PAGE]),
        "n": len(rows),
        "page": page,
        "pages": pages,
    }


def ranking(conn: Connection, study: str, q: str = "", page: int = 1) -> dict[str, Any]:
    """A page of the items whose names contain q: by rank, then those that have none yet.

    low, high: of all intervals of the study, so that every page can have the same axis.
    """
    ranked, names = _summary(conn, study).get("ranking", []), _names(conn, study)
    new = names.keys() - {row["item"] for row in ranked}
    rows = [*ranked, *({"item": item, "rank": None} for item in names if item in new)]
    wanted = q.strip().casefold()
    found = _page([r for r in rows if wanted in names.get(r["item"], "").casefold()], page)
    found["rows"] = _shown(conn, found["rows"])
    scale = {
        "low": min((row["low"] for row in ranked), default=None),
        "high": max((row["high"] for row in ranked), default=None),
    }
    return found | scale


def people(conn: Connection, study: str, now: float, q: str = "", page: int = 1) -> dict[str, Any]:
    """A page of the people whose ids begin with q, those to look at more closely first.

    map: where people lie between their groups; empty while there are none. marked: the ids of all
    to look at more closely.
    """
    known = _summary(conn, study)
    about = {row["participant"]: row for row in known.get("raters", [])}
    folk = [
        {**about.get(row["id"], {"look_closer": []}), **row}
        for row in participants.participants_of(conn, study, now)
        if row["id"].startswith(q.strip())
    ]
    folk.sort(key=lambda row: (-len(row["look_closer"]), -row["answers"], row["joined"]))
    ids = {row["id"] for row in folk}
    points = (known.get("communities") or {}).get("map", [])
    return _page(folk, page) | {
        "marked": [row["id"] for row in folk if row["look_closer"]],
        "map": _thinned([point for point in points if point["participant"] in ids], MOST_POINTS),
    }


def questions(conn: Connection, study: str) -> dict[str, Any]:
    """Questions by kind, and how long the newest answers took."""
    q, e, count = t.question.c, t.event.c, sa.func.count
    kinds = sa.select(
        q.kind,
        count(q.opened).label("asked"),
        count().filter(q.state == ANSWERED).label("answered"),
        count().filter(q.state == SKIPPED).label("skipped"),
    ).where(q.study == study)
    took = sa.select(e.ms).where(e.study == study, e.live, e.kind == ANSWER, e.ms.is_not(None))
    times = conn.execute(took.order_by(e.seq.desc()).limit(NEWEST)).scalars()
    bins = Counter(next(end for end in SECONDS if ms < 1000 * end) for ms in times)
    return {
        "kinds": [dict(row._mapping) for row in conn.execute(kinds.group_by(q.kind))],
        "seconds": [
            {"below": None if end == inf else end, "answers": bins[end]} for end in SECONDS
        ],
    }


def _named(conn: Connection, known: dict[str, Any] | None) -> dict[str, Any] | None:
    """The groups of people, with items by their names."""
    if known is None:
        return None
    lists = [known["divisive"], *(group[name] for group in known["groups"] for name in LISTS)]
    ids = {item for some in lists for item in some}
    names = {row.id: row.name for row in studies.items_by_id(conn, ids)}

    def named(some: list[str]) -> list[str]:
        return [names[item] for item in some if item in names]

    groups = [
        {**group, **{name: named(group[name]) for name in LISTS}} for group in known["groups"]
    ]
    known = {name: value for name, value in known.items() if name != "map"}
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


def export_rows(conn: Connection, study: str, everybody: bool = False) -> Iterator[dict[str, Any]]:
    """All answers that were not withdrawn, as `penchant rank` reads them.

    One row per pair. Where questions show more than two items: one row per item and answer, with
    the item's position in the answer, so that choices and rankings stay whole. What people said
    before the first item is in columns of its own. These are the answers that the model learns
    from; everybody: those of excluded people, too.
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
        is_excluded = answer.participant in record.excluded
        if is_excluded and not everybody:
            continue
        about = {name: getattr(answer, name) for name in ABOUT}
        about |= columns | said.get(answer.user, {})
        about["excluded"] = is_excluded
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


@dataclass(frozen=True)
class Panel:
    """People of a panel, by the hashes of their ids, and what they answered."""

    study: studies.Study
    people: dict[str, Any]
    record: Record


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
