"""What is set by hand to a card, and what comes with a card of one's own."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("review") as batch_op:
        batch_op.add_column(
            sa.Column("act", sa.String(length=8), nullable=False, server_default="")
        )
        batch_op.add_column(sa.Column("until_day", sa.String(length=10), nullable=True))
    with op.batch_alter_table("learner") as batch_op:
        batch_op.add_column(sa.Column("acts", sa.Integer(), nullable=False, server_default="0"))
    with op.batch_alter_table("memory") as batch_op:
        batch_op.add_column(
            sa.Column("set_day", sa.String(length=10), nullable=False, server_default="")
        )
    with op.batch_alter_table("own_card") as batch_op:
        batch_op.add_column(
            sa.Column("guid", sa.String(length=100), nullable=False, server_default="")
        )
        batch_op.add_column(sa.Column("ordinal", sa.Integer(), nullable=False, server_default="0"))
        batch_op.add_column(sa.Column("tags", sa.Text(), nullable=False, server_default=""))
    op.create_table(
        "own_picture",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["learner_id"],
            ["learner.id"],
            name=op.f("fk_own_picture_learner_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_own_picture")),
        sa.UniqueConstraint("learner_id", "name", name=op.f("uq_own_picture_learner_id_name")),
    )


def downgrade() -> None:
    op.drop_table("own_picture")
    with op.batch_alter_table("own_card") as batch_op:
        for column in ("tags", "ordinal", "guid"):
            batch_op.drop_column(column)
    with op.batch_alter_table("memory") as batch_op:
        batch_op.drop_column("set_day")
    with op.batch_alter_table("learner") as batch_op:
        batch_op.drop_column("acts")
    with op.batch_alter_table("review") as batch_op:
        for column in ("until_day", "act"):
            batch_op.drop_column(column)
