"""Which formats can be read and written, and by what."""

from collections.abc import Callable, Mapping

from app.exchange.decoding import decode
from app.exchange.gift import read_gift, write_gift
from app.exchange.items import Item, Reading, Writing

Reader = Callable[[bytes], Reading]
Writer = Callable[[tuple[Item, ...], str], Writing]

READERS: Mapping[str, Reader] = {
    "gift": lambda data: read_gift(decode(data)),
}
WRITERS: Mapping[str, Writer] = {
    "gift": lambda items, _title: write_gift(items),
}
CARDS = frozenset({"apkg"})  # formats for cards instead of questions
