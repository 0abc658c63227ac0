"""Drops problems that only follow from another problem."""

import dataclasses
import re
from collections.abc import Iterable

from app.markup.ids import slugify
from app.markup.problems import ContentProblem

# With these codes the whole file is unread, if the problem names no item.
_UNREAD = frozenset({"E00", "E88"})
_REGISTERS = {
    "syllabus.toml": frozenset({"E14", "E70", "E71", "W36", "W73"}),
    "sources.toml": frozenset({"E86"}),
    "shared/sources.toml": frozenset({"E86"}),
    "glossary.md": frozenset(),
    "shared/glossary.md": frozenset(),
}
_SWALLOWS = "it takes all that follows."
_LOST = "belongs to no question"
_UNTYPED = "The item has no type"
_LISTED_TYPE = "“type” has one value"
_PARTED = "stand apart from it."
_TEXTUAL = "These lines are read as text, not as a table."
_NO_TERM = "behind See: is no heading of the glossary."
_NO_ANSWERS = "This question has no answers and no type."
_COUNTS = frozenset({"E71", "W73"})  # counts that are unreliable if parts of the course are unread
# number of items from which they are reported together, and how many are named
_MANY, _NAMED = 3, 3
_FRONT = 20  # assumed maximum length of a front matter in lines
# errors of a comment that cannot be parsed, so the item is not gone
_TORN = frozenset({"E10", "E11"})
_KEYS = frozenset({"E12", "E13"})
_QUOTED = re.compile(r"“([^”]*)”")
_BOXES = re.compile(r"\b(IMPORTANT|TIP)\b")
_LACKING = re.compile(r"\[!(IMPORTANT|TIP)\]")


def drop_consequences(found: Iterable[ContentProblem]) -> list[ContentProblem]:
    """Return the problems without those that are caused by an unreadable file."""
    problems = list(found)
    causes = {p.path for p in problems if _is_cause(p)}
    topics = {c.split("/")[1] for c in causes if c.startswith("topics/")}
    codes = frozenset[str]().union(*(_REGISTERS.get(c, ()) for c in causes))
    if topics:
        codes |= _COUNTS | {"E06"}  # what is unread is not gone
    seen = _collect_causes(problems)
    if any(path.startswith("topics/") for path in seen.frontless):
        codes |= _COUNTS
    broken = {p.path.split("/")[1] for p in problems if _leaves_out(p)}
    torn = {p.item for p in problems if p.code in _TORN and p.item}
    problems = _drop_derived(problems, seen)
    problems = [p for p in problems if not (p.code == "E06" and p.item in torn)]
    opened = {p.path for p in problems if not p.item and _hides_boxes(p)}
    problems = _merge_unlocked_ids(_merge_deleted_items(problems))
    if any(p.code == "E06" and not p.item for p in problems):
        codes |= _COUNTS
    return [
        p
        for p in _drop_twin_problems(problems)
        if _is_cause(p)
        or not (
            _follows_from_unread(p, codes, topics)
            or (p.code == "W87" and p.path in opened)
            or _counts_broken(p, broken)
        )
    ]


def _drop_derived(problems: list[ContentProblem], seen: "_RootCauses") -> list[ContentProblem]:
    """Drop derived problems. A file whose only errors are derived keeps them."""
    causal = {p for p in problems if not _is_derived(p, seen)}
    failing = {p.path for p in causal if p.severity == "error"}
    return [p for p in problems if p in causal or (p.severity == "error" and p.path not in failing)]


def _leaves_out(found: ContentProblem) -> bool:
    """Return whether a problem removes an item, or a file of items, from the course."""
    parts = found.path.split("/")
    of_items = parts[0] == "topics" and parts[-1] in {"quiz.md", "cards.md"}
    return found.severity == "error" and of_items


def _counts_broken(found: ContentProblem, broken: set[str]) -> bool:
    """Return whether a problem counts items of a topic of which some are broken."""
    if found.code == "W73":
        return bool(broken) and "no page" not in found.message
    counted = found.message.endswith((" no cards.", ", not five."))
    here = found.code == "W87" and found.path.split("/")[1] in broken
    return (here and counted) or (found.code == "E71" and bool(broken))


def _hides_boxes(found: ContentProblem) -> bool:
    """Return whether content below the problem is not read or not shown because of it."""
    return found.code == "E10" or _LOST in found.message


