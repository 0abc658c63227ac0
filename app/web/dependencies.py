"""FastAPI dependencies and parameter types that several packages share, and public URLs."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Path, Request
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, BaseModel, Field, ValidationError

from app.content.course import Course
from app.errors import NotFoundError, TopicMovedError
from app.markup.model import Topic
from app.questions.model import Question
from app.widgets.calculator_form import CourseLinkTargets


async def current_course(request: Request) -> Course:
    """Return the course that the middleware selected. `async`, to avoid a thread."""
    course: Course = request.state.course
    return course


CurrentCourse = Annotated[Course, Depends(current_course)]


async def require_calculators(course: CurrentCourse) -> None:
    """Raise NotFoundError if this course has no calculators."""
    if not course.syllabus.offers_calculators:
        raise NotFoundError("This course has no calculators.")


def require_topic(course: Course, current_or_former_slug: str) -> Topic:
    """Return the topic `current_or_former_slug`. Raises NotFoundError, or MovedError for a former slug."""
    topic = course.topics.get(current_or_former_slug)
    if topic is None:
        for other in course.topics.values():
            if current_or_former_slug in other.aliases:
                raise TopicMovedError(current_or_former_slug, other.slug)
        raise NotFoundError(f"This course has no page “{current_or_former_slug}”.")
    return topic


def require_question(course: Course, question_id: str) -> Question:
    """Return the question with the id `question_id`. Raises NotFoundError."""
    question = course.questions.get(question_id)
    if question is None:
        raise NotFoundError(f"There is no question “{question_id}”.")
    return question


def collect_course_link_targets(course: Course) -> CourseLinkTargets:
    """Return the page titles and glossary terms that calculator forms can link to."""
    titles = {slug: topic.title for slug, topic in course.topics.items()}
    return CourseLinkTargets(titles, course.glossary.keys())


LAST_ROW = 2**31 - 1
"""The largest row id: PostgreSQL stores them in 32 bits."""


def require_path_on_site(path: str) -> str:
    """Return `path` if it is a path on this site. Raises ValueError for other URLs."""
    fine = path.startswith("/") and not path.startswith(("//", "/\\"))
    if path and not (fine and path.isprintable()):
        raise ValueError("must be an address on this site")
    return path


RowNumber = Annotated[int, Path(ge=1, le=LAST_ROW)]
"""A row id in a URL path; anything else is a 404."""
Address = Annotated[str, AfterValidator(require_path_on_site), Field(max_length=400)]


Form = TypeVar("Form", bound=BaseModel)


def validate_form(form_class: type[Form], fields: Mapping[str, Any]) -> Form:
    """Validate fields as a form; raises RequestValidationError (status 422).

    For forms that FastAPI's `Form()` cannot declare: with fields of many names, or read before a
    route has dependencies.
    """
    try:
        return form_class.model_validate(fields)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


_ALL_INTERFACES = {"0.0.0.0", "::"}  # noqa: S104 - compared, not bound to


def public_or_listening_url(public_url: str, host: str, port: int) -> str:
    """Return the URL to print at startup: the public one, if set, else the one listened on."""
    if public_url:
        return public_url.rstrip("/")
    host = "127.0.0.1" if host in _ALL_INTERFACES else host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def public_base_url(request: Request) -> str:
    """Return the base URL of this server for external links, without a trailing slash.

    Uses the setting HEADROOM_URL, or else the host of the request. Includes the course.
    """
    told: str = request.app.state.settings.url
    if not told:
        return str(request.base_url).rstrip("/")
    course_name: str = request.state.course_name
    return told.rstrip("/") + (f"/courses/{course_name}" if course_name else "")


def public_request_url(request: Request) -> str:
    """Return the public URL of the request, including its query."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    query = request.scope["query_string"].decode("latin-1")
    return f"{public_base_url(request)}{path}{'?' if query else ''}{query}"
