"""An edit of a reason, a source or the difficulty is no new wording."""

import dataclasses
import datetime as dt

import pytest

from app.authoring.statistics_tables import (
    hash_statistically_relevant_content,
    hash_stored_content_or_use_revision,
    map_to_newest_equal_revisions,
)
from app.content.course import load_course
from app.quiz.store import QUESTION, save_revision_once

ITEM = "w-bf16-70b"
MINOR = [
    ("> ", "> Indeed: "),
    ("difficulty: 2", "difficulty: 4"),
    ("q: w-bf16-70b\n", "q: w-bf16-70b\ntags: easy\n"),
]
MAJOR = [
    ("About 70 GB", "About 75 GB"),
    ("How much memory", "How much room"),
]


def edited(folder, old, new):
    """The question before and after its part of the file was changed."""
    before = load_course(folder).questions[ITEM]
    quiz = folder / "topics/weights/quiz.md"
    text = quiz.read_text()
    at = text.index(f"q: {ITEM}")
    start = text.rindex("### ", 0, at)
    end = text.index("\n### ", at)
    part = text[start:end]
    if old not in part:
        pytest.skip("the course has no such part")
    quiz.write_text(text[:start] + part.replace(old, new, 1) + text[end:])
    return before, load_course(folder).questions[ITEM]


@pytest.mark.parametrize(("old", "new"), MINOR)
def test_what_stands_beside_the_question_does_not_matter(folder, old, new):
    before, after = edited(folder, old, new)

    assert before.revision != after.revision
    assert hash_statistically_relevant_content(before) == hash_statistically_relevant_content(after)


@pytest.mark.parametrize(("old", "new"), MAJOR)
def test_stem_and_options_matter(folder, old, new):
    before, after = edited(folder, old, new)

    assert hash_statistically_relevant_content(before) != hash_statistically_relevant_content(after)


def test_the_key_matters(course):
    question = course.questions[ITEM]
    options = tuple(dataclasses.replace(o, right=not o.right) for o in question.answer.options)
    answer = dataclasses.replace(question.answer, options=options)

    assert hash_statistically_relevant_content(
        dataclasses.replace(question, answer=answer)
    ) != hash_statistically_relevant_content(question)


def test_a_kept_wording_is_compared_as_the_question_is(course):
    for question in course.questions.values():
        body = QUESTION.dump_json(question).decode()
        assert hash_stored_content_or_use_revision(
            body, "x"
        ) == hash_statistically_relevant_content(question)


def test_a_wording_that_cannot_be_read_is_like_no_other():
    assert hash_stored_content_or_use_revision("{}", "old") == "old"
    assert hash_stored_content_or_use_revision("not JSON", "older") == "older"


def test_a_wording_counts_as_the_newest_that_asks_the_same(course):
    question = course.questions[ITEM]
    same = hash_statistically_relevant_content(question)
    known = [(ITEM, "first", same), (ITEM, "other", "x"), (ITEM, "third", "x")]

    found = map_to_newest_equal_revisions({ITEM: question}, known)

    assert found == {
        (ITEM, "first"): question.revision,
        (ITEM, "other"): "third",
        (ITEM, "third"): "third",
        (ITEM, question.revision): question.revision,
    }


def test_statistics_go_on_over_an_edited_reason(client, crowd, folder, live_course):
    before = live_course.get_current_course().questions[ITEM]
    save_revision_once(crowd.session, before, dt.datetime(2026, 6, 9, tzinfo=dt.UTC))
    for learner in crowd.join(12):
        crowd.answer(before, learner, 1.0)
    crowd.session.commit()
    edited(folder, *MINOR[0])

    html = client.get(f"/authoring/questions/{ITEM}").text

    assert live_course.get_current_course().questions[ITEM].revision != before.revision
    assert "12 first answers" in html.replace("\xa0", " ")
    assert '<th scope="row">Before' not in html
