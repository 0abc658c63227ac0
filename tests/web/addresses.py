"""Every route with an address that leads somewhere, alone or below a course."""

from urllib.parse import quote

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from tests.amounts import FACTOR

# A value that each part of an address takes in the tiny course.
SANE_PARTS = {
    "anything": "nowhere",
    "card": "w-c-bf16",
    "course": "cb-1",
    "exam": "short",
    "item": "w-bf16-70b",
    "key": "nowhere",
    "kind": "json",
    "name": "training-memory",
    "number": "1",
    "place": "1",
    "question": "w-bf16-70b",
    "report": "1",
    "run": "1",
    "session": "1",
    "sitting": "1",
    "topic": "weights",
}
BESIDE_OTHERS = "/courses/sizing"
"""What stands before every address where the tiny course is one of two."""
ALONE_OR_NOT = ("", BESIDE_OTHERS) if FACTOR > 1 else ("",)
"""`make drills` walks every address a second time, in a course beside another."""


def routes(app: FastAPI) -> list[tuple[str, str]]:
    """(method, template) of every route."""
    found = []
    for route in iter_route_contexts(app.routes):
        methods = (route.methods or set()) & {"GET", "POST"}
        found += [(method, str(route.path)) for method in sorted(methods)]
    return sorted(found)


def forms(app: FastAPI) -> list[str]:
    """An address of every route that takes a POST."""
    return sorted({addressed(t) for method, t in routes(app) if method == "POST"})


def addressed(template: str, **values: str) -> str:
    """A template with these values, and others that lead somewhere."""
    known = {n: quote(v, safe="") for n, v in {**SANE_PARTS, **values}.items()}
    return template.replace(":path}", "}").format(**known)
