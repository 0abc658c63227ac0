"""Cards of one's own: typed in Markdown, asked, changed."""

import dataclasses
import json
import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.database.tables import CardStateRow, OwnCard, Review
from app.flashcards import own_cards_page as writing
from app.flashcards.own_cards_page import OwnCardDraft, render_card, restore_typed_draft
from app.questions.question_type import CardFacesHtml
from app.spaced_repetition import added_card_ids_and_faces as added_cards
from tests.conftest import Clock
from tests.flashcards.conftest import Hands, count_left, fields
from tests.flashcards.course import EditableLiveCourse
from tests.turns import count_open

FORM = "/flashcards/own"


def write(client: TestClient, front: str, back: str = ""):
    return client.post(FORM, data={"front": front, "back": back, "token": "t"})


def test_markdown_becomes_clean_html():
    faces = render_card(OwnCardDraft("**How** many?", "- two\n- `bytes` <script>x</script>")).faces

    assert faces.front == "<p><strong>How</strong> many?</p>"
    assert "<li>two</li>" in faces.back
    assert "<script" not in faces.back
    assert "<code>bytes</code>" in faces.back


def test_a_gap_is_open_in_front_and_filled_behind():
    faces = render_card(OwnCardDraft("BF16 has {{two}} bytes, FP32 {{c2::four::a number}}.")).faces

    assert faces.front == "<p>BF16 has <b>[…]</b> bytes, FP32 <b>[a number]</b>.</p>"
    assert faces.back == "<p>BF16 has <b>two</b> bytes, FP32 <b>four</b>.</p>"


def test_what_was_typed_comes_back_while_the_card_is_as_it_was_made():
    typed = OwnCardDraft("a {{b}}", "c")
    content = render_card(typed).content_to_store
    source, faces = content.typed_source_json, content.faces

    assert restore_typed_draft(source, faces) == typed
    assert restore_typed_draft(source, render_card(OwnCardDraft("other")).faces) is None
    assert restore_typed_draft("", faces) is None
    # So they were kept before: with a line end, which Anki cuts off.
    untrimmed = CardFacesHtml(f"{faces.front}\n", f"{faces.back}\n")
    assert restore_typed_draft(source, untrimmed) == typed


WIDE = "\n".join(["|a" * 130, "|-" * 130, *["|"] * 900])
"""3,320 characters that markdown-it makes 65,650 cells of."""


def table(rows: int) -> str:
    """A table of two columns with a head."""
    return "|a|b|\n|-|-|\n" + "|c\n" * (rows - 1)


def test_a_table_may_have_500_cells_on_each_side():
    assert render_card(OwnCardDraft(table(250), table(250))).problems == []

    over = render_card(OwnCardDraft(table(251), "x")).problems

    assert [problem["field"] for problem in over] == ["front"]
    assert "502 table cells" in over[0]["message"]
    assert "at most 500" in over[0]["message"]


@pytest.mark.parametrize("before", ["", "> ", "- ", "1. > "])
def test_all_tables_of_a_side_count_wherever_they_stand(before: str):
    within = before + table(130).replace("\n", "\n" + " " * len(before))
    if ">" in before:
        lines = table(130).splitlines()
        rest = " " * before.index(">") + "> "
        within = before + f"\n{rest}".join(lines)

    fits = render_card(OwnCardDraft(within, "x"))
    over = render_card(OwnCardDraft("x", f"{within}\n\n{table(130)}"))

    assert fits.problems == []
    assert fits.faces.front.count("</td>") == 258
    assert "520 table cells" in over.problems[0]["message"]


def test_a_table_ends_where_other_markdown_begins():
    faces = render_card(OwnCardDraft(table(250) + "> quote\n\nand more", "x")).faces

    assert faces.front.count("</td>") == 498
    assert "<blockquote>" in faces.front


def test_the_cells_that_short_rows_leave_out_are_counted_and_not_made():
    env = {"cells": 0}

    tokens = writing._markdown.parse(WIDE, env)

    assert env["cells"] == 130 * 901
    assert len(tokens) < 5_000


def test_a_side_may_have_20_000_characters_of_html():
    said = render_card(OwnCardDraft("x", "&" * 4_000)).problems

    assert [problem["field"] for problem in said] == ["back"]
    assert "20,007 characters" in said[0]["message"]
    assert "at most 20,000" in said[0]["message"]


def test_a_card_that_is_too_large_is_refused_with_what_was_typed(
    rosa: TestClient, session: Session
):
    write(rosa, "a", "b")
    card = session.exec(select(OwnCard)).one().card

    for address in (FORM, f"{FORM}/{card}"):
        answer = rosa.post(address, data={"front": "a {{b}}", "back": WIDE})
        assert answer.status_code == 422
        assert "117,130 table cells" in answer.text
        assert "a {{b}}</textarea>" in answer.text
        assert f"{WIDE}</textarea>" in answer.text
    session.rollback()
    assert session.exec(select(OwnCard)).one().back == "<p>b</p>"


