"""What the exchange reads from the database and writes into it."""

from app.exchange.store.attempts import COLUMNS, attempts
from app.exchange.store.held import OwnText, Studied, studied

__all__ = ["COLUMNS", "OwnText", "Studied", "attempts", "studied"]
