"""Items on their way into another format: written one by one, or refused."""

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from app.exchange.items import ExportResult, Item, ItemRemark, ItemSkippedError, label

Made = TypeVar("Made")
Losses = Callable[[Item], Iterable[str]]
"""What a format cannot hold of an item that it carries, each a sentence."""


class ConvertedItems(NamedTuple, Generic[Made]):
    """What was made of the items that fit, which did not, and what was lost."""

    made: tuple[Made, ...]
    refused: tuple[ItemRemark, ...]
    lost: tuple[ItemRemark, ...]


def convert_items(
    items: Iterable[Item], write: Callable[[Item], Made], losses: Losses
) -> ConvertedItems[Made]:
    """Write each item; one that raises NotCarried is refused with its sentence."""
    made: list[Made] = []
    refused: list[ItemRemark] = []
    lost: list[ItemRemark] = []
    for item in items:
        try:
            made.append(write(item))
        except ItemSkippedError as error:
            refused.append(ItemRemark(label(item), item.line, str(error)))
            continue
        lost += [ItemRemark(label(item), item.line, what) for what in losses(item)]
    return ConvertedItems(tuple(made), tuple(refused), tuple(lost))


def write_blocks(
    items: Iterable[Item], block: Callable[[Item], str], losses: Losses
) -> ExportResult:
    """A text in which every item that fits is a block, with an empty line between."""
    blocks, refused, lost = convert_items(items, block, losses)
    content = "\n\n".join(blocks) + "\n" if blocks else ""
    return ExportResult(content.encode(), len(blocks), refused, lost)
