"""The store against a plain model of what it must do, and against what goes wrong."""

import threading
import time
from itertools import combinations, pairwise
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

import penchant.study as ps
from penchant.errors import DataError
from penchant.study.store import learning, participants, studies, tables

LEASE, LIMIT, UNDO = 60, 6, 3
FIRST, SECOND, TIE = [[0], [1]], [[1], [0]], [[0, 1]]


class StoreMachine(RuleBasedStateMachine):
    """Everything that may happen to a study, beside a plain account of it."""

    new_address = voting_in = None
    persons = Bundle("persons")

    @initialize()
    def begin(self):
        self.db = ps.Database(type(self).new_address())
        self.db.migrate()
        limits = {"lease_seconds": LEASE, "answers_per_person": LIMIT, "undo": UNDO}
        self.study = type(self).voting_in(self.db, **limits, tie=True)
        self.items = {row.id: True for row in self.study.read(studies.items_of)}
        self.state = "running"
        self.standing = {}  # question → (person, order or None for a skip, seq), in order
        self.open = {}  # person → questions in the order of opening
        self.leases = {}  # open question → (items, until)
        self.asked = {}  # person → keys

    def teardown(self):
        if hasattr(self, "db"):
            self.db.close()

    def say(self, person, question, order):
        return self.study.write(participants.answer, person, question, order, 900, self.study.now)

    def until(self):
        return self.study.now + LEASE

    def active(self):
        return [item for item, is_active in self.items.items() if is_active]

    def answers_of(self, person):
        return [q for q, (who, _, _) in self.standing.items() if who == person]

    def n_answers(self, person):
        return sum(self.standing[q][1] is not None for q in self.answers_of(person))

    @rule(target=persons)
    def join(self):
        if self.state != "running":
            with pytest.raises(ps.Refusal, match="study is"):
                self.study.join()
            return multiple()
        person = self.study.join()
        self.open[person], self.asked[person] = [], set()
        return person

    @rule(person=persons, n=st.integers(1, 3))
    def turn(self, person, n):
        got = self.study.turn(person, n)
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
            self.leases[question] = (self.leases[question][0], self.until())
        for row in got.questions[len(expected) :]:
            assert all(self.items[item] for item in row.shown)
            assert len(set(row.shown)) == 2
            assert ps.pair_key(row.shown) not in self.asked[person]
            self.open[person].append(row.id)
            self.asked[person].add(ps.pair_key(row.shown))
            self.leases[row.id] = (tuple(row.shown), self.until())
        if len(got.questions) < n:
            assert set(map(ps.pair_key, combinations(self.active(), 2))) <= self.asked[person]

    @rule(person=persons, order=st.sampled_from([None, FIRST, SECOND, TIE]))
    def answer(self, person, order):
        if not self.open[person]:
            return
        question = self.open[person].pop(0)
        seq, repeated = self.say(person, question, order)
        assert not repeated
        del self.leases[question]
        self.standing[question] = (person, order, seq)

    @rule(person=persons, order=st.sampled_from([None, FIRST, SECOND]))
    def answer_again(self, person, order):
        for question in self.answers_of(person)[-1:]:
            assert self.say(person, question, order) == (self.standing[question][2], True)

    @rule(person=persons, other=persons)
    def answer_for_somebody_else(self, person, other):
        if person != other and self.open[person]:
            with pytest.raises(ps.Refusal, match="not yours"):
                self.say(other, self.open[person][0], FIRST)

    @rule(person=persons, back=st.integers(1, UNDO + 1))
    def undo(self, person, back):
        mine = self.answers_of(person)
        if len(mine) < back:
            return
        undo = (participants.undo, person, mine[-back], self.study.now)
        if self.state != "running" or back > UNDO:
            with pytest.raises(ps.Refusal):
                self.study.write(*undo)
            return
        self.study.write(*undo)
        self.study.write(*undo)  # a retry changes nothing
        del self.standing[mine[-back]]
        q = tables.question.c
        rows = execute(self.db, sa.select(q.id, q.opened, q.shown).where(q.participant == person))
        opened = {row.id: (row.opened, row.id) for row in rows}
        self.open[person] = sorted([*self.open[person], mine[-back]], key=opened.__getitem__)
        shown = next(tuple(row.shown) for row in rows if row.id == mine[-back])
        self.leases[mine[-back]] = (shown, self.until())

    @rule(person=persons, data=st.data())
    def prepare(self, person, data):
        for who in (person, None):
            items = data.draw(st.permutations(self.active()))[:2]
            if who is None or ps.pair_key(items) not in self.asked[who]:
                new = [ps.Prepared(who, tuple(items), "pair", "normal", 0.5)]
                assert self.study.write(learning.prepare, new, 1, 0.0) == 1
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
        self.study.now += seconds

    @rule()
    def pause_or_run(self):
        self.state = "paused" if self.state == "running" else "running"
        self.study.write(studies.set_state, self.state, self.study.now)

    @rule()
    def add_item(self):
        new = [ps.NewItem(f"new {len(self.items)}")]
        (item,) = self.study.write(studies.add_items, new, self.study.now)
        self.items[item] = True

    @rule(data=st.data())
    def retire(self, data):
        item = data.draw(st.sampled_from(sorted(self.items)))
        retire = (studies.retire, item, self.study.now)
        if self.items[item] and len(self.active()) <= 2:
            with pytest.raises(ps.Refusal, match="too few"):
                self.study.write(*retire)
        else:
            self.study.write(*retire)
            self.items[item] = False

    @rule(person=consumes(persons))
    def erase(self, person):
        self.study.write(participants.erase, person, self.study.now)
        for question in self.open.pop(person):
            del self.leases[question]
        self.standing = {q: told for q, told in self.standing.items() if told[0] != person}
        with pytest.raises(ps.Refusal, match="not taking part"):
            self.study.turn(person)

    @invariant()
    def a_replay_tells_the_same(self):
        events = self.study.read(studies.events_after)
        numbers = [event.seq for event in events]
        assert numbers == sorted(set(numbers))
        record = ps.replay(events)
        told = {seq: order for _, order, seq in self.standing.values()}
        assert {seq: a.order for seq, a in record.answers.items()} == {
            seq: tuple(map(tuple, order)) for seq, order in told.items() if order is not None
        }
        assert set(record.skipped) == {seq for seq, order in told.items() if order is None}
        assert record.items == self.items

    @invariant()
    def leases_are_what_is_pending(self):
        now, q = self.study.now, tables.question.c
        queue = self.study.read(learning.queue_of, self.study.read(studies.get).config, now)
        prepared = execute(self.db, sa.select(q.shown).where(q.state == "prepared"))
        held = [items for items, until in self.leases.values() if ps.is_pending(until, now, LEASE)]
        assert sorted(queue.pending) == sorted([*held, *(tuple(row.shown) for row in prepared)])


