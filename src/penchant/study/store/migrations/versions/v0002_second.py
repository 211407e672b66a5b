"""The second version: new tables, and columns at the end of others.

All of these columns are nullable or have a default.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what the first version had not."""
    op.add_column("item", sa.Column("caption", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "suggestion",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("study", sa.String(64), nullable=False),
        sa.Column("participant", sa.String(64), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Index("suggestion_of_study", "study", "state", "created"),
    )
    op.add_column("participant", sa.Column("said_first", sa.JSON(none_as_null=True)))
    screened_out = sa.Column("screened_out", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("participant", screened_out)
    op.add_column("participant", sa.Column("finished", sa.Double))
    op.add_column("study", sa.Column("backup", sa.JSON(none_as_null=True)))
    excluded = sa.Column("excluded", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("participant", excluded)
    op.create_table(
        "preview",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("study", sa.String(64), nullable=False),
        sa.Column("people", sa.JSON, nullable=False),
        sa.Column("excluded", sa.Boolean, nullable=False),
        sa.Column("ranking", sa.JSON(none_as_null=True)),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_table(
        "progress",
        sa.Column("study", sa.String(64), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("answers", sa.BigInteger, nullable=False),
        sa.Column("level", sa.Double, nullable=False),
        sa.Column("rule", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
    )
    op.create_index("snapshot_time", "snapshot", ["study", "seq", "created"])
