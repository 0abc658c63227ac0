"""Whether a learner reads short or full pages, and the address for the weekly summary."""

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

    for name, length in (("mail", 254), ("mail_key", 43), ("mailed", 10)):
        op.add_column(
            "learner",
            sa.Column(name, sa.String(length=length), nullable=False, server_default=""),
        )
    op.add_column(
        "learner",
        sa.Column("mail_confirmed", sa.Boolean(), nullable=False, server_default=sa.false()),
    )


def downgrade() -> None:
    for name in ("mail_confirmed", "mailed", "mail_key", "mail", "page_route"):
        op.drop_column("learner", name)
