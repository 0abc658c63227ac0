"""${message.capitalize()}.

One change a file, named NNNN_what_it_does.py. Constraints carry names (the naming
convention gives them), tables are altered in batch mode so that SQLite can follow.
A migration that was released is never edited.
"""

import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
