"""What to do today: what is due, where the reader was, what is weakest."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Literal

from app.content.library import Library
from app.content.model import Topic
from app.progress.mastery.standing import DomainStanding, Record, Standing, anchors

_CARD_MINUTES = 0.3
_NEW_MINUTES = 1.0
_NEW_AT_ONCE = 5
_QUESTION_MINUTES = 1.2
_ROUND = 10
_GOOD = 0.8

Kind = Literal["review", "learn", "read", "continue", "practise"]


@dataclasses.dataclass(frozen=True, slots=True)
class Deck:
    """The cards of today: due now, due later today, and never seen."""

    due: int
    later: int
    new: int


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One thing to do, why, and how long it takes in minutes."""

    kind: Kind
    title: str
    address: str
    reason: str
    minutes: float


def plan(
    library: Library,
    record: Record,
    domains: Sequence[DomainStanding],
    deck: Deck,
    last_topic: str,
) -> tuple[Step, ...]:
    """The steps of today in the order to take them; none when nothing is left.

    Cards due come first: they are forgotten while one does other things. New cards
    come last, and not before something was read or answered.
    """
    started = any(s.started for d in domains for s in d.standings)
    steps = (
        review_step(deck),
        reading_step(library, record, last_topic),
        practice_step(domains),
        new_cards_step(deck) if started and not deck.due else None,
    )
    return tuple(step for step in steps if step is not None)


def review_step(deck: Deck) -> Step | None:
    """The cards that are due."""
    if deck.due:
        words = "1 card" if deck.due == 1 else f"{deck.due:,} cards"
        reason = "due now"
        if deck.new:
            reason += f", {deck.new:,} not begun"
        minutes = deck.due * _CARD_MINUTES
        return Step("review", f"Review {words}", "/flashcards", reason, minutes)
    return None


def new_cards_step(deck: Deck) -> Step | None:
    """A few cards that were never seen."""
    if deck.new:
        count = min(deck.new, _NEW_AT_ONCE)
        words = "1 new card" if count == 1 else f"{count} new cards"
        reason = f"none is due, {deck.new:,} not begun"
        minutes = count * _NEW_MINUTES
        return Step("learn", f"Learn {words}", "/flashcards", reason, minutes)
    return None


def reading_step(library: Library, record: Record, last_topic: str) -> Step | None:
    """The page left open, or the next one in the order of the course."""
    order = [s for s in library.syllabus.topics if s in library.topics]
    for slug in dict.fromkeys([last_topic, *order]):
        topic = library.topics.get(slug)
        if topic is None:
            continue
        step = _reading(topic, frozenset(record.read.get(slug, ())))
        if step is not None:
            return step
    return None


def _reading(topic: Topic, read: frozenset[str]) -> Step | None:
    left = [a for a in anchors(topic) if a not in read]
    if not left:
        return None
    address = f"/concepts/{topic.slug}"
    sections = {s.anchor: s for s in topic.sections}
    if not any(a in read for a in anchors(topic)):
        goal = "objective" if len(topic.objectives) == 1 else "objectives"
        reason = f"{goal} {', '.join(topic.objectives)}, not read yet"
        return Step("read", topic.title, address, reason, topic.minutes)
    following = sections[left[0]]
    reason = f"continue at section {following.number}, {following.title}"
    minutes = sum(sections[a].minutes for a in left)
    return Step(
        "continue", topic.title, f"{address}#{following.anchor}", reason, minutes
    )


def practice_step(domains: Iterable[DomainStanding]) -> Step | None:
    """The objective with the lowest tested share, or the heaviest untested one."""
    standings = [(d, s) for d in domains for s in d.standings if _askable(s)]
    weak = [s for _, s in standings if s.evidence.enough and s.evidence.share < _GOOD]
    if weak:
        return _practice(min(weak, key=lambda s: s.evidence.share))
    thin = [(d, s) for d, s in standings if not s.evidence.enough]
    if thin:
        # What is read but not asked comes first, then what weighs most.
        return _practice(max(thin, key=lambda x: _urgency(*x))[1])
    rest = [s for _, s in standings if s.evidence.answers < s.questions]
    return _practice(min(rest, key=lambda s: s.evidence.share)) if rest else None


def _askable(standing: Standing) -> bool:
    return bool(_asked_in(standing))


def _asked_in(standing: Standing) -> Topic | None:
    return next((t for t in standing.topics if t.questions), None)


def _urgency(domain: DomainStanding, standing: Standing) -> tuple[bool, float]:
    return standing.pages.read > 0, domain.domain.weight / len(domain.standings)


def _practice(standing: Standing) -> Step | None:
    topic = _asked_in(standing)
    if topic is None:
        return None
    count = min(len(topic.questions), _ROUND)
    words = "1 question" if count == 1 else f"{count} questions"
    return Step(
        "practise",
        f"{words}: {topic.title}",
        f"/quiz/{topic.slug}",
        _why(standing),
        count * _QUESTION_MINUTES,
    )


def _why(standing: Standing) -> str:
    number, evidence = standing.objective.number, standing.evidence
    if evidence.enough:
        share = f"{round(evidence.share * 100)}% of {evidence.answers}"
        return f"objective {number}, your lowest tested: {share} first answers right"
    if evidence.answers:
        noun = "answer" if evidence.answers == 1 else "answers"
        return f"objective {number}, only {evidence.answers} {noun} so far"
    return f"objective {number}, not tested yet"
