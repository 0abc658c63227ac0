"""GET /search: the page, and the results alone."""

import re

from fastapi.testclient import TestClient
from sqlmodel import Session, select

from app.content.course import Course
from app.database.tables import OwnCard


def words(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page)).replace("\xa0", " ")


def test_every_page_leads_to_the_search_by_one_key(client: TestClient):
    page = client.get("/course").text

    assert 'href="/search" data-key="/"' in page


def test_it_works_without_javascript(client: TestClient):
    page = client.get("/search", params={"q": "cache"}).text

    assert 'action="/search"' in page
    assert 'value="cache"' in page
    assert "<mark>cache</mark>" in page.casefold()
    assert 'href="/glossary#kv-cache"' in page


def test_the_results_alone_hold_no_frame(client: TestClient):
    part = client.get("/search/results", params={"q": "cache"}).text

    assert "<html" not in part
    assert "data-result" in part


def test_a_mended_word_is_said_and_can_be_looked_for(client: TestClient):
    page = client.get("/search", params={"q": "paramter"}).text

    assert "Nothing was found for “paramter”" in page
    assert 'href="/search?q=parameter"' in page


def test_what_is_left_out_of_a_long_list_is_one_link_away(client: TestClient):
    page = client.get("/search", params={"q": "a"}).text
    said = re.search(r"(\d+) of (\d+) results, the best first", words(page))
    assert said
    assert page.count("data-result") == int(said[1]) < int(said[2])

    (link,) = re.findall(r'href="(/search[^"]*whole=yes)"', page)
    whole = client.get(link.replace("&amp;", "&")).text

    assert whole.count("data-result") == int(said[2])
    assert "Show all" not in whole


def test_nothing_found_says_so_and_where_else_to_look(client: TestClient):
    page = client.get("/search", params={"q": "zzzzzzzz"}).text

    assert "Nothing was found for “zzzzzzzz”, or for words spelled like it." in page
    assert 'href="/glossary"' in page


def test_what_is_typed_is_only_text(client: TestClient):
    page = client.get("/search", params={"q": '"><script>alert(1)</script>'}).text

    assert "<script>alert" not in page


def test_looking_for_something_writes_nothing(client: TestClient, app):
    client.get("/search", params={"q": "cache"})

    with app.state.engine.connect() as connection:
        count = connection.exec_driver_sql("SELECT count(*) FROM learner").scalar()
    assert count == 0


def test_words_too_long_for_a_search_are_refused_politely(client: TestClient):
    assert client.get("/search", params={"q": "x" * 500}).status_code == 422


def own_writing(client: TestClient, query: str, address: str = "/search") -> str:
    """What is shown as the learner's own, without tags; empty without any."""
    page = client.get(address, params={"q": query}).text
    section = page.partition("<h2>Your cards and notes</h2>")[2].partition("</section>")[0]
    return " ".join(words(section).split())


def test_own_cards_and_notes_are_found_by_who_wrote_them_only(
    rosa: TestClient, milo: TestClient, course: Course
):
    topic = next(t for t in course.topics.values() if any(s.anchor for s in t.sections))
    section = next(s for s in topic.sections if s.anchor)
    note = {"section": section.anchor, "words": "The Zebra <b>rule</b>:\n140 GB."}
    rosa.post(f"/concepts/{topic.slug}/notes", data=note)
    card = {"front": "What does a **zebra** weigh?", "back": "About quagga kilograms"}
    rosa.post("/flashcards/own", data={**card, "token": "t"})
    milo.post("/flashcards/own", data={"front": "Another zebra", "back": "b", "token": "t"})

    for address in ("/search", "/search/results"):
        found = own_writing(rosa, "ZEBRA", address)
        assert f"Note {section.title} The Zebra &lt;b&gt;rule&lt;/b&gt;: 140 GB." in found
        assert "Card What does a zebra weigh?" in found
        assert "Another zebra" not in found
    page = rosa.get("/search", params={"q": "zebra"}).text
    assert f'href="/concepts/{topic.slug}#{section.anchor}" data-result' in page
    assert re.search(r'href="/flashcards\?card=own%3A\w+" data-result', page)
    assert "Nothing was found in the course for “zebra”" in page
    assert '<div class="empty gap">' in page
    assert "Try fewer words" not in page
    assert "Try fewer words" in rosa.get("/search", params={"q": "zebra giraffe"}).text
    assert "zebra weigh" in own_writing(rosa, "quagga")
    assert "kilograms" not in own_writing(rosa, "quagga")
    assert "Another zebra" in (milos := own_writing(milo, "zebra"))
    assert "weigh" not in milos
    assert "rule" not in milos
    assert [own_writing(rosa, query) for query in ("", " ", "zebra giraffe")] == [""] * 3


def test_a_long_note_is_cut_around_the_word(rosa: TestClient, course: Course):
    topic = next(t for t in course.topics.values() if any(s.anchor for s in t.sections))
    section = next(s for s in topic.sections if s.anchor)
    words = f"{'before ' * 50}zebra{' behind' * 50}"
    rosa.post(f"/concepts/{topic.slug}/notes", data={"section": section.anchor, "words": words})

    found = own_writing(rosa, "zebra")

    assert re.search(r" …(before )+zebra( behind)+…", found)


def test_who_finds_all_words_in_an_own_card_is_not_told_that_nothing_has_them(
    rosa: TestClient, milo: TestClient
):
    rosa.post("/flashcards/own", data={"front": "A zebra mock parameter", "back": "b"})
    for query, found in (
        ("mock parameter", "This was found with some of"),
        ("zebra parameter", "This was found for parameter: "),
    ):
        own, none = (
            words(reader.get("/search", params={"q": query}).text) for reader in (rosa, milo)
        )
        assert found in own
        assert found in none
        assert "Nothing was found" not in own
        assert "Nothing was found" in none


def test_of_own_cards_and_notes_ten_are_shown_and_none_that_was_removed(
    rosa: TestClient, session: Session, course: Course
):
    topic = next(t for t in course.topics.values() if len(t.sections) > 1)
    for anchor in [s.anchor for s in topic.sections if s.anchor]:
        note = {"section": anchor, "words": "zebra"}
        rosa.post(f"/concepts/{topic.slug}/notes", data=note)
    for number in range(7):
        sides = {"front": f"Zebra {number}", "back": "b", "token": f"t{number}"}
        rosa.post("/flashcards/own", data=sides)
    newest = session.exec(select(OwnCard.card).order_by(OwnCard.id.desc())).first()
    rosa.post(f"/flashcards/{newest}/addition", data={"wanted": "no"})

    found = own_writing(rosa, "zebra")

    assert found.count("Card Zebra") == 5
    assert "Zebra 5" in found
    assert "Zebra 6" not in found
    assert 1 <= found.count("Note ") <= 5