def execute(database, query):
    return database.read(lambda conn: conn.execute(query).all())


def test_the_store_does_what_a_plain_model_does(new_address, voting_in):
    StoreMachine.voting_in, StoreMachine.new_address = voting_in, staticmethod(new_address)
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


def another(database):
    """The same database, as another process opens it."""
    return ps.Database(database.url.render_as_string(hide_password=False))


def test_numbers_are_given_in_the_order_of_commits(database, voting):
    """Writers in threads and in two processes' worth of connections: no gap, no double, no loss."""
    study, seen = voting(), []
    start = study.read(studies.get).seq

    def write(store):
        for _ in range(30):
            store.write(studies.append, study.name, "state", {}, 0.0)

    def read():
        last = start
        while last < start + 120:
            for event in study.read(studies.events_after, last):
                seen.append(event.seq)
                last = event.seq
            time.sleep(0.001)  # without it writers wait for the interpreter's lock

    with another(database) as other:
        threads = [threading.Thread(target=write, args=(s,)) for s in (database, other) * 2]
        threads.append(threading.Thread(target=read))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert seen == list(range(start + 1, start + 121))


def test_a_failing_job_takes_no_other_with_it(database, study):

    def job(conn, fails):
        studies.append(conn, study.name, "state", {}, 0.0)
        if fails:
            raise DataError("no")

    before = study.read(studies.get).seq
    futures = [database.submit(job, n == 3) for n in range(8)]
    with pytest.raises(DataError, match="no"):
        futures[3].result()
    assert len([f for f in futures if f.exception() is None]) == 7
    assert study.read(studies.get).seq == before + 7


