"""POST /settings/cards: cards and grades out of a package of Anki."""

import dataclasses
import datetime as dt
import random
import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine
from sqlmodel import Session, select

from app.accounts.current_learner import LearnerProfile
from app.content.course import Course
from app.database.quotas import OWN_CARDS
from app.database.tables import AddedCard, CardStateRow, Learner, OwnCard, Review, StudyDayActivity
from app.database.tables import Suspension as Aside
from app.import_export import UnusableFileError
from app.import_export.anki.package_writer import make_note_guid
from app.import_export.card_import_store import ImportedCard, raise_if_too_many_own_cards
from app.import_export.export_store import OwnCardText
from app.spaced_repetition import review_log
from app.spaced_repetition.added_card_ids_and_faces import build_term_card, find_topic_of_added_card
from app.spaced_repetition.scheduler import ReviewEvent
from tests.amounts import each_of_sample
from tests.flashcards.conftest import fields
from tests.import_export.package import Made, package, types
from tests.import_export.test_cards_out import review
from tests.spaced_repetition.rebuilding import rebuild, rebuild_days

NOON = 1781006400000  # the clock of the tests, in milliseconds
TERM_CARD = "term:kv-cache"
DAY = 24 * 60 * 60 * 1000
MOMENTS = tuple(NOON - days * DAY for days in (30, 29, 25, 10))
HISTORY = tuple((0, at, ease, 0, 4000) for at, ease in zip(MOMENTS, (3, 3, 4, 1), strict=True))


def bring(client: TestClient, content: bytes, name: str = "deck.apkg") -> str:
    answer = client.post("/settings/cards", files={"file": (name, content)})
    assert answer.status_code == 303, words(answer.text)
    assert answer.headers["location"] == "/settings/cards/import"
    return words(settled(client))


def settled(client: TestClient) -> str:
    """The page of the import once nothing is written any more."""
    shown = client.get("/settings/cards/import").text
    while "Look again" in shown:
        shown = client.get("/settings/cards/import").text
    return shown


def words(html: str) -> str:
    main = re.sub(r"(?s)^.*<main|</main>.*$", "", html)
    return " ".join(re.sub(r"<[^>]+>", " ", main).replace("\u00a0", " ").split())


def everything(session: Session, learner: int) -> dict[str, list[dict]]:
    """All rows of a learner without their numbers, to be compared."""
    session.rollback()  # to see what was written meanwhile
    tables = (CardStateRow, Review, AddedCard, OwnCard, Aside, StudyDayActivity)
    found = {}
    for table in tables:
        rows = session.exec(select(table).where(table.learner_id == learner))
        plain = [r.model_dump(exclude={"id"}) for r in rows]
        found[table.__tablename__] = sorted(plain, key=str)
    return found


def learners(session: Session) -> list[int]:
    session.rollback()  # to see what was written meanwhile
    return list(session.exec(select(Learner.id).order_by(Learner.id)))


def standings(session: Session, learner: int) -> dict[str, CardStateRow]:
    rows = session.exec(select(CardStateRow).where(CardStateRow.learner_id == learner))
    return {row.card: row for row in rows}


def test_a_strange_note_becomes_a_card_of_ones_own(rosa, session) -> None:
    content = package(Made("g1", ("What is <b>RDMA</b>?", "Memory access")))

    said = bring(rosa, content)

    own = session.exec(select(OwnCard)).one()
    assert (own.front, own.back) == ("What is <b>RDMA</b>?", "Memory access")
    assert own.deck == "Networks::RDMA"
    assert session.exec(select(AddedCard)).one().card == own.card
    assert session.exec(select(CardStateRow)).one().state == "new"
    assert "1 new card, 0 cards changed, 0 grades carried." in said


def test_its_grades_come_along_and_make_its_memory(rosa, session) -> None:
    said = bring(rosa, package(Made("g1", ("F", "B"), log=HISTORY)))

    log = session.exec(select(Review).order_by(Review.at)).all()
    assert [(r.at, r.rating, r.milliseconds) for r in log] == [
        (at, ease, 4000) for at, ease in zip(MOMENTS, (3, 3, 4, 1), strict=True)
    ]
    assert log[0].study_day == "2026-05-10"
    memory = session.exec(select(CardStateRow)).one()
    assert (memory.reviews, memory.lapses, memory.turns) == (4, 1, 4)
    assert "1 new card, 0 cards changed, 4 grades carried." in said


