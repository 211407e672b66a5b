"""The store against a plain model of what it must do, and against what goes wrong."""

import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from penchant.errors import DataError
from penchant.study import (
    Database,
    NewItem,
    Prepared,
    Refusal,
    Snapshot,
    is_pending,
    pair_key,
    replay,
)
from penchant.study.store import learning, participants, studies, tables

LEASE, LIMIT, UNDO = 60, 6, 3


class StoreMachine(RuleBasedStateMachine):
    """Everything that may happen to a study, beside a plain account of it."""

    new_address = make_study = None
    persons = Bundle("persons")

    @initialize()
    def begin(self):
        self.db = Database(type(self).new_address())
        self.db.migrate()
        self.study = type(self).make_study(
            self.db, lease_seconds=LEASE, answers_per_person=LIMIT, undo=UNDO, tie=True
        )
        self.now = 2000.0
        self.items = {row.id: True for row in self.db.read(studies.items_of, self.study)}
        self.state = "running"
        self.standing = {}  # question → (person, order or None for a skip, seq), in order
        self.open = {}  # person → questions in the order of opening
        self.leases = {}  # open question → (items, until)
        self.asked = {}  # person → keys

    def teardown(self):
        if hasattr(self, "db"):
            self.db.close()

    def say(self, person, question, order):
        given = (self.study, person, question, order, 900, self.now)
        return self.db.write(participants.answer, *given)

    def answers_of(self, person):
        return [q for q, (who, _, _) in self.standing.items() if who == person]

    def n_answers(self, person):
        return sum(self.standing[q][1] is not None for q in self.answers_of(person))

    @rule(target=persons)
    def join(self):
        if self.state != "running":
            with pytest.raises(Refusal, match="study is"):
                self.db.write(participants.join, self.study, self.now)
            return multiple()
        person = self.db.write(participants.join, self.study, self.now)
        self.open[person], self.asked[person] = [], set()
        return person

    @rule(person=persons, n=st.integers(1, 3))
    def turn(self, person, n):
        got = self.db.write(participants.turn, self.study, person, n, self.now)
        finished = self.n_answers(person) >= LIMIT
        assert got.answers == self.n_answers(person)
        if finished or self.state != "running":
            assert not got.questions
            assert got.finished == finished
            return
        n = min(n, LIMIT - self.n_answers(person))
        expected = self.open[person][:n]
        assert [q.id for q in got.questions[: len(expected)]] == expected
        for question in self.open[person]:
            self.leases[question] = (self.leases[question][0], self.now + LEASE)
        for row in got.questions[len(expected) :]:
            assert all(self.items[item] for item in row.shown)
            assert len(set(row.shown)) == 2
            assert pair_key(row.shown) not in self.asked[person]
            self.open[person].append(row.id)
            self.asked[person].add(pair_key(row.shown))
            self.leases[row.id] = (tuple(row.shown), self.now + LEASE)
        if len(got.questions) < n:
            active = [item for item, is_active in self.items.items() if is_active]
            pairs = {pair_key((a, b)) for a in active for b in active if a < b}
            assert pairs <= self.asked[person]

    @rule(person=persons, order=st.sampled_from([None, [[0], [1]], [[1], [0]], [[0, 1]]]))
    def answer(self, person, order):
        if not self.open[person]:
            return
        question = self.open[person].pop(0)
        seq, repeated = self.say(person, question, order)
        assert not repeated
        del self.leases[question]
        self.standing[question] = (person, order, seq)

    @rule(person=persons, order=st.sampled_from([None, [[0], [1]], [[1], [0]]]))
    def answer_again(self, person, order):
        if not self.answers_of(person):
            return
        question = self.answers_of(person)[-1]
        seq, repeated = self.say(person, question, order)
        assert repeated
        assert seq == self.standing[question][2]

    @rule(person=persons, other=persons)
    def answer_for_somebody_else(self, person, other):
        if person != other and self.open[person]:
            with pytest.raises(Refusal, match="not yours"):
                self.say(other, self.open[person][0], [[0], [1]])

    @rule(person=persons, back=st.integers(1, UNDO + 1))
    def undo(self, person, back):
        mine = self.answers_of(person)
        if len(mine) < back:
            return
        question = mine[-back]
        undo = (participants.undo, self.study, person, question, self.now)
        if self.state != "running" or back > UNDO:
            with pytest.raises(Refusal):
                self.db.write(*undo)
            return
        self.db.write(*undo)
        self.db.write(*undo)  # a retry changes nothing
        del self.standing[question]
        rows = self.db.read(
            lambda c: c.execute(
                sa.select(tables.question).where(tables.question.c.participant == person)
            ).all()
        )
        opened = {row.id: (row.opened, row.id) for row in rows}
        self.open[person] = sorted([*self.open[person], question], key=opened.__getitem__)
        shown = next(tuple(row.shown) for row in rows if row.id == question)
        self.leases[question] = (shown, self.now + LEASE)

    @rule(person=persons, data=st.data())
    def prepare(self, person, data):
        active = [item for item, is_active in self.items.items() if is_active]
        for who in (person, None):
            items = data.draw(st.permutations(active))[:2]
            if who is None or pair_key(items) not in self.asked[who]:
                new = [Prepared(who, tuple(items), "pair", "normal", 0.5)]
                n = self.db.write(learning.prepare, self.study, new, 1, 0.0)
                assert n == 1
                if who is not None:
                    self.db.write(self._forget_prepared_unless_new(who))

    def _forget_prepared_unless_new(self, person):
        """Two prepared questions about one pair for one person would be the caller's mistake."""

        def job(conn):
            q = tables.question.c
            mine = sa.select(q.id, q.pair).where(q.participant == person, q.state == "prepared")
            rows = conn.execute(mine.order_by(q.created)).all()
            first = {row.pair: row.id for row in reversed(rows)}
            extra = [row.id for row in rows if first[row.pair] != row.id]
            conn.execute(tables.question.delete().where(q.id.in_(extra)))

        return job

    @rule(seconds=st.sampled_from([1.0, 30.0, 61.0, -500.0]))
    def clock(self, seconds):
        self.now += seconds

    @rule()
    def pause_or_run(self):
        self.state = "paused" if self.state == "running" else "running"
        self.db.write(studies.set_state, self.study, self.state, self.now)

    @rule()
    def add_item(self):
        new = [NewItem(f"new {len(self.items)}")]
        ids = self.db.write(studies.add_items, self.study, new, self.now)
        self.items[ids[0]] = True

    @rule(data=st.data())
    def retire(self, data):
        item = data.draw(st.sampled_from(sorted(self.items)))
        would_be_left = sum(self.items.values()) - self.items[item]
        retire = (studies.retire, self.study, item, self.now)
        if self.items[item] and would_be_left < 2:
            with pytest.raises(Refusal, match="too few"):
                self.db.write(*retire)
        else:
            self.db.write(*retire)
            self.items[item] = False

    @rule(person=consumes(persons))
    def erase(self, person):
        self.db.write(participants.erase, self.study, person, self.now)
        for question in self.open.pop(person):
            del self.leases[question]
        self.standing = {q: told for q, told in self.standing.items() if told[0] != person}
        with pytest.raises(Refusal, match="not taking part"):
            self.db.write(participants.turn, self.study, person, 1, self.now)

    @invariant()
    def a_replay_tells_the_same(self):
        events = self.db.read(studies.events_after, self.study)
        numbers = [event.seq for event in events]
        assert numbers == sorted(set(numbers))
        record = replay(events)
        told = {seq: order for _, order, seq in self.standing.values()}
        assert {seq: a.order for seq, a in record.answers.items()} == {
            seq: tuple(map(tuple, order)) for seq, order in told.items() if order is not None
        }
        assert set(record.skipped) == {seq for seq, order in told.items() if order is None}
        assert record.items == self.items

    @invariant()
    def leases_are_what_is_pending(self):
        config = self.db.read(studies.get, self.study).config
        queue = self.db.read(learning.queue_of, self.study, config, self.now)
        q = tables.question.c
        prepared = self.db.read(
            lambda c: c.execute(sa.select(q.shown).where(q.state == "prepared")).all()
        )
        held = [
            items for items, until in self.leases.values() if is_pending(until, self.now, LEASE)
        ]
        assert sorted(queue.pending) == sorted([*held, *(tuple(row.shown) for row in prepared)])


