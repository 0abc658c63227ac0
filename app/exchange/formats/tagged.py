"""What other formats have no field for, carried in their tags and back."""

import dataclasses
import re
from collections.abc import Iterable

from app.exchange.items import Item

_RULES = {"off", "net", "coverage", "each", "lcs"}
_SIDES = ("left", "right")
# Some programs cut a tag at a comma or after 50 characters; QTI at a semicolon.
_SHORT = re.compile(r"[^\s,;\[\]](?:[^\n,;\[\]]{0,42}[^\s,;\[\]])?")


def tags_of(item: Item) -> list[str]:
    """The tags of an item, and its own fields as tags such as “objective:2.1”."""
    found = list(item.tags)
    found += [f"objective:{o}" for o in item.objectives]
    found += [f"source:{s}" for s in item.sources]
    if item.difficulty != 3:
        found.append(f"difficulty:{item.difficulty}")
    found += [f"level:{item.level}"] * bool(item.level)
    found += [f"use:{item.use}"] * bool(item.use)
    if item.partial or item.kind == "multiple":
        found.append(f"partial:{item.partial or 'none'}")
    if not item.shuffle:
        found.append("shuffle:no")
    if item.case:
        found.append("case:yes")
    if _titles_fit(item):
        sides = zip(_SIDES, item.titles, strict=True)
        found += [f"{side}:{title}" for side, title in sides if title]
    return found


def lost_column_titles(item: Item) -> list[str]:
    """What becomes of the titles over the columns of a match question."""
    if not any(item.titles):
        return []
    how = "stand in its tags" if _titles_fit(item) else "are not carried"
    return [f"the titles of its columns {how}"]


def _titles_fit(item: Item) -> bool:
    return all(not title or _SHORT.fullmatch(title) for title in item.titles)


def with_tags(item: Item, tags: tuple[str, ...]) -> Item:
    """The item with its fields read back from tags; the others stay tags."""
    changes: dict[str, object] = {}
    plain: list[str] = []
    objectives: list[str] = []
    sources: list[str] = []
    titles = dict(zip(_SIDES, item.titles, strict=True))
    for tag in tags:
        key, _, value = tag.partition(":")
        if key in titles and value and item.kind == "match":
            titles[key] = value
        elif key == "objective" and value:
            objectives.append(value)
        elif key == "source" and value:
            sources.append(value)
        elif not _field(key, value, changes):
            plain.append(tag)
    changes |= {
        "titles": (titles["left"], titles["right"]),
        "tags": (*item.tags, *plain),
        "objectives": (*item.objectives, *objectives),
        "sources": (*item.sources, *sources),
    }
    return dataclasses.replace(item, **changes)  # type: ignore[arg-type] # by name


def has_rule(tags: Iterable[str]) -> bool:
    """Whether a tag of ours names the rule of partial credit."""
    return any(tag.startswith("partial:") for tag in tags)


def _field(key: str, value: str, changes: dict[str, object]) -> bool:
    if key == "difficulty" and value in set("12345"):
        changes["difficulty"] = int(value)
    elif key == "partial" and value in _RULES | {"none"}:
        changes["partial"] = "" if value == "none" else value
    elif (key, value) in {("level", "deeper"), ("use", "exam")}:
        changes[key] = value
    elif (key, value) == ("shuffle", "no"):
        changes["shuffle"] = False
    elif (key, value) == ("case", "yes"):
        changes["case"] = True
    else:
        return False
    return True