def test_grades_of_a_course_card_join_those_given_here(rosa, session) -> None:
    review(rosa, "w-c-bf16", 3)
    note = Made(make_note_guid("w-c-bf16"), ("other words", "in the file"), log=HISTORY)

    said = bring(rosa, package(note))

    log = session.exec(select(Review).order_by(Review.at)).all()
    assert [(r.card, r.rating) for r in log] == [("w-c-bf16", rating) for rating in (3, 3, 4, 1, 3)]
    assert session.exec(select(CardStateRow)).one().reviews == 5
    assert session.exec(select(OwnCard)).all() == []
    assert "0 new cards, 1 card changed, 4 grades carried." in said


def test_the_reverse_of_a_course_card_is_the_second_side(rosa, session) -> None:
    log = ((1, MOMENTS[0], 4, 0, 900),)
    bring(rosa, package(Made(make_note_guid("w-c-size"), ("F", "B"), cards=(0, 1), log=log)))

    memory = session.exec(select(CardStateRow)).one()
    assert (memory.card, memory.note, memory.topic) == (
        "w-c-size~r",
        "w-c-size",
        "weights",
    )


def test_the_same_file_twice_changes_nothing(rosa, session) -> None:
    notes = (
        Made("g1", ("F", "B"), log=HISTORY),
        Made(make_note_guid("k-c-name"), ("F", "B"), log=((0, MOMENTS[1] + 7, 2, 0, 1),)),
        Made("g2", ("New", "Card"), queue=-1),
    )
    bring(rosa, package(*notes))
    before = everything(session, learners(session)[0])

    said = bring(rosa, package(*notes))

    assert everything(session, learners(session)[0]) == before
    assert "0 new cards, 0 cards changed, 0 grades carried." in said
    assert "5 in your log already" in said


def test_a_later_file_brings_new_words_and_new_grades_only(rosa, session) -> None:
    bring(rosa, package(Made("g1", ("F", "B"), log=HISTORY[:2])))

    said = bring(rosa, package(Made("g1", ("F", "Better"), log=HISTORY)))

    assert session.exec(select(OwnCard)).one().back == "Better"
    assert session.exec(select(CardStateRow)).one().reviews == 4
    assert "0 new cards, 1 card changed, 2 grades carried." in said


def test_an_older_grade_that_came_is_never_the_last_one(rosa, session) -> None:
    review(rosa, "w-c-bf16", 3)
    bring(rosa, package(Made("g1", ("F", "B"), log=HISTORY)))

    undo = fields(rosa.get("/flashcards").text, "/flashcards/undo")
    rosa.post("/flashcards/undo", data=undo)

    voided = session.exec(select(Review).where(Review.voids.is_not(None))).one()
    assert session.get(Review, voided.voids).card == "w-c-bf16"
    assert 'action="/flashcards/undo"' not in rosa.get("/flashcards").text


def test_only_grades_are_carried_and_the_rest_is_counted(rosa, session) -> None:
    at = MOMENTS[0]
    log = (
        (0, at, 3, 0, 1),
        (0, at + 1, 3, 3, 1),
        (0, at + 2, 0, 4, 1),
        (0, at + 3, 2, 5, 1),
        (0, at + 4, 9, 1, 1),
        (0, NOON + DAY, 3, 1, 1),
        (0, 5, 3, 1, 1),
    )
    said = bring(rosa, package(Made("g1", ("F", "B"), log=log)))

    assert [r.at for r in session.exec(select(Review))] == [at]
    assert "1 practice outside of the schedule" in said
    assert "3 set or moved by hand, so no grade" in said
    assert "2 in the future, or before there was Anki" in said


def test_scripts_styles_and_media_stay_behind(rosa, session) -> None:
    front = 'See <img src="a.png" onerror="x()"><script>alert(1)</script>this'
    back = '[sound:a.mp3]<a href="javascript:x()">go</a><style>p{}</style> <u>on</u>'

    said = bring(rosa, package(Made("g1", (front, back))))

    own = session.exec(select(OwnCard)).one()
    assert own.front == "See this"
    assert own.back == "go <u>on</u>"
    assert "Pictures and sounds 2 media are not carried" in said


def test_a_card_without_words_is_left_out_and_counted(rosa, session) -> None:
    said = bring(
        rosa,
        package(Made("g1", ("<img src=a.png>", "B")), Made("g2", ("F", "x" * 20_001))),
    )

    assert session.exec(select(OwnCard)).all() == []
    assert "1 no words on one side without pictures and sounds" in said
    assert "1 longer than 20,000 characters on one side" in said


