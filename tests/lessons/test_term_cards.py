"""A term of the glossary becomes a card."""

from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.content.course import Course
from app.database.tables import AddedCard, CardStateRow


def a_term(course: Course) -> str:
    return next(iter(course.glossary))


def choose(client: TestClient, anchor: str, wanted: str):
    return client.post(f"/flashcards/term:{anchor}/addition", data={"wanted": wanted})


def test_a_term_made_a_card_is_asked_today(
    client: TestClient, course: Course, session: Session
) -> None:
    anchor = a_term(course)

    answer = choose(client, anchor, "yes")

    assert answer.status_code == 303
    assert answer.headers["location"] == f"/glossary?cards=1#{anchor}"
    row = session.exec(select(CardStateRow)).one()
    assert (row.card, row.state, row.due_day) == (f"term:{anchor}", "new", "2026-06-09")
    html = client.get(f"/flashcards?card=term:{anchor}&show=1").text
    assert course.glossary[anchor].name in html
    assert course.glossary[anchor].meaning.html in html
    assert f'href="/glossary#{anchor}"' in html


def test_the_glossary_says_which_terms_are_cards(client: TestClient, course: Course) -> None:
    assert "In your cards" not in client.get("/glossary?cards=1").text
    choose(client, a_term(course), "yes")

    html = client.get("/glossary?cards=1").text

    assert html.count("In your cards") == 1
    assert html.count("Make it a card") == len(course.glossary) - 1


def test_a_term_removed_is_asked_no_more_and_can_be_added_again(
    client: TestClient, course: Course, session: Session
) -> None:
    anchor = a_term(course)
    choose(client, anchor, "yes")

    choose(client, anchor, "no")

    assert "In your cards" not in client.get("/glossary?cards=1").text
    assert session.exec(select(CardStateRow.suspended)).one()
    choose(client, anchor, "yes")
    session.rollback()
    assert not session.exec(select(CardStateRow.suspended)).one()


def test_a_second_click_adds_nothing(client: TestClient, course: Course, session: Session) -> None:
    for _ in range(2):
        choose(client, a_term(course), "yes")

    assert len(session.exec(select(AddedCard)).all()) == 1
    assert len(session.exec(select(CardStateRow)).all()) == 1


def test_with_htmx_only_the_button_changes(htmx: TestClient, course: Course) -> None:
    answer = choose(htmx, a_term(course), "yes")

    assert answer.status_code == 200
    assert answer.text.lstrip().startswith("<form")
    assert "In your cards" in answer.text
    assert "Make it a card" in choose(htmx, a_term(course), "no").text


def test_a_term_that_is_not_in_the_glossary_is_not_found(client: TestClient) -> None:
    assert choose(client, "no-such-term", "yes").status_code == 404


def test_the_cards_of_another_are_not_shown(
    rosa: TestClient, milo: TestClient, course: Course
) -> None:
    anchor = a_term(course)
    choose(rosa, anchor, "yes")

    assert "In your cards" not in milo.get("/glossary").text
    assert milo.get(f"/flashcards?card=term:{anchor}").status_code == 404


def test_the_glossary_of_a_stranger_is_kept_until_they_add_a_term(
    client: TestClient, course: Course
) -> None:
    first = client.get("/glossary?cards=1")
    tag = {"if-none-match": first.headers["etag"]}
    assert client.get("/glossary?cards=1", headers=tag).status_code == 304

    choose(client, a_term(course), "yes")

    assert client.get("/glossary?cards=1", headers=tag).status_code == 200


def test_a_page_leads_from_its_terms_to_their_cards(client: TestClient, course: Course) -> None:
    slug, anchor = next((t.slug, t.terms[0]) for t in course.topics.values() if t.terms)

    html = client.get(f"/concepts/{slug}").text

    assert f'action="/flashcards/term:{anchor}/addition"' in html
