"""The shipped course, as the planner sees it."""

import pytest

from app.content.course_facts import CourseFacts, cached_course_facts
from app.content.library import Library


@pytest.fixture(scope="session")
def course_facts(shipped: Library) -> CourseFacts:
    return cached_course_facts(shipped)
