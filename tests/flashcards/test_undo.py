"""POST /flashcards/undo, and the law that the log alone is the truth."""

import datetime as dt

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine
from sqlmodel import Session, select

from app.database.engine import make_engine
from app.database.tables import CardStateRow, Learner, Review
from app.spaced_repetition import review_log
from app.spaced_repetition.scheduler import ReviewEvent
from tests.databases import Databases
from tests.flashcards.conftest import Hands, fields
from tests.flashcards.course import EditableLiveCourse, two_topics
from tests.spaced_repetition.rebuilding import rebuild


def log(session: Session) -> list[tuple[str, int, int | None]]:
    rows = session.exec(select(Review).order_by(Review.id))
    return [(r.card, r.rating, r.voids) for r in rows]


def test_undo_brings_the_card_back_as_it_was(hands, session) -> None:
    hands.grade(4)

    assert hands.undo() == "weights-1"

    assert session.exec(select(CardStateRow)).all() == []
    assert log(session) == [("weights-1", 4, None), ("weights-1", 0, 1)]


def test_a_card_can_be_graded_again_after_an_undo(hands, session) -> None:
    hands.grade(4)
    hands.undo()

    assert hands.grade(1) == "weights-1"

    assert [rating for _, rating, _ in log(session)] == [4, 0, 1]
    (memory,) = session.exec(select(CardStateRow)).all()
    assert (memory.state, memory.reviews, memory.turns) == ("learning", 1, 3)


def test_undo_twice_goes_back_two_grades(hands) -> None:
    hands.grade(4)
    hands.grade(4)

    assert hands.undo() == "weights-2"
    assert hands.undo() == "weights-1"


def test_pressing_undo_twice_at_once_undoes_one_grade(hands, client, session) -> None:
    hands.grade(4)
    hands.grade(4)
    body = fields(client.get("/flashcards").text, "/flashcards/undo")

    for _ in range(2):
        client.post("/flashcards/undo", data=body)

    assert [voids for _, _, voids in log(session)] == [None, None, 2]


def test_undoing_what_another_learner_graded_changes_nothing(rosa, milo, session) -> None:
    Hands(rosa).grade(4)

    answer = milo.post("/flashcards/undo", data={"review": 1})

    assert answer.status_code == 303
    assert log(session) == [("weights-1", 4, None)]


def test_an_undone_lapse_is_no_lapse(hands, clock, session) -> None:
    hands.grade(4)
    clock.tick(days=8)
    hands.grade(1)
    hands.undo()

    (memory,) = session.exec(select(CardStateRow)).all()
    assert (memory.state, memory.lapses) == ("review", 0)


def test_there_is_nothing_to_undo_on_another_day(hands, clock) -> None:
    hands.grade(4)
    assert "/flashcards/undo" in hands.client.get("/flashcards").text

    clock.tick(days=1)

    assert "/flashcards/undo" not in hands.client.get("/flashcards").text


# --- the law ------------------------------------------------------------------------

ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["grade", "grade", "grade", "undo", "aside", "back"]),
        st.sampled_from(["weights-1", "weights-2", "weights-pair", "weights-pair~r"]),
        st.integers(1, 4),
        st.sampled_from([0, 0, 1, 9, 60]),
    ),
    max_size=25,
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, databases: Databases):
    with databases.empty(tmp_path_factory.mktemp("law")) as address:
        engine = make_engine(address)
        yield engine
        engine.dispose()


@pytest.fixture(scope="module")
def cards():
    return EditableLiveCourse(*two_topics()).get_current_course().cards


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
def test_replaying_the_log_gives_the_same_memory(engine: Engine, cards, actions) -> None:
    with Session(engine) as db:
        learner = act(db, cards, actions)
        before = memories(db, learner)

        rebuild(db, learner, cards)

        assert memories(db, learner) == before
        db.rollback()


def act(db: Session, cards, actions) -> int:
    """Let a new learner do all this; returns the learner's id."""
    learner = Learner(key="law", created_at=0)
    db.add(learner)
    db.flush()
    assert learner.id
    now = dt.datetime(2026, 6, 9, 12, tzinfo=dt.UTC)
    for number, (what, card, rating, days) in enumerate(actions):
        now += dt.timedelta(days=days, minutes=3)
        if what == "grade":
            grade = ReviewEvent(rating, now, now.date(), 0.9 - days / 600)
            review_log.record_review(db, learner.id, cards[card], grade, str(number))
        elif what == "undo":
            last = review_log.find_last_row_if_undoable(db, learner.id)
            if last:
                review_log.undo_log_row_if_last(db, learner.id, last.id, now, now.date())
        else:
            review_log.set_suspended(db, learner.id, cards[card], now, suspended=what == "aside")
    db.flush()
    return learner.id


def memories(db: Session, learner: int) -> list[dict]:
    db.expire_all()
    rows = db.exec(
        select(CardStateRow).where(CardStateRow.learner_id == learner).order_by(CardStateRow.card)
    )
    return [row.model_dump(exclude={"id"}) for row in rows]
