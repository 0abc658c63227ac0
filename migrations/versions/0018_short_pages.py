"""Whether a learner reads short or full pages."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Not in a batch, which would build the table anew: numbers of learners never return.
    op.add_column(
        "learner",
        sa.Column("page_route", sa.String(length=8), nullable=False, server_default="auto"),
    )


def downgrade() -> None:
    op.drop_column("learner", "page_route")
