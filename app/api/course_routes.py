"""GET the course as JSON, for programs; it is the same for everybody."""

import dataclasses
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel

from app.api import course as told
from app.content.live.courses import CourseRegistry
from app.content.live.library import Library
from app.content.model import Topic
from app.content.read.prose import page_without_items
from app.errors import NotFoundError
from app.web.course import CurrentLibrary, find_topic
from app.web.page_cache import allow_caching

router = APIRouter(prefix="/api/v1/courses", include_in_schema=False)


@dataclasses.dataclass(frozen=True, slots=True)
class ServedCourse:
    """A course under its name in addresses, and where its files lie."""

    name: str
    library: Library
    folder: Path


def all_courses(request: Request, library: CurrentLibrary) -> dict[str, ServedCourse]:
    """The courses of the server; one alone is named by its exam."""
    courses: CourseRegistry = request.app.state.courses
    if not courses.named:
        name, live = told.course_slug(library), courses.libraries[courses.first]
        return {name: ServedCourse(name, library, live.folder)}
    return {
        name: ServedCourse(name, live.current(), live.folder)
        for name, live in courses.libraries.items()
    }


All = Annotated[dict[str, ServedCourse], Depends(all_courses)]


def read_course(course: str, known: All) -> ServedCourse:
    """The course of the address; raises NotFound."""
    if course not in known:
        names = ", ".join(known)
        raise NotFoundError(f"There is no course “{course}”.", f"There is {names}.")
    return known[course]


Wanted = Annotated[ServedCourse, Depends(read_course)]
OfTopic = Annotated[str, Query(alias="topic", max_length=told.LONGEST)]


def _keep(request: Request, known: All) -> None:
    # A kept answer falls away with its own course; this one may tell of another.
    if len(known) == 1:
        allow_caching(request, shared=True)


Kept = Depends(_keep)


@router.get("", dependencies=[Kept])
def courses(known: All) -> Response:
    found = [told.course(one.library, one.name) for one in known.values()]
    return _json(told.CoursesOut(courses=found))


@router.get("/{course}", dependencies=[Kept])
def syllabus(course: Wanted) -> Response:
    return _json(told.syllabus(course.library, course.name))


@router.get("/{course}/topics/{topic}", dependencies=[Kept])
def page(course: Wanted, topic: str) -> Response:
    found = find_topic(course.library, topic)
    return _json(told.whole_page(course.library, found, _written(course, found)))


@router.get("/{course}/glossary", dependencies=[Kept])
def glossary(course: Wanted) -> Response:
    return _json(told.glossary(course.library))


@router.get("/{course}/cards", dependencies=[Kept])
def cards(course: Wanted, topic: OfTopic = "") -> Response:
    _expect(course.library, topic)
    return _json(told.cards(course.library, topic))


@router.get("/{course}/questions", dependencies=[Kept])
def questions(course: Wanted, topic: OfTopic = "") -> Response:
    _expect(course.library, topic)
    return _json(told.questions(course.library, topic))


def _expect(library: Library, topic: str) -> None:
    if topic:
        find_topic(library, topic)


def _written(course: ServedCourse, topic: Topic) -> str | None:
    """The Markdown of a page, as long as it is what the page shows."""
    path = topic.place.path
    if path in course.library.outdated:
        return None
    try:
        text = (course.folder / path).read_text("utf-8-sig")
    except (OSError, ValueError):
        return None
    return page_without_items(text)


def _json(value: BaseModel) -> Response:
    return Response(value.model_dump_json(), media_type="application/json")
