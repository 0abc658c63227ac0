"""Which course a request means: `/courses/<name>/…` where a server has several.

Every room writes and reads addresses as if its course were alone. Here, on the way in,
the name is taken off and added to the prefix under which the answer leaves.
"""

import dataclasses
import re
from urllib.parse import quote

from starlette.types import Scope

from app.content.live.courses import ALONE, CourseRegistry
from app.web import health
from app.web.cookies import YEAR, written

_LAST = re.compile(rb"(?:^|;)\s*course=([a-z0-9-]{1,80})(?=;|$)")
_OF_SERVER = ("/static/", "/api/")
# A browser takes no worker from another address: the one it has would stay for ever.
_PATHS_OF_SERVER = {"/courses", "/sw.js", *health.ADDRESSES}
# They belong to a person and not to a course: whichever leads there.
_OF_PERSON = ("/continue", "/settings", "/authoring", "/calendar/")


@dataclasses.dataclass(frozen=True, slots=True)
class CourseRoute:
    """The request below its course. `elsewhere` is the address to go to instead.

    `site` is the prefix of the server, which holds for all courses; `cookie` the
    Set-Cookie line by which the browser remembers the course.
    """

    scope: Scope
    course: str
    site: str = ""
    elsewhere: str = ""
    cookie: bytes = b""


def resolve_course(courses: CourseRegistry, scope: Scope) -> CourseRoute:
    """Where a request leads."""
    site: str = scope.get("root_path", "")
    if not courses.named:
        return CourseRoute(scope, ALONE, site)
    path: str = scope["path"].removeprefix(site)
    if path.startswith("/courses/"):
        name, slash, _ = path.removeprefix("/courses/").partition("/")
        if name in courses.libraries:
            return _inside(scope, site, name, slash)
        return CourseRoute(scope, ALONE, site)
    if path in _PATHS_OF_SERVER or path.startswith(_OF_SERVER):
        return CourseRoute(scope, ALONE, site)
    return CourseRoute(scope, ALONE, site, _of_old(courses, scope, path))


def _inside(scope: Scope, site: str, name: str, slash: str) -> CourseRoute:
    below = f"{site}/courses/{name}"
    if not slash:
        return CourseRoute(scope, name, site, _with_query(scope, f"/courses/{name}/"))
    headers = dict(scope["headers"])
    # Only what somebody opens counts as a choice, not what a page fetches by itself.
    opened = headers.get(b"sec-fetch-mode", b"navigate") == b"navigate"
    line = b""
    if opened and _last(headers) != name:
        line = written("course", name, YEAR)
    return CourseRoute({**scope, "root_path": below}, name, site, cookie=line)


def _of_old(courses: CourseRegistry, scope: Scope, path: str) -> str:
    """An address of the time when the course was alone: the same in the last one."""
    name = _last(dict(scope["headers"]))
    if name not in courses.libraries:
        alone = len(courses.libraries) == 1
        if not alone and not path.startswith(_OF_PERSON):
            return "/courses"
        name = courses.first
    return _with_query(scope, f"/courses/{name}{quote(path)}")


def _last(headers: dict[bytes, bytes]) -> str:
    found = _LAST.search(headers.get(b"cookie", b""))
    return found[1].decode() if found else ""


def _with_query(scope: Scope, path: str) -> str:
    query = scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path