def test_a_side_is_measured_as_it_is_kept(rosa, session) -> None:
    said = bring(rosa, package(Made("g1", ("F", "& " * 9_000))))

    assert session.exec(select(OwnCard)).all() == []
    assert "1 longer than 20,000 characters on one side" in said


def test_each_gap_of_a_cloze_is_a_card(rosa, session) -> None:
    text = "{{c1::Paris::city}} lies in {{c2::France}}."
    bring(rosa, package(Made("g1", (text, "Europe"), kind=2, cards=(0, 1))))

    cards = sorted(session.exec(select(OwnCard)), key=lambda card: card.front)
    assert [(c.front, c.back) for c in cards] == [
        ("Paris lies in […].", "Paris lies in <strong>France</strong>.<br>Europe"),
        ("[city] lies in France.", "<strong>Paris</strong> lies in France.<br>Europe"),
    ]


def test_conditions_of_a_template_are_followed(rosa, session) -> None:
    shown = types(
        one=(
            "{{#Back}}{{Front}}{{/Back}}{{^Back}}nothing{{/Back}}{{hint:Back}}",
            "{{FrontSide}}<hr id='answer'>{{#Front}}({{text:Back}}){{/Front}}",
        )
    )
    bring(rosa, package(Made("g1", ("F", "<b>B</b>"), kind=3), models=shown))

    own = session.exec(select(OwnCard)).one()
    assert (own.front, own.back) == ("F", "(B)")


@each_of_sample(
    "template", ["{{Gone}}", "{{#Front}}", "{{/Front}}", "{{=<% %>=}}", "{{x:Gone}}"], 2
)
def test_what_a_template_says_beyond_that_falls_back(rosa, session, template) -> None:
    models = types(one=(template, template))
    bring(rosa, package(Made("g1", ("F", "B"), kind=3), models=models))

    own = session.exec(select(OwnCard)).one()
    assert (own.front, own.back) == ("F", "B")


def test_new_cards_of_ones_own_begin_a_few_on_each_day(rosa, session) -> None:
    bring(rosa, package(*(Made(f"g{n}", (f"F{n}", "B")) for n in range(40))))

    days = [m.due_day for m in session.exec(select(CardStateRow).order_by(CardStateRow.due_day))]
    assert [days.count(day) for day in sorted(set(days))] == [15, 15, 10]
    assert days[0] == "2026-06-09"


def test_a_suspended_card_stays_aside(rosa, session) -> None:
    bring(rosa, package(Made("g1", ("F", "B"), queue=-1, log=HISTORY)))

    assert session.exec(select(CardStateRow)).one().suspended
    assert session.exec(select(Aside)).one()


def test_what_came_stands_as_a_replay_would_have_it(rosa, session, course) -> None:
    review(rosa, "w-c-bf16", 2)
    notes = [
        Made("g1", ("F", "B"), log=HISTORY),
        Made("g2", ("F", "B")),
        Made("g3", ("F", "B"), queue=-1),
        Made(make_note_guid("w-c-bf16"), ("F", "B"), log=HISTORY[1:]),
        Made(make_note_guid(TERM_CARD), ("F", "B"), log=HISTORY[2:]),
    ]
    bring(rosa, package(*notes))
    learner = learners(session)[0]
    before = everything(session, learner)

    term = build_term_card(course.glossary["kv-cache"], find_topic_of_added_card(course, TERM_CARD))
    rebuild(session, learner, {**course.cards, TERM_CARD: term})
    rebuild_days(session, learner)
    session.commit()

    assert everything(session, learner) == before


def gradings(session: Session, learner: int, course: Course, seed: int) -> None:
    """Weeks of a learner who grades as chance has it, and takes one grade back."""
    chance = random.Random(seed)  # noqa: S311 - chance, not secrecy
    number = 0
    for card in course.cards.values():
        at = dt.datetime(2026, 4, 1, 8, tzinfo=dt.UTC)
        for _ in range(chance.randint(1, 9)):
            at += dt.timedelta(days=chance.choice((0, 0, 1, 3, 9)))
            at += dt.timedelta(minutes=chance.randint(1, 90), milliseconds=number)
            wanted = chance.choice((0.8, 0.9, 0.95))
            grade = ReviewEvent(chance.randint(1, 4), at, at.date(), wanted)
            number += 1
            token, took = f"{seed}.{number}", chance.randint(1, 9000)
            done = review_log.record_review(session, learner, card, grade, token, took)
    review_log.undo_log_row_if_last(session, learner, done.log_id, at, at.date())
    session.commit()


