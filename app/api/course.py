"""/api/v1/courses: course content as JSON.

Responses contain no right answers, and leave out questions reserved for mock exams.
"""

import dataclasses
from html import escape
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, Field

from app.content.course import Course
from app.content.item_splitter import reduce_page_source_to_prose
from app.content.live_courses import CourseRegistry
from app.errors import NotFoundError
from app.markup.model import CalculatorBlock, HtmlBlock, Piece, QuestionBlock, Topic
from app.markup.text import slugify
from app.questions.grading import render_question_card_faces
from app.questions.model import Question, draw_variant
from app.web.dependencies import CurrentCourse, require_topic
from app.widgets.estimate_view import calculator_url

MAX_SLUG_LENGTH = 100
"""Maximum length of a topic slug in a query."""


class CourseOut(BaseModel):
    """A course. Its version changes with any change of its content."""

    course: str = Field(description="Name in URLs.")
    exam: str
    title: str
    version: str
    license: str = Field(description="License of the content; empty if not given.")
    language: str = Field(description="Language of the content as a BCP 47 tag.")


class ObjectiveOut(BaseModel):
    """An objective of the exam."""

    number: str
    short: str
    title: str


class DomainOut(BaseModel):
    """A domain of the exam; `weight` is its share, 0 to 1."""

    number: str
    title: str
    weight: float
    objectives: list[ObjectiveOut]


class TopicOut(BaseModel):
    """A topic without its text."""

    topic: str = Field(description="Name in URLs.")
    title: str
    summary: str
    objectives: list[str]
    requires: list[str] = Field(description="Topics to read before.")
    level: str = Field(description="“deeper” for topics beyond the exam, otherwise empty.")
    minutes: float = Field(description="Reading time in minutes.")
    reviewed: str | None = Field(description="Date of the last review.")
    address: str = Field(description="URL path of the page for learners.")


class SyllabusOut(CourseOut):
    """A course with the domains of its exam, and its topics in reading order."""

    domains: list[DomainOut]
    topics: list[TopicOut]


class SectionOut(BaseModel):
    """The part of a page below one heading; the part before the first has no title."""

    anchor: str
    title: str
    html: str = Field(description="Calculators and questions are links.")


class SourceOut(BaseModel):
    """A source of a page; `read` is the date on which it was last read.

    A book may have an `isbn` and an empty `address`.
    """

    source: str
    title: str
    publisher: str
    address: str
    isbn: str
    read: str | None


class PageOut(TopicOut):
    """A topic with its text, in the author's Markdown and in HTML."""

    markdown: str | None = Field(
        description="Without front matter, questions and cards; null while the file "
        "has errors and its last good version is served."
    )
    sections: list[SectionOut]
    sources: list[SourceOut]
    terms: list[str]


class TermOut(BaseModel):
    """A term of the glossary."""

    term: str = Field(description="Name in URLs.")
    name: str
    html: str
    text: str
    see: list[str]


class CardOut(BaseModel):
    """A flashcard with both faces; `reversed` is the id of the card that it reverses."""

    card: str
    topic: str
    objectives: list[str]
    level: str
    reversed: str
    front: str = Field(description="HTML.")
    back: str = Field(description="HTML.")


class QuestionOut(BaseModel):
    """A question as learners see it, with the numbers of one variant."""

    question: str
    topic: str
    type: str
    objectives: list[str]
    difficulty: int = Field(description="1 (easy) to 5.")
    level: str
    computed: bool = Field(description="Whether each attempt draws new numbers.")
    html: str = Field(description="The stem and the choices, without the key.")
    address: str = Field(description="URL path of the page that asks it.")


class CoursesOut(BaseModel):
    """All courses of a server."""

    courses: list[CourseOut]


class _ContentInfoOut(BaseModel):
    """The version, license and language of the content."""

    version: str
    license: str
    language: str


class GlossaryOut(_ContentInfoOut):
    """All terms of a course."""

    terms: list[TermOut]


class CardsOut(_ContentInfoOut):
    """All cards of a course or of one topic."""

    cards: list[CardOut]


