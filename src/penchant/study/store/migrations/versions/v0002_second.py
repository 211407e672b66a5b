"""The second version: columns at the end of tables. All are nullable or have a default."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("study", sa.Column("backup", sa.JSON(none_as_null=True)))
