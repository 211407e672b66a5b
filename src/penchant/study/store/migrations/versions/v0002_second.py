"""People who are excluded, and previews of that."""

import sqlalchemy as sa
from alembic import op

from penchant.study.store import tables

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what the first version had not; a new database has it from the first."""
    there = sa.inspect(op.get_bind())
    if "excluded" not in {column["name"] for column in there.get_columns("participant")}:
        excluded = sa.Column("excluded", sa.Boolean, nullable=False, server_default=sa.false())
        op.add_column("participant", excluded)
    tables.preview.create(op.get_bind(), checkfirst=True)
