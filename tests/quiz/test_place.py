"""A question whose answer is a part of a drawing."""

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.content.check import check_course
from app.content.course import Course, load_course
from app.content.file_reader import parse_file
from app.import_export.course_markdown import read_items_of_course_file
from app.markup.images import sanitize_svg
from app.markup.model import SvgFigure, SvgProblem
from app.questions import types as kinds
from app.questions.grading import grade_response, render_question_card_faces
from app.questions.model import Question, draw_variant
from app.questions.question_type import GradeResult, UnreadableResponse
from app.questions.types.place import PlaceRegion, PlaceSpec
from app.quiz.store import QUESTION
from tests.quiz.bank import drawn, question, text
from tests.quiz.course import EditableLiveCourse

SHIPPED = Path(__file__).resolve().parents[2] / "content"
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 60">
  <title>A queue</title><desc>A queue before a server.</desc>
  <g id="queue"><rect class="box" x="10" y="10" width="60" height="40"/></g>
  <g id="server"><rect class="box" x="130" y="10" width="60" height="40"/></g>
  <g id="line"><rect class="hit" x="72" y="18" width="56" height="24"/></g>
</svg>"""
QUIZ = """---
title: Case
objective: 1.1
source: herd
---

### Where does a query wait?
<!-- q: wait
type: place
figure: queue.svg
-->

- [x] `queue` The *queue*
  > It holds what has not begun.
- [ ] `server` The server
  > What is here is worked on.
- [ ] `line` The line
  > Nothing stays on it.
