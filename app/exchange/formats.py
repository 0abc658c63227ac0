"""Which formats can be read and written, and by what."""

from collections.abc import Callable, Mapping

from app.exchange.aiken import read_aiken, write_aiken
from app.exchange.decoding import decode
from app.exchange.gift import read_gift, write_gift
from app.exchange.items import Item, Reading, Writing
from app.exchange.moodle import read_moodle, write_moodle

Reader = Callable[[bytes], Reading]
Writer = Callable[[tuple[Item, ...], str], Writing]

READERS: Mapping[str, Reader] = {
    "aiken": lambda data: read_aiken(decode(data)),
    "gift": lambda data: read_gift(decode(data)),
    "moodle": read_moodle,
}
WRITERS: Mapping[str, Writer] = {
    "aiken": lambda items, _title: write_aiken(items),
    "gift": lambda items, _title: write_gift(items),
    "moodle": write_moodle,
}
CARDS = frozenset({"apkg"})  # formats for cards instead of questions
