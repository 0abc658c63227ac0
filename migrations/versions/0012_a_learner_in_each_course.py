"""A person may have a row of their own in each of several courses."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("learner") as batch_op:
        batch_op.add_column(sa.Column("person", sa.String(43), nullable=False, server_default=""))
        batch_op.add_column(sa.Column("course", sa.String(80), nullable=False, server_default=""))
    # Everybody so far studies the one course there is: their row is the person.
    op.execute("UPDATE learner SET person = key")
    op.create_index("ix_learner_person", "learner", ["person", "course"], unique=True)


def downgrade() -> None:
    op.drop_index("ix_learner_person", "learner")
    with op.batch_alter_table("learner") as batch_op:
        batch_op.drop_column("course")
        batch_op.drop_column("person")
