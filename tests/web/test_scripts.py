"""Courses in Arabic, Japanese and Russian: nothing about them depends on Latin letters."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fastapi import FastAPI

from app.cli import main
from app.content.check import check_course
from app.content.course import load_course
from app.content.live_courses import LiveCourse
from app.lessons.search import search_course
from app.main import create_app
from app.markup.text import (
    BOUNDARY,
    bottom_k_sketch,
    estimate_jaccard_similarity,
)
from app.questions.model import draw_variant
from app.quiz.next_steps import find_sentence_sharing_rarest_words
from app.settings import Settings
from tests.amounts import sample
from tests.conftest import SCRIPTS, TINY, let_in, visit
from tests.quiz.test_real_questions import right_answer
from tests.web.addresses import addressed, routes


@pytest.fixture(scope="module", params=SCRIPTS, ids=lambda folder: folder.name)
def live(request: pytest.FixtureRequest) -> LiveCourse:
    return LiveCourse(request.param)


@pytest.fixture
def app(live: LiveCourse, settings: Settings) -> Iterator[FastAPI]:
    app = create_app(settings.model_copy(update={"content": live.folder}), live_course=live)
    yield app
    app.state.engine.dispose()


def test_they_have_no_problem() -> None:
    for folder in SCRIPTS:
        assert not check_course(folder), folder.name


def test_headings_terms_and_ids_keep_their_letters(app: FastAPI) -> None:
    course = app.state.live_course.get_current_course()
    topic = next(iter(course.topics.values()))
    anchors = [section.anchor for section in topic.sections if section.anchor]
    names = [topic.slug, *anchors, *course.glossary, *course.questions]

    assert not any(name.isascii() for name in names)
    assert len(course.glossary) == 3
    assert not any(name.startswith("section") for name in anchors)


def own_names(app: FastAPI) -> dict[str, str]:
    course = app.state.live_course.get_current_course()
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


@pytest.mark.drawn
@pytest.mark.parametrize("author", [False, True])
def test_no_page_breaks(app: FastAPI, author: bool, request: pytest.FixtureRequest) -> None:
    """Some for each course and visitor; `make drills`: all."""
    addresses = {addressed(t, **own_names(app)) for method, t in routes(app) if method == "GET"}
    with visit(app) as client:
        if author:
            let_in(client)
        for address in sample(sorted(addresses), 20, request.node.name):
            assert client.get(address).status_code < 500, address


def test_every_question_is_answered_on_its_page(app: FastAPI) -> None:
    course = app.state.live_course.get_current_course()
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
    course = app.state.live_course.get_current_course()
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
    course = app.state.live_course.get_current_course()
    topic = next(iter(course.topics))
    arabic = course.syllabus.language == "ar"
    with visit(app) as client:
        page = client.get(f"/concepts/{topic}").text

    assert ('<article class="prose" lang="ar" dir="rtl">' in page) == arabic
    assert ('dir="rtl"' in page) == arabic


def find(name: str, typed: str) -> list[str]:
    return [hit.url for hit in search_course(load_course(TINY.parent / name), typed).hits]


@pytest.mark.parametrize(
    ("name", "typed", "address"),
    [
        ("japanese", "テスト", "/concepts/発酵#サンドボックステスト-熟成"),
        ("japanese", "加水", "/glossary#加水率"),
        ("japanese", "水の", "/glossary#発酵種"),
        ("japanese", "小麦粉水", "/glossary#発酵種"),
        ("russian", "гидрат", "/glossary#гидратация"),
        ("arabic", "الترطيب", "/glossary#الترطيب"),
    ],
)
def test_a_word_is_found_inside_of_what_has_no_spaces(name: str, typed: str, address: str) -> None:
    assert address in find(name, typed)


def test_an_excerpt_of_a_text_without_spaces_marks_the_word() -> None:
    for hit in search_course(load_course(TINY.parent / "japanese"), "加水").hits:
        text = "".join(piece.text for piece in hit.excerpt)
        assert BOUNDARY not in text
        assert ("加水" in text) == any(
            piece.text == "加水" for piece in hit.excerpt if piece.is_match
        )


def test_an_edit_of_a_text_without_spaces_leaves_the_item_what_it_is() -> None:
    before = bottom_k_sketch("発酵種は小麦粉と水の中で酵母と細菌が生きている種である。")
    after = bottom_k_sketch("発酵種は小麦粉と水の中で酵母と細菌が生きている種です。")
    other = bottom_k_sketch("窯の石は熱をためて、生地の底をよく焼くための道具である。")

    assert (
        estimate_jaccard_similarity(before, after)
        > 0.5
        > estimate_jaccard_similarity(before, other)
    )


def test_a_page_without_spaces_takes_its_time_to_read() -> None:
    topic = load_course(TINY.parent / "japanese").topics["発酵"]

    assert topic.minutes > 1.2  # one is that of the question on it


def test_the_passage_that_answers_is_found_in_every_script() -> None:
    for folder in SCRIPTS:
        course = load_course(folder)
        for topic in course.topics.values():
            section = topic.sections[-1]
            sentence = section.plain.split("\n")[0]
            found = find_sentence_sharing_rarest_words(topic, sentence, sentence)
            assert found, folder
            assert found.anchor == section.anchor


def test_topics_and_ids_of_any_script_are_begun(tmp_path: Path, capsys) -> None:
    folder = tmp_path / "course"
    assert main(["new", "course", str(folder), "--title", "Хлеб"]) == 0
    assert main(["new", "topic", "хлеб", "--title", "Хлеб", "--dir", str(folder)]) == 0
    quiz = folder / "topics" / "хлеб" / "quiz.md"
    item = "\n### Чем кормят закваску?\n\n- [x] Мукой\n  > Да.\n- [ ] Солью\n  > Нет.\n"
    quiz.write_text(quiz.read_text("utf-8") + item, "utf-8")
    main(["check", "--fix", str(folder)])

    assert "<!-- q: чем-кормят-закваску -->" in quiz.read_text("utf-8")
    assert main(["new", "topic", "Хлеб", "--title", "Хлеб", "--dir", str(folder)]) == 2
    assert "cannot stand in an address" in capsys.readouterr().err
