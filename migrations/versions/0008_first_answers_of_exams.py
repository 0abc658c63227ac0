"""The first answer to each question of a mock exam, to tell which were changed."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("sitting_answer") as batch_op:
        batch_op.add_column(sa.Column("first", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    with op.batch_alter_table("sitting_answer") as batch_op:
        batch_op.drop_column("first")
