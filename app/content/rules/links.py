"""E61, E78: whether what a link or a picture names is there, and what may be meant."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from app.content.identity import closest_word, did_you_mean, slug
from app.content.parsed import ParsedFile
from app.content.problems import ContentProblem, make_problem
from app.content.source_file import CrossReference

_OTHERWISE = "Correct the link, or create what it names."
_PAGE = "/concepts/"
_TERM = "/glossary"
_FORMS = re.compile(r"[(),/]")
_GIVEN = frozenset({"sources", "end"})
Readings = Mapping[str, ParsedFile]


def check_link(path: str, mention: CrossReference, readings: Readings) -> Iterable[ContentProblem]:
    """E61: a page, a heading of it or a term is there."""
    address, _, anchor = mention.value.partition("#")
    if address.startswith(_TERM):
        known = {t.anchor for r in readings.values() for t in r.terms}
        found = not anchor or anchor in known
        hint = "" if found else _near(anchor, known)
    else:
        slug = address.removeprefix(_PAGE) or path.split("/")[-2]
        reading = readings.get(f"topics/{slug}/concept.md")
        given = anchor.startswith(("src-", "q-")) or anchor in _GIVEN
        anchors = set(reading.anchors) if reading else set()
        found = reading is not None and (not anchor or given or anchor in anchors)
        hint = ""
        if not found:
            hint = _near(anchor, anchors) if reading else _near(slug, _slugs(readings))
        if not found and (slug.endswith(".md") or "/" in slug):
            hint = "Write ../topic/concept.md for a page, or ../../glossary.md#term."
            if (web := slug.partition("www.")[2]) and not slug.endswith(".md"):
                hint = f"Write https://www.{web} for a page of the web."
    if not found:
        message = f"There is no page or heading “{unquote(mention.value)}”."
        place = (path, mention.line, mention.column)
        yield make_problem(place, "E61", message, hint, mention.item)


def check_related(
    path: str, mention: CrossReference, readings: Readings
) -> Iterable[ContentProblem]:
    """E61: what stands behind `See:` is the heading of a term."""
    terms = [t for r in readings.values() for t in r.terms]
    anchor = slug(mention.value)
    if any(term.anchor == anchor for term in terms):
        return
    called = {form: t.name for t in terms for form in (t.anchor, *_forms(t.name))}
    near = called.get(anchor) or called.get(closest_word(anchor, called))
    hint = "Write the whole heading of a term, and a comma between two."
    if near:
        hint = f"Write its whole heading: “{near}”."
    message = f"“{mention.value}” behind See: is no heading of the glossary."
    place = (path, mention.line, mention.column)
    yield make_problem(place, "E61", message, hint)


def _forms(name: str) -> Iterable[str]:
    """The parts of a heading that may be taken for it: “Time to first token (TTFT)”."""
    return filter(None, map(slug, _FORMS.split(name)))


def _slugs(readings: Readings) -> set[str]:
    return {r.topic.slug for r in readings.values() if r.topic}


def _near(word: str, known: set[str]) -> str:
    """The nearest known name; where none is near, what to do."""
    hint = did_you_mean(word, known)
    return hint if hint.startswith("Did you mean") else _OTHERWISE


def check_picture(
    path: str, mention: CrossReference, files: Mapping[str, str]
) -> Iterable[ContentProblem]:
    """E61, E78: a picture is there, and is one; `files` says what is wrong with it."""
    name = f"{path.rpartition('/')[0]}/{mention.value}"
    flaw = files.get(name, f"There is no file “{mention.value}”.")
    if not flaw:
        return
    message, _, near = flaw.partition("\n")
    code, hint = "E61", near or _OTHERWISE
    if not message.startswith("There is no"):
        code = "E78"
        hint = "Put a picture into the folder of the topic, and name it here."
    place = (path, mention.line, mention.column)
    yield make_problem(place, code, message, hint, mention.item)
