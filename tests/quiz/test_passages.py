"""A question leads to the sentence of its page that answers it."""

import pytest

from app.content.course import Course
from app.quiz.next_steps import PageSentence, find_sentence_sharing_rarest_words


def test_a_question_leads_to_the_sentence_that_answers_it(shipped: Course) -> None:
    question = next(
        q
        for q in shipped.questions.values()
        if q.stem.plain.startswith("A faulty GPU node's operating system no longer starts.")
    )
    topic = shipped.topics[question.topic]

    passage = find_sentence_sharing_rarest_words(
        topic, question.stem.plain, f"nvdebug {question.explanation.plain}"
    )

    assert passage
    assert passage.text.startswith("If the operating system no longer starts, the tool nvdebug")


@pytest.mark.drill  # looks for that of each question of the course
def test_nearly_every_question_has_a_passage(shipped: Course) -> None:
    without = [
        question.id
        for question in shipped.questions.values()
        if not find_sentence_sharing_rarest_words(
            shipped.topics[question.topic], question.stem.plain, question.explanation.plain
        )
    ]
    assert len(without) < 5


def test_a_browser_is_told_which_words_to_mark() -> None:
    sentence = PageSentence("limits", "The out-of-band network, which nobody uses, is 1 GbE.")
    row = PageSentence("limits", "Backfill, fills gaps with short jobs;")
    formula = PageSentence("limits", "(a + b) is the sum.")

    assert sentence.url_fragment == (
        "#limits:~:text=The%20out%2Dof%2Dband%20network%2C%20which%20nobody%20uses%2C"
    )
    assert row.url_fragment == "#limits:~:text=fills%20gaps%20with%20short%20jobs"
    assert formula.url_fragment == "#limits"
