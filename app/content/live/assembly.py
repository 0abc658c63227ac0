"""From the files of a course to one consistent state of it. Pure."""

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from app.content.identity import content_hash
from app.content.live.cache import code_version
from app.content.live.drafts import (
    NOTHING,
    CourseWithDrafts,
    less_live,
    only_live,
    without_beginnings,
)
from app.content.model import (
    REVERSE,
    Flashcard,
    HtmlBlock,
    ImageBlock,
    Piece,
    QuestionBlock,
    Section,
    SvgFigure,
    Topic,
)
from app.content.parsed import ParsedFile
from app.content.problems import ContentProblem, make_problem
from app.content.rules import bank as rules
from app.content.rules.bank import ParsedCourse
from app.content.rules.course import check_drafts, check_fronts, check_order
from app.content.rules.coverage import check_coverage
from app.content.rules.drawings import drawings_at
from app.content.rules.id_evidence import Claim
from app.content.rules.reviews import check_reviews
from app.content.rules.topics import check_topics
from app.content.svg_figures import figure
from app.questions import kinds
from app.questions.model import Question

Renamed = Mapping[str, Mapping[str, str]]  # item: new option key to the key kept


@dataclasses.dataclass(frozen=True, slots=True)
class AssembledCourse:
    """Topics, questions and cards that stand, and every problem of the course.

    `authored` has those that are not live as well.
    """

    topics: dict[str, Topic]
    questions: dict[str, Question]
    cards: dict[str, Flashcard]
    problems: tuple[ContentProblem, ...]
    authored: CourseWithDrafts = NOTHING


def assemble(bank: ParsedCourse) -> AssembledCourse:
    """Put the files together; items with errors are left out, all else stays."""
    owners = rules.owners_of(bank)
    pages = {r.topic.slug: r.topic for r in bank.readings.values() if r.topic}
    questions, cards = _items(bank, pages, owners.items)
    found = [
        *_across(bank, pages, questions, cards),
        *_unreviewed(bank, owners.items),
    ]
    homeless = _homeless(bank, pages)
    found += homeless
    out = _left_out(found)
    out |= {(fact.id, p.path) for p in homeless for fact in bank.readings[p.path].facts}
    questions = {i: q for i, q in questions.items() if (i, q.place.path) not in out}
    cards = {i: c for i, c in cards.items() if (i.removesuffix(REVERSE), c.place.path) not in out}
    authored = CourseWithDrafts(_topics(bank, pages, questions, cards), questions, cards)
    questions, cards, shown = only_live(questions), only_live(cards), only_live(pages)
    topics = _topics(bank, shown, questions, cards)
    found += owners.problems  # which keep out what does not own its id, and no owner
    # Readings have left out what is broken in itself; a file that broke while it was
    # live is on show as it was, so its newest problems must not take items away.
    found += [p for r in bank.readings.values() for p in r.problems]
    found += check_coverage(bank, authored.questions.values(), authored.cards.values())
    found += check_topics(topics, bank.readings, authored.questions, authored.cards)
    told = tuple(sorted(set(without_beginnings(found, authored))))
    return AssembledCourse(topics, questions, cards, told, authored)


def _across(
    bank: ParsedCourse,
    pages: Mapping[str, Topic],
    questions: Mapping[str, Question],
    cards: Mapping[str, Flashcard],
) -> Iterator[ContentProblem]:
    """What is wrong between the files of a course, ids and counts apart."""
    yield from rules.check_mentions(bank)
    yield from rules.check_dates(bank)
    yield from rules.check_stems(bank, questions)
    yield from check_fronts(cards)
    yield from check_order(bank, pages)
    yield from check_drafts(bank, pages)
    yield from _aimless(questions, pages)
    yield from (_unsourced(q) for q in questions.values() if not q.sources)


def _unreviewed(bank: ParsedCourse, owners: Mapping[str, Claim]) -> Iterator[ContentProblem]:
    """W19 for the owners of ids: the key of a copy tells nothing of a review."""
    for found in check_reviews(bank.readings, bank.today):
        if _is_of(owners.get(found.item), found.path, found.line):
            yield found


def _left_out(found: list[ContentProblem]) -> set[tuple[str, str]]:
    """The items that an error keeps out, with the file it keeps them out of."""
    refused = [p for p in found if p.item and p.severity == "error"]
    return {(p.item, path) for p in refused for path in _users(p)}


def _users(found: ContentProblem) -> tuple[str, ...]:
    """The files in which the item of a problem may stand: a drawing lies beside it."""
    if not found.path.endswith(".svg"):
        return (found.path,)
    folder = found.path.split("/")[:2]
    names = "concept.md", "quiz.md", "cards.md"
    return tuple("/".join([*folder, name]) for name in names)


def _unsourced(question: Question) -> ContentProblem:
    place = (question.place.path, question.place.line, 1)
    hint = "Write source: key in its comment or in the front matter."
    message = "The question names no source."
    return make_problem(place, "E16", message, hint, question.id)


def _aimless(
    questions: Mapping[str, Question], pages: Mapping[str, Topic]
) -> Iterator[ContentProblem]:
    """E14, once for each page: whatever its questions could take from it is missing."""
    found = Counter(q.topic for q in questions.values() if not q.objectives)
    for slug, count in found.items():
        if slug in pages:
            message = f"Neither the page nor {count} of its questions name an objective."
            hint = "Write objective: with a number of syllabus.toml into the front matter."
            yield make_problem((pages[slug].place.path, 1, 1), "E14", message, hint)


