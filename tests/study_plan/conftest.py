"""The shipped course, as the planner sees it."""

import pytest

from app.content.course import Course
from app.content.course_facts import CourseFacts, cached_course_facts


@pytest.fixture(scope="session")
def course_facts(shipped: Course) -> CourseFacts:
    return cached_course_facts(shipped)
