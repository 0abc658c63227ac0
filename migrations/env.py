"""Alembic's entry: runs migrations on the connection that the app hands over."""

from alembic import context
from sqlmodel import SQLModel

from app.db import tables  # noqa: F401 - fills the metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=SQLModel.metadata,
    render_as_batch=True,
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
