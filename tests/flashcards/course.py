"""A course of cards held in the hand: two topics, a card with its reverse."""

import dataclasses
import datetime as dt
from pathlib import Path

from app.content.course import Course
from app.markup.model import (
    CitedSource,
    Domain,
    Flashcard,
    Objective,
    RichText,
    SourceLocation,
    Syllabus,
    Topic,
)
from tests.conftest import TINY

SLUGS = ("weights", "cache")


def a_card(number: str, topic: str, sibling: str = "") -> Flashcard:
    return Flashcard(
        id=number,
        topic=topic,
        front=RichText(f"Front of {number}", f"Front of {number}"),
        back=RichText(f"Back of {number}", f"Back of {number}"),
        objectives=("1.1",),
        place=SourceLocation(f"topics/{topic}/cards.md", 3),
        revision="r1",
        sources=("herd",),
        sibling=sibling,
    )


def cards_of(topic: str, count: int) -> list[Flashcard]:
    return [a_card(f"{topic}-{number}", topic) for number in range(1, count + 1)]


def a_topic(slug: str, cards: tuple[str, ...]) -> Topic:
    return Topic(
        slug=slug,
        title=slug.title(),
        summary="",
        objectives=("1.1",),
        sections=(),
        sources=(),
        requires=(),
        reviewed=dt.date(2026, 6, 1),
        minutes=3,
        questions=(),
        cards=cards,
        place=SourceLocation("topics/x/concept.md", 1),
        revision="r",
    )


def a_course(*cards: Flashcard) -> Course:
    goals = (Objective("1.1", "All of it", "1", "All of it"),)
    topics = {slug: a_topic(slug, tuple(c.id for c in cards if c.topic == slug)) for slug in SLUGS}
    return Course(
        version=str(hash(cards)),
        syllabus=Syllabus("X-1", "Course", (Domain("1", "One", 1, goals),), SLUGS),
        topics=topics,
        questions={},
        cards={c.id: c for c in cards},
        glossary={},
        sources={"herd": CitedSource("herd", "The herd", "Meta", "https://x.org", None)},
        exams={},
        problems=(),
    )


def two_topics() -> list[Flashcard]:
    pair = [
        a_card("weights-pair", "weights", "weights-pair~r"),
        a_card("weights-pair~r", "weights", "weights-pair"),
    ]
    return [*cards_of("weights", 4), *pair, *cards_of("cache", 6)]


class EditableLiveCourse:
    """Stands where the course of a running server stands; a test may edit it."""

    folder: Path = TINY

    def __init__(self, *cards: Flashcard) -> None:
        self.held = a_course(*cards)

    def get_current_course(self) -> Course:
        return self.held

    def get_recently_checked_course(self) -> Course:
        return self.held

    def remove(self, *gone: str) -> None:
        left = [c for c in self.held.cards.values() if c.id not in gone]
        self.held = a_course(*left)

    def move(self, card: str, topic: str) -> None:
        moved = [
            dataclasses.replace(c, topic=topic) if c.id == card else c
            for c in self.held.cards.values()
        ]
        self.held = a_course(*moved)
