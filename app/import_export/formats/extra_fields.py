"""Store fields without a place in a format as tags, or as labeled paragraphs of the explanation."""

import dataclasses
import re
from collections.abc import Iterable
from typing import NamedTuple

from app.import_export.html_to_markdown import join_into_one_line
from app.import_export.items import Item, ItemOption
from app.import_export.markdown_text import remove_markdown_escapes
from app.markup.text import is_slug

_FIELD_BY_TAG: dict[str, object] = {
    **{f"difficulty:{number}": number for number in range(1, 6)},
    **{f"partial:{rule}": rule for rule in ("off", "net", "each", "lcs")},
    "partial:none": "",
    "level:deeper": "deeper",
    "use:exam": "exam",
    "shuffle:no": False,
    "case:yes": True,
}
"""The values of the fields that our tags stand for; a tag begins with the name of its field."""
_MATCH_SIDES = ("left", "right")
# Some programs cut a tag at a comma or after 50 characters, QTI at a semicolon.
_SHORT_TAG = re.compile(r"[^\s,;\[\]](?:[^\n,;\[\]]{0,42}[^\s,;\[\]])?")


def write_item_fields_as_tags(item: Item) -> list[str]:
    """Return the tags of an item, with its own fields as tags such as “objective:2.1”."""
    tags = list(item.tags)
    tags += [f"objective:{o}" for o in item.objectives]
    tags += [f"source:{s}" for s in item.sources]
    if item.difficulty != 3:
        tags.append(f"difficulty:{item.difficulty}")
    tags += [f"topic:{item.topic}"] * bool(item.topic)
    tags += [f"level:{item.level}"] * bool(item.level)
    tags += [f"use:{item.use}"] * bool(item.use)
    if item.partial or item.kind == "multiple":
        tags.append(f"partial:{item.partial or 'none'}")
    if not item.shuffle:
        tags.append("shuffle:no")
    if item.case:
        tags.append("case:yes")
    if can_column_titles_be_tags(item):
        sides = zip(_MATCH_SIDES, item.titles, strict=True)
        tags += [f"{side}:{title}" for side, title in sides if title]
    return tags


def can_column_titles_be_tags(item: Item) -> bool:
    return all(not title or _SHORT_TAG.fullmatch(title) for title in item.titles)


def restore_fields_from_tags(item: Item, tags: tuple[str, ...]) -> Item:
    """Return the item with its fields restored from tags; the others stay tags."""
    changes: dict[str, object] = {}
    other_tags: list[str] = []
    objectives: list[str] = []
    sources: list[str] = []
    titles = dict(zip(_MATCH_SIDES, item.titles, strict=True))
    for tag in tags:
        key, _, value = tag.partition(":")
        if tag in _FIELD_BY_TAG:
            changes[key] = _FIELD_BY_TAG[tag]
        elif key == "topic" and is_slug(value):
            changes["topic"] = value
        elif key in titles and value and item.kind == "match":
            titles[key] = value
        elif key == "objective" and value:
            objectives.append(value)
        elif key == "source" and value:
            sources.append(value)
        else:
            other_tags.append(tag)
    changes |= {
        "titles": (titles["left"], titles["right"]),
        "tags": (*item.tags, *other_tags),
        "objectives": (*item.objectives, *objectives),
        "sources": (*item.sources, *sources),
    }
    return dataclasses.replace(item, **changes)  # type: ignore[arg-type] # by name


def has_partial_credit_tag(tags: Iterable[str]) -> bool:
    """Return whether one of our tags names the rule of partial credit."""
    return any(tag.startswith("partial:") for tag in tags)


_REASONS_LABEL = "**Why.**"
_MISTAKE_LABEL = "**Common mistake.**"
_HINT_LABEL = "**Hint.**"
_WRONG_STEPS = "**No steps.**"