def _merge_deleted_items(problems: list[ContentProblem]) -> list[ContentProblem]:
    """Combine many missing items into one problem: they usually have one cause."""
    gone = [p for p in problems if p.code == "E06" and p.path == "ids.lock"]
    if len(gone) < _MANY:
        return problems
    told = dataclasses.replace(
        gone[0],
        message=f"{len(gone)} items are gone and were not retired: {_list_item_names(gone)}.",
        hint="If a file was deleted or renamed, bring it back; else write the date of "
        "today in place of the “-” of each.",
        item="",
    )
    return [told, *(p for p in problems if p not in gone)]


def _merge_unlocked_ids(problems: list[ContentProblem]) -> list[ContentProblem]:
    """Combine many ids that are missing in ids.lock into one problem."""
    unguarded = sorted(p for p in problems if p.code == "W97")
    if len(unguarded) < _MANY:
        return problems
    message = f"{len(unguarded)} ids are not in ids.lock yet, so that nothing guards "
    told = dataclasses.replace(
        unguarded[0], message=f"{message}them: {_list_item_names(unguarded)}.", item=""
    )
    return [told, *(p for p in problems if p.code != "W97")]


def _list_item_names(items: list[ContentProblem]) -> str:
    """Name the first few items of the problems, and how many more there are."""
    names = ", ".join(f"“{p.item}”" for p in items[:_NAMED])
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return f"{names}{more}"


def _drop_twin_problems(problems: Iterable[ContentProblem]) -> Iterable[ContentProblem]:
    """Report a broken drawing once, even if several items show it."""
    told: set[tuple[str, str]] = set()
    for found in problems:
        name = (found.path, found.message)
        if found.code == "E58" and found.path.endswith(".svg"):
            if name in told:
                continue
            told.add(name)
        yield found


@dataclasses.dataclass(frozen=True, slots=True)
class _RootCauses:
    """Paths and items with a problem that causes others in the same file."""

    frontless: frozenset[str]
    exams: frozenset[str]
    undated: frozenset[str]
    boxes: frozenset[tuple[str, int]]
    merging: frozenset[str]
    endless: frozenset[ContentProblem]
    misnamed: frozenset[str]
    unboxed: frozenset[str]
    parted: frozenset[str]
    textual: frozenset[str]
    unnumbered: frozenset[str]
    parted_lists: frozenset[str]
    blankless: frozenset[str]
    meaningless: frozenset[str]


def _collect_causes(problems: Iterable[ContentProblem]) -> _RootCauses:
    every = list(problems)
    keyed = (p.path for p in every if p.code in _KEYS)
    return _RootCauses(
        frozenset(p.path for p in every if _is_frontless(p)),
        frozenset(path for path in keyed if path.startswith("exams/")),
        frozenset(p.path for p in every if p.message.endswith("is not a date.")),
        frozenset((p.path, p.line) for p in every if p.code == "E74"),
        frozenset(p.path for p in every if p.code == "E75"),
        frozenset(p for p in every if p.message.endswith(_SWALLOWS)),
        frozenset(
            f"{p.path} {meant}" for p in every if p.code == "E12" and (meant := _proposed_word(p))
        ),
        frozenset(
            f"{p.path} {box}"
            for p in every
            if p.code == "E74"
            for box in _BOXES.findall(f"{p.message} {p.hint}")
        ),
        frozenset(p.item for p in every if _is_parted(p)),
        _items_with_ending([p for p in every if p.code == "E52"], _TEXTUAL),
        _items_with_ending(every, " has 0 steps; three are needed."),
        _items_with_ending(every, "and is no part of them."),
        _items_with_ending(every, "The text has no blank."),
        frozenset(
            _quoted_slug(p)
            for p in every
            if p.code == "E10" and p.message.endswith("” has no meaning.")
        ),
    )


def _quoted_slug(found: ContentProblem) -> str:
    """Return the slug of the first quoted text in the message."""
    return slugify(next(iter(_QUOTED.findall(found.message)), ""))


def _items_with_ending(problems: list[ContentProblem], ending: str) -> frozenset[str]:
    """Return path and item of the problems whose message has this ending."""
    return frozenset(f"{p.path} {p.item}" for p in problems if p.message.endswith(ending))


def _is_parted(found: ContentProblem) -> bool:
    """Return whether an item's answers or type are in a place where they are not read."""
    return found.message.endswith(_PARTED) or found.message.startswith(_LISTED_TYPE)


