"""GET the page that lists the courses, where a server has several."""

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from app.content.live.courses import CourseRegistry
from app.errors import NotFoundError
from app.web.render import language_marks, render_page

router = APIRouter(include_in_schema=False)


@router.get("/courses")
def choose(request: Request) -> Response:
    """Every course by its title; the links in the frame of a page lead here."""
    courses: CourseRegistry = request.app.state.courses
    if not courses.named:
        raise NotFoundError("There is no page at this address.")
    if request.state.course:
        return RedirectResponse("../../courses", 303)  # out of the course
    named = [
        (name, library, language_marks(library.syllabus.language)["lang"])
        for name, live in courses.libraries.items()
        for library in (live.current(),)
    ]
    return render_page(request, "shared/courses.html", courses=named)
