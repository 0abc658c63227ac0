"""Cards beside the decks: missed questions, terms and own cards are asked too."""

import dataclasses
import datetime as dt
import re

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event
from sqlmodel import Session, select

from app.database.engine import make_engine
from app.database.tables import AddedCard, CardStateRow, Learner, OwnCard, Review, Suspension
from app.markup.model import GlossaryTerm, RichText, SourceLocation
from app.spaced_repetition import review_log
from app.spaced_repetition.added_card_ids_and_faces import build_question_card, build_term_card
from app.spaced_repetition.added_cards import (
    CardToAdd,
    add_cards,
    schedule_missed_questions_for_tomorrow,
    set_card_declined_if_added,
)
from app.spaced_repetition.scheduler import ReviewEvent
from tests.conftest import Clock
from tests.databases import Databases
from tests.flashcards.conftest import Hands, fields
from tests.flashcards.course import EditableLiveCourse, two_topics
from tests.quiz.bank import DESIGN, SINGLE
from tests.spaced_repetition.rebuilding import rebuild

DAY = dt.date(2026, 6, 9)
MISSED = dataclasses.replace(
    SINGLE, id="missed", topic="cache", section="trade", stem=RichText("Which?", "Which?")
)
TERM = GlossaryTerm(
    "herd", "Herd", RichText("Many <b>animals</b>.", "Many"), (), SourceLocation("g", 1)
)


def with_extras(live_course: EditableLiveCourse) -> EditableLiveCourse:
    topics = dict(live_course.held.topics)
    topics["cache"] = dataclasses.replace(topics["cache"], terms=("herd",))
    live_course.held = dataclasses.replace(
        live_course.held,
        topics=topics,
        questions={"missed": MISSED},
        glossary={"herd": TERM},
    )
    return live_course


def save(live_course: EditableLiveCourse, **changes: object) -> None:
    """An author saves a file."""
    live_course.held = dataclasses.replace(live_course.held, version="later", **changes)


@pytest.fixture
def live_course() -> EditableLiveCourse:
    return with_extras(EditableLiveCourse(*two_topics()))


@pytest.fixture
def learner(client: TestClient, session: Session) -> int:
    """A learner who has graded one card."""
    Hands(client).grade(4)
    return session.exec(select(Learner.id)).one() or 0


@pytest.fixture
def missed(learner: int, session: Session, clock: Clock) -> str:
    """A question missed today."""
    card = CardToAdd("q:missed", "cache", 7)
    schedule_missed_questions_for_tomorrow(session, learner, [card], clock.now.date(), clock.now)
    session.commit()
    return "q:missed"


@pytest.fixture
def own(learner: int, session: Session, clock: Clock) -> str:
    """A card that the learner brought along, with something in it that must not run."""
    card = OwnCard(
        learner_id=learner,
        card="own:abc",
        deck="Ours",
        front="<p>Front of own</p><script>alert(1)</script>",
        back='<b onclick="x()">Back</b> <a href="javascript:x()">there</a>',
        at=0,
    )
    session.add(card)
    add_cards(session, learner, [CardToAdd("own:abc")], clock.now.date(), clock.now)
    session.commit()
    return "own:abc"


def page(client: TestClient, address: str) -> str:
    return client.get(address).text.replace("\xa0", " ")


def memory(session: Session, card: str) -> CardStateRow:
    session.rollback()
    return session.exec(select(CardStateRow).where(CardStateRow.card == card)).one()


def grade(client: TestClient, card: str, rating: int) -> None:
    html = client.get(f"/flashcards?card={card}&show=1").text
    body = {**fields(html, f"/flashcards/{card}/reviews"), "rating": rating}
    assert client.post(f"/flashcards/{card}/reviews", data=body).status_code == 303


def undo(client: TestClient) -> str:
    body = fields(client.get("/flashcards").text, "/flashcards/undo")
    return client.post("/flashcards/undo", data=body).headers["location"]


@pytest.mark.usefixtures("missed")
def test_a_missed_question_waits_until_tomorrow(client, clock: Clock) -> None:
    assert "Which?" not in page(client, "/flashcards")

    clock.tick(days=1)

    html = page(client, "/flashcards")
    assert "Which?" in html
    assert "A question you missed on June 9. Say the answer aloud" in html
    assert "/quiz/cache/missed?back=/flashcards" in html
    assert "Why ghjk" not in html


