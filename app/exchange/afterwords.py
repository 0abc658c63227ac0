"""What has no field in another format, said behind the explanation and read back."""

import dataclasses

from app.exchange.items import Item

_REASONS = "**Why.**"
_MISTAKE = "**Common mistake.**"


def explained(item: Item, *, mistake: bool = True) -> str:
    """The explanation, and behind it the reasons of the pairs and the common mistake.

    Without `mistake` that one is left to a field of the format.
    """
    parts = [item.explanation]
    reasons = [f"- {p.left}: {p.why}" for p in item.pairs if p.left and p.why]
    if reasons:
        parts.append("\n".join((f"{_REASONS}\n", *reasons)))
    if mistake and item.mistake:
        parts.append(f"{_MISTAKE}\n\n{item.mistake}")
    return "\n\n".join(part for part in parts if part)


def unexplained(item: Item) -> Item:
    """The item with what `explained` put behind its explanation in its own place."""
    text, found, mistake = _parted(item.explanation, _MISTAKE)
    if found:
        item = dataclasses.replace(item, explanation=text, mistake=mistake)
    text, found, reasons = _parted(item.explanation, _REASONS)
    if not found or not item.pairs:
        return item
    lines = [line.removeprefix("- ") for line in reasons.split("\n")]
    pairs = tuple(
        dataclasses.replace(pair, why=_after(f"{pair.left}: ", lines) or pair.why)
        for pair in item.pairs
    )
    return dataclasses.replace(item, explanation=text, pairs=pairs)


def _parted(text: str, label: str) -> tuple[str, bool, str]:
    """What stands before and behind the last paragraph that is only the label."""
    before, found, after = f"\n\n{text}".rpartition(f"\n\n{label}\n\n")
    return (before.strip("\n"), True, after) if found else (text, False, "")


def _after(start: str, lines: list[str]) -> str:
    found = (line.removeprefix(start) for line in lines if line.startswith(start))
    return next(found, "") if start != ": " else ""