def test_the_store_does_what_a_plain_model_does(new_address, make_study):
    StoreMachine.make_study = staticmethod(make_study)
    StoreMachine.new_address = staticmethod(new_address)
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=15 if "sqlite" in new_address() else 6,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_migrations_lead_to_the_tables_that_the_code_uses(database):
    def differences(conn):
        return compare_metadata(MigrationContext.configure(conn), tables.metadata)

    assert database.read(differences) == []
    database.migrate()  # a second time there is nothing to do


def test_numbers_are_given_in_the_order_of_commits(database, make_study):
    """Writers in threads and in two processes' worth of connections: no gap, no double, no loss."""
    study = make_study(database)
    other = Database(database.url.render_as_string(hide_password=False))
    start = database.read(studies.get, study).seq
    seen = []

    def write(store, n):
        for _ in range(n):
            store.write(studies.append, study, "state", {}, 0.0)

    def read():
        last = start
        while last < start + 120:
            for event in database.read(studies.events_after, study, last):
                seen.append(event.seq)
                last = event.seq

    threads = [threading.Thread(target=write, args=(s, 30)) for s in (database, other) * 2]
    threads.append(threading.Thread(target=read))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    other.close()
    assert seen == list(range(start + 1, start + 121))


def test_a_failing_job_takes_no_other_with_it(database, make_study):
    study = make_study(database)

    def fail(conn):
        studies.append(conn, study, "state", {}, 0.0)
        raise DataError("no")

    before = database.read(studies.get, study).seq
    futures = [
        database.submit(fail if n == 3 else lambda c: studies.append(c, study, "state", {}, 0.0))
        for n in range(8)
    ]
    with pytest.raises(DataError, match="no"):
        futures[3].result()
    assert len([f for f in futures if f.exception() is None]) == 7
    assert database.read(studies.get, study).seq == before + 7


