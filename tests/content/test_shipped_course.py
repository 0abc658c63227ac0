"""The course that is shipped, as `headroom check content` looks at it."""

from app.content.check import check_course, format_problems
from app.content.live_courses import LiveCourse
from tests.conftest import SHIPPED


def test_the_shipped_course_has_no_problem(live_shipped: LiveCourse) -> None:
    assert format_problems(check_course(SHIPPED, cache_folder=live_shipped.cache)) == "No problems."
