"""Alembic's entry: runs migrations on the connection that the app hands over."""

from typing import Any, Literal

from alembic import context
from sqlmodel import AutoString, SQLModel

from app.database import tables  # noqa: F401 - fills the metadata


def plain_strings(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    """Write SQLModel's string type as the one it stands for."""
    if kind == "type" and isinstance(item, AutoString):
        return f"sa.String(length={getattr(item.impl, 'length', None)})"
    return False


connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=SQLModel.metadata,
    render_as_batch=True,
    compare_type=True,
    render_item=plain_strings,
)
with context.begin_transaction():
    context.run_migrations()
