"""The expected score: what moves it, and how far."""

import dataclasses
import datetime as dt
import math
import statistics

import pytest

from app.content.course_facts import CourseFacts
from app.study_plan.facts import CardFact, FirstAnswerFact, LearnerFacts, ReadingFact
from app.study_plan.score import estimate_score, limit_score_drop

DAY = dt.date(2026, 3, 1)
NOTHING = LearnerFacts(DAY)


def mean(course_facts: CourseFacts, learner: LearnerFacts) -> float:
    estimate = estimate_score(course_facts, learner)
    assert estimate
    return estimate.mean


def log_odds(chance: float) -> float:
    return math.log(chance / (1 - chance))


def answers(course_facts: CourseFacts, score: float, count: int = 30) -> LearnerFacts:
    chosen = list(course_facts.questions)[:: len(course_facts.questions) // count][:count]
    facts = [FirstAnswerFact(q, score, DAY, n) for n, q in enumerate(chosen)]
    return dataclasses.replace(NOTHING, first_answers=facts)


def test_a_course_without_an_exam_has_no_score() -> None:
    assert estimate_score(CourseFacts(), NOTHING) is None


def test_right_answers_raise_it_and_wrong_ones_lower_it(course_facts: CourseFacts) -> None:
    assert mean(course_facts, answers(course_facts, 0.0)) < mean(course_facts, NOTHING) - 3
    assert mean(course_facts, answers(course_facts, 1.0)) > mean(course_facts, NOTHING) + 3


def test_reading_and_cards_raise_it_before_any_answer(course_facts: CourseFacts) -> None:
    read = [ReadingFact(slug, 1.0, DAY, n, 1.0) for n, slug in enumerate(course_facts.pages)]
    then = DAY - dt.timedelta(days=3)
    cards = [
        CardFact(card, card, page.slug, 20.0, then, then, DAY)
        for page in course_facts.pages.values()
        for card in page.card_ids
    ]

    before = mean(course_facts, NOTHING)
    both = mean(course_facts, dataclasses.replace(NOTHING, readings=read, started_cards=cards))

    assert before + 3 < mean(course_facts, dataclasses.replace(NOTHING, readings=read)) < both - 1


def test_cards_beyond_the_exam_and_own_ones_count_nothing(course_facts: CourseFacts) -> None:
    then = DAY - dt.timedelta(days=3)
    bare = next((page.slug for page in course_facts.pages.values() if not page.card_ids), "")
    slugs = [bare or next(iter(course_facts.pages)), ""]
    cards = [CardFact(f"own:{n}", "n", slug, 9.0, then, then, DAY) for n, slug in enumerate(slugs)]

    assert mean(course_facts, dataclasses.replace(NOTHING, started_cards=cards)) == mean(
        course_facts, NOTHING
    )


def test_the_range_is_there_from_the_beginning_and_narrows(course_facts: CourseFacts) -> None:
    first = estimate_score(course_facts, NOTHING)
    later = estimate_score(course_facts, answers(course_facts, 1.0))
    assert first
    assert later

    assert 0 <= first.low < first.shown_score < first.high <= 50
    assert later.sd < first.sd
    assert sum(first.domains.values()) == pytest.approx(first.mean)


def test_right_answers_raise_their_own_objective_more_than_the_others(
    course_facts: CourseFacts,
) -> None:
    number, objective = list(course_facts.objectives.items())[11]
    facts = [FirstAnswerFact(q, 1.0, DAY, n) for n, q in enumerate(objective.question_ids[:6])]
    before = estimate_score(course_facts, NOTHING)
    after = estimate_score(course_facts, dataclasses.replace(NOTHING, first_answers=facts))
    assert before
    assert after

    rise = {
        o: log_odds(after.objectives[o].known) - log_odds(before.objectives[o].known)
        for o in course_facts.objectives
    }
    assert min(rise.values()) > 0

    assert rise[number] > statistics.fmean(rise.values())


def test_what_was_read_fades(course_facts: CourseFacts) -> None:
    read = [ReadingFact(slug, 1.0, DAY, n, 1.0) for n, slug in enumerate(course_facts.pages)]
    later = DAY + dt.timedelta(days=150)

    fresh = mean(course_facts, dataclasses.replace(NOTHING, readings=read))
    old = mean(course_facts, dataclasses.replace(NOTHING, day=later, readings=read))

    assert mean(course_facts, NOTHING) < old < fresh - 2


def test_the_chance_of_a_target_falls_with_it(course_facts: CourseFacts) -> None:
    estimate = estimate_score(course_facts, NOTHING)
    assert estimate

    chances = [estimate.chance_of_scoring_at_least(share / 10) for share in range(11)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 0.99


def test_the_number_shown_falls_by_half_a_point_a_day_at_most() -> None:
    assert limit_score_drop(30.0, 33.0, 1) == 32.5
    assert limit_score_drop(30.0, 33.0, 10) == 30.0
    assert limit_score_drop(36.0, 33.0, 1) == 36.0