def test_two_answers_at_once_are_one(database, voting):
    study = voting()
    person = study.join()
    question = study.turn(person).questions[0].id
    given = (study.name, person, question, [[0], [1]], 5, 3.0)
    with Database(database.url.render_as_string(hide_password=False)) as other:
        stores = [database, other] * 5
        futures = [store.submit(lambda c: participants.answer(c, *given)) for store in stores]
        receipts = [future.result() for future in futures]
    assert len({seq for seq, _ in receipts}) == 1
    assert sum(not repeated for _, repeated in receipts) == 1


def test_questions_are_taken_from_my_queue_then_from_the_stock_then_at_random(database, make_study):
    study = make_study(database)
    ids = [row.id for row in database.read(studies.items_of, study)]
    person = database.write(participants.join, study, 1.0)
    new = [
        Prepared(None, (ids[0], ids[1]), "pair", "normal"),
        Prepared(None, (ids[1], ids[2]), "pair", "normal"),
        Prepared(person, (ids[0], ids[1]), "pair", "random", 0.7),
    ]
    database.write(learning.prepare, study, new, 17, 1.5)
    got = database.write(participants.turn, study, person, 3, 2.0).questions
    assert [pair_key(q.shown) for q in got[:2]] == [
        pair_key(new[2].items),
        pair_key(new[1].items),  # not the first of the stock: it was asked a moment ago
    ]
    assert [q.model_version for q in got] == [17, 17, None]
    assert not {ids[0], ids[1]} & set(got[2].shown)  # what was asked about least


def test_invites_are_kept_as_hashes_and_serve_as_often_as_they_may(database, make_study):
    study = make_study(database, open_link=False)
    token = database.write(studies.create_invite, study, 1.0, uses=2, days=1)
    rows = database.read(lambda c: c.execute(sa.select(tables.invite)).all())
    assert token not in str(rows)
    with pytest.raises(Refusal, match="by invitation"):
        database.write(participants.join, study, 1.0)
    for _ in range(2):
        database.write(participants.join, study, 2.0, token=token)
    for wrong, at in ((token, 2.0), ("guess", 2.0), (token, 1.0 + 86_401)):
        with pytest.raises(Refusal, match="not valid"):
            database.write(participants.join, study, at, token=wrong)


