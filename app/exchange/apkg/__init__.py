"""Flashcards as packages of Anki: written for re-import, and read without trust."""

from app.exchange.apkg.reading import read_package
from app.exchange.apkg.writing import write_apkg

__all__ = ["read_package", "write_apkg"]