def append_extra_fields_to_explanation(
    item: Item, *, include_mistake: bool = True, include_hints: bool = True
) -> str:
    """Return the explanation, followed by what the format has no field for.

    Remarks on steps and reasons of pairs are always included.
    """
    parts = [item.explanation]
    if include_hints:
        parts += [f"{_HINT_LABEL}\n\n{hint}" for hint in item.hints]
    feedback = [(n, step.feedback) for n, step in enumerate(item.steps, 1)]
    parts += [f"**Step {n}.**\n\n{text}" for n, text in feedback if text]
    reasons = [f"- {p.left}: {p.why}" for p in item.pairs if p.left and p.why]
    if reasons:
        parts.append("\n".join((f"{_REASONS_LABEL}\n", *reasons)))
    if item.kind == "order" and item.options:
        wrong_steps = (f"- {join_into_one_line(option.text)}" for option in item.options)
        parts.append("\n".join((f"{_WRONG_STEPS}\n", *wrong_steps)))
    if include_mistake and item.mistake:
        parts.append(f"{_MISTAKE_LABEL}\n\n{item.mistake}")
    return "\n\n".join(part for part in parts if part)


def restore_fields_from_explanation(item: Item) -> Item:
    """Move what `append_extra_fields_to_explanation` appended to the explanation back to its own fields."""
    if parts := _split_at_label_paragraph(item.explanation, _MISTAKE_LABEL):
        item = dataclasses.replace(item, explanation=parts.text_before, mistake=parts.text_after)
    parts = _split_at_label_paragraph(item.explanation, _WRONG_STEPS)
    if parts and item.kind == "order":
        step_texts = [
            line.removeprefix("- ") for line in parts.text_after.split("\n") if line.strip()
        ]
        wrong = tuple(ItemOption(name, right=False) for name in step_texts)
        item = dataclasses.replace(item, explanation=parts.text_before, options=wrong)
    parts = _split_at_label_paragraph(item.explanation, _REASONS_LABEL)
    if parts and item.pairs:
        lines = [line.removeprefix("- ") for line in parts.text_after.split("\n")]
        pairs = tuple(
            dataclasses.replace(
                pair, why=_find_text_after_prefix(f"{pair.left}: ", lines) or pair.why
            )
            for pair in item.pairs
        )
        item = dataclasses.replace(item, explanation=parts.text_before, pairs=pairs)
    return _restore_hints_and_step_feedback(item)


def _restore_hints_and_step_feedback(item: Item) -> Item:
    """Move hints and remarks on steps from the explanation back to their own fields."""
    text, steps, hints = item.explanation, list(item.steps), list(item.hints)
    for number in range(len(steps), 0, -1):
        if parts := _split_at_label_paragraph(text, f"**Step {number}.**"):
            text = parts.text_before
            steps[number - 1] = dataclasses.replace(steps[number - 1], feedback=parts.text_after)
    while parts := _split_at_label_paragraph(text, _HINT_LABEL):
        text = parts.text_before
        hints.insert(len(item.hints), parts.text_after)
    return dataclasses.replace(item, explanation=text, steps=tuple(steps), hints=tuple(hints))


class _SplitAtLabel(NamedTuple):
    text_before: str
    text_after: str


def _split_at_label_paragraph(text: str, label: str) -> _SplitAtLabel | None:
    """Split at the last paragraph that consists of the label only; None if there is none."""
    before, separator, after = f"\n\n{text}".rpartition(f"\n\n{label}\n\n")
    return _SplitAtLabel(before.strip("\n"), after) if separator else None


def _find_text_after_prefix(prefix: str, lines: list[str]) -> str:
    """Return what follows the prefix in the first line that begins with it, else ""."""
    if prefix == ": ":
        return ""
    # The way through HTML drops escapes that Markdown needs only in other places.
    plain = remove_markdown_escapes(prefix)
    for line in lines:
        for end in range(len(plain), min(len(line), 2 * len(prefix)) + 1):
            if remove_markdown_escapes(line[:end]) == plain:
                return line[end:]
    return ""
