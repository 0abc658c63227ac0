"""Moodle XML: read and written."""

from app.exchange.formats.moodle.reading import read_moodle
from app.exchange.formats.moodle.writing import write_moodle

__all__ = ["read_moodle", "write_moodle"]
