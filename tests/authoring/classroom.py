"""A class that answers a course with a wrong key, as its learners would."""

import datetime as dt
import random
from collections.abc import Iterable
from pathlib import Path

from sqlmodel import Session

from app.content.course import Course
from app.questions import types
from app.questions.grading import grade_response
from app.questions.model import Question, draw_variant
from app.questions.question_type import GradeResult
from app.quiz.store import NewAttempt, save_attempt_once

NOW = dt.datetime(2026, 6, 9, 12, tzinfo=dt.UTC)
SHORT = """
### What is the phase called in which a model reads the prompt?
<!-- q: k-phase
type: short
-->

- [x] `prefill`
- [ ] `decode`
  > That is the phase after it.

### How many bytes does a million FP16 numbers take?
<!-- q: k-bytes
type: numeric
-->

- [x] `2 MB ± 1%`
- [ ] `4 MB ± 1%`
  > That is FP32.
"""
PHASES = ["prefill"] * 12 + ["Prefill phase"] * 6 + ["prefill phase"] * 4 + ["decode"] * 5
PHASES += ["reading"] * 3
CLASS = 30


def prepare_course(folder: Path) -> Path:
    """Add a short and a numeric question, and give `k-trade` a wrong key."""
    quiz = folder / "topics/kv-cache/quiz.md"
    text = quiz.read_text() + SHORT
    text = text.replace("[x] Memory for compute", "[ ] Memory for compute")
    quiz.write_text(text.replace("[ ] Bandwidth for latency", "[x] Bandwidth for latency"))
    return folder


def play_class(session: Session, course: Course, learners: Iterable[int]) -> None:
    """Let thirty learners of rising skill answer every question of the course."""
    mix = random.Random(4)  # noqa: S311 - repeatable, not secret
    for place, learner in enumerate(learners):
        skill = 0.25 + 0.7 * place / CLASS
        for question in course.questions.values():
            if types.question_type_of(question).is_allowed_in_exams:
                play(session, question, learner, place, knows=mix.random() < skill)
    session.commit()


def play(session: Session, question: Question, learner: int, place: int, *, knows: bool) -> None:
    """Answer as a learner does: what is true, or one of the foreseen wrong responses."""
    variant = draw_variant(question, place)
    _, *others = responses = [
        raw for _, raw in types.question_type_of(variant).sample_responses(variant.answer)
    ]
    raw = responses[0] if knows else others[place % len(others)]
    if question.id == "k-phase":
        raw = {"answer": [PHASES[CLASS - 1 - place]]}
    if question.id == "k-trade":
        others = {o.text.plain: o.key for o in question.answer.options}
        said = "Memory for compute" if knows else "Bandwidth for latency"
        raw = {"answer": [others[said]]}
    verdict = grade_response(variant, raw)
    if isinstance(verdict, GradeResult):
        attempt = NewAttempt(
            question,
            place,
            raw,
            verdict,
            submission_token=f"{question.id}-{place}",
            context="quiz",
            certainty=1 + place % 3,
            milliseconds=1000 * (10 + place),
        )
        save_attempt_once(session, learner, attempt, NOW.date(), NOW)
