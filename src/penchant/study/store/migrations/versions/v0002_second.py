"""The second version: how certainty grew, and an index of snapshots by their times."""

import sqlalchemy as sa
from alembic import op

from penchant.study.store.tables import progress

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what is not there: in a new database the first version made the tables of today."""
    there = sa.inspect(op.get_bind())
    if not there.has_table("progress"):
        progress.create(op.get_bind())
    if "snapshot_time" not in {index["name"] for index in there.get_indexes("snapshot")}:
        op.create_index("snapshot_time", "snapshot", ["study", "seq", "created"])
