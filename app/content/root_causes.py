"""Drops problems that only follow from another problem."""

import dataclasses
import re
from collections.abc import Iterable

from app.markup.problems import ContentProblem

# With these codes the whole file is unread, if the problem names no item.
_UNREAD = frozenset({"E00", "E88"})
# Course-wide files, and the codes of problems that follow if one is unread.
_REGISTERS = {
    "syllabus.toml": frozenset({"E14", "E70", "E71", "W36", "W73"}),
    "sources.toml": frozenset({"E86"}),
    "shared/sources.toml": frozenset({"E86"}),
    "glossary.md": frozenset(),
    "shared/glossary.md": frozenset(),
}
_COUNTS = frozenset({"E71", "W73"})  # counts that are wrong if parts of the course are unread
_BROKEN_COMMENT = frozenset({"E10", "E11"})  # its item is not gone
_QUOTED = re.compile(r"“([^”]*)”")
_MANY, _NAMED = 3, 3  # items from which they are reported together, and how many are named


def drop_consequences(problems: Iterable[ContentProblem]) -> list[ContentProblem]:
    """Return the problems without those that follow from another one.

    They are reported once the other one is corrected.
    """
    problems = _drop_derived(list(problems))
    unread = {p.path for p in problems if _is_cause(p)}
    unread_topics = {_topic(path) for path in unread} - {""}
    errors = (p for p in problems if p.severity == "error" and not p.derived)
    broken_topics = {_topic(p.path) for p in errors} - {""}
    codes = frozenset[str]().union(*(_REGISTERS.get(path, ()) for path in unread))
    if unread_topics:
        codes |= {"E06"}  # what is unread is not gone
    if broken_topics or sum(p.code == "E06" for p in problems) >= _MANY:
        codes |= _COUNTS
    broken_items = {p.item for p in problems if p.code in _BROKEN_COMMENT and p.item}
    return _merge_items(
        p
        for p in dict.fromkeys(problems)
        if _is_cause(p)
        or not (
            p.code in codes
            or (p.code == "W87" and _topic(p.path) in broken_topics)
            or (p.code == "E06" and p.item in broken_items)
            or (p.code in {"E61", "W36"} and _names_topic(p, unread_topics))
        )
    )


def _topic(path: str) -> str:
    """Return the topic of a file; empty for files of the whole course."""
    return path.split("/")[1] if path.startswith("topics/") else ""


def _names_topic(problem: ContentProblem, topics: set[str]) -> bool:
    """Return whether a quoted slug or link in the message refers to one of the topics."""
    quoted = _QUOTED.findall(problem.message)
    return any(name.removeprefix("/concepts/").partition("#")[0] in topics for name in quoted)


def _drop_derived(problems: list[ContentProblem]) -> list[ContentProblem]:
    """Drop what is below an unclosed block, and what another error of its item or file explains."""
    rest = {p.path: p.line for p in problems if p.hides_rest}
    errors = {(p.path, p.item) for p in problems if p.severity == "error" and not p.derived}
    return [
        p
        for p in problems
        if p.line <= rest.get(p.path, p.line)
        and not (p.derived and not errors.isdisjoint({(p.path, ""), (p.path, p.item)}))
    ]


def _is_cause(problem: ContentProblem) -> bool:
    if problem.path in _REGISTERS and problem.code in {"E03", "E10", "E11"}:
        return True
    return problem.code in _UNREAD and not problem.item


def _merge_items(problems: Iterable[ContentProblem]) -> list[ContentProblem]:
    """Combine many missing items, and many ids that are not locked: they have one cause.

    A broken drawing is reported once, even if several items show it.
    """
    problems = list({_build_deduplication_key(p): p for p in reversed(list(problems))}.values())[
        ::-1
    ]
    gone = [p for p in problems if p.code == "E06" and p.path == "ids.lock"]
    if len(gone) >= _MANY:
        message = f"{len(gone)} items are gone and were not retired: {_list_items(gone)}."
        hint = "If a file was deleted or renamed, bring it back; else write the date of today "
        hint += "in place of the “-” of each."
        merged = dataclasses.replace(gone[0], message=message, hint=hint, item="")
        problems = [merged, *(p for p in problems if p not in gone)]
    unlocked = sorted(p for p in problems if p.code == "W97")
    if len(unlocked) >= _MANY:
        message = f"{len(unlocked)} ids are not in ids.lock yet, so that nothing guards them: "
        message += f"{_list_items(unlocked)}."
        merged = dataclasses.replace(unlocked[0], message=message, item="")
        problems = [merged, *(p for p in problems if p.code != "W97")]
    return problems


def _build_deduplication_key(problem: ContentProblem) -> object:
    if problem.code == "E58" and problem.path.endswith(".svg"):
        return problem.path, problem.message
    return problem


def _list_items(problems: list[ContentProblem]) -> str:
    """Name the first few items of the problems, and how many more there are."""
    names = ", ".join(f"“{p.item}”" for p in problems[:_NAMED])
    more = f" and {len(problems) - _NAMED} more" if len(problems) > _NAMED else ""
    return f"{names}{more}"
