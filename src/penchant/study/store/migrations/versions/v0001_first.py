"""The first version of the tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "study",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("config", sa.JSON, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_table(
        "item",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("study", sa.String(64), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("media", sa.String(16), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("features", sa.JSON, nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("asked", sa.Integer, nullable=False),
        sa.UniqueConstraint("study", "name", name="item_name"),
    )
    op.create_table(
        "invite",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("study", sa.String(64), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("uses_left", sa.Integer),
        sa.Column("expires", sa.Double),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_table(
        "participant",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("study", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("external_id_hash", sa.String(64)),
        sa.Column("invite", sa.String(64)),
        sa.Column("consent", sa.Double),
        sa.Column("joined", sa.Double, nullable=False),
        sa.Column("last_seen", sa.Double, nullable=False),
        sa.UniqueConstraint("study", "external_id_hash", name="participant_external"),
    )
    op.create_table(
        "question",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("study", sa.String(64), nullable=False),
        sa.Column("participant", sa.String(64)),
        sa.Column("shown", sa.JSON, nullable=False),
        sa.Column("pair", sa.Text, nullable=False),
        sa.Column("form", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("p_before", sa.Double),
        sa.Column("model_version", sa.BigInteger),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("opened", sa.Integer),
        sa.Column("leased_until", sa.Double),
    )
    op.create_table(
        "event",
        sa.Column("study", sa.String(64), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("participant", sa.String(64)),
        sa.Column("question", sa.String(64)),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("ms", sa.Integer),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("live", sa.Boolean, nullable=False),
    )
    op.create_table(
        "snapshot",
        sa.Column("study", sa.String(64), primary_key=True),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("model", sa.LargeBinary, nullable=False),
        sa.Column("learned_at", sa.BigInteger, nullable=False),
        sa.Column("summary", sa.JSON, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_index("question_of_participant", "question", ["participant", "state", "created"])
    op.create_index("question_of_study", "question", ["study", "state", "participant", "created"])
    op.create_index("event_of_participant", "event", ["participant", "live", "seq"])
    op.create_index(
        "event_live_question",
        "event",
        ["question"],
        unique=True,
        sqlite_where=sa.text("live"),
        postgresql_where=sa.text("live"),
    )
