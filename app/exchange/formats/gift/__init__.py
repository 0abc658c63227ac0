"""GIFT, the plain text of Moodle: read and written."""

from app.exchange.formats.gift.reading import read_gift
from app.exchange.formats.gift.writing import write_gift

__all__ = ["read_gift", "write_gift"]
