"""Notes in the order of the course, as a page and as Markdown."""

import dataclasses
from collections.abc import Mapping, Sequence

from app.content.live.library import Library
from app.content.model import Topic
from app.questions.phrases import fold_text, split_query


@dataclasses.dataclass(frozen=True, slots=True)
class SavedNote:
    """A note: the page and section it stands beside, its words, its bookmark."""

    topic: str
    section: str
    words: str = ""
    marked: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class NotedSection:
    """A section with what was written beside it; `address` is of the section."""

    title: str
    address: str
    note: SavedNote


@dataclasses.dataclass(frozen=True, slots=True)
class NotesPage:
    """The notes of one page."""

    slug: str
    title: str
    places: tuple[NotedSection, ...]


def places_of(topic: Topic, written: Sequence[SavedNote]) -> tuple[NotedSection, ...]:
    """Every section of a page, and after them notes whose section is gone."""
    by_section = {note.section: note for note in written}
    there = [s for s in topic.sections if s.anchor]
    places = [_place(topic, s.anchor, s.title, by_section.pop(s.anchor, None)) for s in there]
    lost = [_place(topic, gone, gone, note) for gone, note in by_section.items()]
    return tuple(places + lost)


def leaves(library: Library, written: Sequence[SavedNote]) -> tuple[NotesPage, ...]:
    """All notes by page in course order; those of pages that are gone stand last."""
    by_topic: dict[str, list[SavedNote]] = {}
    for note in written:
        by_topic.setdefault(note.topic, []).append(note)
    order = [s for s in (*library.syllabus.topics, *library.topics) if s in by_topic]
    ordered = dict.fromkeys([*order, *by_topic])
    return tuple(_leaf(library.topics, slug, by_topic[slug]) for slug in ordered)


def found_in(listed: Sequence[NotesPage], query: str) -> tuple[NotesPage, ...]:
    """The notes in which every word of the query stands, titles included."""
    words = split_query(query)
    found = []
    for leaf in listed:
        places = tuple(
            place
            for place in leaf.places
            if _holds(f"{leaf.title} {place.title} {place.note.words}", words)
        )
        if places:
            found.append(dataclasses.replace(leaf, places=places))
    return tuple(found)


def _holds(text: str, words: Sequence[str]) -> bool:
    folded = fold_text(text)
    return all(word in folded for word in words)


def markdown(listed: Sequence[NotesPage], site: str) -> str:
    """The notes as a Markdown file; `site` is the address of this server."""
    parts = ["# Notes"]
    for leaf in listed:
        parts.append(f"## {leaf.title}")
        for place in leaf.places:
            mark = " (bookmark)" if place.note.marked else ""
            parts.append(f"### [{place.title}]({site}{place.address}){mark}")
            parts += [place.note.words] if place.note.words else []
    return "\n\n".join(parts) + "\n"


def _leaf(topics: Mapping[str, Topic], slug: str, written: Sequence[SavedNote]) -> NotesPage:
    topic = topics.get(slug)
    if topic is None:
        places = tuple(NotedSection(n.section, f"/concepts/{slug}", n) for n in written)
        return NotesPage(slug, slug, places)
    noted = {note.section for note in written}
    all_places = places_of(topic, written)
    return NotesPage(slug, topic.title, tuple(p for p in all_places if p.note.section in noted))


def _place(topic: Topic, anchor: str, title: str, note: SavedNote | None) -> NotedSection:
    address = f"/concepts/{topic.slug}#{anchor}"
    return NotedSection(title, address, note or SavedNote(topic.slug, anchor))
