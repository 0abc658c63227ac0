"""The shipped course, as the planner sees it."""

import pytest

from app.content.library import Library
from app.study_plan.facts import CourseFacts, course_facts


@pytest.fixture(scope="session")
def course(shipped: Library) -> CourseFacts:
    return course_facts(shipped)