def test_a_panel_participant_who_returns_is_the_same(database, make_study):
    """If their browser knows them; else an id that somebody answered under is taken."""
    study = make_study(database)

    def join(known=None):
        given = {"external_id_hash": "h", "known": known}
        return database.write(participants.join, study, 1.0, **given)

    nobody_yet = join()
    first = join()  # whoever began and did not answer loses nothing
    assert first != nobody_yet
    with pytest.raises(Refusal, match="not taking part"):
        database.write(participants.turn, study, nobody_yet, 1, 2.0)
    question = database.write(participants.turn, study, first, 1, 2.0).questions[0].id
    database.write(participants.answer, study, first, question, None, 5, 2.0)
    database.write(studies.set_state, study, "closed", 2.0)
    assert join(first) == first
    for known in (None, nobody_yet, "made up"):
        with pytest.raises(Refusal, match="already"):
            join(known)


def test_erasing_leaves_nothing_behind(tmp_path, make_study):
    path = tmp_path / "study.db"
    database = Database(f"sqlite:///{path}")
    database.migrate()
    study = make_study(database)
    token = database.write(studies.create_invite, study, 1.0, label="Ann Example", uses=1)
    person = database.write(
        participants.join, study, 1.0, token=token, external_id_hash="f00dcafe" * 8
    )
    question = database.write(participants.turn, study, person, 1, 2.0).questions[0].id
    database.write(participants.answer, study, person, question, [[0], [1]], 5, 3.0)
    about = (person.encode(), {"raters": [{"participant": person}]})
    database.write(learning.save_snapshot, study, Snapshot(9, 0, *about), 4.0)
    database.write(participants.erase, study, person, 5.0)
    late = Snapshot(6, 0, *about)
    assert not database.write(learning.save_snapshot, study, late, 6.0)
    database.scrub()
    traces = (person, question, "f00dcafe", "Ann Example")
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert not [trace for trace in traces if trace.encode() in content], file
    database.close()


def test_retired_items_are_asked_no_more(database, make_study):
    study = make_study(database)
    ids = [row.id for row in database.read(studies.items_of, study)]
    new = [Prepared(None, (ids[0], ids[1]), "pair", "normal")]
    database.write(learning.prepare, study, new, 1, 1.0)
    database.write(studies.retire, study, ids[0], 2.0)
    assert database.write(learning.prepare, study, new, 1, 3.0) == 0
    person = database.write(participants.join, study, 3.0)
    got = database.write(participants.turn, study, person, 9, 4.0).questions
    assert len(got) == 6  # every pair of the four that are left
    assert all(ids[0] not in q.shown for q in got)


def test_names_and_features_of_items_are_checked(database, make_study):
    study = make_study(database)
    for new, words in (
        (NewItem("tea"), "already"),
        (NewItem(" "), "no name"),
        (NewItem("wine", features={"x": 1.0}), "the study's are"),
    ):
        with pytest.raises(Refusal, match=words):
            database.write(studies.add_items, study, [new], 2.0)


@pytest.mark.parametrize("address", ["study.db", "mysql://localhost/x", "sqlite//x"])
def test_addresses_that_are_none(address):
    with pytest.raises(DataError, match=r"database"):
        Database(address)


def test_the_newest_snapshots_are_kept(database, make_study):
    study = make_study(database)
    for seq in (1, 2, 3):
        new = Snapshot(seq, 0, b"model", {"seq": seq})
        assert database.write(learning.save_snapshot, study, new, 1.0)
    assert database.read(learning.last_snapshot, study).seq == 3
    assert database.read(learning.last_summary, study) == {"seq": 3}
    count = sa.select(sa.func.count()).select_from(tables.snapshot)
    assert database.read(lambda c: c.execute(count).scalar()) == learning.KEPT_SNAPSHOTS


def test_nothing_is_pickled():
    source = Path(studies.__file__).parents[1]
    assert not [f for f in source.rglob("*.py") if "import pickle" in f.read_text()]
