"""Courses in Arabic, Japanese and Russian: nothing about them depends on Latin letters."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.content.check import check_course
from app.lessons.search import search_course
from app.main import create_app
from app.questions.variants import draw_variant
from app.settings import Settings
from tests.conftest import SCRIPTS, TINY, let_in, visit
from tests.quiz.test_real_questions import right_answer
from tests.web.addresses import addressed, routes


@pytest.fixture(params=SCRIPTS, ids=lambda folder: folder.name)
def app(request: pytest.FixtureRequest, settings: Settings) -> Iterator[FastAPI]:
    app = create_app(settings.model_copy(update={"content": request.param}))
    yield app
    app.state.engine.dispose()


def test_they_have_no_problem() -> None:
    assert {folder.name: check_course(folder) for folder in SCRIPTS} == dict.fromkeys(
        [folder.name for folder in SCRIPTS], []
    )


def test_headings_terms_and_ids_keep_their_letters(app: FastAPI) -> None:
    course = app.state.library.current()
    topic = next(iter(course.topics.values()))
    anchors = [section.anchor for section in topic.sections if section.anchor]
    names = [topic.slug, *anchors, *course.glossary, *course.questions]

    assert not any(name.isascii() for name in names)
    assert len(course.glossary) == 3
    assert not any(name.startswith("section") for name in anchors)


def own_names(app: FastAPI) -> dict[str, str]:
    course = app.state.library.current()
    question = next(q for q in course.questions.values() if q.place.path.endswith("quiz.md"))
    card = next(iter(course.cards))
    return {
        "card": card,
        "exam": "short",
        "item": question.id,
        "question": question.id,
        "topic": question.topic,
        "term": next(iter(course.glossary)),
    }


@pytest.mark.parametrize("author", [False, True])
def test_no_page_breaks(app: FastAPI, author: bool) -> None:
    addresses = {addressed(t, **own_names(app)) for method, t in routes(app) if method == "GET"}
    with visit(app) as client:
        if author:
            let_in(client)
        for address in sorted(addresses):
            assert client.get(address).status_code < 500, address


def test_every_question_is_answered_on_its_page(app: FastAPI) -> None:
    course = app.state.library.current()
    with visit(app) as client:
        for question in course.questions.values():
            page = client.get(f"/quiz/{question.topic}/{question.id}")
            assert page.status_code == 200
            form = dict(re.findall(r'name="(once|seed|token|run)" value="([^"]*)"', page.text))
            raw = right_answer(draw_variant(question, int(form.get("seed", 0))))
            action = re.search(r'<form[^>]*action="([^"]*attempts?[^"]*)"', page.text)
            assert action, question.id
            sent = client.post(action[1], data={**form, **raw})
            assert sent.status_code == 303, (question.id, sent.status_code)
            verdict = client.get(sent.headers["location"])
            assert "Right" in verdict.text, question.id


def test_notes_and_readings_belong_to_a_section(app: FastAPI) -> None:
    course = app.state.library.current()
    topic = next(iter(course.topics.values()))
    section = next(s.anchor for s in topic.sections if s.anchor)
    with visit(app) as client:
        noted = client.post(
            f"/concepts/{topic.slug}/notes", data={"section": section, "words": "mine"}
        )
        assert noted.status_code == 303
        assert urlsplit(noted.headers["location"]).fragment
        read = client.post(f"/concepts/{topic.slug}/readings", data={"section": section})
        assert read.status_code in {200, 303}
        assert "mine" in client.get("/notes").text


def test_the_direction_is_that_of_the_script(app: FastAPI) -> None:
    course = app.state.library.current()
    topic = next(iter(course.topics))
    arabic = course.syllabus.language == "ar"
    with visit(app) as client:
        page = client.get(f"/concepts/{topic}").text

    assert ('<article class="prose" lang="ar" dir="rtl">' in page) == arabic
    assert ('dir="rtl"' in page) == arabic


def search(name: str, typed: str, folder: Path = TINY.parent) -> list[str]:
    from app.content.library import load_library

    found = search_course(load_library(folder / name), typed)
    return [hit.address for hit in found.hits]