"""


def queue() -> SvgFigure:
    found = sanitize_svg(SVG)
    assert isinstance(found, SvgFigure)
    return found


PLACE = question(
    PlaceSpec(
        "queue.svg",
        (
            PlaceRegion("bcdf", text("The queue"), True, text("It waits."), region="queue"),
            PlaceRegion("ghjk", text("The server"), False, text("No."), region="server"),
        ),
        (queue(),),
    ),
    "place",
    id_="place",
)
ADDRESS = "/quiz/kv-cache/place"


@pytest.fixture
def live_course() -> EditableLiveCourse:
    return EditableLiveCourse(PLACE)


# --- reading ---


def test_an_option_is_a_region_in_code_and_its_label() -> None:
    answer = parse_file(QUIZ, "topics/case/quiz.md").questions[0].answer

    assert isinstance(answer, PlaceSpec)
    assert answer.file == "queue.svg"
    assert [(r.region, r.text.html, r.right) for r in answer.regions] == [
        ("queue", "The <em>queue</em>", True),
        ("server", "The server", False),
        ("line", "The line", False),
    ]
    assert answer.regions[0].feedback.plain == "It holds what has not begun."


def test_a_region_is_its_rectangles_and_the_drawing_is_written_anew() -> None:
    drawing = queue()

    assert [(a.region, a.x, a.y, a.width, a.height) for a in drawing.clickable_regions] == [
        ("queue", 10, 10, 60, 40),
        ("server", 130, 10, 60, 40),
        ("line", 72, 18, 56, 24),
    ]
    assert (drawing.title, drawing.width) == ("A queue", 200)
    assert drawing.inner_markup.startswith('<g data-region="queue"><rect class="box"')
    assert " id=" not in drawing.inner_markup


def test_a_region_that_is_too_small_cannot_be_pointed_at_the_rest_can() -> None:
    found = sanitize_svg(SVG.replace('width="60"', 'width="6"', 1))

    assert isinstance(found, SvgFigure)
    assert [area.region for area in found.clickable_regions] == ["server", "line"]
    assert "is smaller than 24 × 24" in found.why_unclickable_by_region["queue"]


def test_what_no_drawing_may_hold_is_named_with_its_line(
    subtests: pytest.Subtests,
) -> None:
    for old, new, why in [
        ("<title>", "<style>a{}</style><title>", "the element <style>"),
        ("<rect", '<rect onclick="x()"', "the attribute onclick"),
        ("<rect", '<rect style="fill:red"', "the attribute style"),
        ('class="box"', 'class="sr"', "the attribute class"),
        ('class="box"', 'fill="url(#x)"', "the attribute fill"),
        ('class="box"', 'fill="red"', "the attribute fill"),
        ("<g id", '<g href="javascript:x" id', "the attribute href"),
        ("<svg", "<!DOCTYPE svg [<!ENTITY x 'y'>]><svg", "a document type"),
        ("<svg", "<?xml-stylesheet href='x'?><svg", "a processing instruction"),
        ("<title>A queue</title>", "", "it has no <title>"),
        ('id="server"', 'id="queue"', "the id “queue” stands twice"),
        ('viewBox="0 0 200 60"', "", "its viewBox"),
        ("</svg>", "", "its <svg> is not closed"),
        ("</svg>", f"<g>{'<g>' * 20}{'</g>' * 20}</g></svg>", "nested too deep"),
        ("</svg>", " " * 20_001 + "</svg>", "larger than 20 KB"),
        ("</svg>", "words</svg>", "words stand outside"),
    ]:
        with subtests.test(old=old, new=new, why=why):
            found = sanitize_svg(SVG.replace(old, new))

            assert isinstance(found, SvgProblem)
            assert why in found.reason
            assert 1 <= found.line <= 7


@given(st.text(max_size=200))
def test_any_words_in_place_of_a_drawing_are_a_drawing_or_a_flaw(words: str) -> None:
    for text_ in (words, SVG.replace("A queue before", words), SVG + words):
        assert isinstance(sanitize_svg(text_), SvgFigure | SvgProblem)


@given(st.integers(0, len(SVG)), st.integers(0, 40), st.text('<>&/"=a g{};', max_size=9))
def test_a_drawing_with_a_piece_replaced_holds_no_more_than_it_may(
    at: int, length: int, piece: str
) -> None:
    found = sanitize_svg(SVG[:at] + piece + SVG[at + length :])

    if isinstance(found, SvgFigure):
        assert set(re.findall(r"</?([a-z]+)", found.inner_markup)) <= {"g", "rect"}


def test_words_of_a_drawing_are_escaped() -> None:
    found = sanitize_svg(SVG.replace("</svg>", "<text>a &lt;b> &amp;</text></svg>"))

    assert isinstance(found, SvgFigure)
    assert found.inner_markup.endswith("<text>a &lt;b&gt; &amp;</text>")


# --- the course ---


def test_the_drawing_is_part_of_the_question_and_of_its_revision(
    tmp_path: Path,
) -> None:
    case = tmp_path / "topics" / "case"
    case.mkdir(parents=True)
    (case / "concept.md").write_text("---\ntitle: Case\nsources: [herd]\n---\n\nWords.")
    (case / "quiz.md").write_text(QUIZ)
    (case / "queue.svg").write_text(SVG)
    before = load_course(tmp_path).questions["wait"]
    (case / "queue.svg").write_text(SVG.replace('height="40"', 'height="44"'))
    (case / "queue.narrow.svg").write_text(SVG)
    after = load_course(tmp_path).questions["wait"]

    assert isinstance(after.answer, PlaceSpec)
    assert [d.clickable_regions[0].height for d in after.answer.drawings] == [44, 40]
    assert before.revision != after.revision


def test_a_picture_that_no_question_asks_about_may_be_anything(tmp_path: Path) -> None:
    case = tmp_path / "topics" / "case"
    case.mkdir(parents=True)
    (case / "photo.svg").write_bytes(b"\xff<svg><script/></svg>")

    assert not [p for p in check_course(tmp_path) if p.path.endswith(".svg")]


def test_the_shipped_drawings_have_two_widths_with_the_same_regions(
    shipped: Course,
) -> None:
    questions = shipped.questions.values()
    answers = [q.answer for q in questions if isinstance(q.answer, PlaceSpec)]

    assert len(answers) >= 2
    for answer in answers:
        wide, narrow = answer.drawings
        assert {a.region for a in wide.clickable_regions} == {
            a.region for a in narrow.clickable_regions
        }
        assert (wide.title, wide.desc) == (narrow.title, narrow.desc)
        assert narrow.width <= 358


# --- grading ---


def test_the_region_chosen_is_judged() -> None:
    right = grade_response(drawn(PLACE), {"answer": ["bcdf"]})
    wrong = grade_response(drawn(PLACE), {"answer": ["ghjk"]})

    assert isinstance(right, GradeResult)
    assert isinstance(wrong, GradeResult)
    assert (right.result, right.given_answer, right.parsed_response) == (
        "right",
        "A",
        {"chosen": ["bcdf"]},
    )
    assert (wrong.result, wrong.given_answer, wrong.right_answer) == ("wrong", "B", "A")
    assert [m.feedback.plain for m in wrong.part_results] == ["It waits.", "No."]


@pytest.mark.parametrize("sent", [[], ["zzzz"], ["bcdf", "ghjk"]])
def test_no_part_and_two_parts_cost_no_attempt(sent: list[str]) -> None:
    assert isinstance(grade_response(drawn(PLACE), {"answer": sent}), UnreadableResponse)


def test_it_is_what_statistics_and_guessing_take_it_for() -> None:
    kind = kinds.question_type_of(PLACE)

    assert kind.compute_guess_score(PLACE.answer, "") == 0.5
    assert kind.compute_guess_percent(PLACE.answer) == 50
    assert [o.key for o in kind.options_for_statistics(PLACE.answer)] == ["bcdf", "ghjk"]
    assert [words for words, _ in kind.sample_responses(PLACE.answer)] == [
        "The queue",
        "The server",
    ]
    assert kind.is_allowed_in_exams
    assert kind.is_allowed_as_card


def test_its_wording_is_kept_with_the_drawing() -> None:
    kept: Question = QUESTION.validate_json(QUESTION.dump_json(PLACE))

    assert kept == PLACE


# --- the page ---


def test_the_form_has_a_button_for_each_part_and_a_label_over_it(client, form) -> None:
    page = client.get(ADDRESS).text

    assert form(page).options["answer"] == ["bcdf", "ghjk"]
    assert page.count('for="q-place-bcdf"') == 1
    assert 'data-region="queue"' in page
    assert "It waits." not in page


def test_an_open_question_and_a_card_mark_nothing_in_the_drawing() -> None:
    words = "A queue before a server. The queue is marked: there it waits. It is long."
    markup = (
        '<rect class="hot"/><text class="b on-hot">Queue</text><path class="hot-line"/>'
        '<text class="on-hot">it waits</text>'
    )
    drawing = dataclasses.replace(queue(), inner_markup=markup, desc=words)
    answer = dataclasses.replace(PLACE.answer, drawings=(drawing,))
    (figure,) = kinds.question_type_of(PLACE).build_template_data(answer, {})

    shown = figure.without_answer_marks().drawing

    assert shown.desc == "A queue before a server. It is long."
    assert shown.inner_markup == (
        '<rect class="box"/><text class="b">Queue</text><path class="data"/>'
        '<text class="">it waits</text>'
    )
    assert (
        "hot"
        not in kinds.question_type_of(PLACE)
        .render_card_faces_below_stem(answer, lambda _: "")
        .front
    )


def test_the_answer_is_not_marked_before_it_is_given(
    client, form, live_course: EditableLiveCourse
) -> None:
    drawing = dataclasses.replace(
        queue(), inner_markup=queue().inner_markup.replace('"box"', '"hot"', 1)
    )
    answer = dataclasses.replace(PLACE.answer, drawings=(drawing,))
    live_course.edit("place", answer=answer)
    sent = form(client.get(ADDRESS).text)

    assert 'class="hot"' not in client.get(ADDRESS).text
    answered = client.post(sent.action, data={**sent.values, "answer": "bcdf"})
    assert 'class="hot"' in client.get(answered.headers["location"]).text


def test_an_answer_is_shown_in_the_drawing_and_in_the_list(client, form) -> None:
    sent = form(client.get(ADDRESS).text)
    answered = client.post(sent.action, data={**sent.values, "answer": "ghjk"})
    shown = client.get(answered.headers["location"]).text

    assert "Not right." in shown
    assert "B, your answer, not right" in shown
    assert 'for="q-place-' not in shown


def test_no_answer_is_refused_without_an_attempt(client, form) -> None:
    sent = form(client.get(ADDRESS).text)

    refused = client.post(sent.action, data=sent.values)

    assert refused.status_code == 422
    assert "No part is chosen." in refused.text


def test_a_letter_covers_neither_what_stands_above_nor_what_begins_inside() -> None:
    (drawn, *_) = kinds.type_of_answer(PLACE.answer).build_template_data(PLACE.answer, {})

    for spot in drawn.markers:
        assert spot.letter_y - 10 > spot.region_box.y, "below a line of text over the region"
        assert spot.letter_x + 10 < spot.region_box.x + 8, "left of words in the region"


# --- elsewhere ---


def test_as_a_card_it_has_its_drawing_with_letters() -> None:
    front, back = render_question_card_faces(draw_variant(PLACE, 0), lambda hint: hint)

    assert 'aria-label="A queue before a server."' in front
    assert ">A</text>" in front
    assert "The queue" in back


def test_other_programs_get_a_single_choice_and_are_told_what_is_lost() -> None:
    reading = read_items_of_course_file(QUIZ, "topics/case/quiz.md")
    item = reading.items[0]

    assert (item.kind, [o.text for o in item.options]) == (
        "single",
        ["The *queue*", "The server", "The line"],
    )
    assert [r.sentence for r in reading.losses] == [
        "its drawing is not exported; it asks for the label of a part"
    ]


def test_a_question_without_its_drawing_can_still_be_chosen_from_the_list() -> None:
    bare = dataclasses.replace(PLACE.answer, drawings=())

    assert kinds.type_of_answer(bare).build_template_data(bare, {}) == ()
