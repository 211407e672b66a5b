"""Jobs on everything that a database holds of one study: copy it, delete it."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from penchant.study.store import tables as t

ROWS = 1000
"""Rows that are copied at a time."""


def _of_study(table: Table) -> "sa.ColumnElement[str]":
    return table.c["id" if table is t.study else "study"]


def copy_to(source: Connection, target: Connection, study: str) -> None:
    """Copy all rows of a study, as of one moment, into a database that does not hold it."""
    if source.dialect.name == "postgresql":
        source.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    for table in t.metadata.sorted_tables:
        query = sa.select(table).where(_of_study(table) == study)
        for rows in source.execute(query.execution_options(yield_per=ROWS)).partitions():
            target.execute(table.insert(), [dict(row._mapping) for row in rows])


def delete(conn: Connection, study: str) -> int:
    """Delete all rows of a study; return how many."""
    tables = t.metadata.sorted_tables
    return sum(conn.execute(s.delete().where(_of_study(s) == study)).rowcount for s in tables)


def set_backup(conn: Connection, study: str, backup: dict[str, Any]) -> None:
    """Keep when (`at`), where (`file`) the last backup was written, and its `bytes`."""
    conn.execute(t.study.update().where(t.study.c.id == study).values(backup=backup))


def last_backup(conn: Connection, study: str) -> dict[str, Any] | None:
    """What `set_backup` kept; None if there is no backup."""
    return conn.execute(sa.select(t.study.c.backup).where(t.study.c.id == study)).scalar()
