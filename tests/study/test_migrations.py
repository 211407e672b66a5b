"""Databases of older versions are brought to the newest, and nothing in them is lost.

`version_1.sql` is a database that the code of version 1 made: people of every kind, answers, ties,
skips, one answer taken back, one person erased, imported votes, open questions, two snapshots.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

import penchant.study as ps
from penchant.study.store import learning, participants, reports, studies, tables

DUMP = Path(__file__).with_name("version_1.sql").read_text(encoding="utf-8")
MIGRATIONS = Path(studies.__file__).parent / "migrations"


def first_version(path):
    """The database of version 1 as a file."""
    with closing(sqlite3.connect(path)) as made:
        made.executescript(DUMP)
    return sa.create_engine(f"sqlite:///{path}")


def upgrade_to(conn, version):
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = conn
    command.upgrade(config, version)


def rows_of(engine, names=None):
    """All rows of all tables, by table: its own columns, or those in names."""
    found = {}
    with engine.connect() as conn:
        known = sa.MetaData()
        known.reflect(conn)
        for name, table in known.tables.items():
            if name != "alembic_version":
                columns = [table.c[c] for c in (names or {}).get(name, table.c.keys())]
                rows = conn.execute(sa.select(*columns))
                found[name] = [dict(row._mapping) for row in rows]
    return found


def in_order(rows):
    return {name: sorted(map(str, some)) for name, some in rows.items()}


def on_postgres(url, rows):
    """The rows of version 1 in tables that its migration made."""
    engine = sa.create_engine(ps.Database(url).url)
    with engine.begin() as conn:
        upgrade_to(conn, "0001")
        known = sa.MetaData()
        known.reflect(conn)
        for name, some in rows.items():
            conn.execute(known.tables[name].insert(), some)
    return engine


@pytest.fixture(params=["sqlite", "postgres"])
def version_1(request, tmp_path):
    """A database of version 1 and its rows, as they were."""
    engine = first_version(tmp_path / "study.db")
    rows = rows_of(engine)
    if request.param == "postgres":
        engine = on_postgres(request.getfixturevalue("postgres")(), rows)
    yield engine, rows
    engine.dispose()


def schema(engine):
    with engine.connect() as conn:
        found = conn.execute(sa.text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
        return sorted(map(tuple, found))


def test_the_first_migration_makes_what_version_1_made(tmp_path):
    made = sa.create_engine(f"sqlite:///{tmp_path / 'new.db'}")
    with made.begin() as conn:
        upgrade_to(conn, "0001")
    assert schema(made) == schema(first_version(tmp_path / "old.db"))


def test_a_database_of_version_1_is_migrated_with_all_that_it_holds(version_1):
    engine, before = version_1
    assert {name: len(rows) for name, rows in before.items()} == {
        **{"study": 1, "item": 5, "invite": 2, "participant": 3, "question": 25},
        **{"event": 18, "snapshot": 2},
    }
    with ps.Database(engine.url.render_as_string(hide_password=False)) as database:
        database.migrate()
        columns = {name: list(rows[0]) for name, rows in before.items()}
        after = rows_of(engine, columns)
        assert in_order({name: after[name] for name in before}) == in_order(before)
        assert not any(rows for name, rows in after.items() if name not in before)  # new tables
        now_there = {name: set(table.c.keys()) for name, table in tables.metadata.tables.items()}
        with engine.connect() as conn:
            known = sa.inspect(conn)
            there = {name: {c["name"] for c in known.get_columns(name)} for name in now_there}
        assert there == now_there
        goes_on(database)


def goes_on(database):
    """People return, answer, and the model learns from what was said before and after."""
    it = database.read(studies.get, "drinks")
    assert (it.config.completion_code, it.seq) == ("TEA-42", 20)
    record = ps.replay(database.read(studies.events_after, "drinks"))
    assert (len(record.answers), len(record.skipped)) == (9, 1)
    kept = database.read(learning.last_snapshot, "drinks")
    assert ps.learned_from_file(kept.model, kept.learned_at) is not None
    for person in database.read(studies.people_of, "drinks"):
        (question,) = database.write(participants.turn, "drinks", person, 1, 3000.0).questions
        said = (person, question.id, [[0], [1]], 900, 3000.0)
        database.write(participants.answer, "drinks", *said)
    ps.Worker(database, "drinks", lambda: 3000.0).step()
    state = database.read(reports.overview, "drinks", 3000.0)
    assert (state["counts"]["answers"], state["counts"]["participants"]) == (14, 3)
    assert len(state["ranking"]) == 5
