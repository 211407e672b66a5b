"""The first version of the tables, as it was: what came later is in versions of its own."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

metadata = sa.MetaData()

study = sa.Table(
    "study",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("config", sa.JSON, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
)

item = sa.Table(
    "item",
    metadata,
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

invite = sa.Table(
    "invite",
    metadata,
    sa.Column("id", sa.String(64), primary_key=True),
    sa.Column("study", sa.String(64), nullable=False),
    sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("uses_left", sa.Integer),
    sa.Column("expires", sa.Double),
    sa.Column("created", sa.Double, nullable=False),
)

participant = sa.Table(
    "participant",
    metadata,
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

question = sa.Table(
    "question",
    metadata,
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
    sa.Index("question_of_participant", "participant", "state", "created"),
    sa.Index("question_of_study", "study", "state", "participant", "created"),
)

event = sa.Table(
    "event",
    metadata,
    sa.Column("study", sa.String(64), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("participant", sa.String(64)),
    sa.Column("question", sa.String(64)),
    sa.Column("payload", sa.JSON, nullable=False),
    sa.Column("ms", sa.Integer),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("live", sa.Boolean, nullable=False),
    sa.Index("event_of_participant", "participant", "live", "seq"),
    # a retry or a double click cannot be a second answer
    sa.Index(
        "event_live_question",
        "question",
        unique=True,
        sqlite_where=sa.text("live"),
        postgresql_where=sa.text("live"),
    ),
)

snapshot = sa.Table(
    "snapshot",
    metadata,
    sa.Column("study", sa.String(64), primary_key=True),
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("model", sa.LargeBinary, nullable=False),
    sa.Column("learned_at", sa.BigInteger, nullable=False),
    sa.Column("summary", sa.JSON, nullable=False),
    sa.Column("created", sa.Double, nullable=False),
)


def upgrade() -> None:
    """Create every table."""
    metadata.create_all(op.get_bind())
