"""The second version: how certainty grew."""

import sqlalchemy as sa
from alembic import op

from penchant.study.store.tables import progress

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what is not there: in a new database the first version made the tables of today."""
    if not sa.inspect(op.get_bind()).has_table("progress"):
        progress.create(op.get_bind())
