"""The first version of the tables, as it was. Later changes are versions of their own."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _key(name: str = "id") -> "sa.Column[str]":
    return sa.Column(name, sa.String(64), primary_key=True)


def _name(name: str, n: int = 64, *, nullable: bool = False) -> "sa.Column[str]":
    return sa.Column(name, sa.String(n), nullable=nullable)


def upgrade() -> None:
    """Create every table."""
    op.create_table(
        "study",
        _key(),
        sa.Column("config", sa.JSON, nullable=False),
        _name("state", 16),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_table(
        "item",
        _key(),
        _name("study"),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        _name("media", 16),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("features", sa.JSON, nullable=False),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.Column("asked", sa.Integer, nullable=False),
        sa.UniqueConstraint("study", "name", name="item_name"),
    )
    op.create_table(
        "invite",
        _key(),
        _name("study"),
        sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
        _name("role", 16),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("uses_left", sa.Integer),
        sa.Column("expires", sa.Double),
        sa.Column("created", sa.Double, nullable=False),
    )
    op.create_table(
        "participant",
        _key(),
        _name("study"),
        _name("kind", 16),
        _name("external_id_hash", nullable=True),
        _name("invite", nullable=True),
        sa.Column("consent", sa.Double),
        sa.Column("joined", sa.Double, nullable=False),
        sa.Column("last_seen", sa.Double, nullable=False),
        sa.UniqueConstraint("study", "external_id_hash", name="participant_external"),
    )
    op.create_table(
        "question",
        _key(),
        _name("study"),
        _name("participant", nullable=True),
        sa.Column("shown", sa.JSON, nullable=False),
        sa.Column("pair", sa.Text, nullable=False),
        _name("form", 16),
        _name("kind", 16),
        sa.Column("p_before", sa.Double),
        sa.Column("model_version", sa.BigInteger),
        _name("state", 16),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("opened", sa.Integer),
        sa.Column("leased_until", sa.Double),
    )
    mine, all_of = ["participant", "state", "created"], ["study", "state", "participant", "created"]
    op.create_index("question_of_participant", "question", mine)
    op.create_index("question_of_study", "question", all_of)
    op.create_table(
        "event",
        _key("study"),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        _name("kind", 16),
        _name("participant", nullable=True),
        _name("question", nullable=True),
        sa.Column("payload", sa.JSON, nullable=False),
        sa.Column("ms", sa.Integer),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("live", sa.Boolean, nullable=False),
    )
    op.create_index("event_of_participant", "event", ["participant", "live", "seq"])
    live = sa.text("live")
    op.create_index(
        "event_live_question",
        "event",
        ["question"],
        unique=True,
        sqlite_where=live,
        postgresql_where=live,
    )
    op.create_table(
        "snapshot",
        _key("study"),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("model", sa.LargeBinary, nullable=False),
        sa.Column("learned_at", sa.BigInteger, nullable=False),
        sa.Column("summary", sa.JSON, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
    )
