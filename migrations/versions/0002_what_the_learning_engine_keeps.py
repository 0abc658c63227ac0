"""What the learning engine keeps.

One change a file, named NNNN_what_it_does.py. Constraints carry names (the naming
convention gives them), tables are altered in batch mode so that SQLite can follow.
A migration that was released is never edited.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


# What was done before this table is added up once; no chance was kept with it.
_DAYS = """
INSERT INTO study_day
    (learner_id, day, answers, reviews, asked, recalled, expected, milliseconds)
SELECT learner_id, study_day, SUM(answers), SUM(reviews), 0, 0, 0.0, SUM(taken)
FROM (
    SELECT learner_id, study_day, 1 AS answers, 0 AS reviews,
        COALESCE(milliseconds, 0) AS taken
    FROM attempt
    UNION ALL
    SELECT learner_id, study_day, 0, 1, COALESCE(milliseconds, 0)
    FROM review
    WHERE rating > 0
        AND id NOT IN (SELECT voids FROM review WHERE voids IS NOT NULL)
) AS work
GROUP BY learner_id, study_day
"""


def upgrade() -> None:
    op.create_table(
        "added_card",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("card", sa.String(length=120), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=True),
        sa.Column("declined", sa.Boolean(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["learner_id"],
            ["learner.id"],
            name=op.f("fk_added_card_learner_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_added_card")),
        sa.UniqueConstraint("learner_id", "card", name=op.f("uq_added_card_learner_id_card")),
    )
    op.create_table(
        "own_card",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("card", sa.String(length=120), nullable=False),
        sa.Column("deck", sa.String(length=120), nullable=False),
        sa.Column("front", sa.Text(), nullable=False),
        sa.Column("back", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["learner_id"],
            ["learner.id"],
            name=op.f("fk_own_card_learner_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_own_card")),
        sa.UniqueConstraint("learner_id", "card", name=op.f("uq_own_card_learner_id_card")),
    )
    op.create_table(
        "prediction",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("exam", sa.String(length=80), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("rule", sa.String(length=16), nullable=False),
        sa.Column("questions", sa.Integer(), nullable=False),
        sa.Column("answers", sa.Integer(), nullable=False),
        sa.Column("expected", sa.Float(), nullable=False),
        sa.Column("low", sa.Integer(), nullable=False),
        sa.Column("high", sa.Integer(), nullable=False),
        sa.Column("target", sa.Integer(), nullable=True),
        sa.Column("chance", sa.Float(), nullable=True),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["learner_id"],
            ["learner.id"],
            name=op.f("fk_prediction_learner_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_prediction")),
        sa.UniqueConstraint(
            "learner_id", "exam", "day", name=op.f("uq_prediction_learner_id_exam_day")
        ),
    )
    op.create_table(
        "study_day",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("answers", sa.Integer(), nullable=False),
        sa.Column("reviews", sa.Integer(), nullable=False),
        sa.Column("asked", sa.Integer(), nullable=False),
        sa.Column("recalled", sa.Integer(), nullable=False),
        sa.Column("expected", sa.Float(), nullable=False),
        sa.Column("milliseconds", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["learner_id"],
            ["learner.id"],
            name=op.f("fk_study_day_learner_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_day")),
        sa.UniqueConstraint("learner_id", "day", name=op.f("uq_study_day_learner_id_day")),
    )
    with op.batch_alter_table("learner") as batch_op:
        batch_op.add_column(
            sa.Column("calendar", sa.Boolean(), nullable=False, server_default=sa.true())
        )
        batch_op.add_column(
            sa.Column("missed", sa.Boolean(), nullable=False, server_default=sa.true())
        )
        batch_op.drop_column("settings")

    with op.batch_alter_table("review") as batch_op:
        batch_op.add_column(sa.Column("recall", sa.Float(), nullable=True))

    op.execute(_DAYS)


def downgrade() -> None:
    with op.batch_alter_table("review") as batch_op:
        batch_op.drop_column("recall")

    with op.batch_alter_table("learner") as batch_op:
        batch_op.add_column(sa.Column("settings", sa.TEXT(), nullable=False, server_default="{}"))
        batch_op.drop_column("missed")
        batch_op.drop_column("calendar")

    op.drop_table("study_day")
    op.drop_table("prediction")
    op.drop_table("own_card")
    op.drop_table("added_card")
