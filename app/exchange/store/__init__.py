"""What the exchange reads from the database and writes into it."""

from app.exchange.store.arrivals import Arrival, Came, Outcome, take_in
from app.exchange.store.attempts import COLUMNS, attempts
from app.exchange.store.held import OwnText, Studied, own_texts, studied
from app.exchange.store.removal import (
    Brought,
    OwnDeck,
    brought,
    held_cards,
    remove_deck,
    remove_grades,
)

__all__ = [
    "COLUMNS",
    "Arrival",
    "Brought",
    "Came",
    "Outcome",
    "OwnDeck",
    "OwnText",
    "Studied",
    "attempts",
    "brought",
    "held_cards",
    "own_texts",
    "remove_deck",
    "remove_grades",
    "studied",
    "take_in",
]
