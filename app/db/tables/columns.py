"""How tables and their constraints are named, and the column of a moment."""

from sqlalchemy import BigInteger, Column, MetaData, String
from sqlmodel import SQLModel

SQLModel.metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

NEVER_REUSED = {"sqlite_autoincrement": True}
"""For a table whose rows are named by number to others than their owner.

Caches of a process, commands and the author's bench hold such numbers. SQLite would
give the highest one again after its row was erased, and somebody else would be met
under it. Rows of all other tables are looked up together with their learner.
"""


def time_column(*, nullable: bool = False) -> Column[int]:
    """Milliseconds since 1970 in UTC."""
    return Column(BigInteger, nullable=nullable)


def word_column(longest: int) -> Column[str]:
    """A word that rows have which were written before there was the column."""
    return Column(String(longest), nullable=False, server_default="")
