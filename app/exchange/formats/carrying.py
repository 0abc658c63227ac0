"""Items on their way into another format: written one by one, or refused."""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from app.exchange.items import Item, NotCarried, Remark, Writing, label

Made = TypeVar("Made")
Losses = Callable[[Item], Iterable[str]]
"""What a format cannot hold of an item that it carries, each a sentence."""


class Carried(NamedTuple, Generic[Made]):
    """What was made of the items that fit, which did not, and what was lost."""

    made: tuple[Made, ...]
    refused: tuple[Remark, ...]
    lost: tuple[Remark, ...]


def carry(items: Iterable[Item], write: Callable[[Item], Made], losses: Losses) -> Carried[Made]:
    """Write each item; one that raises NotCarried is refused with its sentence."""
    made: list[Made] = []
    refused: list[Remark] = []
    lost: list[Remark] = []
    for item in items:
        try:
            made.append(write(item))
        except NotCarried as error:
            refused.append(Remark(label(item), item.line, str(error)))
            continue
        lost += [Remark(label(item), item.line, what) for what in losses(item)]
    return Carried(tuple(made), tuple(refused), tuple(lost))


def write_blocks(items: Iterable[Item], block: Callable[[Item], str], losses: Losses) -> Writing:
    """A text in which every item that fits is a block, with an empty line between."""
    blocks, refused, lost = carry(items, block, losses)
    content = "\n\n".join(blocks) + "\n" if blocks else ""
    return Writing(content.encode(), len(blocks), refused, lost)
