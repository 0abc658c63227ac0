"""How far the import of a file of cards has come, one row for each learner."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_COUNTS = ("cards", "seen", "new", "changed", "same", "grades", "media")


def upgrade() -> None:
    op.create_table(
        "card_import",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("file", sa.String(length=80), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in _COUNTS),
        sa.Column("refused", sa.Text(), nullable=False),
        sa.Column("began_at", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["learner_id"],
            ["learner.id"],
            name=op.f("fk_card_import_learner_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_card_import")),
        sa.UniqueConstraint("learner_id", name=op.f("uq_card_import_learner_id")),
    )


def downgrade() -> None:
    op.drop_table("card_import")
