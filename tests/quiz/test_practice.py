"""Which questions a run asks."""

import dataclasses
import datetime as dt

import pytest

from app.content.course import Course
from app.content.course_facts import cached_course_facts
from app.quiz.selection import (
    ObjectiveRank,
    PastAttempts,
    PracticeRequest,
    choose_practice_questions,
    rank_objectives_by_exam_gain,
)
from app.study_plan.facts import FirstAnswerFact, LearnerFacts
from tests.quiz.bank import SINGLE

BANK = [
    dataclasses.replace(SINGLE, id=f"q{n}", objectives=(f"2.{n % 3 + 1}",), topic=topic)
    for n, topic in enumerate(["weights"] * 6 + ["cache"] * 6)
]


def past(**scores: float) -> dict[str, PastAttempts]:
    return {item: PastAttempts(1, score, at) for at, (item, score) in enumerate(scores.items())}


def test_unseen_then_missed_longest_ago_then_least_practiced() -> None:
    seen = past(**{f"q{n}": 1.0 for n in range(10)}) | {
        "q3": PastAttempts(1, 0.0, 50),
        "q7": PastAttempts(2, 0.5, 40),
        "q1": PastAttempts(1, 1.0, 5),
        "q2": PastAttempts(9, 1.0, 6),
    }

    order = choose_practice_questions(BANK, seen, PracticeRequest("mixed", max_questions=12), "s")

    assert set(order[:2]) == {"q10", "q11"}
    assert order[2:4] == ("q7", "q3")
    assert order[-1] == "q2"


def test_the_same_seed_gives_the_same_run_and_another_another() -> None:
    runs = {
        choose_practice_questions(BANK, {}, PracticeRequest("mixed", max_questions=5), seed)
        for seed in "aabcd"
    }

    assert 2 <= len(runs) <= 4


def test_a_topic_and_an_objective_limit_the_run() -> None:
    topic = choose_practice_questions(BANK, {}, PracticeRequest("topic", "cache", 99), "s")
    goal = choose_practice_questions(BANK, {}, PracticeRequest("objective", "2.1", 99), "s")

    assert set(topic) == {f"q{n}" for n in range(6, 12)}
    assert set(goal) == {"q0", "q3", "q6", "q9"}


def test_the_weakest_objective_comes_before_the_others() -> None:
    seen = past(q0=1, q3=1, q1=0, q4=0, q2=1)
    order = ("2.2", "2.3", "2.1")

    run = choose_practice_questions(
        BANK, seen, PracticeRequest("weakest", max_questions=4), "s", order
    )

    assert set(run) == {"q1", "q4", "q7", "q10"}
    assert run[:2] in {("q7", "q10"), ("q10", "q7")}, "unseen ones first"


@pytest.mark.parametrize(
    "wish", [PracticeRequest("weakest", max_questions=6), PracticeRequest("objective", "2.1", 6)]
)
def test_half_of_a_run_on_an_objective_are_those_missed_on_it(wish: PracticeRequest) -> None:
    bank = [dataclasses.replace(q, objectives=("2.1",)) for q in BANK]
    other = dataclasses.replace(SINGLE, id="other", objectives=("2.2",))
    seen = past(q0=1, q2=0, q4=0, q8=0, q9=0, other=0)

    run = choose_practice_questions([*bank, other], seen, wish, "s", ("2.1", "2.2"))

    assert run[3:] == ("q2", "q4", "q8")  # the longest ago first
    assert set(run[:3]) <= {"q1", "q3", "q5", "q6", "q7", "q10", "q11"}
    assert {bank[int(one[1:])].topic for one in run} == {"weights", "cache"}


def test_what_no_order_names_comes_last() -> None:
    run = choose_practice_questions(
        BANK, {}, PracticeRequest("weakest", max_questions=8), "s", ("2.3", "2.1")
    )

    assert {question for question in run if int(question[1:]) % 3 == 1} == set()


def test_no_question_stands_twice_in_a_run() -> None:
    run = choose_practice_questions([*BANK], {}, PracticeRequest("mixed", max_questions=100), "s")

    assert len(run) == len(set(run)) == 12


def test_what_lies_beyond_the_exam_comes_last() -> None:
    deeper = [dataclasses.replace(q, level="deeper") for q in BANK[:3]]
    seen = past(**{f"q{n}": 1.0 for n in range(3, 12)})

    run = choose_practice_questions(
        [*deeper, *BANK[3:]], seen, PracticeRequest("mixed", max_questions=12), "s"
    )
    weakest = choose_practice_questions(
        [*deeper, *BANK[3:]], {}, PracticeRequest("weakest", max_questions=12), "s", ("2.1",)
    )

    assert set(run[-3:]) == {"q0", "q1", "q2"}
    assert set(weakest[-3:]) == {"q0", "q1", "q2"}


def test_what_lost_most_in_a_mock_exam_is_practiced_first_until_it_was(shipped: Course) -> None:
    course_facts, day = cached_course_facts(shipped), dt.date(2026, 6, 8)
    number = list(course_facts.objectives)[-1]
    asked = course_facts.objectives[number].question_ids
    answers = [FirstAnswerFact(item, 0, day, n, "exam") for n, item in enumerate(asked[:3])]

    def first(*facts: FirstAnswerFact, repaired: bool = False) -> ObjectiveRank:
        missed = {} if repaired else {a.question: a.day for a in facts if a.score < 1}
        learner = LearnerFacts(day, first_answers=facts, miss_day_by_question=missed)
        return rank_objectives_by_exam_gain(course_facts, learner)[0]

    leading = first(*answers)
    assert (leading.number, leading.has_mock_exam_losses) == (number, True)
    assert (leading.answered_count, leading.right_count) == (3, 0)
    practiced = [FirstAnswerFact(item, 1, day, 9) for item in asked[3:9]]
    assert first(*answers, *practiced).number != number
    assert not first(*answers, repaired=True).has_mock_exam_losses
    assert not first(answers[0]).has_mock_exam_losses  # one question is too little
