"""What a learner typed for a card of their own, beside the HTML made of it."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("own_card") as batch_op:
        batch_op.add_column(sa.Column("source", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    with op.batch_alter_table("own_card") as batch_op:
        batch_op.drop_column("source")
