"""What an author wrote is marked with the language of the course, ours is not."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.web.render import isolate_left_to_right_text
from tests.conftest import FIRST_AID, two_courses, visit

_VOID = {"br", "img", "input", "link", "meta", "hr", "wbr", "source", "col"}
_WORD = re.compile(r"[^\W\d_]+")


def words_of(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


GERMAN = words_of("Druckverband Herzdruckmassage Blutung Blutungen Wiederbelebung Leben")
GERMAN |= words_of("Drücken Brustkorb Wunde Verband Unfallort Puls Prüfung")
NAMING = "It needs "
"""A sentence of ours that names domains, which are proper names."""


class Spoken(HTMLParser):
    """The words of a page by the language that they are marked with."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.said: dict[str, list[str]] = {}
        self._open: list[tuple[str, str]] = [("", "")]
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self._open.append((tag, dict(attrs).get("lang") or self._open[-1][1]))

    def handle_endtag(self, tag: str) -> None:
        while tag in [name for name, _ in self._open] and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if data.strip() and self._open[-1][0] not in {"title", "script"}:
            self.said.setdefault(self._open[-1][1], []).append(" ".join(data.split()))


def words_under(folder: Path) -> set[str]:
    files = (p for p in folder.rglob("*") if p.suffix in {".md", ".toml"})
    return {w for p in files for w in words_of(p.read_text("utf-8"))}


@pytest.fixture
def german(settings: Settings):
    app = create_app(settings.model_copy(update={"content": FIRST_AID}))
    yield app
    app.state.engine.dispose()


def every_kind_of_page(app: FastAPI, client: TestClient):
    """Each page that holds words of the course, before and after something is done."""
    course = app.state.live_course.get_current_course()
    topic = next(iter(course.topics.values()))
    yield from ("/", "/course", "/glossary", "/glossary?cards=1", "/cheatsheets")
    yield from ("/cheatsheets/1", f"/concepts/{topic.slug}", f"/quiz/{topic.slug}")
    yield from (f"/concepts/{topic.slug}/notes", "/flashcards", "/flashcards/deck")
    yield from ("/flashcards/offline", "/quiz", "/exams", "/exams/short", "/progress")
    yield from (f"/quiz/{q.topic}/{q.id}" for q in course.questions.values())
    for card in list(course.cards)[:2]:
        yield f"/flashcards/{card}/more"
        yield f"/flashcards?card={card}&show=yes"
    client.post("/flashcards/term:druckverband/addition", data={"wanted": "yes"})
    section = next(s.anchor for s in topic.sections if s.anchor)
    noted = {"section": section, "words": "x"}
    client.post(f"/concepts/{topic.slug}/notes", data=noted)
    client.post(f"/concepts/{topic.slug}/readings", data={"section": section})
    yield from ("/", "/notes", "/flashcards/deck", f"/concepts/{topic.slug}")
    sat = client.post("/exams/short/sittings", data={"factor": "1", "kinds": "all"})
    exam = sat.headers["location"].rpartition("/questions")[0]
    yield from (f"{exam}/questions/1", f"{exam}/review")
    client.post(f"{exam}/submission")
    yield from (f"{exam}/report", f"{exam}/questions/1")


def test_every_word_of_a_german_course_is_marked_as_german(german: FastAPI):
    authored = words_under(FIRST_AID)
    unmarked, mismarked = {}, {}
    with visit(german) as client:
        for address in every_kind_of_page(german, client):
            answer = client.get(address)
            assert answer.status_code == 200, (address, answer.text)
            spoken = Spoken(answer.text).said
            for said in spoken.get("en", []):
                if words_of(said) & GERMAN and not said.startswith(NAMING):
                    unmarked.setdefault(address, []).append(said)
            for said in spoken.get("de", []):
                if words_of(said) - authored:
                    mismarked.setdefault(address, []).append(said)

    assert (unmarked, mismarked) == ({}, {})


def test_a_course_in_our_language_has_no_further_marks(client: TestClient):
    for address in (
        "/",
        "/course",
        "/concepts/weights",
        "/quiz/weights",
        "/flashcards",
    ):
        assert len(re.findall(r'[\s"]lang="', client.get(address).text)) == 1, address


def test_the_list_of_courses_names_each_in_its_language(settings: Settings):
    content = two_courses(settings.data / "content")
    app = create_app(settings.model_copy(update={"content": content}))
    with visit(app) as client:
        spoken = Spoken(client.get("/courses").text).said
    app.state.engine.dispose()

    assert {"Erste Hilfe am Unfallort", "Erste Hilfe"} == set(spoken["de"])


def test_amounts_and_our_labels_stay_in_order_in_a_course_from_right_to_left():
    page = (
        "<title>5 g</title><p><strong>What the exam tests.</strong> وزن 50 g أو 1.5\u2013 2 kg عند "
        '25\u00a0°C، 12 و CO2.</p><input value="3 g"><textarea>7 g</textarea><code>8 g</code>'
    )

    shown = isolate_left_to_right_text(page)

    assert shown == (
        '<title>5 g</title><p><strong lang="en" dir="ltr">What the exam tests.</strong> وزن '
        "\u206650 g\u2069 أو \u20661.5\u2013 2 kg\u2069 عند \u206625\u00a0°C\u2069، 12 و CO2.</p>"
        '<input value="3 g"><textarea>7 g</textarea><code>8 g</code>'
    )