def test_its_answer_says_what_is_right_and_why_and_where_to_read(client, missed) -> None:
    html = page(client, f"/flashcards/{missed}/answer")

    assert "Option ghjk" in html
    assert "Why bcdf" in html
    assert "The explanation." in html
    assert 'href="/concepts/cache#trade"' in html
    assert html.count('name="rating"') == 4


@pytest.mark.usefixtures("learner")
def test_a_term_is_asked_today_with_its_meaning_behind_it(client) -> None:
    client.post("/flashcards/term:herd/addition", data={"wanted": "yes"})

    html = page(client, "/flashcards?topic=cache")
    assert re.search(r"<div[^>]*>Herd</div>", html)
    assert "Many <b>animals</b>." in page(client, "/flashcards/term:herd/answer")


def test_own_cards_are_cleaned_before_they_are_shown(client, own) -> None:
    html = page(client, f"/flashcards/{own}/answer")

    assert "Front of own" in html
    assert "<b>Back</b>" in html
    for bad in ("<script>alert", "onclick", "javascript:"):
        assert bad not in html


@pytest.mark.parametrize("exam", [None, 1, 20])
@pytest.mark.usefixtures("missed", "own")
def test_an_added_card_is_new_until_it_is_graded(
    client, clock: Clock, session: Session, exam: int | None
) -> None:
    learner = session.exec(select(Learner)).one()
    if exam is not None:
        learner.exam_day = (DAY + dt.timedelta(days=1 + exam)).isoformat()
        session.commit()
    clock.tick(days=1)

    def counts() -> dict[str, int]:
        html = page(client, "/flashcards")
        found = re.findall(r"(New|Learning|Due)\s*<b>(\d+)", html)
        return {name: int(count) for name, count in found}

    before = counts()
    assert before["New"] >= 2
    assert before["Due"] == 0

    grade(client, "own:abc", 1)

    after = counts()
    assert after["New"] == before["New"] - 1
    assert after["Learning"] == 1


@pytest.mark.usefixtures("missed", "own")
def test_added_cards_take_no_place_of_new_ones(client) -> None:
    html = page(client, "/flashcards?topic=weights")

    assert "Front of weights-2" in html


def test_a_card_of_another_is_not_found(missed, own, milo) -> None:
    for card in (missed, own, "q:nothing", "term:herd", "own:none"):
        assert milo.get(f"/flashcards?card={card}").status_code == 404
        assert milo.get(f"/flashcards/{card}/answer").status_code == 404


def test_a_grade_moves_it_on_and_an_undo_brings_it_back(client, missed, session) -> None:
    grade(client, missed, 4)
    assert memory(session, missed).state == "review"

    where = undo(client)

    assert where.endswith("card=q%3Amissed")
    row = memory(session, missed)
    assert (row.state, row.due_day, row.turns) == ("new", "2026-06-10", 2)
    assert client.get(where).status_code == 200


def test_put_aside_and_taken_up_it_is_due_where_it_was(client, missed, session) -> None:
    address = f"/flashcards/{missed}/suspension"
    client.post(address, data={"aside": "yes"})
    assert memory(session, missed).suspended

    client.post(address, data={"aside": "no"})

    row = memory(session, missed)
    assert (row.suspended, row.due_day) == (False, "2026-06-10")


def test_taking_it_up_again_undoes_leaving_it_out(client, missed, session) -> None:
    client.post(f"/flashcards/{missed}/addition", data={"wanted": "no"})

    client.post(f"/flashcards/{missed}/suspension", data={"aside": "no"})

    assert not memory(session, missed).suspended
    assert not session.exec(select(AddedCard.declined)).one()


def test_a_question_that_left_the_course_is_not_asked(
    client, missed, live_course: EditableLiveCourse, clock: Clock
) -> None:
    save(live_course, questions={})
    clock.tick(days=1)

    assert "Which?" not in page(client, "/flashcards")
    assert client.get(f"/flashcards?card={missed}").status_code == 404
    deck = page(client, "/flashcards/deck")
    assert "no longer in the course" in deck


