"""The second version: how certainty grew, and an index of snapshots by their times."""

from alembic import op

from penchant.study.store import tables

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what the first version had not; a new database has it from the first."""
    tables.progress.create(op.get_bind(), checkfirst=True)
    op.create_index("snapshot_time", "snapshot", ["study", "seq", "created"], if_not_exists=True)
