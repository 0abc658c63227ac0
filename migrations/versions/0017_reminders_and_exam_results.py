"""The hour at which the calendar reminds a learner, and how the exam went."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Not in a batch, which would build the table anew: numbers of learners never return.
    op.add_column("learner", sa.Column("reminder_hour", sa.Integer(), nullable=True))
    op.add_column(
        "learner",
        sa.Column("exam_result", sa.String(length=8), nullable=False, server_default=""),
    )


def downgrade() -> None:
    for name in ("exam_result", "reminder_hour"):
        op.drop_column("learner", name)
