"""How a learner spreads their minutes: all of them, twice as many, days off."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("learner") as batch_op:
        for name in ("all_minutes", "double_last_week"):
            batch_op.add_column(
                sa.Column(name, sa.Boolean(), nullable=False, server_default=sa.false())
            )
        batch_op.add_column(sa.Column("days_off", sa.String(7), nullable=False, server_default=""))


def downgrade() -> None:
    with op.batch_alter_table("learner") as batch_op:
        for name in ("days_off", "double_last_week", "all_minutes"):
            batch_op.drop_column(name)
