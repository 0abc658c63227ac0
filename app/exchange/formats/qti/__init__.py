"""QTI 2.1 and 3.0: items and packages, read and written."""

from app.exchange.formats.qti.reading import read_qti
from app.exchange.formats.qti.writing import write_qti

__all__ = ["read_qti", "write_qti"]
