"""Statements of the paths that people wait for, built once: to build them costs more than to run
them. Parameters: in_study, who, which (a question), at, until, to_state."""

import sqlalchemy as sa

from penchant.study.events import ANSWER, SKIP
from penchant.study.questions import OPEN, PREPARED
from penchant.study.store import tables as t

_s, _p, _q, _e = t.study.c, t.participant.c, t.question.c, t.event.c
_study: sa.BindParameter[str] = sa.bindparam("in_study")
_who: sa.BindParameter[str] = sa.bindparam("who")
_which: sa.BindParameter[str] = sa.bindparam("which")

STUDY = sa.select(_s.id, sa.cast(_s.config, sa.Text).label("config"), _s.state, _s.seq).where(
    _s.id == _study
)

NEXT_NUMBER = t.study.update().where(_s.id == _study).values(seq=_s.seq + 1).returning(_s.seq)

_answers = sa.select(sa.func.count()).where(_e.participant == _p.id, _e.live, _e.kind == ANSWER)
_last = (
    sa.select(_e.question)
    .where(_e.participant == _p.id, _e.live, _e.kind.in_((ANSWER, SKIP)))
    .order_by(_e.seq.desc())
    .limit(1)
)
PARTICIPANT = sa.select(
    _p.id,
    _p.invite,
    _p.joined,
    _answers.scalar_subquery().label("answers"),
    _last.scalar_subquery().label("last_answered"),
).where(_p.id == _who, _p.study == _study)

SEEN = t.participant.update().where(_p.id == _who).values(last_seen=sa.bindparam("at"))

_lent = {
    "participant": _who,
    "state": OPEN,
    # numbered, because a clock may jump back and two may be opened at once
    "opened": sa.select(sa.func.count(t.question.alias("mine").c.opened) + 1)
    .where(sa.literal_column("mine.participant") == _who)
    .scalar_subquery(),
    "leased_until": sa.bindparam("until"),
}

RENEW = (
    t.question.update()
    .where(_q.participant == _who, _q.state == OPEN)
    .values(leased_until=sa.bindparam("until"))
    .returning(t.question)
)

_free = sa.select(_q.id).where(_q.study == _study, _q.state == PREPARED)
_asked = t.question.alias("asked")
_new_to_me = ~sa.exists().where(_asked.c.participant == _who, _asked.c.pair == _q.pair)


def _take(choice: sa.Select[str]) -> sa.UpdateBase:
    first = choice.order_by(_q.created, _q.id).limit(1).scalar_subquery()
    return t.question.update().where(_q.id == first).values(**_lent).returning(t.question)


TAKE_MINE = _take(_free.where(_q.participant == _who))
TAKE_ANY = _take(_free.where(_q.participant.is_(None), _new_to_me))
INSERT_OPEN = t.question.insert().values(**_lent).returning(t.question)

QUESTION = sa.select(t.question).where(_q.id == _which, _q.study == _study, _q.participant == _who)
STANDING = sa.select(_e.seq).where(_e.question == _which, _e.live)
SET_QUESTION = t.question.update().where(_q.id == _which).values(state=sa.bindparam("to_state"))
INSERT_EVENT = t.event.insert()
