"""Where a learner stands: objectives with their evidence, cards and pages."""

import dataclasses
import datetime as dt

from app.content.library import Library
from app.mastery.evidence import AnswerHistory
from app.mastery.objectives import (
    NOTHING,
    LearnerEvidence,
    TopicCards,
    build_standings,
    course_by_objective,
)

TODAY = dt.date(2026, 6, 9)


def answered(library: Library, right: dict[str, int], ago: int = 0) -> LearnerEvidence:
    """First answers: so many right ones for each topic, some days ago."""
    first = AnswerHistory(1.0, TODAY - dt.timedelta(days=ago))
    firsts = {
        question: first
        for slug, count in right.items()
        for question in library.topics[slug].questions[:count]
    }
    return dataclasses.replace(NOTHING, firsts=firsts)


def test_every_objective_is_listed_even_if_untouched(library: Library):
    domains = build_standings(library, NOTHING, TODAY)

    numbers = [s.objective.number for d in domains for s in d.standings]
    assert numbers == ["1.1", "2.1"]
    assert not any(s.started for d in domains for s in d.standings)


def test_an_untested_objective_stands_at_its_rate_of_guessing(library: Library):
    for domain in build_standings(library, NOTHING, TODAY):
        (standing,) = domain.standings
        assert standing.belief.mean == standing.guess == domain.mean
        assert 0 < standing.guess < 0.5


def test_answers_cards_and_pages_are_counted_for_their_objective(library: Library):
    record = dataclasses.replace(
        answered(library, {"weights": 2}),
        cards={"weights": TopicCards(begun=1, known=1, days=3.0, losses=0.1)},
        read={"weights": {"try-it"}},
    )

    (first, second) = (d.standings[0] for d in build_standings(library, record, TODAY))

    assert (first.evidence.answers, first.evidence.score) == (2, 2.0)
    assert (first.cards.begun, first.cards.stability) == (1, 10.0)
    assert first.pages.read == 1
    assert not second.started


def test_no_share_is_named_below_five_answers(library: Library):
    def enough(count: int) -> bool:
        record = answered(library, {"weights": count})
        return build_standings(library, record, TODAY)[0].evidence.enough

    assert not enough(4)
    assert enough(5)


def test_what_left_the_course_counts_no_more(library: Library):
    record = dataclasses.replace(NOTHING, firsts={"gone": AnswerHistory(1.0, TODAY)})

    assert not any(d.evidence.answers for d in build_standings(library, record, TODAY))


def test_designs_are_no_exam_questions(library: Library):
    asked = {i for a in course_by_objective(library).asked.values() for i, _ in a.rates}

    assert asked == {q.id for q in library.questions.values() if q.type != "design"}


def test_four_weeks_ago_newer_answers_were_not_there(library: Library):
    new, old = answered(library, {"weights": 6}), answered(library, {"weights": 6}, 40)

    def before(record: LearnerEvidence) -> float:
        return build_standings(library, record, TODAY, ago=28)[0].mean

    assert before(new) == build_standings(library, NOTHING, TODAY)[0].mean
    assert before(old) > build_standings(library, old, TODAY)[0].mean


def test_the_course_is_turned_around_once(library: Library):
    assert course_by_objective(library) is course_by_objective(library)
