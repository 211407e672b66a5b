"""What people said before the first item, and whether they are screened out or finished."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

COLUMNS = (
    sa.Column("said_first", sa.JSON(none_as_null=True)),
    sa.Column("screened_out", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("finished", sa.Double),
)


def upgrade() -> None:
    """Add what the first version had not."""
    there = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("participant")}
    for column in COLUMNS:
        if column.name not in there:
            op.add_column("participant", column)
