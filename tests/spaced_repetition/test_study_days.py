"""What a study day held: sums beside the logs, and the law that they agree."""

import datetime as dt
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from sqlmodel import Session, select

from app.content.course import Course
from app.database.engine import make_engine
from app.database.tables import Learner, Review, StudyDayActivity
from app.exams import store as exams
from app.exams.assembly import PaperItem
from app.questions.question_type import GradeResult
from app.quiz import store as quiz
from app.spaced_repetition import review_log
from app.spaced_repetition.scheduler import ReviewEvent
from tests.databases import Databases
from tests.spaced_repetition.rebuilding import rebuild_days

NOON = dt.datetime(2026, 6, 9, 12, tzinfo=dt.UTC)
SUMS = ("answers", "reviews", "asked", "recalled", "milliseconds")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, databases: Databases):
    with databases.empty(tmp_path_factory.mktemp("days")) as address:
        engine = make_engine(address)
        yield engine
        engine.dispose()


class Life:
    """A new learner who studies; nothing of it is committed."""

    def __init__(self, db: Session, course: Course) -> None:
        learner = Learner(key="days", created_at=0)
        db.add(learner)
        db.flush()
        assert learner.id
        self.db, self.course, self.id = db, course, learner.id
        self.now = NOON
        self.numbers = itertools.count()
        self.last: tuple[str, int, str] | None = None

    def pass_days(self, days: int) -> None:
        self.now += dt.timedelta(days=days, minutes=1)

    def grade(self, card: str, rating: int, token: str = "") -> None:
        grade = ReviewEvent(rating, self.now, self.now.date())
        token = token or f"g{next(self.numbers)}"
        self.last = (card, rating, token)
        flashcard = self.course.cards[card]
        review_log.record_review(self.db, self.id, flashcard, grade, token, 4000 + rating)

    def repeat(self) -> None:
        if self.last:
            self.grade(*self.last)

    def undo(self) -> None:
        last = review_log.find_last_row_if_undoable(self.db, self.id)
        if last:
            review_log.undo_log_row_if_last(self.db, self.id, last.id, self.now, self.now.date())
            review_log.undo_log_row_if_last(self.db, self.id, last.id, self.now, self.now.date())

    def answer(self, token: str = "") -> None:
        question = next(iter(self.course.questions.values()))
        given = quiz.NewAttempt(
            question=question,
            seed=1,
            raw_response={"answer": ["a"]},
            verdict=GradeResult(score=1.0, parsed_response={}),
            submission_token=token or f"a{next(self.numbers)}",
            context="quiz",
            milliseconds=9000,
        )
        quiz.save_attempt_once(self.db, self.id, given, self.now.date(), self.now)

    def sit(self) -> None:
        """Close an exam of two answers, and once more."""
        number = next(self.numbers) + 1000 * self.id
        slots = [PaperItem(n, f"item-{n}", "r", 1, "1") for n in (1, 2)]
        sat = exams.SittingState(
            number,
            self.id,
            "short",
            (),
            1.0,
            None,
            self.now,
            self.now,
            self.now,
            "time",
        )
        graded = [exams.GradedAnswer(s, "weights", {}, {}, 1.0, 30_000) for s in slots]
        for _ in range(2):
            exams.record_graded_answers(self.db, sat, graded, self.now)


def days(db: Session, learner: int) -> dict[str, StudyDayActivity]:
    db.expire_all()
    rows = db.exec(select(StudyDayActivity).where(StudyDayActivity.learner_id == learner))
    return {row.day: row for row in rows}


def sums(row: StudyDayActivity) -> tuple[int, ...]:
    return tuple(getattr(row, name) for name in SUMS)


@pytest.fixture
def life(engine: Engine, course: Course):
    with Session(engine) as db:
        yield Life(db, course)
        db.rollback()


def today(life: Life) -> StudyDayActivity:
    return days(life.db, life.id)[life.now.date().isoformat()]


def test_an_answer_counts_once_however_often_it_is_sent(life: Life):
    life.answer("same")
    life.answer("same")

    assert sums(today(life)) == (1, 0, 0, 0, 9000)


def test_an_exam_counts_its_answers_on_the_day_of_closing(life: Life):
    life.sit()

    assert sums(today(life)) == (2, 0, 0, 0, 60_000)


def test_a_new_card_is_reviewed_but_nothing_was_there_to_recall(life: Life):
    life.grade("w-c-bf16", 4)

    assert sums(today(life)) == (0, 1, 0, 0, 4004)
    assert life.db.exec(select(Review.recall)).all()[-1] is None


def test_a_card_that_comes_back_asks_memory_against_what_was_expected(life: Life):
    life.grade("w-c-bf16", 4)
    life.pass_days(8)
    life.grade("w-c-bf16", 3)

    row = today(life)
    chance = life.db.exec(select(Review.recall).order_by(Review.id)).all()[-1]
    assert sums(row) == (0, 1, 1, 1, 4003)
    assert 0.85 < chance < 0.95
    assert row.expected == chance


def test_only_the_first_review_of_a_card_on_a_day_asks_memory(life: Life):
    life.grade("w-c-bf16", 4)
    life.pass_days(8)
    life.grade("w-c-bf16", 3)
    life.grade("w-c-bf16", 1)

    assert sums(today(life))[:4] == (0, 2, 1, 1)


def test_a_grade_that_is_undone_leaves_its_day_and_the_next_one_counts(life: Life):
    life.grade("w-c-bf16", 4)
    life.pass_days(8)
    life.grade("w-c-bf16", 3)
    life.undo()
    assert sums(today(life)) == (0, 0, 0, 0, 0)

    life.grade("w-c-bf16", 1)

    assert sums(today(life)) == (0, 1, 1, 0, 4001)


def test_undoing_on_a_later_day_takes_from_the_day_of_the_grade(life: Life):
    life.grade("w-c-bf16", 4)
    life.pass_days(1)
    life.undo()

    (row,) = days(life.db, life.id).values()
    assert (row.day, row.reviews) == ("2026-06-09", 0)


# --- the law ------------------------------------------------------------------------

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["grade"] * 4 + ["undo", "repeat", "answer", "again", "sit"]),
        st.sampled_from(["w-c-bf16", "w-c-size", "k-c-grows"]),
        st.integers(1, 4),
        st.sampled_from([0, 0, 0, 1, 9, 60]),
    ),
    max_size=30,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
def test_the_sums_are_those_that_the_logs_would_give(engine: Engine, course: Course, actions):
    with Session(engine) as db:
        life = Life(db, course)
        for what, card, rating, wait in actions:
            life.pass_days(wait)
            if what == "grade":
                life.grade(card, rating)
            elif what == "again":
                life.answer("again")
            else:
                getattr(life, what)()
        db.flush()
        kept = {day: (sums(row), row.expected) for day, row in days(db, life.id).items()}

        rebuild_days(db, life.id)

        made = {day: (sums(row), row.expected) for day, row in days(db, life.id).items()}
        assert {d: s for d, (s, _) in kept.items()} == {d: s for d, (s, _) in made.items()}
        assert {d: e for d, (_, e) in kept.items()} == pytest.approx(
            {d: e for d, (_, e) in made.items()}, abs=1e-9
        )
        db.rollback()