def _proposed_word(found: ContentProblem) -> str:
    """Return the word that a “Did you mean” hint suggests."""
    words = _QUOTED.findall(found.hint)
    return words[0] if found.hint.startswith("Did you mean") and words else ""


def _is_derived(found: ContentProblem, seen: _RootCauses) -> bool:
    """Return whether a problem only repeats another one of its file."""
    if found.path in seen.frontless and _is_of_front(found):
        return True
    if found.path in seen.exams and found.message == "The mock exam is incomplete.":
        return True
    untyped = found.message.startswith((_NO_ANSWERS, _UNTYPED))
    return (
        (untyped and found.item in seen.parted)
        or _is_swallowed(found, seen)
        or _is_of_merge(found, seen)
        or _is_misnamed(found, seen)
        or _is_of_box(found, seen)
        or _is_of_list(found, seen)
    )


def _is_of_box(found: ContentProblem, seen: _RootCauses) -> bool:
    """Return whether it repeats a reported box; Markdown reads “[!NOTE](see)” as a link."""
    linked = found.message.startswith("There is no page or heading")
    here = (found.path, found.line) in seen.boxes
    return here and (linked or found.message.endswith("is not an alert."))


def _is_of_list(found: ContentProblem, seen: _RootCauses) -> bool:
    """Return whether it follows from steps, pairs or terms that were not recognized."""
    where = f"{found.path} {found.item}"
    if found.code == "W68" and found.message == _TEXTUAL:
        return where in seen.textual
    if found.code == "E46" and found.message.endswith("has no params."):
        return where in seen.blankless
    if found.message.endswith("does not begin with a check box."):
        return where in seen.unnumbered
    if found.code == "E50" and found.message.endswith("three are needed."):
        return where in seen.parted_lists
    meaningless = found.message.endswith(_NO_TERM)
    return meaningless and _quoted_slug(found) in seen.meaningless


def _is_swallowed(found: ContentProblem, seen: _RootCauses) -> bool:
    """Return whether it is inside an unclosed block, or follows from what the block swallowed."""
    return any(
        found.path == cause.path
        and (
            found.line > cause.line
            or (found.item == cause.item != "" and found.message == _NO_ANSWERS)
        )
        for cause in seen.endless
    )


def _is_of_merge(found: ContentProblem, seen: _RootCauses) -> bool:
    """Return whether conflict markers were read as Markdown."""
    boxed = found.message.endswith("inside of the box above it.")
    marks = found.code == "W64" or (found.code == "E74" and boxed)
    return marks and found.path in seen.merging


def _is_misnamed(found: ContentProblem, seen: _RootCauses) -> bool:
    """Return whether something missing is present under another name, or unreadable."""
    if found.code not in {"E10", "W38", "W87"}:
        return False
    if found.message == "The page has no title in its front matter.":
        return f"{found.path} title" in seen.misnamed
    if found.code == "W38":
        keys = _QUOTED.findall(found.message)
        undated = found.path in seen.undated and "reviewed" in keys
        return undated or any(f"{found.path} {key}" in seen.misnamed for key in keys)
    lacking = _LACKING.findall(found.message)
    told = all(f"{found.path} {box}" in seen.unboxed for box in lacking)
    return bool(lacking) and told and ", " not in found.message


def _is_frontless(found: ContentProblem) -> bool:
    """Return whether the front matter of the file could not be read."""
    return found.code == "E10" and not found.item and found.line <= _FRONT


def _is_of_front(found: ContentProblem) -> bool:
    """Return whether the problem is something missing in the front matter."""
    return found.code in {"E14", "E16", "W38"} and "not an objective" not in (found.message)


def _is_cause(found: ContentProblem) -> bool:
    if found.path in _REGISTERS and found.code in {"E03", "E10", "E11"}:
        return True
    return found.code in _UNREAD and not found.item


def _follows_from_unread(found: ContentProblem, codes: frozenset[str], topics: set[str]) -> bool:
    """Return whether a problem refers to content of an unread file."""
    if found.code in codes:
        return True
    if found.code == "W87":
        return found.path.split("/")[1] in topics
    if found.code in {"E61", "W36"}:
        return any(_quoted_topic(words) in topics for words in _QUOTED.findall(found.message))
    return False


def _quoted_topic(words: str) -> str:
    """Return the topic that a quoted slug or link refers to."""
    return words.removeprefix("/concepts/").partition("#")[0]
