"""GET the course as JSON, for programs; it is the same for everybody."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel

from app.api import course as told
from app.content.live.library import Library
from app.content.model import Topic
from app.content.read.prose import prose_of
from app.errors import NotFound
from app.web.course import CurrentLibrary, find_topic
from app.web.page_cache import keep

router = APIRouter(prefix="/api/v1/courses", include_in_schema=False)


def read_course(course: str, library: CurrentLibrary) -> Library:
    """The course of the address; raises NotFound."""
    name = told.name_of(library)
    if course != name:
        raise NotFound(f"There is no course “{course}”.", f"There is {name}.")
    return library


Course = Annotated[Library, Depends(read_course)]
OfTopic = Annotated[str, Query(max_length=told.LONGEST)]


@router.get("")
def courses(request: Request, library: CurrentLibrary) -> Response:
    keep(request, shared=True)
    return _json(told.CoursesOut(courses=[told.course(library)]))


@router.get("/{course}")  # noqa: FAST003 - in Course
def syllabus(request: Request, library: Course) -> Response:
    keep(request, shared=True)
    return _json(told.syllabus(library))


@router.get("/{course}/topics/{topic}")  # noqa: FAST003 - in Course
def page(request: Request, library: Course, topic: str) -> Response:
    found = find_topic(library, topic)
    keep(request, shared=True)
    return _json(told.whole_page(library, found, _written(request, library, found)))


@router.get("/{course}/glossary")  # noqa: FAST003 - in Course
def glossary(request: Request, library: Course) -> Response:
    keep(request, shared=True)
    return _json(told.glossary(library))


@router.get("/{course}/cards")  # noqa: FAST003 - in Course
def cards(request: Request, library: Course, topic: OfTopic = "") -> Response:
    _expect(library, topic)
    keep(request, shared=True)
    return _json(told.cards(library, topic))


@router.get("/{course}/questions")  # noqa: FAST003 - in Course
def questions(request: Request, library: Course, topic: OfTopic = "") -> Response:
    _expect(library, topic)
    keep(request, shared=True)
    return _json(told.questions(library, topic))


def _expect(library: Library, topic: str) -> None:
    if topic:
        find_topic(library, topic)


def _written(request: Request, library: Library, topic: Topic) -> str | None:
    """The Markdown of a page, as long as it is what the page shows."""
    path = topic.place.path
    if path in library.outdated:
        return None
    try:
        text = (request.state.live.folder / path).read_text("utf-8-sig")
    except (OSError, ValueError):
        return None
    return prose_of(text)


def _json(value: BaseModel) -> Response:
    return Response(value.model_dump_json(), media_type="application/json")