def test_a_card_is_rendered_before_others_have_to_wait(
    app: FastAPI, rosa: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch
):
    write(rosa, "a", "b")
    card = session.exec(select(OwnCard)).one().card
    open_while_rendering = []
    turns = count_open(app)

    def render(typed: OwnCardDraft):
        open_while_rendering.append(turns.open)
        return render_card(typed)

    monkeypatch.setattr("app.flashcards.own_cards_page.render_card", render)
    rosa.post(FORM, data={"front": "a", "back": "b", "token": "u"})
    rosa.post(f"{FORM}/{card}", data={"front": "c", "back": "d"})

    assert open_while_rendering == [0, 0]
    assert turns.begun == 2


def test_a_card_that_was_kept_before_the_limit_stays_usable(
    rosa: TestClient, session: Session, monkeypatch: pytest.MonkeyPatch
):
    """It is shown up to the limit, and can be mended from what was typed."""
    write(rosa, "a", "b")
    row = session.exec(select(OwnCard)).one()
    long = "<table>" + "<tr><td>word</td></tr>" * 30_000 + "</table>"
    row.front, row.back, row.source = long, long, json.dumps([WIDE, WIDE])
    session.commit()
    cleaned = []
    clean_html = added_cards.sanitize_card_html

    def clean(html: str):
        cleaned.append(len(html))
        return clean_html(html)

    monkeypatch.setattr("app.spaced_repetition.added_card_ids_and_faces.sanitize_card_html", clean)
    shown = rosa.get(f"/flashcards?card={row.card}&show=1").text
    form = rosa.get(f"{FORM}/{row.card}").text

    assert 20_000 < len(shown) < 80_000
    assert "This side has more than 20,000 characters." in shown
    assert len(rosa.get("/flashcards/deck").text) < 40_000
    assert f"{WIDE}</textarea>" in form
    assert max(cleaned, default=0) < 100_000


def test_a_new_card_is_asked(rosa: TestClient, session: Session):
    sent = write(rosa, "What is a *BMC*?", "A small computer on the board.")
    assert sent.headers["location"] == f"{FORM}?kept=yes"

    card = session.exec(select(OwnCard)).one().card
    assert session.exec(select(CardStateRow)).one().card == card
    assert "What is a <em>BMC</em>?" in rosa.get(f"/flashcards?card={card}").text
    assert re.search(r"What is a BMC ?\?", rosa.get("/flashcards/deck").text)


def test_after_a_new_card_the_next_one_is_begun_in_its_first_field(
    rosa: TestClient, session: Session
):
    def front_tag(address: str) -> str:
        (tag,) = re.findall(r'<textarea[^>]*id="front"[^>]*>', rosa.get(address).text)
        return str(tag)

    assert "autofocus" in front_tag(FORM)
    assert "aria-describedby" not in front_tag(FORM)
    saved = write(rosa, "a", "b").headers["location"]
    assert 'role="status" id="front-help"' in rosa.get(saved).text
    assert 'aria-describedby="front-help" autofocus' in front_tag(saved)

    changed = f"{FORM}/{session.exec(select(OwnCard)).one().card}?kept=yes"
    assert "autofocus" not in front_tag(changed)
    assert "autofocus" not in write(rosa, "", "b").text


def test_a_second_click_on_save_makes_no_second_card(rosa: TestClient, session: Session):
    write(rosa, "a", "b")
    write(rosa, "a", "b")

    assert len(session.exec(select(OwnCard)).all()) == 1


def test_a_card_is_changed_and_what_is_remembered_stays(rosa: TestClient, session: Session):
    write(rosa, "Front {{gap}}", "Back")
    card = session.exec(select(OwnCard)).one().card
    page = rosa.get(f"{FORM}/{card}").text
    assert "Front {{gap}}</textarea>" in page

    rosa.post(f"{FORM}/{card}", data={"front": "Other", "back": "Back"})

    session.rollback()
    assert session.exec(select(OwnCard)).one().front == "<p>Other</p>"
    assert len(session.exec(select(CardStateRow)).all()) == 1


def test_a_card_needs_two_sides_or_a_gap(rosa: TestClient, session: Session):
    for front, back in (("", "x"), ("x", ""), ("x" * 4001, "y")):
        answer = write(rosa, front, back)
        assert answer.status_code == 422
        assert re.search(r'aria-invalid="true"', answer.text)
    assert session.exec(select(OwnCard)).all() == []


def test_nobody_changes_the_card_of_another(rosa: TestClient, milo: TestClient, session: Session):
    write(rosa, "a", "b")
    card = session.exec(select(OwnCard)).one().card

    assert milo.get(f"{FORM}/{card}").status_code == 404
    changed = milo.post(f"{FORM}/{card}", data={"front": "x", "back": "y"})
    assert changed.status_code == 404


def edit(client: TestClient, card: str, front: str = "My words?", back: str = "Yes."):
    return client.post(f"{FORM}/{card}", data={"front": front, "back": back})


