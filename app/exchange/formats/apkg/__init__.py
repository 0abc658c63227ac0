"""Flashcards as packages of Anki: written for re-import, and read without trust."""

from app.exchange.formats.apkg.reading import read_package
from app.exchange.formats.apkg.writing import write_apkg

__all__ = ["read_package", "write_apkg"]