@each_of_sample("seed", range(4), 1)
def test_what_one_learner_takes_along_stands_the_same_with_another(
    rosa, milo, session, course, seed
) -> None:
    rosa.post("/concepts/weights/readings", data={})
    first = learners(session)[0]
    gradings(session, first, course, seed)
    taken = rosa.get("/settings/cards.apkg").content

    bring(milo, taken)
    bring(milo, taken)

    second = learners(session)[1]
    session.rollback()  # to see what was written meanwhile
    mine, theirs = standings(session, first), standings(session, second)
    assert {*theirs} == {*mine}
    for card, memory in mine.items():
        other = theirs[card]
        assert other.stability == pytest.approx(memory.stability, abs=1e-6)
        assert other.difficulty == pytest.approx(memory.difficulty, abs=1e-6)
        assert (other.state, other.due_day) == (memory.state, memory.due_day)
        assert (other.reviews, other.lapses) == (memory.reviews, memory.lapses)
    undone = 2  # the grade and its undoing
    count = len(session.exec(select(Review).where(Review.learner_id == first)).all())
    came = len(session.exec(select(Review).where(Review.learner_id == second)).all())
    assert came == count - undone


def test_added_cards_stand_the_same_with_another_learner(rosa, milo, session) -> None:
    bring(rosa, package(*(Made(f"g{n}", (f"F{n}", "B")) for n in range(20))))
    bring(rosa, package(Made("h", ("F", "B"), log=HISTORY)))

    bring(milo, rosa.get("/settings/cards.apkg").content)

    first, second = learners(session)
    mine, theirs = standings(session, first), standings(session, second)
    due = {card: row.due_day for card, row in mine.items()}
    assert {card: row.due_day for card, row in theirs.items()} == due
    decks = session.exec(select(OwnCard.deck).distinct()).all()
    assert decks == ["Networks::RDMA"]


def test_ones_own_package_brought_back_doubles_nothing(rosa, session, course) -> None:
    rosa.post("/concepts/weights/readings", data={})
    learner = learners(session)[0]
    gradings(session, learner, course, 7)
    rebuild_days(session, learner)
    session.commit()
    before = everything(session, learner)

    said = bring(rosa, rosa.get("/settings/cards.apkg").content)

    assert everything(session, learner) == before
    assert "0 new cards, 0 cards changed, 0 grades carried." in said


def test_a_deck_that_was_brought_can_be_removed_again(rosa, session) -> None:
    review(rosa, "w-c-bf16", 3)
    before = everything(session, learners(session)[0])
    bring(rosa, package(Made("g1", ("F", "B"), log=HISTORY), Made("g2", ("F", "B"))))

    asked = words(rosa.get("/settings/cards/removal?what=deck&deck=Networks::RDMA").text)
    assert "2 cards of “Networks::RDMA” go, with 4 grades." in asked
    answer = rosa.post("/settings/cards/removal", data={"what": "deck", "deck": "Networks::RDMA"})

    assert answer.headers["location"] == "/settings/cards?removed=yes"
    assert everything(session, learners(session)[0]) == before


def test_grades_that_came_to_course_cards_can_be_removed_again(rosa, session) -> None:
    note = Made(make_note_guid("k-c-name"), ("F", "B"), log=HISTORY)
    bring(rosa, package(note))

    rosa.post("/settings/cards/removal", data={"what": "grades"})

    assert session.exec(select(CardStateRow)).all() == []
    assert session.exec(select(Review)).all() == []
    bring(rosa, package(note))
    session.rollback()
    assert session.exec(select(CardStateRow)).one().reviews == 4


def test_their_removal_leaves_what_was_graded_here(rosa, session, clock) -> None:
    note = Made(make_note_guid("w-c-bf16"), ("F", "B"), log=HISTORY)
    review(rosa, "w-c-bf16", 3)
    bring(rosa, package(note))
    clock.tick(days=1)
    review(rosa, "w-c-bf16", 4)

    rosa.post("/settings/cards/removal", data={"what": "grades"})
    for _ in range(8):
        clock.tick(days=9)
        review(rosa, "w-c-bf16", 3)

    memory = session.exec(select(CardStateRow)).one()
    assert (memory.reviews, memory.turns) == (10, 14)


def test_a_deck_that_is_not_ones_own_is_not_there(rosa, milo) -> None:
    bring(rosa, package(Made("g1", ("F", "B"))))

    answer = milo.get("/settings/cards/removal?what=deck&deck=Networks::RDMA")

    assert answer.status_code == 404


