"""The course as the request sees it: one library state per request."""

from typing import Annotated

from fastapi import Depends, Request

from app.content.live.library import Library
from app.content.model import Topic
from app.errors import NotFoundError
from app.instruments.forms import CourseLinks
from app.questions.model import Question


async def current_library(request: Request) -> Library:
    """The course as the front saw it; `async` because it is only looked up."""
    library: Library = request.state.library
    return library


CurrentLibrary = Annotated[Library, Depends(current_library)]


async def require_calculators(library: CurrentLibrary) -> None:
    """Refuse what this course does not offer; raises NotFound."""
    if not library.syllabus.calculators:
        raise NotFoundError("This course has no calculators.")


def find_topic(library: Library, slug: str) -> Topic:
    """The topic `slug`; raises NotFound."""
    topic = library.topics.get(slug)
    if topic is None:
        raise NotFoundError(f"This course has no page “{slug}”.")
    return topic


def find_question(library: Library, item: str) -> Question:
    """The question `item`; raises NotFound."""
    question = library.questions.get(item)
    if question is None:
        raise NotFoundError(f"There is no question “{item}”.")
    return question


def course_links(library: Library) -> CourseLinks:
    """The pages and terms of the course on show."""
    titles = {slug: topic.title for slug, topic in library.topics.items()}
    return CourseLinks(titles, library.glossary.keys())
