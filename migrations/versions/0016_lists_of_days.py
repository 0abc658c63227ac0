"""The list of a study day, the dates of a plan, and how many new cards a learner wants."""

import datetime as dt
import math

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Not in a batch, which would build the table anew: numbers of learners never return.
    op.add_column("learner", sa.Column("plan_begun", sa.String(length=10), nullable=True))
    op.add_column("learner", sa.Column("mock_days", sa.Text(), nullable=False, server_default=""))
    op.add_column(
        "learner",
        sa.Column("card_amount", sa.String(length=8), nullable=False, server_default="normal"),
    )
    op.drop_column("learner", "all_minutes")
    op.create_table(
        "day_list",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("tasks", sa.Text(), nullable=False),
        sa.Column("estimate", sa.Text(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["learner_id"],
            ["learner.id"],
            name=op.f("fk_day_list_learner_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_day_list")),
        sa.UniqueConstraint("learner_id", "day", name=op.f("uq_day_list_learner_id_day")),
    )
    _date_mock_exams()


def _date_mock_exams() -> None:
    """Give exam days that are ahead a plan that begins today."""
    learner = sa.table(
        "learner", *(sa.column(name) for name in ("id", "exam_day", "plan_begun", "mock_days"))
    )
    today = dt.datetime.now(dt.UTC).date()
    ahead = sa.select(learner.c.id, learner.c.exam_day).where(
        learner.c.exam_day >= today.isoformat()
    )
    for number, exam in op.get_bind().execute(ahead).all():
        days = (dt.date.fromisoformat(exam) - today).days
        last = days - 2
        mocks = [*range(max(2, math.ceil(0.4 * days)), last - 3, 7), last] if days >= 4 else []
        dates = (today + dt.timedelta(days=n) for n in mocks)
        op.execute(
            learner.update()
            .where(learner.c.id == number)
            .values(plan_begun=today.isoformat(), mock_days=" ".join(map(str, dates)))
        )


def downgrade() -> None:
    op.drop_table("day_list")
    op.add_column(
        "learner",
        sa.Column("all_minutes", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    for name in ("card_amount", "mock_days", "plan_begun"):
        op.drop_column("learner", name)
