"""The first version of the tables.

No version was released yet, so these are the tables as they are. The first change after a release
copies them here as they were, and adds a version of its own.
"""

from alembic import op

from penchant.study.store.tables import metadata

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table."""
    metadata.create_all(op.get_bind())
