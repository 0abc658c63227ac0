"""What of a course can be found. Whatever would give an answer away stays out."""

import re
from collections.abc import Iterable, Iterator, Sequence

from app.content.live.library import Library
from app.content.markdown.math import in_words
from app.content.model import Flashcard, Topic
from app.estimator.hardware.parts import CatalogPart, address_of, parts
from app.estimator.registry import EstimateSpec
from app.search.findings import SearchDocument

_PLACES = (
    SearchDocument(
        "place",
        "Mock exams",
        "A mock exam, practice exam or practice test: questions against the clock.",
        "/exams",
    ),
    SearchDocument(
        "place",
        "Pass mark and target",
        "No pass mark, passing score or cut score is assumed; set your own target.",
        "/settings",
    ),
    SearchDocument(
        "place",
        "Settings",
        "Change exam day, minutes a day, days off, target, cards and shortcuts.",
        "/settings",
    ),
    SearchDocument("place", "Practice questions", "Quiz by topic and objective.", "/quiz"),
    SearchDocument("place", "Flashcards", "Cards that come back when due.", "/flashcards"),
    SearchDocument(
        "place",
        "Change a card",
        "Skip it until tomorrow (Anki: bury), put it aside (suspend), reset it, or set "
        "its due date: open “More” below a card.",
        "/flashcards/deck",
    ),
    SearchDocument("place", "Study plan", "The days until the exam date.", "/plan"),
    SearchDocument("place", "Progress", "Mastery and readiness by objective.", "/progress"),
    SearchDocument("place", "Hardware", "GPUs, servers, links: each value sourced.", "/hardware"),
)
_BEFORE_A_STOP = re.compile(r"\s+(?=[.,;:!?)])")
_ASKED_FOR = (*("memory", "memory_bandwidth", "nvlink", "bandwidth", "port_rate", "tdp", "power"),)


def documents(library: Library, calculators: Iterable[EstimateSpec]) -> list[SearchDocument]:
    """Page sections, terms, fronts of cards, calculators, hardware, the app itself.

    Questions are no documents, for their options and explanations answer them; a
    reversed card asks with what the other one answers, so it is left out too.
    """
    found = [*_pages(library), *_terms(library), *_cards(library)]
    if not library.syllabus.calculators:
        return [*(p for p in _PLACES if p.address != "/hardware"), *found]
    return [*_PLACES, *found, *_tools(calculators), *map(_hardware, parts())]


def _pages(library: Library) -> Iterator[SearchDocument]:
    for topic in library.topics.values():
        cards = [library.cards[c] for c in topic.cards if c in library.cards]
        for section in topic.sections:
            body = _line(_without_backs(section.plain, cards))
            if section.anchor:
                address = f"/concepts/{topic.slug}#{section.anchor}"
                yield SearchDocument("page", section.title, body, address, topic.title)
            else:
                yield _opening(topic, body)


def _opening(topic: Topic, body: str) -> SearchDocument:
    words = f"{topic.summary} {body}".strip()
    return SearchDocument("page", topic.title, words, f"/concepts/{topic.slug}")


def _without_backs(plain: str, cards: Sequence[Flashcard]) -> str:
    """The text of a section without the answers of cards that stand in it."""
    for card in cards:
        whole = f"{card.front.plain} {card.back.plain}"
        if not card.is_reverse:
            plain = plain.replace(whole, card.front.plain)
    return plain


def _terms(library: Library) -> Iterator[SearchDocument]:
    for term in library.glossary.values():
        body = _line(term.meaning.plain)
        yield SearchDocument("term", term.name, body, f"/glossary#{term.anchor}")


def _cards(library: Library) -> Iterator[SearchDocument]:
    for card in library.cards.values():
        if card.is_reverse:
            continue
        topic = library.topics.get(card.topic)
        front, where = _line(card.front.plain), topic.title if topic else ""
        yield SearchDocument("card", front, "", f"/flashcards?card={card.id}", where)


def _tools(calculators: Iterable[EstimateSpec]) -> Iterator[SearchDocument]:
    for entry in calculators:
        figures = ", ".join(output.label for output in entry.outputs)
        body = f"{entry.summary} {figures}"
        address = f"/calculators/{entry.name}"
        yield SearchDocument("calculator", entry.title, body, address)


def _hardware(part: CatalogPart) -> SearchDocument:
    """A part with its maker, its other names and the values that people ask for."""
    values = [v for name in _ASKED_FOR if (v := part.get(name)) and v.state == "known"]
    told = ", ".join(
        f"{v.field.label} {v.words}{' one way' * (v.field.says == 'one way')}" for v in values
    )
    names = f"Also {', '.join(part.aliases)}" if part.aliases else ""
    body = _line(". ".join(filter(None, (part.vendor, told, names, part.note))))
    return SearchDocument("part", part.name, body, address_of(part.id))


def _line(text: str) -> str:
    return _BEFORE_A_STOP.sub("", " ".join(in_words(text).split()))