def test_the_page_says_what_can_be_taken_and_what_was_brought(rosa) -> None:
    bring(rosa, package(Made("g1", ("F", "B"), log=HISTORY)))

    said = words(rosa.get("/settings/cards").text)

    assert "1 card that you have started or added" in said
    assert "Networks::RDMA 1 4 Remove" in said


@pytest.fixture
def engine(app) -> Engine:
    return app.state.engine


def test_a_failure_leaves_nothing_behind(rosa, session, engine) -> None:
    review(rosa, "w-c-bf16", 3)
    learner = learners(session)[0]
    before = everything(session, learner)
    session.rollback()  # who looks at a table keeps it from being changed
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER full BEFORE INSERT ON own_card"
            " BEGIN SELECT RAISE(ABORT, 'disk full'); END"
            if engine.dialect.name == "sqlite"
            else "ALTER TABLE own_card ADD CHECK (false) NOT VALID"
        )
    note = Made("g1", ("F", "B"), log=HISTORY)

    said = bring(rosa, package(note))

    assert "failed after 0 of 1 card. The fault is ours" in said
    assert everything(session, learner) == before


def protocol(**texts: str) -> bytes:
    """A protocol buffer of short strings, `f1` being the first field."""
    out = b""
    for name, text in texts.items():
        raw = text.encode()
        out += bytes([int(name[1:]) << 3 | 2, len(raw)]) + raw
    return out


def test_note_types_in_tables_of_their_own_are_read_too(rosa, session) -> None:
    front = protocol(f1="{{cloze:Text}}", f2="{{cloze:Text}} {{More}}").hex()
    script = f"""UPDATE col SET models = '', decks = '';
        CREATE TABLE decks (id integer, name text);
        INSERT INTO decks VALUES (7, 'Networks' || char(31) || 'RDMA');
        CREATE TABLE notetypes (id integer, name text, config blob);
        INSERT INTO notetypes VALUES (9, 'Gaps', x'0801');
        CREATE TABLE fields (ntid integer, ord integer, name text);
        INSERT INTO fields VALUES (9, 1, 'More'), (9, 0, 'Text');
        CREATE TABLE templates (ntid integer, ord integer, config blob);
        INSERT INTO templates VALUES (9, 0, x'{front}');"""  # noqa: S608
    note = Made("g", ("{{c1::NCCL}} is a library", "of collectives"), kind=9)

    bring(rosa, package(note, script=script))

    own = session.exec(select(OwnCard)).one()
    assert own.deck == "Networks::RDMA"
    assert own.front == "[…] is a library"
    assert own.back == "<strong>NCCL</strong> is a library of collectives"


def test_a_card_that_came_is_on_the_desk_at_once(rosa) -> None:
    review(rosa, "w-c-bf16", 4)
    rosa.get("/flashcards")

    bring(rosa, package(Made("g", (r"What is \(n\)?", "A number"), log=HISTORY[:2])))

    assert 'What is <math display="inline">' in rosa.get("/flashcards").text


def test_more_cards_of_ones_own_than_can_be_kept_are_refused(rosa, session, monkeypatch) -> None:
    one = dataclasses.replace(OWN_CARDS, max_rows=1)
    monkeypatch.setattr("app.import_export.card_import_store.OWN_CARDS", one)
    rosa.post("/concepts/weights/readings", data={})
    learner = LearnerProfile("", id=learners(session)[0])
    two = [
        ImportedCard(f"own:{n}", f"own:{n}", "", str(n), own_text=OwnCardText("", "F", "B"))
        for n in (1, 2)
    ]

    with pytest.raises(UnusableFileError, match="more than 1 cards of your own"):
        raise_if_too_many_own_cards(session, learner.id, two)

    assert session.exec(select(OwnCard)).all() == []


def test_a_card_that_was_written_here_comes_back_from_anki_as_it_is(rosa, session) -> None:
    typed = {"front": "**What** is $x^2$?", "back": "A square", "token": "t"}
    assert rosa.post("/flashcards/own", data=typed).status_code == 303
    kept = session.exec(select(OwnCard)).one()

    # Anki cuts the ends of every field.
    assert (kept.front, kept.back) == (kept.front.strip(), kept.back.strip())
    said = bring(rosa, rosa.get("/settings/cards.apkg").content)
    assert "0 new cards, 0 cards changed, 0 grades carried." in said
