"""The results of a learner's earlier exams, which stay when a new exam day is set."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Not in a batch, which would build the table anew: numbers of learners never return.
    op.add_column("learner", sa.Column("past_exams", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("learner", "past_exams")
