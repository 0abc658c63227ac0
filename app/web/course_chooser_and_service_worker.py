"""Course chooser and service worker."""

import hashlib
import json

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from app.content.course import Course
from app.content.live_courses import CourseRegistry
from app.errors import NotFoundError
from app.web.render import StaticAssets, create_language_variables, render_page

router = APIRouter(include_in_schema=False)


@router.get("/courses")
def show_course_chooser(request: Request) -> Response:
    courses: CourseRegistry = request.app.state.courses
    if not courses.has_several_courses:
        raise NotFoundError("There is no page at this address.")
    if request.state.course_name:
        return RedirectResponse("../../courses", 303)  # leave the URL prefix of the course
    named = [
        (name, course, create_language_variables(course.syllabus.language)["lang"])
        for name, live in courses.live_courses.items()
        for course in (live.get_current_course(),)
    ]
    return render_page(request, "shared/courses.html", courses=named)


# Files that cached pages and flashcards need. The worker caches others on request.
_CACHED_STATIC_FILES = (
    "css/headroom.css",
    "css/flashcards.css",
    "css/concepts.css",
    "fonts/headroom-sans.woff2",
    "fonts/faustina.woff2",
    "img/icon.svg",
    "js/headroom.js",
    "js/offline.js",
    "js/outbox.js",
    "vendor/htmx-2.0.11.min.js",
)


# Replaces a service worker from when the server had a single course. The old one would
# cache pages of every course, including those it must not.
_UNREGISTERING_WORKER_SCRIPT = """"use strict";
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(
  caches.delete("pages").then(() => self.registration.unregister())));
"""


@router.get("/sw.js")
def serve_service_worker(request: Request) -> Response:
    """Serve the service worker. It updates itself when the course or a static file changes.

    Above the courses of a server with several, serve a worker that removes itself.
    """
    courses: CourseRegistry = request.app.state.courses
    if courses.has_several_courses and not request.state.course_name:
        return Response(_UNREGISTERING_WORKER_SCRIPT, media_type="text/javascript")
    course: Course = request.state.course
    static: StaticAssets = request.app.state.static
    lines = (
        '"use strict";',
        f"const VERSION = {json.dumps(_service_worker_version(course, static))};",
        f"const FILES = {json.dumps([static.versioned_url(name) for name in _CACHED_STATIC_FILES])};",
        static.files["js/worker.js"].body.decode(),
    )
    return Response("\n".join(lines), media_type="text/javascript")


@router.get("/unreachable")
def serve_offline_page(request: Request) -> HTMLResponse:
    """Serve the page that the service worker shows offline. It contains no personal data."""
    return render_page(request, "shared/unreachable.html")


def _service_worker_version(course: Course, static: StaticAssets) -> str:
    words = [course.version, *(static.versioned_url(name) for name in sorted(static.files))]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