class QuestionsOut(_ContentInfoOut):
    """All questions that can be practiced, of a course or of one topic."""

    questions: list[QuestionOut]


def _course_out_fields(course: Course, course_name: str) -> dict[str, Any]:
    syllabus = course.syllabus
    names = {"course": course_name, "exam": syllabus.exam, "title": syllabus.title}
    return names | _version_license_and_language(course)


def _version_license_and_language(course: Course) -> dict[str, str]:
    syllabus = course.syllabus
    return {"version": course.version, "license": syllabus.license, "language": syllabus.language}


def build_syllabus(course: Course, course_name: str) -> SyllabusOut:
    domains = [
        DomainOut(
            number=domain.number,
            title=domain.title,
            weight=domain.weight,
            objectives=[
                ObjectiveOut(number=o.number, short=o.name, title=o.title)
                for o in domain.objectives
            ],
        )
        for domain in course.syllabus.domains
    ]
    topics = [TopicOut(**_topic_out_fields(topic)) for topic in course.topics.values()]
    return SyllabusOut(**_course_out_fields(course, course_name), domains=domains, topics=topics)


def _topic_out_fields(topic: Topic) -> dict[str, Any]:
    return {
        "topic": topic.slug,
        "title": topic.title,
        "summary": topic.summary,
        "objectives": list(topic.objectives),
        "requires": list(topic.requires),
        "level": topic.level,
        "minutes": round(topic.minutes, 1),
        "reviewed": topic.reviewed.isoformat() if topic.reviewed else None,
        "address": f"/concepts/{topic.slug}",
    }


def build_topic_page(course: Course, topic: Topic, markdown: str | None) -> PageOut:
    """Return a page with its text; `markdown` is the author's source."""
    sources = [
        SourceOut(
            source=source.key,
            title=source.title,
            publisher=source.publisher,
            address=source.url,
            isbn=source.isbn,
            read=source.read_on.isoformat() if source.read_on else None,
        )
        for source in map(course.sources.get, topic.sources)
        if source is not None
    ]
    sections = [
        SectionOut(
            anchor=section.anchor,
            title=section.title,
            html="\n".join(_piece_to_html(piece, topic) for piece in section.pieces),
        )
        for section in topic.sections
    ]
    return PageOut(
        **_topic_out_fields(topic),
        markdown=markdown,
        sections=sections,
        sources=sources,
        terms=list(topic.terms),
    )


def _piece_to_html(piece: Piece, topic: Topic) -> str:
    match piece:
        case HtmlBlock():
            return piece.html
        case CalculatorBlock():
            url = escape(calculator_url(piece.estimate, urlencode(piece.starting_inputs)))
            return f'<p><a href="{url}">Calculator: {piece.estimate}</a></p>'
        case QuestionBlock():
            url = f"/quiz/{topic.slug}/{piece.question}"
            return f'<p><a href="{url}">Question: {piece.question}</a></p>'
    raise TypeError(f"unknown piece of a page: {piece!r}")


def build_glossary(course: Course) -> GlossaryOut:
    """Return the terms in alphabetical order."""
    terms = [
        TermOut(
            term=term.anchor,
            name=term.name,
            html=term.meaning.html,
            text=term.meaning.plain,
            see=list(term.see_also_anchors_or_urls),
        )
        for term in course.glossary.values()
    ]
    return GlossaryOut(**_version_license_and_language(course), terms=terms)


def build_cards(course: Course, topic_slug_or_empty: str) -> CardsOut:
    """Return the cards of a topic, or of all topics if it is empty."""
    cards = [
        CardOut(
            card=card.id,
            topic=card.topic,
            objectives=list(card.objectives),
            level=card.level,
            reversed=card.sibling if card.is_reverse else "",
            front=card.front.html,
            back=card.back.html,
        )
        for card in course.cards.values()
        if topic_slug_or_empty in {"", card.topic}
    ]
    return CardsOut(**_version_license_and_language(course), cards=cards)


