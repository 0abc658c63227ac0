"""Flashcards as an Anki package that can be imported again and again."""

from app.exchange.apkg.writing import write_apkg

__all__ = ["write_apkg"]
