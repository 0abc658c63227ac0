"""The stage of the exam tests: the right answers to what was drawn."""

import json

import pytest
from sqlmodel import Session, select

from app.content.course import Course
from app.database.tables import Sitting
from app.estimator.units import UNITS
from app.questions.model import draw_variant
from app.questions.types.choice import ChoiceSpec
from app.questions.types.number_parsing import NumericSpec


@pytest.fixture
def right(course: Course, session: Session):
    """The right response to each question of the newest paper, by number."""

    def responses() -> dict[int, dict[str, str]]:
        newest = select(Sitting.paper).order_by(Sitting.id)
        paper = json.loads(session.exec(newest).all()[-1])
        found = {}
        for number, item, _revision, seed, _domain in paper:
            answer = draw_variant(course.questions[item], seed).answer
            if isinstance(answer, ChoiceSpec):
                keys = [o.key for o in answer.options if o.right]
                found[number] = {"answer": keys}
            elif isinstance(answer, NumericSpec):
                option = next(o for o in answer.options if o.right and o.range)
                unit = UNITS[option.range.unit][0]
                found[number] = {"answer": f"{option.range.center!r} {unit}"}
        return found

    return responses