def build_practice_questions(course: Course, topic_slug_or_empty: str) -> QuestionsOut:
    """Return the questions of a topic, or of all; those reserved for mock exams are left out."""
    questions = [
        _build_question(question)
        for question in course.questions.values()
        if topic_slug_or_empty in {"", question.topic} and question.use != "exam"
    ]
    return QuestionsOut(**_version_license_and_language(course), questions=questions)


def _build_question(question: Question) -> QuestionOut:
    variant = draw_variant(question, 0)
    return QuestionOut(
        question=question.id,
        topic=question.topic,
        type=question.type,
        objectives=list(question.objectives),
        difficulty=question.difficulty,
        level=question.level,
        computed=question.computed is not None,
        html=render_question_card_faces(variant, lambda hint: f"[{hint or '…'}]").front,
        address=f"/quiz/{question.topic}/{question.id}",
    )


router = APIRouter(prefix="/api/v1/courses", generate_unique_id_function=lambda route: route.name)


@dataclasses.dataclass(frozen=True, slots=True)
class ServedCourse:
    """A course with its name in URLs, and the folder of its files."""

    name: str
    course: Course
    folder: Path


def served_courses_by_name(request: Request, course: CurrentCourse) -> dict[str, ServedCourse]:
    """Return the courses of the server by name; a single course is named after its exam."""
    registry: CourseRegistry = request.app.state.courses
    if not registry.has_several_courses:
        name = slugify(course.syllabus.exam) or "course"
        folder = registry.live_courses[registry.default_course_name].folder
        return {name: ServedCourse(name, course, folder)}
    return {
        name: ServedCourse(name, live.get_current_course(), live.folder)
        for name, live in registry.live_courses.items()
    }


AllCourses = Annotated[dict[str, ServedCourse], Depends(served_courses_by_name)]


def require_course(course: str, courses: AllCourses) -> ServedCourse:
    """Return the course in the URL; raises NotFoundError."""
    if course not in courses:
        names = ", ".join(courses)
        raise NotFoundError(f"There is no course “{course}”.", f"There is {names}.")
    return courses[course]


RequestedCourse = Annotated[ServedCourse, Depends(require_course)]


def require_topic_slug_or_empty(
    served: RequestedCourse,
    topic: Annotated[str, Query(max_length=MAX_SLUG_LENGTH, description="Of one topic only")] = "",
) -> str:
    """Return the topic of the query, empty for all; raises NotFoundError for an unknown one."""
    return require_topic(served.course, topic).slug if topic else ""


TopicOrAll = Annotated[str, Depends(require_topic_slug_or_empty)]


@router.get("", summary="The courses of this server")
def list_courses(courses: AllCourses) -> CoursesOut:
    course_list = [
        CourseOut(**_course_out_fields(served.course, served.name)) for served in courses.values()
    ]
    return CoursesOut(courses=course_list)


@router.get("/{course}", summary="A course: domains, objectives, topics")
def get_syllabus(served: RequestedCourse) -> SyllabusOut:
    return build_syllabus(served.course, served.name)


@router.get("/{course}/topics/{topic}", summary="A page, in Markdown and HTML")
def get_page(served: RequestedCourse, topic: str) -> PageOut:
    page = require_topic(served.course, topic)
    return build_topic_page(served.course, page, _read_page_markdown(served, page))


@router.get("/{course}/glossary", summary="The terms of a course")
def get_glossary(served: RequestedCourse) -> GlossaryOut:
    return build_glossary(served.course)


@router.get("/{course}/cards", summary="Cards, of a topic or all")
def get_cards(served: RequestedCourse, topic: TopicOrAll) -> CardsOut:
    return build_cards(served.course, topic)


@router.get("/{course}/questions", summary="Questions without their answers")
def get_questions(served: RequestedCourse, topic: TopicOrAll) -> QuestionsOut:
    return build_practice_questions(served.course, topic)


def _read_page_markdown(served: ServedCourse, topic: Topic) -> str | None:
    """Return the Markdown of a page; None if the file is newer than the loaded page."""
    path = topic.place.path
    if path in served.course.outdated_paths:
        return None
    try:
        text = (served.folder / path).read_text("utf-8-sig")
    except (OSError, ValueError):
        return None
    return reduce_page_source_to_prose(text)