@pytest.mark.usefixtures("missed")
def test_after_the_exam_no_list_takes_a_few_new_cards_a_day(client, clock) -> None:
    client.post("/plan", data={"exam_day": f"{clock.now.date()}", "minutes_a_day": "30"})
    assert "question, new" in page(client, "/flashcards/deck")
    clock.tick(days=1)

    assert "question, new" in page(client, "/flashcards/deck")
    assert "a few a day" not in page(client, "/flashcards/deck")


def test_its_wording_is_that_of_now(client, missed, live_course: EditableLiveCourse) -> None:
    newer = dataclasses.replace(MISSED, stem=RichText("Which now?", "Which now?"))
    save(live_course, questions={"missed": newer})

    assert "Which now?" in page(client, f"/flashcards?card={missed}")


@pytest.mark.usefixtures("own")
def test_the_deck_lists_all_that_was_added(client, missed) -> None:
    client.post("/flashcards/term:herd/addition", data={"wanted": "yes"})

    html = page(client, "/flashcards/deck")

    assert "3 cards: missed questions, terms, own cards" in html
    assert "question, new (a few a day)" in html
    assert "term, new (a few a day)" in html
    assert "own card, new (a few a day)" in html
    client.post(f"/flashcards/{missed}/addition", data={"wanted": "no"})
    assert "question, removed" in page(client, "/flashcards/deck")


def test_a_question_missed_today_is_new_until_its_first_review(client, missed, clock) -> None:
    for _ in range(3):
        assert "question, new (a few a day)" in page(client, "/flashcards/deck")
        about = page(client, f"/flashcards/{missed}/more")
        assert "<dt>State</dt><dd>new (a few a day)</dd>" in about
        assert "This card has no reviews yet." in about
        clock.tick(days=1)

    grade(client, missed, 4)

    assert re.search("question, due June [0-9]+, 2026", page(client, "/flashcards/deck"))


def test_a_new_card_that_was_given_a_day_says_from_when_it_is_one_of_the_new_ones(
    client, missed
) -> None:
    html = page(client, f"/flashcards/{missed}/more")
    body = {**fields(html, f"/flashcards/{missed}/acts"), "act": "due", "day": "2026-06-20"}
    assert client.post(f"/flashcards/{missed}/acts", data=body).status_code == 303

    assert "question, new, from June 20, 2026" in page(client, "/flashcards/deck")


@pytest.mark.usefixtures("missed")
def test_no_new_card_comes_a_few_a_day_in_the_last_days_before_the_exam(
    client, learner, session
) -> None:
    session.get_one(Learner, learner).exam_day = "2026-06-10"
    session.commit()

    assert "question, new</span>" in page(client, "/flashcards/deck")


@pytest.mark.usefixtures("own")
def test_what_was_found_is_set_apart_from_the_cards_of_a_topic(client) -> None:
    heading = '<section class="sec gap stack"><header><h2>Cards by topic</h2></header>'

    found, by_topic = page(client, "/flashcards/deck?q=front+own").split(heading)

    assert "Front of own" in found
    assert 'for="topic"' in by_topic
    assert 'for="topic"' not in found
    assert "Cards by topic" not in page(client, "/flashcards/deck")


def test_many_added_cards_are_paged(client, learner, session, clock: Clock) -> None:
    rows = [CardToAdd(f"own:{n:03}") for n in range(75)]
    add_cards(session, learner, rows, clock.now.date(), clock.now)
    session.commit()

    html = page(client, "/flashcards/deck?own=3")

    assert "Page 3 of 3" in html
    assert html.count("own card, no longer") == 15
    assert "Page 3 of 3" in page(client, "/flashcards/deck?own=9")


def test_a_card_that_cannot_be_shown_does_not_hold_up_the_desk(
    client, learner, session, clock: Clock
) -> None:
    add_cards(session, learner, [CardToAdd("own:lost")], clock.now.date(), clock.now)
    session.commit()

    assert "Front of weights-2" in page(client, "/flashcards")


def test_a_leech_made_of_a_question_leads_to_its_section(client, missed, clock: Clock) -> None:
    grade(client, missed, 4)
    for _ in range(8):
        clock.tick(days=30)
        html = client.get(f"/flashcards?card={missed}&show=1").text
        body = {**fields(html, f"/flashcards/{missed}/reviews"), "rating": 1}
        answer = client.post(f"/flashcards/{missed}/reviews", data=body)
        clock.tick(minutes=10)
        if "leech" not in answer.headers["location"]:
            grade(client, missed, 3)

    html = client.get(answer.headers["location"]).text

    assert "This card does not stick." in html
    assert 'href="/concepts/cache#trade"' in html


