"""Sessions are rows: of learners, and of authors with their links and audit log.

Each learner gets one session, whose key is the one that their browsers have carried
so far, so every cookie goes on working.
"""

import hashlib

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_BATCH = 1000
# When a learner did something last, as far as the two logs can tell.
_LEARNERS = """
SELECT id, key, created_at, COALESCE(
    (SELECT MAX(at) FROM attempt WHERE attempt.learner_id = learner.id), 0),
    COALESCE((SELECT MAX(at) FROM review WHERE review.learner_id = learner.id), 0)
FROM learner ORDER BY id
"""


def upgrade() -> None:
    op.create_table(
        "learner_session",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("learner_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("device", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["learner_id"],
            ["learner.id"],
            name=op.f("fk_learner_session_learner_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_learner_session")),
        sa.UniqueConstraint("digest", name=op.f("uq_learner_session_digest")),
    )
    op.create_index(op.f("ix_learner_session_learner_id"), "learner_session", ["learner_id"])
    _create_tables_of_authors()
    _keep_everybody()


def _create_tables_of_authors() -> None:
    op.create_table(
        "author_link",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_author_link")),
        sa.UniqueConstraint("digest", name=op.f("uq_author_link_digest")),
    )
    op.create_table(
        "author_session",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("device", sa.String(length=40), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_author_session")),
        sa.UniqueConstraint("digest", name=op.f("uq_author_session_digest")),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("session", sa.Integer(), nullable=False),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("subject", sa.String(length=120), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )


def _keep_everybody() -> None:
    connection = op.get_bind()
    sessions = sa.table(
        "learner_session",
        *(
            sa.column(name)
            for name in ("learner_id", "digest", "device", "created_at", "last_seen")
        ),
    )
    rows = [
        {
            "learner_id": number,
            "digest": hashlib.sha256(key.encode()).hexdigest(),
            "device": "",
            "created_at": born,
            "last_seen": max(born, answered, graded),
        }
        for number, key, born, answered, graded in connection.execute(sa.text(_LEARNERS))
    ]
    for start in range(0, len(rows), _BATCH):
        connection.execute(sa.insert(sessions), rows[start : start + _BATCH])


def downgrade() -> None:
    for table in ("audit", "author_session", "author_link", "learner_session"):
        op.drop_table(table)