def test_an_edited_course_card_keeps_its_schedule_and_its_log(
    rosa: TestClient, session: Session, clock: Clock
):
    hands = Hands(rosa)
    hands.grade(4)
    clock.tick(days=20)
    memory, log = select(CardStateRow.__table__), select(Review.__table__)
    before = session.execute(memory).all(), session.execute(log).all()
    desk = rosa.get("/flashcards").text
    link = re.search(r'href="([^"]+)" data-key="e"', desk)
    assert link
    assert "Front of weights-1</textarea>" in rosa.get(link[1]).text

    for _ in range(2):  # a doubled save
        assert edit(rosa, "weights-1").status_code == 303

    session.rollback()
    assert (session.execute(memory).all(), session.execute(log).all()) == before
    assert [card.card for card in session.exec(select(OwnCard))] == ["weights-1"]
    page = rosa.get("/flashcards").text
    assert "My words?" in page
    assert count_left(page) == count_left(desk)
    body = fields(rosa.get("/flashcards?show=1").text, "/flashcards/weights-1/reviews")
    rosa.post("/flashcards/weights-1/reviews", data={**body, "rating": 3})
    session.rollback()
    assert session.execute(memory).one().reviews == 2


def test_the_text_of_an_edited_course_card_is_seen_everywhere(rosa: TestClient, milo: TestClient):
    edit(rosa, "weights-1")

    for page in ("?card=weights-1", "/deck?topic=weights", "/deck?q=words", "/offline"):
        html = rosa.get(f"/flashcards{page}").text
        assert "My words?" in html
        assert "Front of weights-1<" not in html
    for words in ("My+words", "weights-1"):  # found by both texts, once
        found = rosa.get(f"/flashcards/deck?q={words}").text.partition("Cards by topic")[0]
        assert found.count('card=weights-1"') == 1
    by_own_words, by_course_words = (rosa.get(f"/search?q={q}").text for q in ("words", "front"))
    assert by_own_words.count('card=weights-1"') == 1
    assert 'card=weights-1"' not in by_course_words
    assert 'card=weights-2"' in by_course_words
    assert 'card=weights-1"' in milo.get("/search?q=front").text
    assert "Front of weights-1" in milo.get("/flashcards?card=weights-1").text
    rosa.post("/flashcards/weights-1/suspension", data={"aside": "yes"})
    assert "My words?" in rosa.get("/flashcards/deck").text.partition('id="aside"')[2]


def test_the_course_text_comes_back_and_what_was_learned_stays(rosa: TestClient, session: Session):
    Hands(rosa).grade(4)
    before = session.execute(select(CardStateRow.__table__)).all()
    edit(rosa, "weights-1")
    assert "/original" in rosa.get(f"{FORM}/weights-1").text

    assert rosa.post(f"{FORM}/weights-1/original").status_code == 303

    session.rollback()
    assert "Front of weights-1" in rosa.get("/flashcards?card=weights-1").text
    assert session.exec(select(OwnCard)).all() == []
    assert session.execute(select(CardStateRow.__table__)).all() == before
    assert "/original" not in rosa.get(f"{FORM}/weights-1").text


def test_an_edited_card_that_left_the_course_is_left_out(
    rosa: TestClient, live_course: EditableLiveCourse
):
    edit(rosa, "weights-1")
    live_course.remove("weights-1")

    assert "weights-1" not in rosa.get("/flashcards/deck?q=words").text
    assert rosa.get("/flashcards").status_code == 200


def test_a_saved_edit_leads_back_to_the_card(rosa: TestClient):
    saved = rosa.get(edit(rosa, "weights-1").headers["location"]).text

    assert "<h1>Edit card</h1>" in saved
    assert "Saved." in saved
    assert 'href="/flashcards?card=weights-1"' in saved


def test_a_card_that_is_not_there_is_not_edited(rosa: TestClient, session: Session):
    assert rosa.get(f"{FORM}/nope").status_code == 404
    assert edit(rosa, "nope").status_code == 404
    assert rosa.post(f"{FORM}/nope/original").status_code == 404
    assert session.exec(select(OwnCard)).all() == []


def test_an_own_card_is_edited_from_where_it_is_reviewed(rosa: TestClient, session: Session):
    write(rosa, "front", "back")
    card = session.exec(select(OwnCard.card)).one()

    assert (
        f'href="/flashcards/own/{card}" data-key="e"' in rosa.get(f"/flashcards?card={card}").text
    )


def test_only_of_a_card_with_formatting_it_is_said_to_be_lost(
    rosa: TestClient, live_course: EditableLiveCourse
):
    card = live_course.held.cards["weights-1"]
    for html, is_lost in (("<p>Two bytes &lt; 3</p>", False), ("<p>Two <b>bytes</b></p>", True)):
        front = dataclasses.replace(card.front, html=html)
        cards = {**live_course.held.cards, card.id: dataclasses.replace(card, front=front)}
        live_course.held = dataclasses.replace(live_course.held, cards=cards)
        form = rosa.get(f"{FORM}/{card.id}").text
        assert ("formatting is lost when you save" in form) == is_lost
