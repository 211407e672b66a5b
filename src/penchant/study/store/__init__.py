"""Storage of a study: tables, migrations, one writer at a time, on SQLite and PostgreSQL.

A job is a function of a connection. `Database.read` and `Database.write` run it; the modules
`studies`, `participants`, `suggestions`, `learning`, `reports` and `whole` hold the jobs.
"""

from penchant.study.store.database import Database
from penchant.study.store.learning import Snapshot
from penchant.study.store.studies import NewItem

__all__ = ["Database", "NewItem", "Snapshot"]
