"""One cause is told once: what only follows from it is left out of the report. Pure."""

import re
from collections.abc import Iterable

from app.content.problems import Problem

# What keeps a whole file, not one item, from being read.
_UNREAD = frozenset({"E00", "E88"})
_REGISTERS = {
    "syllabus.toml": frozenset({"E14", "E70", "E71", "W36", "W73"}),
    "sources.toml": frozenset({"E86"}),
    "shared/sources.toml": frozenset({"E86"}),
    "glossary.md": frozenset(),
    "shared/glossary.md": frozenset(),
}
_COUNTS = frozenset({"E71", "W73"})  # a course that is not all there is not counted
_QUOTED = re.compile(r"“([^”]*)”")


def told_once(found: Iterable[Problem]) -> list[Problem]:
    """The problems without those that a file that cannot be read brings elsewhere."""
    problems = list(found)
    causes = {p.path for p in problems if _is_cause(p)}
    topics = {c.split("/")[1] for c in causes if c.startswith("topics/")}
    codes = frozenset[str]().union(*(_REGISTERS.get(c, ()) for c in causes))
    if topics:
        codes |= _COUNTS
    opened = {p.path for p in problems if p.code == "E10" and not p.item}
    return [
        p
        for p in problems
        if _is_cause(p)
        or not (_follows(p, codes, topics) or (p.code == "W87" and p.path in opened))
    ]


def _is_cause(found: Problem) -> bool:
    if found.path in _REGISTERS and found.code in {"E10", "E11"}:
        return True
    return found.code in _UNREAD and not found.item


def _follows(found: Problem, codes: frozenset[str], topics: set[str]) -> bool:
    """Whether a problem speaks of what an unread file would have said."""
    if found.code in codes:
        return True
    if found.code == "W87":
        return found.path.split("/")[1] in topics
    if found.code in {"E61", "W36"}:
        return any(
            _topic_of(words) in topics for words in _QUOTED.findall(found.message)
        )
    return False


def _topic_of(words: str) -> str:
    """The topic that a quoted word is, or leads to."""
    return words.removeprefix("/concepts/").partition("#")[0]
