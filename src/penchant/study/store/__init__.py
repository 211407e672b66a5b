"""Where a study is kept: tables, migrations, one writer at a time, on SQLite and PostgreSQL."""

from penchant.study.store.database import Database

__all__ = ["Database"]
