"""A question that was missed comes back as a card, and may be left out."""

import re

import pytest
from sqlmodel import Session, select

from app.database.tables import AddedCard, CardStateRow
from tests.conftest import Clock
from tests.quiz.course import EditableLiveCourse
from tests.quiz.test_attempt import answer

SINGLE = "/quiz/kv-cache/single"
COMES_BACK = "Added to your cards."


def cards(session: Session) -> list[CardStateRow]:
    session.rollback()
    return list(session.exec(select(CardStateRow)).all())


def miss(client, form, address: str = SINGLE, **fields: str | list[str]) -> str:
    """Answer wrong; returns the page of the verdict."""
    answered = answer(client, form, address, **(fields or {"answer": "bcdf"}))
    return client.get(answered.headers["location"]).text


def choose(client, card: str, wanted: str, **fields: str):
    return client.post(f"/flashcards/{card}/addition", data={"wanted": wanted} | fields)


def test_a_missed_question_is_due_tomorrow(client, form, session) -> None:
    html = miss(client, form)

    assert COMES_BACK in html
    assert "Remove" in html
    (row,) = cards(session)
    assert (row.card, row.topic, row.state) == ("q:single", "kv-cache", "new")
    assert (row.due_day, row.turns) == ("2026-06-10", 0)


def test_a_right_answer_brings_nothing_back(client, form, session) -> None:
    answered = answer(client, form, SINGLE, answer="ghjk")

    assert cards(session) == []
    assert "comes back as a card" not in client.get(answered.headers["location"]).text


def test_a_partly_right_answer_brings_its_question_back(client, form, session) -> None:
    miss(client, form, "/quiz/kv-cache/cloze", **{"blank.bcdf": "RoCE"})

    assert [row.card for row in cards(session)] == ["q:cloze"]


def test_a_partly_right_choice_says_what_was_chosen(
    client, form, live_course: EditableLiveCourse
) -> None:
    live_course.edit("multiple", partial="each")
    html = miss(client, form, "/quiz/kv-cache/multiple", answer=["bcdf", "ghjk", "lmnp"])
    told = " ".join(html.replace("\xa0", " ").split())

    assert "You chose 2 of the 2 right options and 1 wrong one." in told
    assert (
        "75% right: your decision is right for 3 of the 4 options. It is on your missed list."
        in told
    )
    assert "of the points" not in told


@pytest.mark.parametrize(
    ("rule", "said"), [("", "only the whole answer counts"), ("net", "1 right less 1 wrong, of 2")]
)
def test_a_part_that_earns_nothing_is_told_with_the_rule(
    client, form, live_course: EditableLiveCourse, rule: str, said: str
) -> None:
    live_course.edit("multiple", partial=rule)
    html = miss(client, form, "/quiz/kv-cache/multiple", answer=["bcdf", "lmnp"])
    told = " ".join(html.replace("\xa0", " ").split())

    assert "Not right." in told
    assert f"You chose 1 of the 2 right options and 1 wrong one. No points: {said}." in told


def test_from_a_card_answered_as_a_question_one_goes_back_to_the_same_cards(client, form) -> None:
    told = miss(client, form, f"{SINGLE}?back=/flashcards%3Ftask%3Dreview", answer="ghjk")

    assert told.count('href="/flashcards?task=review"') == 2  # above, and as the next step
    assert "All questions of this topic" not in told


def test_a_question_answered_rightly_after_a_miss_still_comes_back(client, form, session) -> None:
    miss(client, form)

    html = miss(client, form, answer="ghjk")

    assert COMES_BACK in html
    assert [row.due_day for row in cards(session)] == ["2026-06-10"]


def test_an_answer_sent_twice_brings_its_question_back_once(client, form, session) -> None:
    sent = form(client.get(SINGLE).text)
    for _ in range(2):
        client.post(sent.action, data={**sent.values, "answer": "bcdf"})

    assert len(cards(session)) == 1
    assert len(session.exec(select(AddedCard)).all()) == 1