@pytest.mark.usefixtures("own")
def test_a_grade_of_an_added_card_stays_cheap(client, missed, app) -> None:
    html = client.get(f"/flashcards?card={missed}&show=1").text
    body = {**fields(html, f"/flashcards/{missed}/reviews"), "rating": 3}
    asked: list[str] = []

    def note(_connection, _cursor, statement, *_rest) -> None:
        if statement.split()[0] in {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}:
            asked.append(statement)

    event.listen(app.state.engine, "before_cursor_execute", note)
    client.post(f"/flashcards/{missed}/reviews", data=body, headers={"HX-Request": "true"})
    event.remove(app.state.engine, "before_cursor_execute", note)

    assert 1 <= len(asked) <= 12, asked


def test_a_design_exercise_has_no_faces() -> None:
    card = build_question_card(DESIGN, 1)

    assert card.back.html.startswith("<div>The explanation.")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, databases: Databases):
    with databases.empty(tmp_path_factory.mktemp("added")) as address:
        engine = make_engine(address)
        yield engine
        engine.dispose()


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["grade", "grade", "undo", "aside", "back", "miss", "out", "in"]),
        st.sampled_from(["q:missed", "term:herd"]),
        st.integers(1, 4),
        st.sampled_from([0, 1, 9, 60]),
    ),
    max_size=25,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=ACTIONS)
@example(
    actions=[
        ("miss", "q:missed", 3, 0),
        ("grade", "q:missed", 3, 1),
        ("grade", "q:missed", 3, 9),
        ("miss", "q:missed", 3, 1),
        ("miss", "q:missed", 3, 1),
    ]
)
def test_the_memory_can_be_made_again_from_the_log_and_what_was_added(
    engine: Engine, actions
) -> None:
    cards = {
        "q:missed": build_question_card(MISSED, 1),
        "term:herd": build_term_card(TERM, "cache"),
    }
    with Session(engine) as db:
        learner = act(db, cards, actions)
        before = rows_of(db, learner)

        rebuild(db, learner, cards)

        assert rows_of(db, learner) == before
        db.rollback()


def act(db: Session, cards, actions) -> int:
    """A learner who did all this; returns the id."""
    person = Learner(key="law", created_at=0, zone="Europe/Berlin")
    db.add(person)
    db.flush()
    learner = person.id or 0
    now = dt.datetime(2026, 6, 9, 12, 0, tzinfo=dt.UTC)
    for number, (what, name, rating, days) in enumerate(actions):
        now += dt.timedelta(days=days, minutes=1)
        day, known = (
            now.date(),
            db.exec(
                select(AddedCard).where(AddedCard.learner_id == learner, AddedCard.card == name)
            ).first(),
        )
        if what == "miss":
            add = schedule_missed_questions_for_tomorrow if name == "q:missed" else add_cards
            add(db, learner, [CardToAdd(name, "cache", number)], day, now)
        elif known is None:
            continue
        elif what == "grade":
            event = ReviewEvent(rating, now, day)
            review_log.record_review(db, learner, cards[name], event, f"token {number}")
        elif what == "undo":
            last = review_log.find_last_row_if_undoable(db, learner)
            if last:
                review_log.undo_log_row_if_last(db, learner, last.id, now, day)
        elif what in {"out", "in"}:
            set_card_declined_if_added(db, learner, name, declined=what == "out")
        else:
            review_log.set_suspended(db, learner, cards[name], now, suspended=what == "aside")
    return learner


def rows_of(db: Session, learner: int) -> list[dict[str, object]]:
    rows = db.exec(
        select(CardStateRow).where(CardStateRow.learner_id == learner).order_by(CardStateRow.card)
    )
    found = [row.model_dump(exclude={"id"}) for row in rows]
    db.expire_all()
    return found


@pytest.mark.usefixtures("missed")
def test_all_of_it_is_erased_with_the_learner(client, own, session: Session) -> None:
    client.post(f"/flashcards/{own}/suspension", data={"aside": "yes"})

    client.post("/settings/erasure", data={"word": "erase"})

    session.rollback()
    for table in (AddedCard, OwnCard, CardStateRow, Review, Suspension):
        assert session.exec(select(table)).all() == []