def test_two_answers_at_once_are_one(database, study):
    person = study.join()
    given = (study.name, person, study.turn(person).questions[0].id, FIRST, 5, 3.0)
    with another(database) as other:
        futures = [store.submit(participants.answer, *given) for store in [database, other] * 5]
        receipts = [future.result() for future in futures]
    assert len({seq for seq, _ in receipts}) == 1
    assert sum(not repeated for _, repeated in receipts) == 1


def test_questions_are_taken_from_my_queue_then_from_the_stock_then_at_random(study):
    ids = [row.id for row in study.read(studies.items_of)]
    person = study.join()
    new = [
        ps.Prepared(None, (ids[0], ids[1]), "pair", "normal"),
        ps.Prepared(None, (ids[1], ids[2]), "pair", "normal"),
        ps.Prepared(person, (ids[0], ids[1]), "pair", "random", 0.7),
    ]
    study.write(learning.prepare, new, 17, 1.5)
    got = study.turn(person, 3).questions
    assert [ps.pair_key(q.shown) for q in got[:2]] == [
        ps.pair_key(new[2].items),
        ps.pair_key(new[1].items),  # not the first of the stock: it was asked a moment ago
    ]
    assert [q.model_version for q in got] == [17, 17, None]
    assert got[0].p_before == pytest.approx(0.7 if got[0].shown[0] == ids[0] else 0.3)
    assert not {ids[0], ids[1]} & set(got[2].shown)  # what was asked about least


def test_invites_are_kept_as_hashes_and_serve_as_often_as_they_may(database, voting):
    study = voting(open_link=False)
    token = study.write(studies.create_invite, 1.0, uses=2, days=1)
    assert token not in str(execute(database, sa.select(tables.invite)))
    with pytest.raises(ps.Refusal, match="by invitation"):
        study.join()
    for _ in range(2):
        study.join(token=token)
    late = study.write(studies.create_invite, 1.0, uses=2, days=1)
    for wrong, at in ((token, 2000.0), ("guess", 2000.0), (late, 1.0 + 86_401)):
        study.now = at
        with pytest.raises(ps.Refusal, match="not valid"):
            study.join(token=wrong)


def test_a_panel_participant_who_returns_is_the_same(voting):
    """If their browser knows them; else an id that somebody answered under is taken."""
    study, panel = voting(), {"external_id_hash": "h"}
    nobody_yet = study.join(**panel)
    first = study.join(**panel)  # whoever began and did not answer loses nothing
    assert first != nobody_yet
    with pytest.raises(ps.Refusal, match="not taking part"):
        study.turn(nobody_yet)
    study.answer(first, study.turn(first).questions[0], None)
    study.write(studies.set_state, "closed", 2.0)
    assert study.join(**panel, known=first) == first
    for known in (None, nobody_yet, "made up"):
        with pytest.raises(ps.Refusal, match="already"):
            study.join(**panel, known=known)


