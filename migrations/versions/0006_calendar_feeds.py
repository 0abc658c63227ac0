"""The address at which a calendar program reads the plan of a learner."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "calendar_feed",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=43), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["learner_id"],
            ["learner.id"],
            name=op.f("fk_calendar_feed_learner_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_calendar_feed")),
        sa.UniqueConstraint("learner_id", name=op.f("uq_calendar_feed_learner_id")),
        sa.UniqueConstraint("key", name=op.f("uq_calendar_feed_key")),
    )


def downgrade() -> None:
    op.drop_table("calendar_feed")
