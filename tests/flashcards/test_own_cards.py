"""Cards of one's own: typed in Markdown, asked, changed."""

import re

from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.db.tables import Memory, OwnCard
from app.flashcards.writing import Typed, faces_of, typed_of
from app.questions.faces import Faces

FORM = "/flashcards/own"


def write(client: TestClient, front: str, back: str = ""):
    return client.post(FORM, data={"front": front, "back": back, "token": "t"})


def test_markdown_becomes_clean_html():
    faces = faces_of(Typed("**How** many?", "- two\n- `bytes` <script>x</script>"))

    assert faces.front == "<p><strong>How</strong> many?</p>"
    assert "<li>two</li>" in faces.back
    assert "<script" not in faces.back
    assert "<code>bytes</code>" in faces.back


def test_a_gap_is_open_in_front_and_filled_behind():
    faces = faces_of(Typed("BF16 has {{two}} bytes, FP32 {{c2::four::a number}}."))

    assert faces.front == "<p>BF16 has <b>[…]</b> bytes, FP32 <b>[a number]</b>.</p>"
    assert faces.back == "<p>BF16 has <b>two</b> bytes, FP32 <b>four</b>.</p>"


def test_what_was_typed_comes_back_while_the_card_is_as_it_was_made():
    typed = Typed("a {{b}}", "c")
    faces = faces_of(typed)

    assert typed_of(typed.kept, faces) == typed
    assert typed_of(typed.kept, faces_of(Typed("other"))) is None
    assert typed_of("", faces) is None
    # So they were kept before: with a line end, which Anki cuts off.
    assert typed_of(typed.kept, Faces(f"{faces.front}\n", f"{faces.back}\n")) == typed


def test_a_new_card_is_asked(rosa: TestClient, session: Session):
    sent = write(rosa, "What is a *BMC*?", "A small computer on the board.")
    assert sent.headers["location"] == f"{FORM}?kept=yes"

    card = session.exec(select(OwnCard)).one().card
    assert session.exec(select(Memory)).one().card == card
    assert "What is a <em>BMC</em>?" in rosa.get(f"/flashcards?card={card}").text
    assert re.search(r"What is a BMC ?\?", rosa.get("/flashcards/deck").text)


def test_a_second_click_on_save_makes_no_second_card(
    rosa: TestClient, session: Session
):
    write(rosa, "a", "b")
    write(rosa, "a", "b")

    assert len(session.exec(select(OwnCard)).all()) == 1


def test_a_card_is_changed_and_what_is_remembered_stays(
    rosa: TestClient, session: Session
):
    write(rosa, "Front {{gap}}", "Back")
    card = session.exec(select(OwnCard)).one().card
    page = rosa.get(f"{FORM}/{card}").text
    assert "Front {{gap}}</textarea>" in page

    rosa.post(f"{FORM}/{card}", data={"front": "Other", "back": "Back"})

    session.rollback()
    assert session.exec(select(OwnCard)).one().front == "<p>Other</p>"
    assert len(session.exec(select(Memory)).all()) == 1


def test_a_card_needs_two_sides_or_a_gap(rosa: TestClient, session: Session):
    for front, back in (("", "x"), ("x", ""), ("x" * 4001, "y")):
        answer = write(rosa, front, back)
        assert answer.status_code == 422
        assert re.search(r'aria-invalid="true"', answer.text)
    assert session.exec(select(OwnCard)).all() == []


def test_nobody_changes_the_card_of_another(
    rosa: TestClient, milo: TestClient, session: Session
):
    write(rosa, "a", "b")
    card = session.exec(select(OwnCard)).one().card

    assert milo.get(f"{FORM}/{card}").status_code == 404
    changed = milo.post(f"{FORM}/{card}", data={"front": "x", "back": "y"})
    assert changed.status_code == 404