def test_a_question_left_out_stays_out_when_it_is_missed_again(
    client, form, session, clock: Clock
) -> None:
    miss(client, form)

    answered = choose(client, "q:single", "no", back=SINGLE)
    assert answered.status_code == 303
    assert answered.headers["location"] == SINGLE
    clock.tick(days=1)
    html = miss(client, form)

    assert "Not in your cards." in html
    assert "Add it" in html
    assert [row.suspended for row in cards(session)] == [True]


def test_a_question_left_out_can_be_brought_back(client, form, session) -> None:
    miss(client, form)
    choose(client, "q:single", "no")

    choose(client, "q:single", "yes")

    assert [row.suspended for row in cards(session)] == [False]


def test_with_htmx_the_line_alone_changes(htmx, form) -> None:
    answered = answer(htmx, form, SINGLE, answer="bcdf").text
    assert COMES_BACK in answered

    left = choose(htmx, "q:single", "no", back=SINGLE)
    back = choose(htmx, "q:single", "yes", back=SINGLE)

    assert left.status_code == back.status_code == 200
    assert left.text.lstrip().startswith("<form")
    assert "Not in your cards" in left.text
    assert f'name="back" value="{SINGLE}"' in left.text
    assert COMES_BACK in back.text


def test_a_question_of_another_cannot_be_left_out(rosa, milo, form) -> None:
    miss(rosa, form)

    assert choose(milo, "q:single", "no").status_code == 404
    assert choose(milo, "q:single", "yes").status_code == 404


@pytest.mark.parametrize("back", ["https://x.org/", "//x.org", "/\\x.org"])
def test_the_way_back_stays_on_this_site(client, form, back) -> None:
    miss(client, form)

    assert choose(client, "q:single", "no", back=back).status_code == 422


def test_who_does_not_want_missed_questions_has_none(client, form, session) -> None:
    client.post("/settings", data={"missed": "no", "zone": "UTC"})

    html = miss(client, form)

    assert cards(session) == []
    assert "in your cards" not in html


def test_a_design_exercise_does_not_come_back(client, form, session) -> None:
    sent = form(client.get("/quiz/kv-cache/design").text)
    plan = {f"choose.{name}": "1" for name in ("tensor_parallel",)}
    gpu = {"choose.gpu": sent.options["choose.gpu"][0]}
    client.post(sent.action, data={**sent.values, **plan, **gpu})

    assert cards(session) == []


def test_missed_again_it_comes_back_sooner_and_with_the_numbers_of_now(
    client, form, session, clock: Clock
) -> None:
    address = "/quiz/kv-cache/computed"
    miss(client, form, address, answer="1")
    first = session.exec(select(AddedCard.seed)).one()
    clock.tick(days=1)
    page = client.get("/flashcards?card=q:computed&show=1").text
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token
    client.post("/flashcards/q:computed/reviews", data={"rating": 4, "token": token[1]})
    (row,) = cards(session)
    assert row.due_day > "2026-06-12"

    html = miss(client, form, address, answer="1")

    assert COMES_BACK in html
    (row,) = cards(session)
    assert (row.due_day, row.state, row.reviews) == ("2026-06-11", "review", 1)
    assert session.exec(select(AddedCard.seed)).one() != first


def test_the_line_says_when_a_card_comes_back_later(client, form, clock: Clock) -> None:
    miss(client, form)
    clock.tick(days=1)
    page = client.get("/flashcards?card=q:single&show=1").text
    token = re.search(r'name="token" value="([^"]+)"', page)
    assert token
    client.post("/flashcards/q:single/reviews", data={"rating": 4, "token": token[1]})

    html = miss(client, form, answer="ghjk").replace("\xa0", " ")

    assert re.search(r"Added to your cards, due June \d+, 2026\.", html)


def test_an_edited_question_can_still_be_left_out(
    client, form, live_course: EditableLiveCourse
) -> None:
    answered = answer(client, form, SINGLE, answer="bcdf")
    address = answered.headers["location"]
    assert "Remove" in client.get(address).text

    live_course.edit("single", revision="r2")

    assert "Remove" in client.get(address).text
