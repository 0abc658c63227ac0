"""The numbers of erased learners and reports are never given to new ones."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# Small tables: the rest of the database is neither read nor written.
TABLES = ("learner", "item_report")


def upgrade() -> None:
    _rebuild(sqlite_autoincrement=True)


def downgrade() -> None:
    _rebuild(sqlite_autoincrement=False)


def _rebuild(*, sqlite_autoincrement: bool) -> None:
    if op.get_bind().dialect.name != "sqlite":
        return  # a sequence of PostgreSQL never goes back
    for table in TABLES:
        with op.batch_alter_table(
            table,
            recreate="always",
            table_kwargs={"sqlite_autoincrement": sqlite_autoincrement},
        ):
            pass