def test_erasing_leaves_nothing_behind(tmp_path, voting_in):
    with ps.Database(f"sqlite:///{tmp_path / 'study.db'}") as database:
        database.migrate()
        study = voting_in(database)
        token = study.write(studies.create_invite, 1.0, label="Ann Example", uses=1)
        person = study.join(token=token, external_id_hash="f00dcafe" * 8)
        question = study.turn(person).questions[0]
        study.answer(person, question, FIRST)
        about = (person.encode(), {"raters": [{"participant": person}]})
        study.write(learning.save_snapshot, ps.Snapshot(9, 0, *about), 4.0)
        study.write(participants.erase, person, 5.0)
        assert not study.write(learning.save_snapshot, ps.Snapshot(6, 0, *about), 6.0)
        database.scrub()
        traces = (person, question.id, "f00dcafe", "Ann Example")
        for file in tmp_path.iterdir():
            content = file.read_bytes()
            assert not [trace for trace in traces if trace.encode() in content], file


def test_retired_items_are_asked_no_more(study):
    ids = [row.id for row in study.read(studies.items_of)]
    new = [ps.Prepared(None, (ids[0], ids[1]), "pair", "normal")]
    study.write(learning.prepare, new, 1, 1.0)
    study.write(studies.retire, ids[0], 2.0)
    assert study.write(learning.prepare, new, 1, 3.0) == 0
    got = study.turn(study.join(), 9).questions
    assert len(got) == 6  # every pair of the four that are left
    assert all(ids[0] not in q.shown for q in got)


def test_names_and_features_of_items_are_checked(study):
    for new, words in (
        (ps.NewItem("tea"), "already"),
        (ps.NewItem(" "), "no name"),
        (ps.NewItem("wine", features={"x": 1.0}), "the study's are"),
    ):
        with pytest.raises(ps.Refusal, match=words):
            study.write(studies.add_items, [new], 2.0)


@pytest.mark.parametrize("address", ["study.db", "mysql://localhost/x", "sqlite//x"])
def test_addresses_that_are_none(address):
    with pytest.raises(DataError, match=r"database"):
        ps.Database(address)


def test_the_newest_snapshots_are_kept(database, study):
    for seq in (1, 2, 3):
        assert study.write(learning.save_snapshot, ps.Snapshot(seq, 0, b"model", {"seq": seq}), 1.0)
    assert study.read(learning.last_snapshot).seq == 3
    assert study.read(learning.last_summary) == {"seq": 3}
    assert len(execute(database, sa.select(tables.snapshot))) == learning.KEPT_SNAPSHOTS


def test_nothing_is_pickled():
    source = Path(studies.__file__).parents[1]
    assert not [f for f in source.rglob("*.py") if "import pickle" in f.read_text()]


def test_progress_is_a_few_small_rows_however_many_snapshots_there_are(study):
    def save(seq, answers, level, rule="top 1"):
        stop = {"stop": False, "value": level, "target": 0.95, "reason": rule}
        snapshot = learning.Snapshot(seq, 0, b"", {"answers": answers, "stop": stop})
        study.write(learning.save_snapshot, snapshot, float(seq))

    study.write(learning.save_snapshot, learning.Snapshot(1, 0, b"", {"stop": None}), 1.0)
    for n in range(1, 1001):
        save(n + 1, n, n / 1000)
    rows = study.read(learning.progress_of, "top 1")
    assert rows[:50] == [(n, n / 1000, n + 1.0) for n in range(1, 51)]
    assert 150 < len(rows) < 210
    assert all(after[0] <= 1.02 * before[0] + 1 for before, after in pairwise(rows))
    save(1002, 1000, 0.7, "top 3")  # another rule begins a curve of its own
    save(1003, 1001, 0.8, "top 3")
    assert study.read(learning.progress_of, "top 1") == [*rows, (1000, None, 1002.0)]
    (*earlier, last) = study.read(learning.progress_of, "top 3")
    assert (last, {level for _, level, _ in earlier}) == ((1000, 0.7, 1002.0), {None})
    save(1004, 500, 0.6, "top 3")  # somebody's answers are gone
    assert [n for n, _, _ in study.read(learning.progress_of, "top 3")][-2:] == [1000, 500]
