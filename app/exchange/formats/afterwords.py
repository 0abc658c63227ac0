"""What has no field in another format, said behind the explanation and read back."""

import dataclasses

from app.exchange.items import Item

_REASONS = "**Why.**"
_MISTAKE = "**Common mistake.**"
_HINT = "**Hint.**"


def explained(item: Item, *, mistake: bool = True, hints: bool = True) -> str:
    """The explanation, and behind it what the format has no field for.

    What is said about single steps and the reasons of the pairs always stand there,
    the `hints` and the common `mistake` unless a field of the format takes them.
    """
    parts = [item.explanation]
    if hints:
        parts += [f"{_HINT}\n\n{hint}" for hint in item.hints]
    said = [(n, step.feedback) for n, step in enumerate(item.steps, 1)]
    parts += [f"{_step(n)}\n\n{words}" for n, words in said if words]
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
    if found and item.pairs:
        lines = [line.removeprefix("- ") for line in reasons.split("\n")]
        pairs = tuple(
            dataclasses.replace(pair, why=_after(f"{pair.left}: ", lines) or pair.why)
            for pair in item.pairs
        )
        item = dataclasses.replace(item, explanation=text, pairs=pairs)
    return _without_asides(item)


def _without_asides(item: Item) -> Item:
    """The item with its hints and the remarks on its steps taken out again."""
    text, steps, hints = item.explanation, list(item.steps), list(item.hints)
    for number in range(len(steps), 0, -1):
        text, found, words = _parted(text, _step(number))
        if found:
            steps[number - 1] = dataclasses.replace(steps[number - 1], feedback=words)
    text, found, words = _parted(text, _HINT)
    while found:
        hints.insert(len(item.hints), words)
        text, found, words = _parted(text, _HINT)
    return dataclasses.replace(item, explanation=text, steps=tuple(steps), hints=tuple(hints))


def _step(number: int) -> str:
    return f"**Step {number}.**"


def _parted(text: str, label: str) -> tuple[str, bool, str]:
    """What stands before and behind the last paragraph that is only the label."""
    before, found, after = f"\n\n{text}".rpartition(f"\n\n{label}\n\n")
    return (before.strip("\n"), True, after) if found else (text, False, "")


def _after(start: str, lines: list[str]) -> str:
    found = (line.removeprefix(start) for line in lines if line.startswith(start))
    return next(found, "") if start != ": " else ""
