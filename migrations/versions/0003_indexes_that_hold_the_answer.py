"""Indexes that hold what Today and Progress ask, so that no row is looked up.

The end of the log of answers has an index of its own, as that of reviews does; the
indexes by day hold what else is asked of the cards of a day.
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_DAYS = {
    "ix_memory_learner_due": ["due_day", "suspended", "state", "note", "due_at"],
    "ix_memory_learner_last": ["last_day", "suspended", "state", "note"],
}


def upgrade() -> None:
    op.create_index("ix_attempt_learner_id", "attempt", ["learner_id", "id"])
    for name, columns in _DAYS.items():
        op.drop_index(name, "memory")
        op.create_index(name, "memory", ["learner_id", *columns])


def downgrade() -> None:
    for name, columns in _DAYS.items():
        op.drop_index(name, "memory")
        op.create_index(name, "memory", ["learner_id", columns[0]])
    op.drop_index("ix_attempt_learner_id", "attempt")
