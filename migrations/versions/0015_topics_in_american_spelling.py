"""What is kept about two topics follows them to their American names."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

NAMES = {
    "data-centre-monitoring": "data-center-monitoring",
    "virtualisation": "virtualization",
}
# A page has one row per learner and section in these tables.
PER_SECTION = ("reading", "note")


def upgrade() -> None:
    _rename(NAMES)


def downgrade() -> None:
    _rename({new: old for old, new in NAMES.items()})


def _rename(names: dict[str, str]) -> None:
    db = op.get_bind()
    for old, new in names.items():
        for name in PER_SECTION:
            # A row that was written under the new name is the later one.
            own, other = _table(name), _table(name).alias()
            twin = sa.exists().where(
                other.c.topic == new,
                other.c.learner_id == own.c.learner_id,
                other.c.section == own.c.section,
            )
            db.execute(sa.delete(own).where(own.c.topic == old, twin))
        for name in (*PER_SECTION, "attempt", "memory"):
            own = _table(name)
            db.execute(sa.update(own).where(own.c.topic == old).values(topic=new))
        runs = sa.table("practice_run", sa.column("mode"), sa.column("scope"))
        of_topic = (runs.c.mode == "topic", runs.c.scope == old)
        db.execute(sa.update(runs).where(*of_topic).values(scope=new))


def _table(name: str) -> sa.TableClause:
    return sa.table(name, sa.column("topic"), sa.column("learner_id"), sa.column("section"))
