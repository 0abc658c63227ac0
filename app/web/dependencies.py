"""FastAPI dependencies and parameter types: library, find_topic, row id, local URL."""

from typing import Annotated

from fastapi import Depends, FastAPI, Path, Request
from fastapi.routing import iter_route_contexts
from pydantic import AfterValidator, Field
from starlette.types import Scope

from app.content.library import Library
from app.errors import NotFoundError
from app.markup.model import Topic
from app.questions.model import Question
from app.widgets.calculator_form import CourseLinks


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


LAST_ROW = 2**31 - 1
"""The largest number of a row: PostgreSQL counts them in 32 bits."""


def require_local_url(address: str) -> str:
    """An address within this site; raises ValueError for any other."""
    fine = address.startswith("/") and not address.startswith(("//", "/\\"))
    if address and not (fine and address.isprintable()):
        raise ValueError("must be an address on this site")
    return address


RowNumber = Annotated[int, Path(ge=1, le=LAST_ROW)]
"""The number of a row as a part of an address; any other is not found."""
Address = Annotated[str, AfterValidator(require_local_url), Field(max_length=400)]


_EVERYWHERE = {"0.0.0.0", "::"}  # noqa: S104 - asked about, not listened on


def server_url(url: str, host: str, port: int) -> str:
    """The address to print: the public one where it is set, else that listened on."""
    if url:
        return url.rstrip("/")
    host = "127.0.0.1" if host in _EVERYWHERE else host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def public_base_url(request: Request) -> str:
    """The address of this server for links that leave it, without a slash at its end.

    The setting decides where there is one; else the name that the browser used.
    """
    told: str = request.app.state.settings.url
    if not told:
        return str(request.base_url).rstrip("/")
    course: str = request.state.course
    return told.rstrip("/") + (f"/courses/{course}" if course else "")


def is_trustworthy(request: Request) -> bool:
    """Whether browsers take the connection for secure: HTTPS, or the own machine."""
    if request.app.state.settings.https or request.url.scheme == "https":
        return True
    host = request.url.hostname or ""
    return host in {"localhost", "::1"} or host.startswith("127.")


def public_address_of(request: Request) -> str:
    """The whole address that was asked for, query included."""
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    query = request.scope["query_string"].decode("latin-1")
    return f"{public_base_url(request)}{path}{'?' if query else ''}{query}"


class RouteNames:
    """Requests by the template of their route, which holds nothing that was sent."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app
        self._names: dict[int, str] = {}

    def of(self, scope: Scope) -> str:
        """The template, e.g. “/quiz/{topic}”; “-” where no route was found."""
        found = scope.get("route") or scope.get("endpoint")
        if found is None:
            return "-"
        if id(found) not in self._names:
            for one in iter_route_contexts(self._app.routes):
                # Routes that are tried first leave their function alone.
                self._names[id(one.original_route)] = one.path or "-"
                self._names[id(one.endpoint)] = one.path or "-"
        return self._names.get(id(found), "-")
