"""Pictures of items."""

import base64
import binascii
import dataclasses
import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from urllib.parse import unquote

from app.import_export.items import Item, ItemImage, ItemOption, ItemPair
from app.markup.images import image_kind
from app.markup.text import lies_within, slugify

LARGEST = 2_000_000
"""The largest imported picture in bytes."""
_FOLDER = "img"
_SHOWN = re.compile(r"(?<!\\)!\[((?:[^\[\]\\]|\\.)*)\]\(([^()\s]+)\)")
_DATA = re.compile(r"data:image/[a-z+.-]{1,20};base64,", re.IGNORECASE)


class ImageCollector:
    """The pictures of one item being read, with the names they get.

    `find` returns the bytes for a URL in the file, or None.
    """

    def __init__(self, find: Callable[[str], bytes | None] | None = None) -> None:
        self._find = find
        self._taken: dict[str, ItemImage] = {}

    @property
    def pictures(self) -> tuple[ItemImage, ...]:
        """Return the pictures taken, in the order they were found."""
        return tuple(self._taken.values())

    def take(self, address: str) -> str:
        """Return the name that a picture gets; "" if it cannot be imported."""
        content = _decode_data_url(address)
        if content is None and self._find is not None:
            content = self._find(address)
        name = image_name(content or b"", unquote(address))
        if name and content:
            self._taken[name] = make_image(name, content)
        return name


def make_image(name: str, content: bytes) -> ItemImage:
    """Return a picture with these bytes."""
    return ItemImage(name, base64.b64encode(content).decode())


def image_bytes(picture: ItemImage) -> bytes:
    """Return the bytes of a picture; empty if its Base64 is invalid."""
    try:
        return base64.b64decode(picture.data, validate=True)
    except (binascii.Error, ValueError):
        return b""


def image_name(content: bytes, address: str) -> str:
    """Return a unique name for a picture; "" if it is not a picture or too large.

    >>> image_name(b"GIF89a and more", "Our Rack.png")
    'img/our-rack-4a589912.gif'
    """
    if not content or len(content) > LARGEST:
        return ""
    ending = image_kind(content)
    if not ending:
        return ""
    last = image_digest(content)
    stem = "" if address.startswith("data:") else PurePosixPath(address).stem
    # A name given here before is given again, even if it became a file name in the meantime.
    word = slugify(stem.removesuffix(f"-{last}").removeprefix(f"{_FOLDER}-"))
    return f"{_FOLDER}/{word[:40].strip('-') or 'picture'}-{last}.{ending}"


def image_digest(content: bytes) -> str:
    """Return eight hex digits that identify the content."""
    return hashlib.sha256(content).hexdigest()[:8]


def topic_image_name(address: str) -> str:
    """Return the name of a picture in a topic folder; "" for any other URL."""
    return address if lies_within(address) else ""


def picture_names_shown(item: Item) -> tuple[str, ...]:
    """Return the names of the pictures in the texts of an item."""
    names: dict[str, None] = {}

    def note(text: str) -> str:
        names.update((match[2], None) for match in _SHOWN.finditer(text))
        return text

    map_item_texts(item, note)
    return tuple(names)


def rename_images(item: Item, names: Mapping[str, str]) -> Item:
    """Return the item with its pictures renamed; one without a new name becomes its alt text."""

    def replace(match: re.Match[str]) -> str:
        name = names.get(match[2], "")
        return f"![{match[1]}]({name})" if name else match[1]

    return map_item_texts(item, lambda text: _SHOWN.sub(replace, text))


def map_item_texts(item: Item, change: Callable[[str], str], *, answers: bool = False) -> Item:
    """Return the item with each of its Markdown texts changed.

    With `answers`, also the answers that are plain text.
    """
    plain = item.kind in {"short", "numeric"} and not answers

    def change_option(option: ItemOption) -> ItemOption:
        text = option.text if plain else change(option.text)
        return dataclasses.replace(option, text=text, feedback=change(option.feedback))

    return dataclasses.replace(
        item,
        stem=change(item.stem),
        text=change(item.text),
        explanation=change(item.explanation),
        mistake=change(item.mistake),
        hints=tuple(map(change, item.hints)),
        options=tuple(map(change_option, item.options)),
        steps=tuple(map(change_option, item.steps)),
        pairs=tuple(ItemPair(change(p.left), change(p.right), change(p.why)) for p in item.pairs),
    )


def _decode_data_url(address: str) -> bytes | None:
    """Return the bytes of a picture in a data URL."""
    match = _DATA.match(address)
    if match is None or len(address) > 2 * LARGEST:
        return None
    try:
        return base64.b64decode("".join(address[match.end() :].split()), validate=True)
    except (binascii.Error, ValueError):
        return None