def _homeless(bank: ParsedCourse, pages: Mapping[str, Topic]) -> list[ContentProblem]:
    """Files of items whose topic has no page to lead to."""
    found = []
    for path, reading in bank.readings.items():
        slug = path.split("/")[1] if path.startswith("topics/") else ""
        if slug and slug not in pages and reading.facts:
            message = f"The topic “{slug}” has no concept.md."
            hint = "Write its page: a title, a source and a paragraph are a start."
            found.append(make_problem((path, 1, 1), "E61", message, hint))
    return found


def _items(
    bank: ParsedCourse, pages: Mapping[str, Topic], owners: Mapping[str, Claim]
) -> tuple[dict[str, Question], dict[str, Flashcard]]:
    """The owner of each id, with what it inherits from its page."""
    renamed = _renamed(bank, owners)
    questions: dict[str, Question] = {}
    cards: dict[str, Flashcard] = {}
    for path, reading in bank.in_order():
        for question in reading.questions:
            if _is_of(owners.get(question.id), path, question.place.line):
                heir = _drawn(_inherit(question, pages), bank)
                questions[question.id] = _rekeyed(heir, renamed.get(question.id, {}))
        for card in reading.cards:
            owner = owners.get(card.id.removesuffix(REVERSE))
            if _is_of(owner, path, card.place.line):
                cards[card.id] = _inherit(card, pages)
    return questions, cards


def _is_of(owner: Claim | None, path: str, line: int) -> bool:
    """Whether it is the owner of an id that stands in a line of a file."""
    return owner is not None and (owner.path, owner.fact.line) == (path, line)


def _inherit(item: Any, pages: Mapping[str, Topic]) -> Any:
    """An item that names no objective, source or level has those of its page."""
    page = pages.get(item.topic)
    if page is None:
        return item
    full = item.objectives and item.sources and not page.level
    if full and page.status == item.status:
        return item
    return dataclasses.replace(
        item,
        objectives=item.objectives or page.objectives,
        sources=item.sources or page.sources,
        level=item.level or page.level,
        status=less_live(item.status, page.status),
    )


def _drawn(question: Question, bank: ParsedCourse) -> Question:
    """The question with the drawings that lie beside it, which are part of it."""
    kind = kinds.type_of(question)
    folder = question.place.path.rpartition("/")[0]
    readings = {
        name: bank.readings.get(f"{folder}/{name}") for name in kind.drawings(question.answer)
    }
    found = {
        name: reading.drawing
        for name, reading in readings.items()
        if reading and isinstance(reading.drawing, SvgFigure)
    }
    if not found:
        return question
    answer = kind.drawn(question.answer, found)
    words = content_hash(f"{question.revision} {found}")
    return dataclasses.replace(question, answer=answer, revision=words)


def _renamed(bank: ParsedCourse, owners: Mapping[str, Claim]) -> Renamed:
    lock = bank.readings.get("ids.lock")
    return {
        e.id: names
        for e in (lock.lock if lock else ())
        if e.id in owners and (names := rules.locked_keys(e, owners[e.id].fact))
    }


def _rekeyed(question: Question, names: Mapping[str, str]) -> Question:
    """The question with the option keys under which its answers were counted."""
    if not names:
        return question
    answer = kinds.type_of(question).rekeyed(question.answer, names)
    return dataclasses.replace(question, answer=answer)


def _topics(
    bank: ParsedCourse,
    pages: Mapping[str, Topic],
    questions: Mapping[str, Question],
    cards: Mapping[str, Flashcard],
) -> dict[str, Topic]:
    """The topics in the order of the syllabus, others behind, with their items."""
    order = [s for s in bank.syllabus.topics if s in pages]
    order += [s for s in pages if s not in order]
    asked: dict[str, list[str]] = {slug: [] for slug in order}
    learned: dict[str, list[str]] = {slug: [] for slug in order}
    for question in questions.values():
        asked.get(question.topic, []).append(question.id)
    for card in cards.values():
        learned.get(card.topic, []).append(card.id)
    return {
        slug: dataclasses.replace(
            pages[slug],
            sections=_sections(pages[slug], questions, bank),
            questions=tuple(asked[slug]),
            cards=tuple(learned[slug]),
        )
        for slug in order
    }


def _sections(
    page: Topic, questions: Mapping[str, Question], bank: ParsedCourse
) -> tuple[Section, ...]:
    """The sections without the questions that are left out, with their drawings."""
    folder = page.place.path.rpartition("/")[0]
    shown: Counter[str] = Counter()
    sections = []
    for section in page.sections:
        pieces: list[Piece] = []
        for piece in section.pieces:
            if isinstance(piece, ImageBlock):
                shown[piece.file] += 1
                found = drawings_at(bank.readings, f"{folder}/{piece.file}")
                pieces.append(HtmlBlock(figure(piece, found, shown[piece.file])))
            elif not isinstance(piece, QuestionBlock) or piece.question in questions:
                pieces.append(piece)
        sections.append(dataclasses.replace(section, pieces=tuple(pieces)))
    return tuple(sections)


def version_of(readings: Mapping[str, ParsedFile]) -> str:
    """A hash that changes when any content does, or what reads and computes it."""
    digest = hashlib.sha256(code_version().encode())
    for path, reading in sorted(readings.items()):
        # A file that broke is shown as it was, but what is said of it is new.
        words = f"{path}\0{reading.digest}\0{reading.problems}"
        digest.update(words.encode(errors="replace"))
    return digest.hexdigest()[:16]
